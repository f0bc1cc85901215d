"""Greedy decoding, success rate, prediction."""

from genorder.evaluation.decoding import generate_greedily
from genorder.evaluation.prediction import predict
from genorder.evaluation.success import DecodedExample, Evaluation, evaluate, wilson_interval

__all__ = ["DecodedExample", "Evaluation", "evaluate", "generate_greedily", "predict", "wilson_interval"]
