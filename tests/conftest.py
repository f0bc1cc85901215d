"""For all tests: a slow machine is no failure, nothing is measured or drawn for longer than it takes to test it, and
Ctrl-C reaches the programs that they start.
"""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# A shell that runs something in the background has it ignore Ctrl-C, and what it starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def _short_measurements() -> Iterator[None]:
    """Estimates by a few steps, and few random sorts of a graph: both take a second otherwise."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("genorder.training.progress._MOST_STEPS", 4)
        patched.setattr("genorder.search.linearise._MOST_CHOICES", 6_000)
        yield
