"""Measurements of speed, each as a ratio against a baseline taken in the same run."""

from genorder.bench.reading import ReadingRow, bench_reading
from genorder.bench.scoring import ScoringRow, bench_scoring
from genorder.bench.training import BenchRow, bench_training, matmul_gflops
from genorder.bench.workers import WorkersRow, bench_workers

__all__ = [
    "BenchRow",
    "ReadingRow",
    "ScoringRow",
    "WorkersRow",
    "bench_reading",
    "bench_scoring",
    "bench_training",
    "bench_workers",
    "matmul_gflops",
]
