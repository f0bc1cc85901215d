"""Which positions determine each target, with evidence."""

from genorder.dependencies.mining import Determinant, Mined, MiningConfig, mine_dependencies

__all__ = ["Determinant", "Mined", "MiningConfig", "mine_dependencies"]
