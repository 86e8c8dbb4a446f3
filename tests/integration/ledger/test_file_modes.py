"""File modes: files about users are readable by their owner only, and reveal no answer."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.acts import coin
from ldp_budget import Accountant, LedgerError


@pytest.fixture(autouse=True)
def open_to_everybody() -> Iterator[None]:
    """A umask that grants all rights to all users."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        accountant.spend("alice", coin("0.1"))
    return tmp_path / "budget.db"


@pytest.mark.some(3)  # of the files each, and of the modes each
@pytest.mark.parametrize("loose", ["budget.db", "budget.db.key", "budget.db-wal", "budget.db-shm"])
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666, 0o620])
def test_ledger_readable_or_writable_by_others_is_refused_with_the_remedy(path: Path, loose: str, mode: int) -> None:
    with Accountant(path) as accountant:
        assert accountant.spend("alice", coin("0.1"))
        file = path.with_name(loose)
        file.chmod(mode)
        with pytest.raises(LedgerError, match=r"other users have access to .*. Run: chmod 600 ") as refused:
            Accountant(path)
        command = str(refused.value).rpartition("Run: ")[2]
        assert command == f"chmod 600 {file}"
        os.system(command)
        Accountant(path).close()


def test_remedy_for_wrong_modes_names_all_files_for_a_shell(tmp_path: Path) -> None:
    path = tmp_path / "my budget.db"
    Accountant(path).close()
    for file in tmp_path.iterdir():
        file.chmod(0o644)
    with pytest.raises(LedgerError) as refused:
        Accountant(path)
    assert os.system(str(refused.value).rpartition("Run: ")[2]) == 0
    assert set(modes(tmp_path).values()) == {0o600}
    Accountant(path).close()


def test_ledger_files_are_for_their_owner_only(path: Path) -> None:
    with Accountant(path) as accountant:
        accountant.spend("alice", coin("0.1"))
        accountant.backup(path.with_name("copy.db"))
        assert set(modes(path.parent)) == {
            *("budget.db", "budget.db.key", "budget.db-wal", "budget.db-shm"),
            *("copy.db", "copy.db.key"),
        }
        assert set(modes(path.parent).values()) == {0o600}


# -- OUT.partial ---------------------------------------------------------------------------------------------------
