"""The networks."""

from genorder.models.gpt import GPT, GPTConfig, KeyValueCache
from genorder.models.saved import SavedModel, load_model

__all__ = ["GPT", "GPTConfig", "KeyValueCache", "SavedModel", "load_model"]
