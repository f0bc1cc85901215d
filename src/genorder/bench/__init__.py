"""Benchmarks of speed for `genorder bench`: each row is a ratio to a baseline measured in the same run.

Seeds are fixed, because only time is measured.
"""

from genorder.bench.reading import ReadingRow, bench_reading
from genorder.bench.scoring import ScoringRow, bench_scoring
from genorder.bench.training import TrainingRow, bench_training, matmul_gflops
from genorder.bench.workers import WorkersRow, bench_workers

__all__ = [
    "ReadingRow",
    "ScoringRow",
    "TrainingRow",
    "WorkersRow",
    "bench_reading",
    "bench_scoring",
    "bench_training",
    "bench_workers",
    "matmul_gflops",
]
