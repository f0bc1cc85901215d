import json
from pathlib import Path
from typing import Any

import pytest
from store_helpers import make_read_only, program, small_disk

from genorder.errors import InputError
from genorder.store import RunDirectory, read_progress, read_status, run_version

CONFIG: dict[str, Any] = {"seed": 7, "training": {"steps": 500, "sizes": (1, 2)}}

RUNNER = """
import sys
from genorder.store import RunDirectory
with RunDirectory.open(sys.argv[1], {"seed": 7}, command=["genorder", "train"], environment={}) as run:
    run.journal.record("a", "first job", {"loss": 0.5}, 1.25)
    run.write_progress({"done": 1, "of": 3})
    print("ready", flush=True)
    sys.stdin.read()
    run.write_result({"success_rate": 1.0})
"""


def start(path: Path, config: dict[str, Any] = CONFIG) -> RunDirectory:
    return RunDirectory.open(path, config, command=["genorder", "train"], environment={"torch": "2"})


def test_the_same_command_continues(tmp_path: Path) -> None:
    path = tmp_path / "new" / "run"
    with start(path) as run:
        assert run.path == path
        assert run.read_result() is None
        assert run.journal.run({"job": 1}, "one", lambda: {"x": 1}) == {"x": 1}
        checkpoints = run.checkpoints("one")
        assert checkpoints.is_dir()
        (checkpoints / "model").write_bytes(b"kept")
        (checkpoints / ".genorder-tmp-123-model").write_bytes(b"of a killed writer")
    with start(path) as run:
        assert run.journal.run({"job": 1}, "one", dict) == {"x": 1}
        assert [entry.name for entry in run.checkpoints("one").iterdir()] == ["model"]
        run.write_result({"rate": 1.0, "path": Path("x")})
        assert run.read_result() == {"rate": 1.0, "path": "x"}
    assert json.loads((path / "config.json").read_text())["training"]["sizes"] == [1, 2]


def test_another_configuration_is_refused_with_the_differences(tmp_path: Path) -> None:
    start(tmp_path).close()
    other = {"seed": 7, "training": {"steps": 600, "sizes": [1, 2]}}
    with pytest.raises(InputError) as caught:
        start(tmp_path, other)
    assert str(caught.value) == (
        f"{tmp_path} holds a run of another configuration; choose another --out, or use the same settings:\n"
        "  training.steps: 500 in the run directory, 600 requested"
    )
    start(tmp_path).close()  # the refusal has released the lock


def test_labels_may_change_and_stay(tmp_path: Path) -> None:
    def labels(new: dict[str, Any]) -> dict[str, Any]:
        with RunDirectory.open(tmp_path, CONFIG, command=[], environment={}, labels=new) as run:
            assert json.loads((tmp_path / "config.json").read_text()).get("labels", {}) == run.labels
            return run.labels

    assert labels({}) == {}
    assert labels({"x": ["a", "b"], "y": ["c"]}) == {"x": ["a", "b"], "y": ["c"]}
    assert labels({"y": ["d"]}) == labels({}) == {"x": ["a", "b"], "y": ["d"]}
    start(tmp_path).close()
    with pytest.raises(InputError, match="another configuration"):
        RunDirectory.open(tmp_path, {"seed": 8}, command=[], environment={}, labels={"x": []})
    assert labels({}) == {"x": ["a", "b"], "y": ["d"]}


def test_a_run_goes_on_under_the_new_names_of_its_settings(tmp_path: Path) -> None:
    start(tmp_path, {"config": {"part": {"old": 3, "other": 1}, "flat": 2}}).close()
    config = {"config": {"part": {"new": 3, "other": 1}, "flat": 2}}
    with pytest.raises(InputError, match="another configuration"):
        RunDirectory.open(tmp_path, config, command=[], environment={})
    renamed = {"part.old": "part.new", "gone.old": "gone.new", "flat.old": "flat.new"}
    with pytest.raises(InputError, match="another configuration"):
        RunDirectory.open(tmp_path, {"config": {"part": {"new": 4}}}, command=[], environment={}, renamed=renamed)
    RunDirectory.open(tmp_path, config, command=[], environment={}, renamed=renamed).close()
    assert json.loads((tmp_path / "config.json").read_text()) == config


def test_many_differences_are_counted_not_listed(tmp_path: Path) -> None:
    start(tmp_path, {f"k{index}": 0 for index in range(20)}).close()
    with pytest.raises(InputError) as caught:
        start(tmp_path, {f"k{index}": 1 for index in range(20)})
    lines = str(caught.value).splitlines()
    assert len(lines) == 10
    assert lines[-1] == "  and 12 more"


