"""Ctrl-C and termination as a request to stop at the next safe point."""

import signal
import sys
from types import FrameType, TracebackType
from typing import Any, final


@final
class StopRequest:
    """While active, the first SIGINT or SIGTERM sets `requested`; a second SIGINT interrupts at once."""

    def __init__(self) -> None:
        self.requested = False
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopRequest":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.requested = True
        sys.stderr.write("\nstopping at the next safe point; Ctrl-C once more stops at once\n")
