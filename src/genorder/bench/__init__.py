"""Measurements of speed, each as a ratio against a baseline taken in the same run."""

from genorder.bench.scoring import ScoringRow, bench_scoring
from genorder.bench.training import BenchRow, bench_training, matmul_gflops

__all__ = ["BenchRow", "ScoringRow", "bench_scoring", "bench_training", "matmul_gflops"]
