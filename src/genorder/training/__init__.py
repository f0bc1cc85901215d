"""The training loop, its batches, checkpoints and progress."""

from genorder.training.batches import BatchPlan
from genorder.training.checkpoint import CheckpointFolder, tensors_of
from genorder.training.loop import (
    CHECKPOINT_SECONDS,
    FitResult,
    ParameterGroup,
    TrainingConfig,
    WeightAverage,
    fit,
)
from genorder.training.progress import Progress, ProgressReporter, marginal_seconds

__all__ = [
    "CHECKPOINT_SECONDS",
    "BatchPlan",
    "CheckpointFolder",
    "FitResult",
    "ParameterGroup",
    "Progress",
    "ProgressReporter",
    "TrainingConfig",
    "WeightAverage",
    "fit",
    "marginal_seconds",
    "tensors_of",
]
