"""Restore of a ledger from a backup: only while it is closed, only what verifies, and the old ledger is kept."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from contract.acts import check, coin
from ldp_budget import Accountant, LdpBudgetError, LedgerError
from ldp_budget.accounting import connect
from ldp_budget.ledger.sqlite import restore as restore_module


def verify(path: str) -> None:
    with Accountant(path, create=False) as accountant:
        check(accountant)


def restore(path: Path, backup: Path) -> str | None:
    return connect.restore(str(path), str(backup), verify)


def keys_of(path: Path) -> list[str]:
    """Return the keys under which alice was charged, of those that the tests use."""
    with Accountant(path, create=False) as accountant:
        check(accountant)
        return [key for key in ("early", "late") if accountant.spend("alice", coin("0.1"), key=key).repeated]


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger that was charged once before its backup, and once after it."""
    (tmp_path / "place").mkdir()
    path = tmp_path / "place" / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=2"])
        accountant.spend("alice", coin("0.1"), key="early")
        accountant.backup(tmp_path / "backup.db")
        accountant.spend("alice", coin("0.1"), key="late")
    return path


@pytest.fixture
def backup(tmp_path: Path, path: Path) -> Path:
    return tmp_path / "backup.db"


@pytest.mark.slow
def test_restore_puts_the_backup_in_place_and_keeps_the_old_ledger(path: Path, backup: Path) -> None:
    kept = restore(path, backup)
    assert kept == f"{path}.before-restore-1"
    assert keys_of(Path(kept)) == ["early", "late"]
    assert keys_of(path) == ["early"]
    assert restore(path, backup) == f"{path}.before-restore-2"
    assert sorted(contents(path.parent)) == sorted(
        f"budget.db{middle}{end}" for middle in ("", ".before-restore-1", ".before-restore-2") for end in ("", ".key")
    )


def test_restore_of_an_open_ledger_is_refused(path: Path, backup: Path) -> None:
    with Accountant(path) as accountant:
        before = contents(path.parent)
        with pytest.raises(LedgerError, match=r"another process has it open.*Stop the service"):
            restore(path, backup)
        assert contents(path.parent) == before
        assert accountant.spend("alice", coin("0.1")).status == "spent"


def test_restore_next_to_a_foreign_reader_is_refused(path: Path, backup: Path) -> None:
    with closing(sqlite3.connect(path)) as foreign:
        foreign.execute("SELECT count(*) FROM journal").fetchone()
        with pytest.raises(LedgerError, match="another process has it open"):
            restore(path, backup)


@pytest.mark.parametrize("key", ["of the backup", "of the ledger"])
@pytest.mark.slow
def test_restore_of_a_lost_ledger_needs_one_of_the_keys(path: Path, backup: Path, key: str) -> None:
    path.unlink()
    Path(f"{path}.key" if key == "of the backup" else f"{backup}.key").unlink()
    assert restore(path, backup) is None
    assert keys_of(path) == ["early"]
    Path(f"{path}.key").unlink()
    path.unlink()
    Path(f"{backup}.key").unlink(missing_ok=True)
    with pytest.raises(LedgerError, match=r"neither .* exists"):
        restore(path, backup)


@pytest.mark.slow
def test_restore_of_the_log_of_a_lost_database_keeps_it(path: Path, backup: Path) -> None:
    Path(f"{path}-wal").write_bytes(b"frames")
    path.unlink()
    kept = restore(path, backup)
    assert Path(f"{kept}-wal").read_bytes() == b"frames"
    assert keys_of(path) == ["early"]


def change(database: Path, sql: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(sql)


@pytest.mark.slow
@pytest.mark.parametrize(
    "spoil",
    [
        lambda path, backup: backup.unlink(),
        lambda path, backup: backup.write_bytes(b"no ledger"),
        lambda path, backup: os.truncate(backup, 8192),
        lambda path, backup: Path(f"{backup}.key").write_bytes(bytes(32)),
        lambda path, backup: Path(f"{path}.key").unlink(),
        lambda path, backup: change(backup, "UPDATE journal SET epsilon = 1 WHERE entry = 2"),
        lambda path, backup: change(backup, "DELETE FROM idempotency_records"),
    ],
    ids=["missing", "no ledger", "truncated", "another key", "no key", "changed sum", "deleted rows"],
)
def test_restore_of_a_backup_that_does_not_verify_changes_nothing(path: Path, backup: Path, spoil: object) -> None:
    assert callable(spoil)
    spoil(path, backup)
    before = contents(path.parent)

    def strictly(draft: str) -> None:
        with Accountant(draft, create=False) as accountant:
            if not accountant.verify().ok:
                raise LedgerError(draft, "it does not verify")

    with pytest.raises(LdpBudgetError):
        connect.restore(str(path), str(backup), strictly)
    assert contents(path.parent) == before


def test_restore_of_the_ledger_onto_itself_or_of_a_server_is_refused(path: Path, backup: Path) -> None:
    for place, source in ((path, path), ("postgresql://host/ledger", backup), (":memory:", backup)):
        with pytest.raises(LdpBudgetError):
            connect.restore(str(place), str(source), verify)


@pytest.mark.slow
@pytest.mark.parametrize("crash", range(1, 6))
def test_restore_interrupted_at_any_rename_is_completed_by_the_next(
    path: Path, backup: Path, monkeypatch: pytest.MonkeyPatch, crash: int
) -> None:
    """No charge is lost: each is in the ledger, or in one that was kept."""
    for ending in ("-wal", "-shm"):  # as a crash of the service leaves them
        Path(f"{path}{ending}").touch(0o600)
    done = 0

    class Crash(BaseException):
        pass

    def rename(*names: Path) -> None:
        nonlocal done
        done += 1
        if done == crash:
            raise Crash
        os.rename(*names)

    with monkeypatch.context() as patch, suppress(Crash):
        patch.setattr(restore_module, "os", _Renames(rename))
        patch.setattr(restore_module, "_remove", lambda draft: None)
        restore(path, backup)
    assert done == min(crash, 4)
    if path.exists():
        assert keys_of(path) in (["early"], ["early", "late"])
    restore(path, backup)
    assert keys_of(path) == ["early"]
    kept = list(path.parent.glob("*.before-restore-?"))
    assert ["early", "late"] in [keys_of(file) for file in kept]


class _Renames:
    """The module `os`, with another `rename`."""

    def __init__(self, rename: object) -> None:
        self.rename = rename

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)
