"""The unigram baseline: the loss of predicting each target by the frequency of its tokens, without reading anything."""

import numpy as np
from numpy.typing import NDArray

from genorder.data import EncodedDataset


def unigram_loss(train: EncodedDataset, validation: EncodedDataset) -> float:
    """Mean over all targets of the validation samples."""
    return float(unigram_losses(train, validation).sum() / validation.target_lengths_N.sum())


def unigram_losses(train: EncodedDataset, validation: EncodedDataset) -> NDArray[np.float64]:
    """losses_NL of each target of the validation samples; zero where a sample has no such target."""
    losses_NL = np.zeros((len(validation), validation.target_width))
    for column in range(validation.target_width):
        has_N = (validation.target_lengths_N > column).cpu().numpy()
        guessed = validation.targets_NL[:, column].cpu().numpy()[has_N]
        if not len(guessed):
            continue
        seen = train.targets_NL[train.target_lengths_N > column, column].cpu().numpy()
        seen_V, guessed_V = (np.bincount(tokens, minlength=train.model_vocabulary) for tokens in (seen, guessed))
        # Half a sighting more for each token, so that one which training lacks is not impossible.
        weights_V = np.where((seen_V > 0) | (guessed_V > 0), seen_V + 0.5, 0.0)
        losses_NL[has_N, column] = -np.log(weights_V[guessed] / weights_V.sum())
    return losses_NL
