"""Backups of a ledger: made during writes, restored, opened read-only, and refused if they are no true copy."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from contract.acts import check, coin, spent
from contract.places import as_unprivileged, closed_copy
from ldp_budget import Accountant, LedgerError
from ledger_folders import contents, new_ledger_in, tenths_in


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger in which alice spent 0.1 once, closed."""
    return new_ledger_in(tmp_path, lifetime=1000, spends=1)


# -- a backup --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_backup_opens_verifies_and_continues(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with Accountant(path) as accountant:
        accountant.spend("alice", coin("0.1"), key="k")
        head = check(accountant)
        accountant.backup(copy)
        assert sorted(contents(path.parent)) == ["budget.db", "budget.db-shm", "budget.db-wal", "budget.db.key"]
        accountant.spend("alice", coin("0.1"))
    assert {file.name for file in tmp_path.glob("copy*")} == {"copy.db", "copy.db.key"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob("copy*")} == {0o600}
    with Accountant(copy, create=False) as accountant:
        assert check(accountant) == head
        assert accountant.spend("alice", coin("0.1"), key="k").repeated
    assert (tenths_in(path, "alice"), tenths_in(copy, "alice")) == (3, 2)


@pytest.mark.parametrize("there", ["copy.db", "copy.db.key", "copy.db-wal", "copy.db-shm", "copy.db-journal"])
def test_backup_to_an_existing_file_is_refused(path: Path, tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("something")
    with (
        Accountant(path) as accountant,
        pytest.raises(LedgerError, match=r"it already exists|of an earlier ledger does"),
    ):
        accountant.backup(tmp_path / "copy.db")
    assert {file.name for file in tmp_path.glob("copy*")} == {there}
    assert (tmp_path / there).read_text() == "something"


def test_backup_that_fails_leaves_nothing(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ldp_budget.ledger.sqlite.connection.create_private", no_space)
    with Accountant(path) as accountant, pytest.raises(LedgerError, match="it cannot be created: No space left"):
        accountant.backup(tmp_path / "copy.db")
    assert list(tmp_path.glob("copy*")) == []


# -- what lies about where no ledger is --------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_create_next_to_files_of_another_ledger_is_refused(tmp_path: Path, ending: str) -> None:
    stray = tmp_path / f"budget.db{ending}"
    stray.write_bytes(b"of another")
    with pytest.raises(LedgerError, match=rf"it does not exist, but .*budget\.db{ending} of an earlier ledger does"):
        Accountant(tmp_path / "budget.db")
    assert contents(tmp_path) == {stray.name: b"of another"}


# -- read-only places -------------------------------------------------------------------------------------------


@pytest.fixture
def closed_folder(path: Path) -> Iterator[Path]:
    with closed_copy(path.parent) as folder:
        yield folder


def test_read_only_copy_can_be_verified_and_leaves_no_file(closed_folder: Path) -> None:
    before = contents(closed_folder)
    with as_unprivileged(), Accountant(closed_folder / "budget.db", create=False) as accountant:
        check(accountant)
        assert spent(accountant, "alice")["lifetime"] == Decimal("0.1")
        assert len(accountant.history("alice")) == accountant.stats()["entries"] - 1
        for _ in range(2):
            with pytest.raises(LedgerError, match=r"readonly.*. Nothing was charged."):
                accountant.spend("alice", coin("0.1"))
        assert set(contents(closed_folder)) == set(before), "while it is open"
    assert contents(closed_folder) == before


def test_read_only_copy_with_a_log_is_refused_with_the_reason(closed_folder: Path) -> None:
    closed_folder.chmod(0o700)
    (closed_folder / "budget.db-wal").write_bytes(b"a log")
    closed_folder.chmod(0o500)
    before = contents(closed_folder)
    with as_unprivileged(), pytest.raises(LedgerError, match=r"its log .*budget\.db-wal cannot be read"):
        Accountant(closed_folder / "budget.db")
    assert contents(closed_folder) == before
