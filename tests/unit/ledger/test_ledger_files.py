"""Ledger files: created whole or not at all, opened only if intact, and never losing an acknowledged charge."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ldp_budget import Accountant, LedgerError, LedgerMissing, Mechanism
from ldp_budget.accounting.upgrade import upgrade
from ldp_budget.ledger.sqlite.schema import APPLICATION_ID, CANDIDATE_ID, SCHEMA_VERSION
from ledger_inside import BusyWriter

Coin = Callable[[Any], Mechanism]


def count(path: Path, user: str) -> int:
    """Return the number of spends of 0.1 by a user."""
    with Accountant(path, create=False) as accountant:
        epsilon = accountant.balance(user).limits[0].spent_units.epsilon
    assert epsilon is not None
    assert epsilon % 10**8 == 0
    return epsilon // 10**8


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture
def path(tmp_path: Path, coin: Coin) -> Path:
    """A ledger in which alice spent 0.1 once, closed."""
    path = tmp_path / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
        accountant.spend("alice", coin("0.1"))
    return path


# -- making one ----------------------------------------------------------------------------------------------


def test_open_without_create_makes_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(LedgerMissing, match="this ledger does not exist"):
        Accountant(tmp_path / "budget.db", create=False)
    with pytest.raises(LedgerError, match=r"the folder .*/nowhere does not exist"):
        Accountant(tmp_path / "nowhere" / "budget.db")
    assert contents(tmp_path) == {}


def test_create_in_an_unwritable_place_leaves_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("ldp_budget.ledger.sqlite.connection.create_tables", no_space)
    with pytest.raises(LedgerError, match="it cannot be created: database or disk is full"):
        Accountant(tmp_path / "budget.db")
    assert not (tmp_path / "budget.db.key").exists()
    monkeypatch.undo()
    Accountant(tmp_path / "budget.db").close()


# -- opening one ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lost", "said"), [("budget.db", "the ledger is missing"), ("budget.db.key", "its key file .* is missing")]
)
def test_open_without_ledger_or_key_raises_and_makes_nothing(path: Path, lost: str, said: str) -> None:
    """A ledger recreated next to its key, or a key next to its ledger, would give fresh budgets."""
    (path.parent / lost).unlink()
    before = contents(path.parent)
    for create in (True, False):
        with pytest.raises(LedgerError, match=f"{said}.*Restore it from a backup"):
            Accountant(path, create=create)
    assert contents(path.parent) == before


def test_open_with_the_key_of_another_ledger_is_refused(path: Path, tmp_path: Path) -> None:
    Accountant(tmp_path / "other.db").close()
    shutil.copy(tmp_path / "other.db.key", tmp_path / "budget.db.key")
    before = contents(tmp_path)
    with pytest.raises(LedgerError, match=r"its key .*budget.db.key belongs to another ledger"):
        Accountant(path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("size", [0, 31, 33])
def test_open_with_a_malformed_key_is_refused(path: Path, size: int) -> None:
    path.with_name("budget.db.key").write_bytes(b"k" * size)
    with pytest.raises(LedgerError, match=f"has {size} bytes instead of 32"):
        Accountant(path)


def _other_programs_file(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE window_sums (account, window)")
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_other_programs_file, "this is not an ldp-budget ledger"),
        (lambda path: path.write_bytes(b""), "this is not an ldp-budget ledger"),
        (lambda path: path.write_bytes(b"SQLite format 3\0" + b"\0" * 84), "not a database|not an ldp-budget ledger"),
        (lambda path: path.write_text("alice,0.1\n" * 1000), "not a database"),
    ],
)
def test_open_of_another_file_leaves_it_unchanged(path: Path, spoil: Callable[[Path], None], said: str) -> None:
    spoil(path)
    before = contents(path.parent)
    with pytest.raises(LedgerError, match=said):
        Accountant(path)
    assert contents(path.parent) == before


def test_open_of_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="this is a folder, and a ledger is a file"):
        Accountant(tmp_path)
    tmp_path.with_name(f"{tmp_path.name}.key").write_bytes(b"k" * 32)
    with pytest.raises(LedgerError):
        Accountant(tmp_path)


NEWER = SCHEMA_VERSION + 1


@pytest.mark.parametrize("opened", [Accountant, upgrade])
@pytest.mark.parametrize(
    ("application", "version", "said"),
    [
        (APPLICATION_ID, 0, f"its tables must be of version {SCHEMA_VERSION}: got version 0. Nothing was changed"),
        (APPLICATION_ID, NEWER, f"its tables were upgraded to version {NEWER}, and this process knows"),
        (CANDIDATE_ID, 1, "a release candidate of ldp-budget 1.0.0 wrote it, and no release opens it"),
        (CANDIDATE_ID, 2, "a release candidate of ldp-budget 1.0.0 wrote it, and no release opens it"),
        (1, SCHEMA_VERSION, "this is not an ldp-budget ledger"),
    ],
)
def test_open_of_another_version_is_refused_and_changes_nothing(
    path: Path, opened: Callable[[str], object], application: int, version: int, said: str
) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA application_id = {application}")
        connection.execute(f"PRAGMA user_version = {version}")
    before = contents(path.parent)
    with pytest.raises(LedgerError, match=said):
        opened(str(path))
    assert contents(path.parent) == before


@pytest.mark.slow
def test_truncated_ledger_gives_no_fresh_budget(tmp_path: Path, coin: Coin) -> None:
    """SQLite itself reads a last page that was cut off as zeros, and would find no account there."""
    path = tmp_path / "whole.db"
    users = [f"user-{number}" for number in range(150)]
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        for user in users:
            accountant.spend(user, coin("0.1"), key=user)
    whole = path.read_bytes()
    page = int.from_bytes(whole[16:18], "big")
    cuts = [*range(0, len(whole), page), *range(len(whole) - page, len(whole), 97), len(whole) - 1]
    for size in cuts:
        cut = tmp_path / "cut.db"
        cut.write_bytes(whole[:size])
        shutil.copy(f"{path}.key", f"{cut}.key")
        with pytest.raises(LedgerError), Accountant(cut) as accountant:
            accountant.balance("user-0")
        assert cut.read_bytes() == whole[:size]


# -- what is in it -------------------------------------------------------------------------------------------


def test_ledger_files_contain_no_user_key_or_label(path: Path, coin: Coin) -> None:
    secrets = ["wilhelmina@example.org", "retry-7c1e", "favourite-colour"]
    user, key, label = secrets
    with Accountant(path) as accountant:
        accountant.spend(user, coin("0.1"), key=key, label=label, digest="ab12cd34ef56")
        accountant.spend(user, coin("5000"), key=f"{key}-refused", label=label)
        accountant.spend(user, coin("0.1"), key=key, label=label, digest="ab12cd34ef56")
        accountant.quote(user, coin("0.1"), label=label)
        accountant.balance(user)
        open_files = contents(path.parent)
    assert "budget.db-wal" in open_files
    for files in (open_files, contents(path.parent)):
        for name, data in files.items():
            for secret in (*secrets, "ab12cd34ef56"):
                assert secret.encode() not in data, f"{secret} is in {name}"
                assert secret.encode("utf-16-le") not in data


def test_user_hash_differs_between_ledgers(tmp_path: Path, coin: Coin) -> None:
    hashes = []
    for name in ("a.db", "b.db"):
        with Accountant(tmp_path / name) as accountant:
            accountant.set_policy("default", ["lifetime=1"])
            accountant.spend("alice", coin("0.1"))
        connection = sqlite3.connect(tmp_path / name)
        hashes += connection.execute("SELECT user_hash FROM users").fetchall()
        connection.close()
    assert len(set(hashes)) == 2


# -- many processes, killed ones, forked ones ----------------------------------------------------------------


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also where these tests were started with interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_thread_interrupted_while_it_waits_charges_nothing_and_blocks_no_other(path: Path, coin: Coin) -> None:
    with Accountant(path) as accountant:
        statuses: list[str] = []
        with BusyWriter(accountant) as writer:

            def interrupt() -> None:
                writer.wait_for(1)
                time.sleep(0.05)
                os.kill(os.getpid(), signal.SIGINT)

            interrupter = threading.Thread(target=interrupt)
            interrupter.start()
            with pytest.raises(KeyboardInterrupt):
                accountant.spend("interrupted", coin("0.1"))
            interrupter.join()
            follower = threading.Thread(
                target=lambda: statuses.append(accountant.spend("follower", coin("0.1")).status), daemon=True
            )
            follower.start()
            writer.wait_for(2)
        follower.join(60)
        assert statuses == ["spent"]
    assert [count(path, user) for user in ("interrupted", "follower")] == [0, 1]
