"""Measurements of speed, each as a ratio against a baseline taken in the same run."""

from genorder.bench.training import BenchRow, bench_training, matmul_gflops

__all__ = ["BenchRow", "bench_training", "matmul_gflops"]
