"""One `map` over jobs, in this process or in local worker processes, with the same results.

A job is a plain value. Its function is pickled by module and name, so that a fresh process can import it. If a worker
dies, only its current job is lost, and a new worker does it again.

`concurrent.futures` and `loky` cannot replace this module: there the death of one worker fails the running jobs of all
workers, and a job cannot report progress.
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

_ATTEMPTS = 3  # a job that ends its worker this often fails the run
_STOP_CHECK_SECONDS = 0.2


class JobFunction(Protocol[Job, Result]):
    """A module-level function. It may report progress, and should end early once `stop` is requested."""

    def __call__(self, job: Job, /, *, report: Callable[[Any], None], stop: StopRequest | None) -> Result: ...


@final
class Workers:
    """Worker processes, started when needed and ended with the `with` block; one worker is this process itself.

    Each worker uses `threads` threads for tensors.
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
        work: JobFunction[Job, Result],
        jobs: Sequence[Job],
        *,
        on_report: Callable[[int, Any], None] = lambda index, value: None,
        stop: StopRequest | None = None,
    ) -> Iterator[tuple[int, Result]]:
        """Yield (index of the job, its result) as jobs finish; with one worker, in the order of `jobs`.

        `on_report` receives (index of the job, reported value). Raises the InputError or GenorderError of a job
        unchanged, other errors of a worker process as GenorderError, and Interrupted between jobs once `stop` is
        requested.
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
    """Worker processes, each with its own pipe: the death of one is noticed at once and does not affect the others."""

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
        running: dict[Connection, int] = {}
        try:
            done = 0
            while done < len(jobs):
                _check(stop, done, len(jobs))
                for pipe in [pipe for pipe in self._processes if pipe not in running]:
                    if waiting:
                        running[pipe] = index = waiting.pop()
                        attempts[index] += 1
                        with suppress(OSError):  # a dead worker is noticed below, where its result is awaited
                            pipe.send((work, jobs[index]))
                ready = wait(list(running), timeout=_STOP_CHECK_SECONDS)
                for pipe in [pipe for pipe in running if pipe in ready]:
                    index = running[pipe]
                    try:
                        outcome, value = pipe.recv()
                    except (EOFError, OSError):
                        del running[pipe]
                        self._remove(pipe)
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
                    del running[pipe]
                    if outcome == "error":
                        raise value
                    done += 1
                    yield index, value
        finally:
            for pipe in running.keys() & self._processes.keys():  # the map was abandoned: nobody awaits these results
                self._processes[pipe].terminate()
                self._remove(pipe)

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
        theirs.close()  # so that the end of the worker closes the pipe
        self._processes[ours] = process

    def _remove(self, pipe: Connection) -> None:
        process = self._processes.pop(pipe)
        pipe.close()
        process.join()


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """A process started in the block ignores Ctrl-C from its first moment, also during its imports."""
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
    """A process started in the block does not import the user's main program, which would run the program again."""
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
    """The main loop of a worker: do jobs until the pipe closes."""
    # Ctrl-C reaches the whole process group, and the parent decides what happens. Where signal masks are not inherited,
    # Ctrl-C is ignored only from here on.
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
