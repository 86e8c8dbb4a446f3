"""Backups and copies of a ledger that other processes write to, or that ended with them."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import pytest

from contract.acts import check, coin
from ldp_budget import Accountant, LedgerError
from ldp_budget.ledger.sqlite import file_guard
from ledger_folders import contents, new_ledger_in, tenths_in


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger in which alice spent 0.1 once, closed."""
    return new_ledger_in(tmp_path, lifetime=1000, spends=1)


def die(path: Path, then: str) -> None:
    """Do something with a ledger in a process that dies of it, so that its log stays."""
    prelude = """
        import os, sys
        from ldp_budget import Accountant, mechanism
        coin = mechanism("rr")(epsilon="0.1")
        accountant = Accountant(sys.argv[1], create=False)
        """
    code = dedent(prelude) + dedent(then) + "\nos._exit(9)"
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False, timeout=60).returncode == 9
    assert log_of(path).stat().st_size > 0


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


# -- a backup --------------------------------------------------------------------------------------------------


def test_backup_during_writes_of_eight_threads_is_of_one_moment(path: Path, tmp_path: Path) -> None:
    script = """
        import sys, threading
        from ldp_budget import Accountant, mechanism
        coin = mechanism("rr")(epsilon="0.1")
        accountant = Accountant(sys.argv[1])
        print(flush=True)
        def spend():
            while True: accountant.spend("bob", coin)
        for _ in range(8): threading.Thread(target=spend, daemon=True).start()
        sys.stdin.read()
        """
    command = [sys.executable, "-c", dedent(script), str(path)]
    writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        writer.stdout.readline()
        seen = []
        for number in range(4):
            with Accountant(path) as accountant:
                accountant.backup(tmp_path / f"{number}.db")
                seen.append(tenths_in(tmp_path / f"{number}.db", "bob"))
        assert seen == sorted(seen)
        assert seen[-1] > 0
    finally:
        writer.kill()
        writer.communicate()


# -- a copy restored next to an old log --------------------------------------------------------------------------


def test_crashed_ledger_opens_with_its_own_log(path: Path) -> None:
    die(path, "for _ in range(3): accountant.spend('alice', coin)")
    assert tenths_in(path, "alice") == 4


def test_crash_during_a_checkpoint_is_not_taken_for_a_copy(path: Path, tmp_path: Path) -> None:
    """Some pages of the log are in the database already, others not; any of them may be missing."""
    die(path, "for n in range(40): accountant.spend(f'user-{n}', coin, key=str(n))")
    old, done = path.read_bytes(), tmp_path / "done.db"
    for ending in ("", "-wal", ".key"):
        shutil.copy(f"{path}{ending}", f"{done}{ending}")
    with Accountant(done) as accountant:
        head = check(accountant)
    new = done.read_bytes()
    pages = len(new) // 4096
    assert pages > 8
    for written in range(pages + 1):
        copy = tmp_path / "copy.db"
        for ending in ("", "-wal", ".key"):
            shutil.copy(f"{path}{ending}", f"{copy}{ending}")
        size = written * 4096
        copy.write_bytes(new[:size] + old[size:])
        with Accountant(copy) as accountant:
            assert check(accountant) == head, written
        for ending in ("", ".key"):
            Path(f"{copy}{ending}").unlink()


