import os
import signal
from collections.abc import Iterator

import pytest

from genorder.execution import StopRequest

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def _own_handlers() -> Iterator[None]:
    """A signal that StopRequest fails to catch must not end the tests."""
    before = {number: signal.signal(number, lambda *_: None) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SIGNALS)
def test_first_signal_sets_the_request(number: signal.Signals) -> None:
    with StopRequest() as stop:
        assert not stop.requested
        send(number)
        assert stop.requested


@pytest.mark.parametrize("first", SIGNALS)
def test_second_interrupt_raises_at_once(first: signal.Signals) -> None:
    with StopRequest() as stop:
        send(first)
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)
        assert stop.requested


@pytest.mark.parametrize("first", SIGNALS)
def test_termination_after_a_signal_does_not_raise(first: signal.Signals) -> None:
    with StopRequest() as stop:
        send(first)
        send(signal.SIGTERM)
        assert stop.requested


def test_other_signals_keep_their_handlers() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    with StopRequest():
        assert signal.getsignal(signal.SIGUSR1) is before


@pytest.mark.parametrize("error", [None, RuntimeError, KeyboardInterrupt])
def test_handlers_are_restored(error: type[BaseException] | None) -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    try:
        with StopRequest():
            assert [signal.getsignal(number) for number in SIGNALS] != before
            if error:
                raise error
    except (RuntimeError, KeyboardInterrupt):
        pass
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_without_a_signal_nothing_is_requested() -> None:
    stop = StopRequest()
    with stop:
        pass
    assert not stop.requested
    send(signal.SIGTERM)
    assert not stop.requested
