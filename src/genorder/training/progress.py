"""Progress reports, and the measured time of one more training step."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from genorder.errors import Interrupted
from genorder.execution import StopRequest

_REPORT_SECONDS = 0.5  # between two reports
_MOST_STEPS = 50  # of a measurement


@final
@dataclass(frozen=True)
class Progress:
    step: int
    steps: int
    loss: float | None  # mean over the last steps; None if nothing is trained
    seconds: float  # so far, including those before an interruption

    @property
    def seconds_left(self) -> float:
        return self.seconds / self.step * (self.steps - self.step)


@final
class ProgressReporter:
    """Reports the progress of computations that train nothing, and raises Interrupted once `stop` is requested."""

    def __init__(
        self,
        on_progress: Callable[[str, Progress], None] | None = None,
        stop: StopRequest | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_progress, self._stop, self._clock = on_progress, stop, clock
        self._part, self._done = "", 0
        self._started, self._reported = 0.0, 0.0

    def __call__(self, part: str, done: int, total: int) -> None:
        """Report that `done` of `total` units of this part are done. Raises Interrupted."""
        if self._stop is not None and self._stop.requested:
            raise Interrupted(f"stopped while {part}; the same command does that part again")
        now = self._clock()
        if part != self._part or done < self._done:  # the same part may start again
            self._part, self._started, self._reported = part, now, now
        elif self._on_progress and 0 < done <= total and now - self._reported >= _REPORT_SECONDS:
            self._reported = now
            self._on_progress(part, Progress(done, total, None, now - self._started))
        self._done = done


def marginal_seconds(seconds: Callable[[int], float], budget: float) -> float:
    """The time of one more training step, without the cost of starting. Takes about `budget` seconds.

    `seconds(n)` trains for n steps and returns the time that it took.
    """
    seconds(1)  # the first training of a process also loads libraries and allocates memory
    one = seconds(1)
    steps = max(4, min(_MOST_STEPS, round(budget / one)))
    return max((seconds(1 + steps) - one) / steps, 1e-9)
