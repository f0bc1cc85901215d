"""The one training loop."""

from genorder.training.batches import BatchPlan
from genorder.training.checkpoint import CheckpointFolder
from genorder.training.config import TrainingConfig
from genorder.training.loop import CHECKPOINT_SECONDS, FitResult, Progress, fit

__all__ = [
    "CHECKPOINT_SECONDS",
    "BatchPlan",
    "CheckpointFolder",
    "FitResult",
    "Progress",
    "TrainingConfig",
    "fit",
]