def test_open_after_torn_checkpoint_recovers_every_charge(
    path: Path, tmp_path: Path, thorough: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut tore pages of a checkpoint between sectors of 512 bytes. SQLite recovers all of it, but the ledger
    refused to open and advised to move the log away, after which every user had a fresh budget.
    """
    die(path, "for n in range(40): accountant.spend(f'user-{n}', coin, key=str(n))")
    old, copy, chance = path.read_bytes(), tmp_path / "copy.db", random.Random(1)
    for ending in ("", "-wal", ".key"):
        shutil.copy(f"{path}{ending}", f"{copy}{ending}")
    with Accountant(copy) as accountant:
        head = check(accountant)
    new = copy.read_bytes()
    old += bytes(len(new) - len(old))
    one_page = [
        kept[:page] + new[page : page + done] + old[page + done : page + 4096] + kept[page + 4096 :]
        for page in range(0, len(new), 4096)
        if new[page : page + 4096] != old[page : page + 4096]
        for done in range(512, 4096, 512)
        for kept in (new, old)
    ]
    any_sectors = [
        b"".join(chance.choice((new, old))[place : place + 512] for place in range(0, len(new), 512))
        for _ in range(300 if thorough else 30)
    ]
    assert len(one_page) > 100
    is_torn, asked = file_guard.is_torn, list[bool]()
    monkeypatch.setattr(file_guard, "is_torn", lambda *given: asked.append(is_torn(*given)) or asked[-1])
    for content in [*(one_page if thorough else one_page[::9]), *any_sectors]:
        copy.write_bytes(content)
        for ending in ("-wal", ".key"):
            shutil.copy(f"{path}{ending}", f"{copy}{ending}")
        with Accountant(copy, create=False) as accountant:
            assert check(accountant) == head
    assert asked, "the newest entries alone do not show that the log belongs to each of them"


@pytest.mark.some(3)
@pytest.mark.parametrize("how", ["written over", "moved there", "by backup"])
@pytest.mark.parametrize("later", [1, 60])
def test_copy_next_to_a_later_log_is_refused_by_name(path: Path, tmp_path: Path, how: str, later: int) -> None:
    """It opened, spent, and then was malformed; here the copy lacks one entry, or many."""
    copy = tmp_path / "copy.db"
    if how == "by backup":
        with Accountant(path) as accountant:
            accountant.backup(copy)
    else:
        shutil.copy(path, copy)
    with Accountant(path) as accountant:
        for _ in range(later):
            accountant.spend("alice", coin("0.1"))
    die(path, "for _ in range(3): accountant.spend('alice', coin)")
    if how == "moved there":
        os.replace(copy, path)
    else:
        path.write_bytes(copy.read_bytes())
    before = contents(path.parent)
    for _ in range(2):
        with pytest.raises(LedgerError, match=r"its log .*-wal belongs to another state of the database"):
            Accountant(path, create=False)
    after = contents(path.parent)
    assert {name: after[name] for name in before if not name.endswith("-shm")} == {
        name: before[name] for name in before if not name.endswith("-shm")
    }
    log_of(path).rename(tmp_path / "log")
    assert tenths_in(path, "alice") == 1
    with Accountant(path) as accountant:
        accountant.spend("alice", coin("0.1"))
    assert tenths_in(path, "alice") == 2


def test_ledger_continued_elsewhere_next_to_its_old_log_is_refused(path: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.db"
    for ending in ("", ".key"):
        shutil.copy(f"{path}{ending}", f"{elsewhere}{ending}")
    die(path, "accountant.spend('alice', coin)")
    with Accountant(elsewhere) as accountant:
        for _ in range(5):
            accountant.spend("bob", coin("0.1"))
    path.write_bytes(elsewhere.read_bytes())
    with pytest.raises(LedgerError, match="belongs to another state of the database"):
        Accountant(path)


# -- what lies about where no ledger is --------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["with its key", "without"])
@pytest.mark.some(2)
def test_database_deleted_next_to_its_log_is_not_recreated(path: Path, key: str) -> None:
    die(path, "accountant.spend('alice', coin)")
    path.rename(path.with_name("deleted"))
    if key == "without":
        path.with_name("budget.db.key").rename(path.with_name("key"))
    before = contents(path.parent)
    for create in (True, False):
        with pytest.raises(
            LedgerError, match=r"budget\.db-wal of an earlier ledger|the ledger is missing|this ledger does not exist"
        ):
            Accountant(path, create=create)
    assert contents(path.parent) == before
    path.with_name("deleted").rename(path)
    with suppress(FileNotFoundError):
        path.with_name("key").rename(path.with_name("budget.db.key"))
    assert tenths_in(path, "alice") == 2


# -- read-only places -------------------------------------------------------------------------------------------


READ_ONLY_MOUNT = """
import subprocess, sys
from ldp_budget import Accountant, LedgerError, mechanism
here, there = f"{sys.argv[1]}/budget.db", f"{sys.argv[2]}/budget.db"
coin = mechanism("rr")(epsilon="0.1")
frozen = Accountant(there, create=False)
assert frozen.balance("alice").limits[0].spent_units.epsilon == 10**8
for closed in (False, True):
    live = Accountant(here)
    live.spend("alice", coin)
    assert live._ledger._store.clear_log()
    if closed:
        live.close()
    for ask in (
        lambda: frozen.balance("alice"),
        lambda: frozen.quote("alice", coin),
        lambda: Accountant(there, create=False).close() if not closed else frozen.balance("alice"),
    ):
        try:
            ask()
        except LedgerError as error:
            print(str(error).partition(": ")[2])
        else:
            raise AssertionError("it was answered from the past")
    live.close()
print(Accountant(there, create=False).balance("alice").limits[0].spent_units.epsilon)
"""


def test_live_ledger_behind_a_read_only_mount_is_refused(path: Path, tmp_path: Path) -> None:
    """It was read once and then frozen: a balance of 0.0 where 0.9 was spent, and `quote` said that a spend fits."""
    if subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no right to mount")
    second = tmp_path / "second"
    second.mkdir()
    script = 'mount --bind "$1" "$2" && mount -o remount,ro,bind "$2" && exec "$3" -c "$4" "$1" "$2"'
    command = ["unshare", "-rm", "sh", "-c", script, "sh", path.parent, second, sys.executable, READ_ONLY_MOUNT]
    done = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    *told, balance = done.stdout.splitlines()
    assert balance == str(3 * 10**8)
    assert all("balances would be outdated" in line for line in told[:3])
    assert all("another process wrote to it after it was opened here" in line for line in told[3:])
    assert len(told) == 6


def test_copy_on_a_read_only_disk_can_be_verified(path: Path) -> None:
    if subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no right to mount")
    script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && exec "$2" -c "$3" "$1/budget.db"'
    code = "import sys; from ldp_budget import Accountant; print(Accountant(sys.argv[1], create=False).verify().ok)"
    command = ["unshare", "-rm", "sh", "-c", script, "sh", str(path.parent), sys.executable, code]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n"
    assert sorted(contents(path.parent)) == ["budget.db", "budget.db.key"]


# -- a ledger that is not closed ---------------------------------------------------------------------------------
