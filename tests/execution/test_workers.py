import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import worker_jobs

from genorder.errors import GenorderError, InputError, Interrupted
from genorder.execution import StopRequest, Workers


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    assert torch.get_num_threads() == before


@pytest.fixture(scope="module")
def two_workers() -> Iterator[Workers]:
    """Processes that several tests share, because starting one takes a second."""
    with Workers(2, 1) as pool:
        yield pool


@pytest.fixture(params=[1, 2])
def pool(request: pytest.FixtureRequest) -> Workers:
    """This process alone, or two worker processes."""
    shared: Workers = Workers(1, 1) if request.param == 1 else request.getfixturevalue("two_workers")
    return shared


def gone(process: int, patience: float = 10.0) -> bool:
    """Whether the process ends in time; an ended process exists until its parent has waited for it."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def mapped(
    work: Any, jobs: Sequence[Any], *, workers: int, threads: int = 1, stop: StopRequest | None = None
) -> list[tuple[int, Any]]:
    with Workers(workers, threads) as pool:
        return list(pool.map(work, jobs, stop=stop))


def test_the_same_results_whatever_the_number_of_workers(pool: Workers) -> None:
    jobs = [5, 0, 3, 3, -2, 7, 1]
    found = dict(pool.map(worker_jobs.square, jobs))
    assert found == {index: number * number for index, number in enumerate(jobs)}


def test_one_worker_takes_jobs_in_order() -> None:
    assert mapped(worker_jobs.square, [3, 1, 2], workers=1) == [(0, 9), (1, 1), (2, 4)]


@pytest.mark.parametrize("workers", [1, 4])
def test_no_jobs(workers: int) -> None:
    assert mapped(worker_jobs.square, [], workers=workers) == []


def test_threads_are_set_in_this_process_while_it_works() -> None:
    before = torch.get_num_threads()
    results = mapped(worker_jobs.threads_and_process, [0.0], workers=1, threads=before + 1)
    assert results == [(0, (before + 1, os.getpid()))]


def test_workers_are_processes_with_their_own_threads_that_end_with_the_block() -> None:
    with Workers(2, 3) as pool:
        results = pool.map(worker_jobs.threads_and_process, [0.0, 0.0, 60.0])
        first = [next(results)[1] for _ in range(2)]  # as happens when its user fails
    processes = {process for _, process in first}
    assert {threads for threads, _ in first} == {3}
    assert os.getpid() not in processes
    assert all(gone(process) for process in processes)


def test_a_later_map_uses_the_same_processes_and_adds_some_for_more_jobs() -> None:
    with Workers(2, 1) as pool:
        alone, both, later = (
            {process for _, (_, process) in pool.map(worker_jobs.threads_and_process, [0.0] * jobs)}
            for jobs in (1, 2, 4)
        )
        assert dict(pool.map(worker_jobs.square, [3, 4])) == {0: 9, 1: 16}
    assert alone < both
    assert len(both) == 2
    assert later <= both


def test_an_abandoned_map_does_not_affect_the_next(two_workers: Workers) -> None:
    abandoned = two_workers.map(worker_jobs.square, [1, 2, 3, 4])
    next(abandoned)
    abandoned.close()  # type: ignore[attr-defined]
    assert dict(two_workers.map(worker_jobs.square, [10, 20, 30])) == {0: 100, 1: 400, 2: 900}


def test_reports_of_a_job_arrive_in_order_before_its_result(pool: Workers) -> None:
    jobs, reported = [3, 0, 2, 1], list[tuple[int, Any]]()
    for index, result in pool.map(
        worker_jobs.count_up_to, jobs, on_report=lambda index, value: reported.append((index, value))
    ):
        assert [value for job, value in reported if job == index] == list(range(1, result + 1))
    assert sorted(reported) == [(0, 1), (0, 2), (0, 3), (2, 1), (2, 2), (3, 1)]


def test_a_job_in_this_process_receives_the_stop_request() -> None:
    def received_stop(job: None, *, report: Any, stop: StopRequest | None) -> StopRequest | None:
        return stop

    stop = StopRequest()
    with Workers(1, 1) as pool:
        ((_, received),) = pool.map(received_stop, [None], stop=stop)
    assert received is stop


def test_a_killed_worker_costs_one_job_which_is_run_again(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    jobs = [(3, ""), (4, str(marker)), (5, ""), (6, "")]
    found = dict(mapped(worker_jobs.die_once, jobs, workers=2))
    assert found == {0: 9, 1: 16, 2: 25, 3: 36}
    assert marker.exists()


def test_a_worker_killed_while_idle_is_replaced() -> None:
    with Workers(2, 1) as pool:
        results = pool.map(worker_jobs.threads_and_process, [0.0, 0.0, 0.0])
        found = dict([next(results)])
        # This worker has returned its result, and is idle until the next result is requested.
        os.kill(next(iter(found.values()))[1], signal.SIGKILL)
        time.sleep(0.3)  # until its end of the pipe is closed
        found.update(results)
    assert sorted(found) == [0, 1, 2]


def test_a_worker_killed_between_two_maps_is_replaced() -> None:
    with Workers(2, 1) as pool:
        ((_, (_, process)),) = pool.map(worker_jobs.threads_and_process, [0.0])
        os.kill(process, signal.SIGKILL)
        time.sleep(0.3)
        assert dict(pool.map(worker_jobs.square, [3])) == {0: 9}


def test_a_job_that_always_kills_its_worker_fails_the_run(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with pytest.raises(GenorderError, match="job 1 of 1 ended its worker process 3 times; is there enough memory"):
        mapped(worker_jobs.die_always, [str(marker)], workers=2)
    assert marker.read_text() == "xxx"


def test_an_input_error_stays_one(pool: Workers) -> None:
    with pytest.raises(InputError, match=r"^entry 3 is broken$"):
        list(pool.map(worker_jobs.fail, ["input"]))


def test_other_errors_of_a_job_are_reported(two_workers: Workers) -> None:
    with pytest.raises(ZeroDivisionError):
        mapped(worker_jobs.fail, ["none", "other"], workers=1)
    with pytest.raises(GenorderError, match=r"a worker failed: ZeroDivisionError: division by zero$"):
        list(two_workers.map(worker_jobs.fail, ["other"]))


def test_a_stop_takes_effect_between_jobs() -> None:
    stop = StopRequest()
    with Workers(1, 1) as pool:
        results = pool.map(worker_jobs.square, [1, 2, 3], stop=stop)
        assert next(results) == (0, 1)
        stop.requested = True
        with pytest.raises(Interrupted, match="stopped after 1 of 3 jobs; the same command continues from there"):
            next(results)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stop_before_the_first_job(tmp_path: Path, workers: int) -> None:
    stop = StopRequest()
    stop.requested = True
    marker = tmp_path / "marker"
    with pytest.raises(Interrupted, match="stopped after 0 of 2 jobs"):
        mapped(worker_jobs.die_always, [str(marker)] * 2, workers=workers, stop=stop)
    assert not marker.exists()


def test_a_stop_ends_workers_during_their_jobs(tmp_path: Path) -> None:
    marker = tmp_path / "marker"

    class WhenStarted:
        @property
        def requested(self) -> bool:
            return marker.exists() and marker.read_text() != ""

    started = time.monotonic()
    stop: StopRequest = WhenStarted()  # type: ignore[assignment]
    with pytest.raises(Interrupted, match="stopped after 0 of 1 jobs"):
        mapped(worker_jobs.touch_and_sleep, [str(marker)], workers=2, stop=stop)
    assert time.monotonic() - started < 40
    assert gone(int(marker.read_text()))


def test_a_program_without_a_guard_runs_once(tmp_path: Path) -> None:
    """Python imports the main program in a fresh process; the workers here must not."""
    program = tmp_path / "program.py"
    program.write_text(
        "import worker_jobs\n"
        "from genorder.execution.workers import Workers\n"
        "with Workers(2, 1) as pool:\n"
        "    print(sorted(pool.map(worker_jobs.square, [1, 2])), flush=True)\n"
        "print(__name__, __file__)\n"
    )
    found = {**os.environ, "PYTHONPATH": str(Path(worker_jobs.__file__).parent)}
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120, env=found)
    assert (done.stdout, done.stderr) == (f"[(0, 1), (1, 4)]\n__main__ {program}\n", "")
