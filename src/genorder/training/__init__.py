"""The one training loop."""

from genorder.training.average import WeightAverage
from genorder.training.batches import BatchPlan
from genorder.training.checkpoint import CheckpointFolder, tensors_of
from genorder.training.config import TrainingConfig
from genorder.training.loop import CHECKPOINT_SECONDS, FitResult, Progress, fit
from genorder.training.reporter import ProgressReporter
from genorder.training.timing import marginal_seconds

__all__ = [
    "CHECKPOINT_SECONDS",
    "BatchPlan",
    "CheckpointFolder",
    "FitResult",
    "Progress",
    "ProgressReporter",
    "TrainingConfig",
    "WeightAverage",
    "fit",
    "marginal_seconds",
    "tensors_of",
]
