"""One `map` over jobs: in this process, or over local worker processes. The results do not depend on which.

A job is a plain value; the function that does it is named by module and name, so that a fresh process can find it. A
worker that dies costs the job it was doing, which is done again by a new worker.
"""

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any, Protocol, TypeVar, final

from genorder.errors import GenorderError, InputError, Interrupted
from genorder.execution.interrupt import StopRequest
from genorder.execution.machine import start_threads, using_threads

Job = TypeVar("Job", contravariant=True)
Result = TypeVar("Result", covariant=True)

_ATTEMPTS = 3  # after which a job that kills its worker fails the run
_STOP_CHECK_SECONDS = 0.2


class Work(Protocol[Job, Result]):
    """A function of a module. It may report how far it is, and should end early once `stop` is requested."""

    def __call__(self, job: Job, /, *, report: Callable[[Any], None], stop: StopRequest | None) -> Result: ...


@final
class Workers:
    """Processes that do jobs, started when they are needed and ended with the block; or this process, if it is one.

    Each uses `threads` threads for tensors.
    """

    def __init__(self, workers: int, threads: int) -> None:
        self._workers, self._threads = workers, threads
        self._pool: _Pool | None = None

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool:
            self._pool.close()

    def map(
        self,
        work: Work[Job, Result],
        jobs: Sequence[Job],
        *,
        on_report: Callable[[int, Any], None] = lambda index, value: None,
        stop: StopRequest | None = None,
    ) -> Iterator[tuple[int, Result]]:
        """Yield (index of the job, its result) as jobs finish; with one worker, in their sequence.

        `on_report` is told (index of the job, what it reports). Raises what a job raised (its InputError or
        GenorderError as it is), and Interrupted between jobs once `stop` is requested.
        """
        if self._workers > 1 and jobs:
            self._pool = self._pool or _Pool(self._workers, self._threads)
            yield from self._pool.run(work, jobs, on_report, stop)
            return
        for index, job in enumerate(jobs):
            _check(stop, index, len(jobs))
            with using_threads(self._threads):
                result = work(job, report=partial(on_report, index), stop=stop)
            yield index, result


def _check(stop: StopRequest | None, done: int, total: int) -> None:
    if stop is not None and stop.requested:
        raise Interrupted(f"stopped after {done} of {total} jobs; the same command continues from there")


class _Pool:
    """Worker processes, each with its own pipe, so that the death of one is seen at once and harms no other."""

    def __init__(self, workers: int, threads: int) -> None:
        # A fresh interpreter per worker: forking a process whose tensor threads run can deadlock.
        self._context = multiprocessing.get_context("spawn")
        self._workers, self._threads = workers, threads
        self._processes: dict[Connection, BaseProcess] = {}

    def run(
        self,
        work: Callable[..., Any],
        jobs: Sequence[Any],
        on_report: Callable[[int, Any], None],
        stop: StopRequest | None,
    ) -> Iterator[tuple[int, Any]]:
        while len(self._processes) < min(self._workers, len(jobs)):
            self._start(work)
        waiting = list(range(len(jobs)))[::-1]
        attempts = [0] * len(jobs)
        doing: dict[Connection, int] = {}
        try:
            done = 0
            while done < len(jobs):
                _check(stop, done, len(jobs))
                for pipe in [pipe for pipe in self._processes if pipe not in doing]:
                    if waiting:
                        doing[pipe] = index = waiting.pop()
                        attempts[index] += 1
                        with suppress(OSError):  # a worker that is gone is noticed below, where its answer is awaited
                            pipe.send((work, jobs[index]))
                ready = wait(list(doing), timeout=_STOP_CHECK_SECONDS)
                for pipe in [pipe for pipe in doing if pipe in ready]:
                    index = doing[pipe]
                    try:
                        outcome, value = pipe.recv()
                    except (EOFError, OSError):
                        del doing[pipe]
                        self._bury(pipe)
                        if attempts[index] >= _ATTEMPTS:
                            raise GenorderError(
                                f"job {index + 1} of {len(jobs)} ended its worker process {_ATTEMPTS} times; "
                                "is there enough memory for this many workers?"
                            ) from None
                        waiting.append(index)
                        self._start(work)
                        continue
                    if outcome == "report":
                        on_report(index, value)
                        continue
                    del doing[pipe]
                    if outcome == "error":
                        raise value
                    done += 1
                    yield index, value
        finally:
            for pipe in doing.keys() & self._processes.keys():  # given up: what they still answer is nobody's
                self._processes[pipe].terminate()
                self._bury(pipe)

    def close(self) -> None:
        for pipe, process in self._processes.items():
            process.terminate()
            pipe.close()
        for process in self._processes.values():
            process.join()
        self._processes.clear()

    def _start(self, work: Callable[..., Any]) -> None:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, self._threads), daemon=True)
        with _sigint_blocked(), _program_hidden(work):
            process.start()
        theirs.close()  # so that the worker's death closes the pipe
        self._processes[ours] = process

    def _bury(self, pipe: Connection) -> None:
        process = self._processes.pop(pipe)
        pipe.close()
        process.join()


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """A process started in here is deaf to Ctrl-C from its first moment, also while it imports."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _program_hidden(work: Callable[..., Any]) -> Iterator[None]:
    """A process started in here does not run the user's program again, which Python would do to find what is in it."""
    if work.__module__ == "__main__":
        yield
        return
    program = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = program


def _serve(pipe: Connection, threads: int) -> None:
    """What a worker does until its pipe closes."""
    # Ctrl-C reaches the whole group; the parent decides. (Where masks are not inherited, from here on only.)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    start_threads(threads)
    while True:
        try:
            work, job = pipe.recv()
        except EOFError:
            return
        try:
            reply: tuple[str, Any] = ("done", work(job, report=partial(_report, pipe), stop=None))
        except (InputError, GenorderError) as error:
            reply = ("error", error)
        except Exception as error:
            reason = (str(error).splitlines() or [""])[0]
            reply = ("error", GenorderError(f"a worker failed: {type(error).__name__}: {reason}"))
        pipe.send(reply)


def _report(pipe: Connection, value: Any) -> None:
    pipe.send(("report", value))
