"""Progress of computations that train nothing: reported from time to time, and interrupted by Ctrl-C."""

import pytest

from genorder.errors import Interrupted
from genorder.execution import StopRequest
from genorder.training import Progress, ProgressReporter


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_it_reports_each_part_twice_a_second() -> None:
    clock, reports = Clock(), []
    reporter = ProgressReporter(lambda part, progress: reports.append((part, progress)), clock=clock)
    for tenth in range(24):
        clock.now = tenth / 10
        reporter("one" if tenth < 12 else "other", tenth % 12, 12)
    assert reports == [
        ("one", Progress(5, 12, None, 0.5)),
        ("one", Progress(10, 12, None, 1.0)),
        ("other", Progress(5, 12, None, pytest.approx(0.5))),
        ("other", Progress(10, 12, None, pytest.approx(1.0))),
    ]
    assert reports[0][1].seconds_left == pytest.approx(0.7)


def test_a_part_that_comes_again_begins_anew() -> None:
    clock, reports = Clock(), []
    reporter = ProgressReporter(lambda part, progress: reports.append(progress), clock=clock)
    for now, done in ((0.0, 0), (1.0, 3), (601.0, 0), (602.0, 1)):  # a training of ten minutes in between
        clock.now = now
        reporter("constructing", done, 4)
    assert reports == [Progress(3, 4, None, 1.0), Progress(1, 4, None, 1.0)]


def test_a_stop_request_interrupts_at_once() -> None:
    stop = StopRequest()
    reporter = ProgressReporter(stop=stop)
    reporter("constructing", 1, 3)
    stop.requested = True
    with pytest.raises(Interrupted, match="stopped while constructing; the same command does that part again"):
        reporter("constructing", 2, 3)
