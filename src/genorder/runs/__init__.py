"""From what is asked for to a finished run directory, for the command line and for Python alike."""

from genorder.runs.discover import (
    DiscoveryRun,
    checked,
    discover_in,
    discovery_run,
    scratch_problem,
    split_settings,
    within_time,
)
from genorder.runs.finished import FinishedRun, read_finished_run, source_of_run
from genorder.runs.given import Given, GivenSplit, configure_given
from genorder.runs.keeping import Machine, Place, keep_result, place_of
from genorder.runs.origin import ModelOrigin, origin_of_model
from genorder.runs.rank import JUDGES, RankRun, rank_in, rank_run
from genorder.runs.source import AskedData, Source, configure
from genorder.runs.train import TrainRun, train_in, train_run

__all__ = [
    "JUDGES",
    "AskedData",
    "DiscoveryRun",
    "FinishedRun",
    "Given",
    "GivenSplit",
    "Machine",
    "ModelOrigin",
    "Place",
    "RankRun",
    "Source",
    "TrainRun",
    "checked",
    "configure",
    "configure_given",
    "discover_in",
    "discovery_run",
    "keep_result",
    "origin_of_model",
    "place_of",
    "rank_in",
    "rank_run",
    "read_finished_run",
    "scratch_problem",
    "source_of_run",
    "split_settings",
    "train_in",
    "train_run",
    "within_time",
]
