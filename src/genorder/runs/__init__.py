"""From a request to a finished run directory, for the command line and for Python alike.

Each verb has two functions: `plan_...` resolves and checks a request, before a run directory exists; `run_...` does the
work in the directory that `run_session` has opened.
"""

from genorder.runs.attention import AttentionRun, plan_attention, run_attention
from genorder.runs.discover import DiscoveryRun, keep_budget, plan_discovery, run_discovery
from genorder.runs.finished import FinishedRun, ModelOrigin, origin_of_model, read_finished_run, source_of_run
from genorder.runs.rank import JUDGES, RankRun, plan_rank, run_rank
from genorder.runs.request import DatasetLike, DataSpec, Machine, OrderLike, RunRequest, SplitLike
from genorder.runs.session import RunSpec, SessionResult, run_session, run_spec
from genorder.runs.source import Source, resolve_request
from genorder.runs.train import TrainRun, plan_train, run_train

__all__ = [
    "JUDGES",
    "AttentionRun",
    "DataSpec",
    "DatasetLike",
    "DiscoveryRun",
    "FinishedRun",
    "Machine",
    "ModelOrigin",
    "OrderLike",
    "RankRun",
    "RunRequest",
    "RunSpec",
    "SessionResult",
    "Source",
    "SplitLike",
    "TrainRun",
    "keep_budget",
    "origin_of_model",
    "plan_attention",
    "plan_discovery",
    "plan_rank",
    "plan_train",
    "read_finished_run",
    "resolve_request",
    "run_attention",
    "run_discovery",
    "run_rank",
    "run_session",
    "run_spec",
    "run_train",
    "source_of_run",
]