def test_a_foreign_directory_is_refused_and_left_unchanged(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InputError, match=r"not empty and is no run directory: it has thesis\.tex but no config"):
        start(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_files_of_a_killed_first_start_are_not_foreign(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / ".genorder-tmp-abc-config.json").touch()
    start(tmp_path).close()
    assert not list(tmp_path.glob(".genorder-tmp-*"))


def test_a_damaged_configuration_is_named(tmp_path: Path) -> None:
    for content in ("", "[]"):
        (tmp_path / "config.json").write_text(content)
        for opening in (start, read_status):
            with pytest.raises(InputError, match=r"config\.json is damaged"):
                opening(tmp_path)


def test_every_start_is_recorded_and_the_last_ones_kept(tmp_path: Path) -> None:
    start(tmp_path).close()
    file = tmp_path / "environment.json"
    (noted,) = json.loads(file.read_text())
    assert noted["command"] == ["genorder", "train"]
    assert noted["versions"] == {"torch": "2"}
    assert noted["time"].endswith("+00:00")
    file.write_text(json.dumps([{"old": index} for index in range(30)]))
    start(tmp_path).close()
    starts = json.loads(file.read_text())
    assert len(starts) == 20
    assert starts[-2] == {"old": 29}
    file.write_text("spoiled")
    start(tmp_path).close()
    assert len(json.loads(file.read_text())) == 1


@pytest.mark.parametrize("name", ["", ".", "..", "a/b"])
def test_checkpoint_names_stay_inside(tmp_path: Path, name: str) -> None:
    with start(tmp_path) as run, pytest.raises(ValueError, match="plain file name"):
        run.checkpoints(name)


def test_status_of_a_running_then_interrupted_then_finished_run(tmp_path: Path) -> None:
    with program(RUNNER, tmp_path) as process:
        status = read_status(tmp_path)
        assert status.state == "running"
        assert status.holder is not None
        assert status.holder.pid == process.pid
        assert status.config == {"seed": 7}
        assert [(job.name, job.seconds) for job in status.jobs] == [("first job", 1.25)]
        assert status.progress == {"done": 1, "of": 3}
        assert status.result is None
        with pytest.raises(InputError, match=f"in use by process {process.pid} "):
            start(tmp_path, {"seed": 7})
        process.kill()
        process.wait()
    status = read_status(tmp_path)
    assert status.state == "interrupted"
    assert status.holder is None
    assert len(status.jobs) == 1
    with program(RUNNER, tmp_path) as process:
        process.communicate()
    status = read_status(tmp_path)
    assert status.state == "finished"
    assert status.result == {"success_rate": 1.0}
    assert len(status.jobs) == 1
    assert len(json.loads((tmp_path / "environment.json").read_text())) == 2


def test_the_version_changes_with_a_job_and_with_the_end_and_not_by_reading(tmp_path: Path) -> None:
    versions = [run_version(tmp_path)]

    def changed() -> bool:
        versions.append(run_version(tmp_path))
        read_status(tmp_path)
        assert run_version(tmp_path) == versions[-1]
        return versions[-1] not in versions[:-1]

    with start(tmp_path) as run:
        changed()
        run.write_progress({"done": 1})
        assert not changed()
        run.journal.record("a", "job", {}, 1.0)
        assert changed()
    changed()  # closing may checkpoint the journal, which must not count as a change later
    with start(tmp_path) as run:
        run.write_failure("the disk is full")
        assert changed()
    with start(tmp_path) as run:
        run.write_result({})
        assert changed()
    changed()


def test_the_version_of_a_killed_run_is_not_changed_by_reading(tmp_path: Path) -> None:
    with program(RUNNER, tmp_path) as process:
        process.kill()
        process.wait()
    assert (tmp_path / "journal.sqlite-wal").stat().st_size
    before = run_version(tmp_path)
    assert len(read_status(tmp_path).jobs) == 1
    assert run_version(tmp_path) == before


def test_only_a_run_that_has_not_ended_has_progress(tmp_path: Path) -> None:
    with start(tmp_path) as run:
        assert read_progress(tmp_path) is None
        run.write_progress({"done": 1})
        assert read_progress(tmp_path) == {"done": 1}
        run.write_failure("x")
        assert read_progress(tmp_path) is None
    with start(tmp_path) as run:
        assert read_progress(tmp_path) == {"done": 1}
        run.write_result({})
        assert read_progress(tmp_path) is None


def test_status_with_a_journal_not_made_and_a_progress_emptied_by_a_power_cut(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "progress.json").touch()
    status = read_status(tmp_path)
    assert (status.state, status.jobs, status.progress) == ("interrupted", [], None)


def test_status_on_a_read_only_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1000) as disk:
        with start(disk) as run:
            run.journal.record("a", "job", {}, 1.0)
        make_read_only(disk)
        assert len(read_status(disk).jobs) == 1
        with pytest.raises(InputError, match=r"Read-only file system; choose another --out$"):
            start(disk)


def test_status_of_something_other_than_a_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, reason in [(tmp_path, "it has no config"), (tmp_path / "file", "no such directory")]:
        with pytest.raises(InputError, match=f"{path} is no run directory: {reason}"):
            read_status(path)


def test_a_full_disk_at_the_start_is_one_clear_line(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 40) as disk:
        with pytest.raises(InputError) as caught:
            start(disk / "run")
        assert str(disk) in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1
