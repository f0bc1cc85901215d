"""The networks."""

from genorder.models.fresh import fresh_gpt
from genorder.models.gpt import GPT, GPTConfig, KeyValueCache
from genorder.models.loading import load_model
from genorder.models.order_conditioned import AnyGPT, OrderConditionedGPT, fresh_order_conditioned_gpt
from genorder.models.saved import SavedModel, is_saved

__all__ = [
    "GPT",
    "AnyGPT",
    "GPTConfig",
    "KeyValueCache",
    "OrderConditionedGPT",
    "SavedModel",
    "fresh_gpt",
    "fresh_order_conditioned_gpt",
    "is_saved",
    "load_model",
]
