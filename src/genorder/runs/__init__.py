"""From what is asked for to a finished run directory, for the command line and for Python alike."""

from genorder.runs.discover import (
    DiscoveryRun,
    discover_in,
    discovery_run,
    scratch_problem,
    split_settings,
    within_time,
)
from genorder.runs.finished import FinishedRun, read_finished_run, source_of_run
from genorder.runs.given import Given, configure_given
from genorder.runs.keeping import Machine, keep_result, run_path
from genorder.runs.rank import JUDGES, RankRun, rank_in, rank_run
from genorder.runs.source import Source, configure
from genorder.runs.train import TrainRun, train_in, train_run

__all__ = [
    "JUDGES",
    "DiscoveryRun",
    "FinishedRun",
    "Given",
    "Machine",
    "RankRun",
    "Source",
    "TrainRun",
    "configure",
    "configure_given",
    "discover_in",
    "discovery_run",
    "keep_result",
    "rank_in",
    "rank_run",
    "read_finished_run",
    "run_path",
    "scratch_problem",
    "source_of_run",
    "split_settings",
    "train_in",
    "train_run",
    "within_time",
]
