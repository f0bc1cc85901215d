"""Parts of a search that train nothing, such as counting and constructing: how far they are, and Ctrl-C in them."""

import time
from collections.abc import Callable
from typing import final

from genorder.errors import Interrupted
from genorder.execution import StopRequest
from genorder.training.loop import Progress

_TELL_SECONDS = 0.5  # from one telling to the next


@final
class ProgressReporter:
    """Is told how far a part is, tells it on from time to time, and ends it once `stop` is requested."""

    def __init__(
        self, on_progress: Callable[[str, Progress], None] | None = None, stop: StopRequest | None = None
    ) -> None:
        self._on_progress, self._stop = on_progress, stop
        self._part, self._done = "", 0
        self._began, self._told = 0.0, 0.0

    def __call__(self, part: str, done: int, total: int) -> None:
        """So many of all that the part has to do are done. Raises Interrupted."""
        if self._stop is not None and self._stop.requested:
            raise Interrupted(f"stopped while {part}; the same command does that part again")
        now = time.monotonic()
        if part != self._part or done < self._done:  # the same part may come again
            self._part, self._began, self._told = part, now, now
        elif self._on_progress and 0 < done <= total and now - self._told >= _TELL_SECONDS:
            self._told = now
            self._on_progress(part, Progress(done, total, None, now - self._began))
        self._done = done
