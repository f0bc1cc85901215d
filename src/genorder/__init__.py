"""Find the order in which a Transformer should emit its target tokens so that training succeeds.

The public names; each is loaded when it is first used, so that `import genorder` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from genorder.api import analyze_attention, discover, load_dataset, rank, train
    from genorder.data import (
        ReadOptions,
        SequenceDataset,
        Splits,
        read_dataset,
        read_jsonl,
        split_dataset,
        write_dataset,
        write_jsonl,
    )
    from genorder.errors import GenorderError, InputError, Interrupted
    from genorder.evaluation import Evaluation, evaluate, predict
    from genorder.export import export_run
    from genorder.fixed_order import FixedOrderRun, train_and_evaluate
    from genorder.models import GPT, GPTConfig, SavedModel, load_model
    from genorder.orders import Constraints, DependencyGraph, Order, cost_ratio, parse_order
    from genorder.presets import RunConfig
    from genorder.results import AttentionResult, DiscoveryResult, RankResult, TrainResult
    from genorder.search import Search
    from genorder.settings import resolve
    from genorder.store import RunDirectory
    from genorder.tasks import RecurrenceTask, Task, make_task, register_task, task_splits
    from genorder.training import TrainingConfig

_HOME = {
    "api": ["analyze_attention", "discover", "load_dataset", "rank", "train"],
    "data": [
        "ReadOptions",
        "SequenceDataset",
        "Splits",
        "read_dataset",
        "read_jsonl",
        "split_dataset",
        "write_dataset",
        "write_jsonl",
    ],
    "errors": ["GenorderError", "InputError", "Interrupted"],
    "evaluation": ["Evaluation", "evaluate", "predict"],
    "export": ["export_run"],
    "fixed_order": ["FixedOrderRun", "train_and_evaluate"],
    "models": ["GPT", "GPTConfig", "SavedModel", "load_model"],
    "orders": ["Constraints", "DependencyGraph", "Order", "cost_ratio", "parse_order"],
    "presets": ["RunConfig"],
    "results": ["AttentionResult", "DiscoveryResult", "RankResult", "TrainResult"],
    "search": ["Search"],
    "settings": ["resolve"],
    "store": ["RunDirectory"],
    "tasks": ["RecurrenceTask", "Task", "make_task", "register_task", "task_splits"],
    "training": ["TrainingConfig"],
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "GPT",
    "AttentionResult",
    "Constraints",
    "DependencyGraph",
    "DiscoveryResult",
    "Evaluation",
    "FixedOrderRun",
    "GPTConfig",
    "GenorderError",
    "InputError",
    "Interrupted",
    "Order",
    "RankResult",
    "ReadOptions",
    "RecurrenceTask",
    "RunConfig",
    "RunDirectory",
    "SavedModel",
    "Search",
    "SequenceDataset",
    "Splits",
    "Task",
    "TrainResult",
    "TrainingConfig",
    "analyze_attention",
    "cost_ratio",
    "discover",
    "evaluate",
    "export_run",
    "load_dataset",
    "load_model",
    "make_task",
    "parse_order",
    "predict",
    "rank",
    "read_dataset",
    "read_jsonl",
    "register_task",
    "resolve",
    "split_dataset",
    "task_splits",
    "train",
    "train_and_evaluate",
    "write_dataset",
    "write_jsonl",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'genorder' has no attribute {name!r}")
    return getattr(import_module(f"genorder.{_MODULE_OF[name]}"), name)
