import errno
import json
import os
import stat
import tempfile
from pathlib import Path

import pytest
from store_helpers import make_read_only, small_disk

from genorder.errors import InputError
from genorder.store import ensure_writable_directory, replace_atomic, write_bytes_atomic, write_json_atomic

_NOBODY = 65534


def names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


def test_writes_new_and_replaces_old(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    write_bytes_atomic(path, b"one")
    write_bytes_atomic(path, b"two", durable=False)
    assert path.read_bytes() == b"two"
    assert names(tmp_path) == ["a.bin"]


def test_json_keeps_key_order_and_ends_with_a_newline(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json_atomic(path, {"b": 1, "a": [0.1, None, "\udcff"]})
    assert path.read_text().startswith('{\n  "b": 1,\n  "a": [')
    assert path.read_text().endswith("}\n")
    assert json.loads(path.read_text())["a"] == [0.1, None, "\udcff"]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_json_refuses_what_json_does_not_know(tmp_path: Path, number: float) -> None:
    path = tmp_path / "a.json"
    write_json_atomic(path, {"loss": 1.0})
    with pytest.raises(ValueError, match="JSON"):
        write_json_atomic(path, {"loss": number})
    assert json.loads(path.read_text()) == {"loss": 1.0}


def test_the_result_has_the_mode_that_any_new_file_has(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write_bytes_atomic(tmp_path / "atomic", b"")
    assert stat.S_IMODE((tmp_path / "atomic").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.parametrize("error", [RuntimeError("no"), KeyboardInterrupt(), FileNotFoundError(2, "x", "other")])
def test_a_failing_block_leaves_the_old_file_and_its_own_error(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def write_half() -> None:
        with replace_atomic(path) as temporary:
            temporary.write_bytes(b"half")
            raise error

    with pytest.raises(type(error)) as caught:
        write_half()
    assert caught.value is error
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.ENOSPC, "free space or choose another --out"), (errno.EROFS, "choose another --out")],
)
def test_a_failing_fsync_leaves_the_old_file_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def failing(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(InputError) as caught:
        write_bytes_atomic(path, b"new")
    assert str(caught.value) == f"cannot write {path}: {os.strerror(number)}; {advice}"
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64) as disk:
        path = disk / "a"
        write_bytes_atomic(path, b"old")
        with pytest.raises(InputError, match=r"a: No space left on device; free space or choose another --out$"):
            write_bytes_atomic(path, bytes(100_000))
        assert path.read_bytes() == b"old"
        assert names(disk) == ["a"]


def test_a_full_disk_is_not_a_writable_directory(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64) as disk:
        with pytest.raises(OSError, match="No space"):
            (disk / "filler").write_bytes(bytes(100_000))
        with pytest.raises(InputError, match="No space left on device"):
            ensure_writable_directory(disk / "run")


def test_a_read_only_disk_is_refused_also_for_root(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64) as disk:
        (disk / "there").mkdir()
        make_read_only(disk)
        for directory in (disk / "there", disk / "new"):
            with pytest.raises(InputError, match=r"Read-only file system; choose another --out$"):
                ensure_writable_directory(directory)
        with pytest.raises(InputError, match="Read-only file system"):
            write_bytes_atomic(disk / "a", b"")


def test_a_directory_without_permission_is_refused() -> None:
    """Root ignores permission bits, so it temporarily becomes another user."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as folder:  # not tmp_path, which no other user may enter
        directory = Path(folder)
        if root:
            os.chown(directory, _NOBODY, -1)
            os.seteuid(_NOBODY)
        try:
            assert ensure_writable_directory(directory) == directory
            directory.chmod(0o555)
            with pytest.raises(InputError, match="Permission denied"):
                ensure_writable_directory(directory)
        finally:
            directory.chmod(0o755)
            if root:
                os.seteuid(0)


def test_directories_are_made_with_their_parents_and_left_empty(tmp_path: Path) -> None:
    directory = ensure_writable_directory(tmp_path / "a" / "b")
    assert directory == tmp_path / "a" / "b"
    assert names(ensure_writable_directory(directory)) == []


@pytest.mark.parametrize("below", ["", "run", "run/deeper"])
def test_a_file_in_place_of_a_directory_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot write .*file.*: Not a directory; choose another --out$"):
        ensure_writable_directory(tmp_path / "file" / below)


def test_a_symbolic_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_bytes_atomic(tmp_path / "link", b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"x"


def test_a_special_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="Not a regular file"):
        write_bytes_atomic(tmp_path / "pipe", b"x")
    with pytest.raises(InputError, match="Is a directory"):
        write_bytes_atomic(tmp_path, b"x")
    assert names(tmp_path) == ["pipe"]


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot write .*none/a: No such file or directory"):
        write_bytes_atomic(tmp_path / "none" / "a", b"x")
