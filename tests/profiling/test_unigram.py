import numpy as np
import pytest
from profiling_helpers import random_data, relu_splits

from genorder.profiling.unigram import unigram_loss, unigram_losses


def test_losses_follow_the_frequencies_of_each_target() -> None:
    """Half a sighting more for each token that is seen."""
    train, validation = relu_splits()
    losses_NL = unigram_losses(train, validation)
    for column in range(4):
        seen, guessed = (split.targets_NL[:, column].tolist() for split in (train, validation))
        counts = {token: seen.count(token) + 0.5 for token in {*seen, *guessed}}
        expected = [-np.log(counts[token] / sum(counts.values())) for token in guessed]
        assert losses_NL[:, column] == pytest.approx(expected)
    assert unigram_loss(train, validation) == pytest.approx(losses_NL.mean())


def test_targets_that_a_sample_does_not_have_lose_nothing() -> None:
    train, validation = random_data(200, fixed=False), random_data(50, fixed=False, seed=1)
    losses_NL = unigram_losses(train, validation)
    has_NL = np.arange(4) < validation.target_lengths_N.numpy()[:, None]
    assert not has_NL.all()
    assert ((losses_NL > 0) == has_NL).all()
    assert unigram_loss(train, validation) == pytest.approx(losses_NL[has_NL].mean())
