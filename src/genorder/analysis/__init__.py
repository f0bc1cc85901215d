"""What rankings and models tell, as plain numbers."""

from genorder.analysis.ranks import RankAgreement, agreement, identification_rates, pairs_in_sequence, rank_of

__all__ = ["RankAgreement", "agreement", "identification_rates", "pairs_in_sequence", "rank_of"]
