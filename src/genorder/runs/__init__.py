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
from genorder.runs.given import DatasetLike, SplitLike, configure_given
from genorder.runs.origin import ModelOrigin, origin_of_model
from genorder.runs.rank import JUDGES, RankRun, rank_in, rank_run
from genorder.runs.session import Machine, RunSpec, run_session, run_spec
from genorder.runs.source import DataSpec, Source, configure
from genorder.runs.train import TrainRun, train_in, train_run

__all__ = [
    "JUDGES",
    "DataSpec",
    "DatasetLike",
    "DiscoveryRun",
    "FinishedRun",
    "Machine",
    "ModelOrigin",
    "RankRun",
    "RunSpec",
    "Source",
    "SplitLike",
    "TrainRun",
    "checked",
    "configure",
    "configure_given",
    "discover_in",
    "discovery_run",
    "origin_of_model",
    "rank_in",
    "rank_run",
    "read_finished_run",
    "run_session",
    "run_spec",
    "scratch_problem",
    "source_of_run",
    "split_settings",
    "train_in",
    "train_run",
    "within_time",
]
