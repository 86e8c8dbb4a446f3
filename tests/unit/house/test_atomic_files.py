"""Files are written whole and durably, by one run at a time."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from ldp_budget._files import alone_in, create_private, replacing


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# -- taking a file's place -------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [{}, {"f": b"old"}, {"f.new": b"what a run that was killed has left"}], ids=str)
def test_file_appears_whole_or_not_at_all(tmp_path: Path, before: dict[str, bytes]) -> None:
    for name, content in before.items():
        (tmp_path / name).write_bytes(content)
    with replacing(tmp_path / "f") as file:
        file.write(b"new")
        file.flush()
        assert contents(tmp_path) == {**before, "f.new": b"new"}
    assert contents(tmp_path) == {"f": b"new"}


def write_and_fail(path: Path) -> None:
    with replacing(path) as file:
        file.write(b"new")
        raise ZeroDivisionError


def test_exception_keeps_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    with pytest.raises(ZeroDivisionError):
        write_and_fail(tmp_path / "f")
    assert contents(tmp_path) == {"f": b"old"}


def test_file_has_one_writer_at_a_time(tmp_path: Path) -> None:
    with replacing(tmp_path / "f") as file:
        file.write(b"first")
        with pytest.raises(BlockingIOError, match="another run is writing it"):
            replacing(tmp_path / "f").__enter__()
    assert contents(tmp_path) == {"f": b"first"}


def test_writer_during_a_publication_does_not_write_into_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has opened the draft under its old name, and gets the lock once the file has its new name."""
    flock = __import__("fcntl").flock

    def late(file: int, how: int) -> None:
        os.replace(tmp_path / "f.new", tmp_path / "f")
        flock(file, how)

    monkeypatch.setattr("fcntl.flock", late)
    (tmp_path / "f.new").write_bytes(b"whole")
    with pytest.raises(BlockingIOError, match="another run is writing it"):
        replacing(tmp_path / "f").__enter__()
    assert contents(tmp_path) == {"f": b"whole"}


def test_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "f").symlink_to(tmp_path / "elsewhere" / "g")
    with replacing(tmp_path / "f") as file:
        file.write(b"new")
    assert (tmp_path / "f").is_symlink()
    assert contents(tmp_path / "elsewhere") == {"g": b"new"}


@pytest.mark.parametrize("left", [False, True], ids=["nothing there", "a draft of another run"])
def test_file_is_for_its_owner_only_from_the_start(tmp_path: Path, left: bool) -> None:
    before = os.umask(0)
    try:
        if left:
            (tmp_path / "f.new").touch(0o666)
        (tmp_path / "f").touch(0o666)
        with replacing(tmp_path / "f"):
            assert mode(tmp_path / "f.new") == 0o600
        assert mode(tmp_path / "f") == 0o600
    finally:
        os.umask(before)


# -- what the ledger's key needs -------------------------------------------------------------------------------


def test_private_file_is_created_once(tmp_path: Path) -> None:
    create_private(tmp_path / "key", b"secret")
    assert mode(tmp_path / "key") == 0o600
    with pytest.raises(FileExistsError):
        create_private(tmp_path / "key", b"another")
    assert contents(tmp_path) == {"key": b"secret"}


def test_folder_lock_excludes_others(tmp_path: Path) -> None:
    told: list[str] = []

    def other() -> None:
        with alone_in(tmp_path):
            told.append("other")

    thread = threading.Thread(target=other)
    with alone_in(tmp_path):
        thread.start()
        thread.join(0.05)
        told.append("first")
    thread.join()
    assert told == ["first", "other"]
    assert contents(tmp_path) == {}
