"""How far a part is that trains nothing: told from time to time, and ended by Ctrl-C."""

import pytest

from genorder.errors import Interrupted
from genorder.execution import StopRequest
from genorder.training import Progress, ProgressReporter, reporter


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


def test_it_tells_twice_a_second_of_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, told = Clock(), []
    monkeypatch.setattr(reporter, "time", clock)
    watch = ProgressReporter(lambda part, progress: told.append((part, progress)))
    for tenth in range(24):
        clock.now = tenth / 10
        watch("one" if tenth < 12 else "other", tenth % 12, 12)
    assert told == [
        ("one", Progress(5, 12, None, 0.5)),
        ("one", Progress(10, 12, None, 1.0)),
        ("other", Progress(5, 12, None, pytest.approx(0.5))),
        ("other", Progress(10, 12, None, pytest.approx(1.0))),
    ]
    assert told[0][1].seconds_left == pytest.approx(0.7)


def test_a_part_that_comes_again_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, told = Clock(), []
    monkeypatch.setattr(reporter, "time", clock)
    watch = ProgressReporter(lambda part, progress: told.append(progress))
    for now, done in ((0.0, 0), (1.0, 3), (601.0, 0), (602.0, 1)):  # a training of ten minutes in between
        clock.now = now
        watch("constructing", done, 4)
    assert told == [Progress(3, 4, None, 1.0), Progress(1, 4, None, 1.0)]


def test_who_asks_to_stop_is_heard_at_once() -> None:
    stop = StopRequest()
    watch = ProgressReporter(stop=stop)
    watch("constructing", 1, 3)
    stop.requested = True
    with pytest.raises(Interrupted, match="stopped while constructing; the same command does that part again"):
        watch("constructing", 2, 3)
