"""Measures of rankings, and of the attention of models."""

from genorder.analysis.ranks import RankAgreement, agreement, identification_rates, pairs_in_sequence, rank_of

__all__ = ["RankAgreement", "agreement", "identification_rates", "pairs_in_sequence", "rank_of"]
