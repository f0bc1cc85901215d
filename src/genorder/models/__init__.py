"""The networks: GPT, the GPT conditioned on the order, and the routed model; a trained model on disk."""

from genorder.models.gpt import GPT, GPTConfig, KeyValueCache, fresh_gpt
from genorder.models.order_conditioned import AnyGPT, OrderConditionedGPT, fresh_order_conditioned_gpt
from genorder.models.saved import SavedModel, is_saved, load_model

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
