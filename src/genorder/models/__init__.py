"""The networks."""

from genorder.models.fresh import fresh_gpt
from genorder.models.gpt import GPT, GPTConfig, KeyValueCache
from genorder.models.loading import load_model
from genorder.models.saved import SavedModel, is_saved
from genorder.models.told import AnyGPT, ToldGPT, fresh_told_gpt

__all__ = [
    "GPT",
    "AnyGPT",
    "GPTConfig",
    "KeyValueCache",
    "SavedModel",
    "ToldGPT",
    "fresh_gpt",
    "fresh_told_gpt",
    "is_saved",
    "load_model",
]
