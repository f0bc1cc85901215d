import sqlite3
from pathlib import Path
from typing import Any

import pytest
from store_helpers import make_read_only, next_line, program, small_disk

from genorder.errors import GenorderError, InputError
from genorder.store import Journal, fingerprint

# Records one job per line of its input, and prints `recorded` when record() has returned.
WRITER = """
import sys
from genorder.store import Journal
with Journal(sys.argv[1]) as journal:
    print("ready", flush=True)
    for line in sys.stdin:
        journal.record(line.strip(), "job", {"line": line.strip()}, 0.5)
        print("recorded", flush=True)
"""


def send(process: Any, line: str) -> None:
    process.stdin.write(line + "\n")
    process.stdin.flush()
    assert next_line(process) == "recorded"


def test_records_are_found_again_after_reopening(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        assert journal.get("a") is None
        journal.record("b", "second letter", {"loss": 0.25, "order": (1, 0)}, 1.5)
        journal.record("a", "first letter", {}, 2)
    with Journal(tmp_path / "j") as journal:
        assert journal.get("b") == {"loss": 0.25, "order": [1, 0]}
        assert [(job.fingerprint, job.name, job.seconds) for job in journal.jobs()] == [
            ("b", "second letter", 1.5),
            ("a", "first letter", 2.0),
        ]
        assert journal.jobs()[0].finished_at.endswith("+00:00")


def test_settings(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        execute = journal._connection.execute
        assert execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        assert execute("PRAGMA user_version").fetchone() == (1,)


def test_the_same_result_again_changes_nothing_another_is_an_error(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.record("a", "job", {"x": 1, "y": 2}, 1.0)
        journal.record("a", "job", {"y": 2, "x": 1}, 9.0)
        assert [job.seconds for job in journal.jobs()] == [1.0]
        for other in ({"x": 1, "y": 3}, {"x": True, "y": 2}):
            with pytest.raises(GenorderError, match=r"job job \(a\) is recorded .* with another result"):
                journal.record("a", "job", other, 1.0)
        assert journal.get("a") == {"x": 1, "y": 2}


def test_a_result_that_json_cannot_hold_is_not_recorded(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        with pytest.raises(ValueError, match=r"value\.loss is nan"):
            journal.record("a", "job", {"loss": float("nan")}, 1.0)
        assert journal.jobs() == []


def test_run_works_once_and_gives_the_same_values_again(tmp_path: Path) -> None:
    calls = []

    def work() -> dict[str, Any]:
        calls.append(1)
        return {"order": (2, 0, 1)}

    described = {"seed": 1, "steps": 10}
    for _ in range(2):
        with Journal(tmp_path / "j") as journal:
            assert journal.run(described, "train", work) == {"order": [2, 0, 1]}
            assert journal.get(fingerprint(described)) == {"order": [2, 0, 1]}
    assert calls == [1]


def test_work_that_fails_is_not_recorded(tmp_path: Path) -> None:
    def work() -> dict[str, Any]:
        raise RuntimeError("diverged")

    with Journal(tmp_path / "j") as journal:
        with pytest.raises(RuntimeError, match="diverged"):
            journal.run({"seed": 1}, "train", work)
        assert journal.jobs() == []


def test_reader_sees_a_writer_at_work_and_its_kill_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a b?#%.sqlite"  # the name must survive being put into a URI
    with program(WRITER, path) as process, Journal.open_read_only(path) as reader:
        assert reader.jobs() == []
        for count in (1, 2, 3):
            send(process, f"job{count}")
            assert len(reader.jobs()) == count
        with pytest.raises(InputError, match="readonly"):
            reader.record("x", "x", {}, 1.0)
        send(process, "job4")
        process.kill()
        process.wait()
        assert len(reader.jobs()) == 4
    with Journal.open_read_only(path) as reader:
        assert reader.get("job4") == {"line": "job4"}
    with Journal(path) as journal:
        assert [job.fingerprint for job in journal.jobs()] == ["job1", "job2", "job3", "job4"]
        assert journal._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_reader_before_the_writer_has_made_anything(tmp_path: Path) -> None:
    (tmp_path / "j").touch()
    with Journal.open_read_only(tmp_path / "j") as reader:
        assert reader.jobs() == []
        assert reader.get("a") is None
        with Journal(tmp_path / "j") as journal:
            journal.record("a", "job", {}, 1.0)
            assert reader.get("a") == {}


def test_reader_of_a_closed_journal_has_no_wal_file_to_read(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.record("a", "job", {}, 1.0)
    assert not (tmp_path / "j-wal").exists()
    with Journal.open_read_only(tmp_path / "j") as reader:
        assert reader.get("a") == {}


@pytest.mark.parametrize("killed", [False, True])
def test_reader_on_a_read_only_disk(tmp_path: Path, killed: bool) -> None:
    with small_disk(tmp_path / "disk", 1000) as disk:
        with program(WRITER, disk / "j") as process:
            send(process, "a")
            if killed:
                process.kill()
            else:
                process.communicate()
        if killed:
            (disk / "j-shm").unlink()  # as after a copy of the directory without it, the hardest case
        assert (disk / "j-wal").exists() == killed
        make_read_only(disk)
        with Journal.open_read_only(disk / "j") as reader:
            assert reader.get("a") == {"line": "a"}
        with pytest.raises(InputError, match=f"cannot use {disk}/j: "):
            Journal(disk / "j")


def test_a_full_disk_is_reported_and_loses_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 200) as disk:
        with Journal(disk / "j") as journal:
            journal.record("a", "job", {}, 1.0)
            with pytest.raises(InputError, match=r"cannot write .*/j: No space left .* choose another --out$"):
                journal.record("b", "job", {"text": "x" * 300_000}, 1.0)
            journal.record("c", "job", {}, 1.0)
        with Journal(disk / "j") as journal:
            assert [job.fingerprint for job in journal.jobs()] == ["a", "c"]


def test_other_files_are_refused_and_left_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.write_bytes(b"some text, long enough to be looked at as a header" * 10)
    for opening in (Journal, Journal.open_read_only):
        with pytest.raises(InputError, match=f"{path} is no journal"):
            opening(path)
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = path.read_bytes()
    for opening in (Journal, Journal.open_read_only):
        with pytest.raises(InputError, match=f"{path} is a database of another program"):
            opening(path)
    assert path.read_bytes() == before


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal._connection.execute("PRAGMA user_version = 2")
    for opening in (Journal, Journal.open_read_only):
        with pytest.raises(InputError, match=f"{path} is a journal of version 2, this program knows up to 1"):
            opening(path)


def test_a_path_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"cannot use {tmp_path}: unable to open"):
        Journal(tmp_path)
    with pytest.raises(InputError, match="none: no such file"):
        Journal.open_read_only(tmp_path / "none")
