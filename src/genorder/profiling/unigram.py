"""The unigram baseline: the loss of predicting each target by the frequencies of its tokens alone."""

import numpy as np
from numpy.typing import NDArray

from genorder.data import EncodedDataset


def unigram_loss(train: EncodedDataset, validation: EncodedDataset) -> float:
    """The baseline's mean loss over all targets of the validation samples."""
    return float(unigram_losses(train, validation).sum() / validation.target_lengths_N.sum())


def unigram_losses(train: EncodedDataset, validation: EncodedDataset) -> NDArray[np.float64]:
    """The baseline's losses_NL of each target of the validation samples; zero if the sample is shorter."""
    losses_NL = np.zeros((len(validation), validation.target_width))
    for column in range(validation.target_width):
        has_N = (validation.target_lengths_N > column).cpu().numpy()
        guessed = validation.targets_NL[:, column].cpu().numpy()[has_N]
        if not len(guessed):
            continue
        seen = train.targets_NL[train.target_lengths_N > column, column].cpu().numpy()
        seen_V, guessed_V = (np.bincount(tokens, minlength=train.model_vocabulary) for tokens in (seen, guessed))
        # Add half an occurrence to each token (Krichevsky-Trofimov): a token new in validation has a finite loss.
        weights_V = np.where((seen_V > 0) | (guessed_V > 0), seen_V + 0.5, 0.0)
        losses_NL[has_N, column] = -np.log(weights_V[guessed] / weights_V.sum())
    return losses_NL
