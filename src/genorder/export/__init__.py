"""Finished runs in the formats of other programs: Hugging Face folders, and datasets in the found order."""

from genorder.export.exporting import KINDS, SPLITS, Exported, export_run

__all__ = ["KINDS", "SPLITS", "Exported", "export_run"]
