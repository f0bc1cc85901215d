"""A trained model from its folder, in either of the two forms that it is kept in."""

from pathlib import Path

import torch

from genorder.models.gpt2_folder import DESCRIPTION, load_gpt2_folder
from genorder.models.saved import SavedModel, load_saved


def load_model(folder: Path, device: torch.device) -> SavedModel:
    """From the model's folder in a run directory, or from a Hugging Face folder that `genorder export` wrote.

    Raises InputError where it is missing, damaged or of another format.
    """
    return load_gpt2_folder(folder, device) if (folder / DESCRIPTION).exists() else load_saved(folder, device)
