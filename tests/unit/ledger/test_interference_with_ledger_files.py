"""Outside interference with the files of an open ledger: no acknowledged charge is lost, or none is acknowledged."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from contract.acts import check, coin
from ldp_budget import Accountant, LedgerError
from ledger_folders import contents, new_ledger_in, tenths
from ledger_inside import store_of, transact


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger in a folder of its own, closed."""
    return new_ledger_in(tmp_path, lifetime=2)


# -- files that are moved, replaced or deleted -------------------------------------------------------------------


def _replace(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    os.replace(copy, path)


def _swap_folder(path: Path) -> None:
    shutil.copytree(path.parent, path.parent.with_name("copy"))
    path.parent.rename(path.parent.with_name("elsewhere"))
    path.parent.with_name("copy").rename(path.parent)


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


HAPPENINGS: dict[str, tuple[Callable[[Path], object], str]] = {
    "moved": (lambda path: path.rename(path.with_name("moved")), "moved or deleted"),
    "deleted": (lambda path: path.unlink(), "moved or deleted"),
    "replaced": (_replace, "another file replaced it"),
    "linked": (lambda path: path.with_name("second").hardlink_to(path), "more than one name"),
    "log deleted": (lambda path: _log(path).unlink(), "budget.db-wal was removed or replaced"),
    "log replaced": (lambda path: (_log(path).unlink(), _log(path).touch(0o600)), "-wal was removed"),
    "index deleted": (lambda path: path.with_name(f"{path.name}-shm").unlink(), "-shm was removed"),
    "folder moved": (lambda path: path.parent.rename(path.parent.with_name("elsewhere")), "moved or deleted|key"),
    "folder replaced": (_swap_folder, "another|key"),
    "all deleted": (lambda path: shutil.rmtree(path.parent), "moved or deleted|key"),
}


@pytest.mark.parametrize("name", HAPPENINGS)
@pytest.mark.parametrize("moment", ["before", "within"])
def test_spend_after_files_were_replaced_is_refused(path: Path, name: str, moment: str) -> None:
    happen, said = HAPPENINGS[name]
    accountant = Accountant(path)
    accountant.spend("alice", coin("0.1"))
    if moment == "before":
        happen(path)
        with pytest.raises(LedgerError, match=f"({said}).*Nothing was charged"):
            accountant.spend("alice", coin("0.1"), key="k")
    else:

        def work(partitions: Any) -> None:
            partitions[0]._connection.execute("UPDATE meta SET value = value")
            happen(path)

        with pytest.raises(LedgerError, match=f"({said}).*may be lost. Repeat the request with the same key"):
            transact(accountant, work)
    for _ in range(2):
        with pytest.raises(LedgerError, match=said):
            accountant.spend("alice", coin("0.1"), key="k")
        with pytest.raises(LedgerError, match=said):
            accountant.balance("alice")
    accountant.close()


@pytest.mark.parametrize("name", ["moved", "linked", "log deleted", "index deleted", "folder moved"])
def test_spend_acknowledged_before_is_kept_after_a_repair(path: Path, name: str) -> None:
    """Also if the log's name was deleted: a process that has it open writes it into the database on closing."""
    accountant = Accountant(path)
    for _ in range(3):
        accountant.spend("alice", coin("0.1"))
    HAPPENINGS[name][0](path)
    with pytest.raises(LedgerError):
        accountant.spend("alice", coin("0.1"))
    accountant.close()
    for there, back in (("elsewhere", path.parent), ("place/moved", path)):
        with suppress(FileNotFoundError):
            (path.parent.parent / there).rename(back)
    path.with_name("second").unlink(missing_ok=True)
    with Accountant(path, create=False) as accountant:
        assert tenths(accountant, "alice") == 3
        check(accountant)


@pytest.mark.parametrize("how", ["cp", "cp -p"])
def test_backup_copied_over_an_open_ledger_after_an_erasure_is_noticed_at_once(path: Path, how: str) -> None:
    """An erasure empties the log. An older backup was copied over the file just then, and three spends were
    acknowledged before it was noticed.
    """
    copy = path.with_name("copy")
    with Accountant(path) as accountant:
        accountant.spend("bob", coin("0.1"))
    shutil.copy2(path, copy)
    accountant = Accountant(path)
    for _ in range(3):
        accountant.spend("alice", coin("0.1"))
    assert accountant.erase("bob")
    assert path.with_name(f"{path.name}-wal").stat().st_size == 0
    path.write_bytes(copy.read_bytes())
    if how == "cp -p":
        shutil.copystat(copy, path)
    for _ in range(2):
        with pytest.raises(LedgerError, match=r"it was replaced by another copy while it was open. Nothing"):
            accountant.spend("alice", coin("0.1"))
    accountant.close()
    assert path.read_bytes() == copy.read_bytes(), "nothing was mixed into it"


@pytest.mark.slow
def test_checkpoint_of_another_process_into_an_empty_log_is_no_other_copy(path: Path) -> None:
    """The file changes, and holds more than this process knew."""
    with Accountant(path) as one, Accountant(path) as other:
        one.spend("alice", coin("0.1"))
        other.spend("bob", coin("0.1"))
        for _ in range(3):
            assert other.erase("bob") or True
            assert one.spend("alice", coin("0.1"))
            assert store_of(one).clear_log()
            assert other.spend("carol", coin("0.1"))
            assert store_of(other).clear_log()
        check(one)


def test_copy_written_over_an_open_ledger_is_noticed_and_left_unchanged(path: Path) -> None:
    """As `cp backup budget.db` does it: the file is the same, and what it holds is not."""
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    with Accountant(path) as accountant:
        for _ in range(3):
            accountant.spend("alice", coin("0.1"))
    accountant = Accountant(path)
    accountant.spend("alice", coin("0.1"))
    path.write_bytes(copy.read_bytes())
    for _ in range(2):
        with pytest.raises(LedgerError, match=r"it was replaced by another copy while it was open. Nothing"):
            accountant.spend("alice", coin("0.1"))
    accountant.close()
    assert path.read_bytes() == copy.read_bytes(), "its log was not written into the copy"
    with pytest.raises(LedgerError, match=r"its log .*-wal belongs to another state of the database"):
        Accountant(path)


# -- two logs for one file ---------------------------------------------------------------------------------------


def test_ledger_with_two_hard_links_is_not_opened(path: Path) -> None:
    """Each name has its own log, and a process that uses one name does not see the log of the other."""
    second = path.with_name("second.db")
    second.hardlink_to(path)
    shutil.copy(f"{path}.key", f"{second}.key")
    before = contents(path.parent)
    for name in (path, second):
        with pytest.raises(LedgerError, match="more than one name"):
            Accountant(name)
    assert contents(path.parent) == before
    second.unlink()
    Accountant(path).close()


def test_symbolic_link_leads_to_the_ledger_its_key_and_its_log(path: Path, tmp_path: Path) -> None:
    chain_hash = tmp_path / "link.db"
    chain_hash.symlink_to(path)
    with Accountant(chain_hash) as one, Accountant(path) as other:
        one.spend("alice", coin("0.1"))
        other.spend("alice", coin("0.1"))
        assert tenths(one, "alice") == 2
    assert sorted(contents(tmp_path / "place")) == ["budget.db", "budget.db.key"]


# -- a ledger that went back -----------------------------------------------------------------------------------


def test_process_refuses_a_ledger_that_lost_acknowledged_charges(path: Path) -> None:
    """An attacker undoes the newest entries in the same file: only the memory of the process shows it."""
    with Accountant(path) as accountant:
        accountant.spend("alice", coin("0.1"))
        accountant.balance("alice")
        accountant.spend("alice", coin("0.1"))
        connection = sqlite3.connect(path)
        connection.execute("DELETE FROM journal WHERE entry = (SELECT max(entry) FROM journal)")
        connection.commit()
        connection.close()
        for _ in range(2):
            with pytest.raises(LedgerError, match=r"it was rolled back: .*\. Nothing was charged\."):
                accountant.spend("alice", coin("0.1"))
            with pytest.raises(LedgerError, match="it was rolled back"):
                accountant.balance("alice")


# -- a key file that is written while the ledger is open ---------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (bytes(32), "was replaced by another one while it was open"),
        (b"", "has 0 bytes"),
        (b"x" * 31, "has 31 bytes"),
        (bytes(32) + b"sandbox", "was replaced by another one"),
    ],
)
def test_key_file_overwritten_in_place_is_refused_at_the_next_charge(path: Path, content: bytes, said: str) -> None:
    key = path.with_name("budget.db.key")
    with Accountant(path) as accountant:
        accountant.spend("alice", coin("0.1"))
        before = key.read_bytes()
        key.write_bytes(content)
        for _ in range(2):
            with pytest.raises(LedgerError, match=said):
                accountant.spend("alice", coin("0.1"))
        key.write_bytes(before)
        assert accountant.spend("alice", coin("0.1")).status == "spent"
        os.utime(key)
        assert accountant.spend("alice", coin("0.1")).status == "spent"
        assert tenths(accountant, "alice") == 3


def test_key_file_that_lost_a_later_secret_is_refused(path: Path) -> None:
    key = path.with_name("budget.db.key")
    first = key.read_bytes()
    with Accountant(path) as accountant:
        accountant.ledger.rotate_key()
    with Accountant(path) as accountant:
        accountant.spend("alice", coin("0.1"))
        key.write_bytes(first)
        with pytest.raises(LedgerError, match="was replaced by another one while it was open"):
            accountant.spend("alice", coin("0.1"))
