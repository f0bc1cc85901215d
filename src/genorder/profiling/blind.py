"""What is lost by who guesses each target by the frequency of its tokens, and reads nothing."""

import numpy as np
from numpy.typing import NDArray

from genorder.data import EncodedDataset


def blind_loss(train: EncodedDataset, validation: EncodedDataset) -> float:
    """Per prediction, over all targets of the validation samples."""
    samples_L = (validation.target_lengths_N[:, None].cpu().numpy() > np.arange(validation.target_width)).sum(axis=0)
    return float((blind_losses(train, validation) * samples_L).sum() / samples_L.sum())


def blind_losses(train: EncodedDataset, validation: EncodedDataset) -> NDArray[np.float64]:
    """losses_L of each target, over the validation samples that have it; zero where none has."""
    losses_L = np.zeros(validation.target_width)
    for column in range(validation.target_width):
        guessed = _column(validation, column)
        if not len(guessed):
            continue
        seen_V, guessed_V = (
            np.bincount(tokens, minlength=train.model_vocabulary) for tokens in (_column(train, column), guessed)
        )
        # Half a sighting more for each token, so that one which training lacks is not impossible.
        weights_V = np.where((seen_V > 0) | (guessed_V > 0), seen_V + 0.5, 0.0)
        losses_L[column] = -np.log(weights_V[guessed] / weights_V.sum()).mean()
    return losses_L


def _column(encoded: EncodedDataset, column: int) -> NDArray[np.int64]:
    """The tokens of one target, of the samples that have it."""
    tokens: NDArray[np.int64] = encoded.targets_NL[encoded.target_lengths_N > column, column].cpu().numpy()
    return tokens
