"""The write-ahead log of a ledger's file: short under any load, truncated on a full disk, one writer at a time."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from contract.acts import check, coin, spent
from ldp_budget import Accountant, LedgerError
from ldp_budget.ledger.sqlite import wal_recovery
from ledger_inside import store_of, tables

MOST = 64 << 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
    return path


def log_bytes(path: Path) -> int:
    try:
        return os.stat(f"{path}-wal").st_size
    except FileNotFoundError:
        return 0


# -- how long it gets --------------------------------------------------------------------------------------------

LOAD = """
import sys, time
from ldp_budget import Accountant, mechanism
coin = mechanism("rr")(epsilon="0.0001")
me, end, number = sys.argv[2], time.monotonic() + float(sys.argv[3]), 0
with Accountant(sys.argv[1]) as accountant:
    while time.monotonic() < end:
        accountant.spend_many([f"{me}-{number}-{each}" for each in range(50)], coin)
        accountant.balance(f"{me}-0-0")
        number += 1
print(number)
"""


@pytest.mark.exhaustive
def test_log_stays_short_with_eight_processes(path: Path) -> None:
    """Waiting writers held a snapshot, so the log was never restarted: it grew by 20 MB a second."""
    command = [sys.executable, "-c", LOAD, str(path)]
    load = [subprocess.Popen([*command, str(n), "8"], stdout=subprocess.PIPE, text=True) for n in range(8)]
    most = 0
    while any(process.poll() is None for process in load):
        most = max(most, log_bytes(path))
        time.sleep(0.01)
    batches = [int(process.communicate()[0]) for process in load]
    assert all(batches), "each process has spent something"
    assert most <= MOST
    with Accountant(path, create=False) as accountant:
        assert accountant.stats()["entries"] == 50 * sum(batches) + 1


@pytest.mark.exhaustive
def test_log_is_truncated_with_readers_that_always_overlap(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is never a moment without one, but each goes at some time, and those who come then need no log."""
    monkeypatch.setattr(wal_recovery, "SHORTENED_BYTES", 1 << 20)
    monkeypatch.setattr(wal_recovery, "MOST_BYTES", 2 << 20)
    for name in ("ATTEMPT_SECONDS", "PAUSE_SECONDS", "LONGEST_PAUSE_SECONDS"):
        monkeypatch.setattr(wal_recovery, name, 0.0)
    monkeypatch.setattr(wal_recovery, "WAIT_SECONDS", 1.0)
    over = threading.Event()
    looks: list[int] = []

    def read() -> None:
        while not over.is_set():
            with tables(accountant) as rows:
                looks.append(rows.execute("SELECT count(*) FROM journal").fetchone()[0])
                time.sleep(0.015)

    with Accountant(path) as accountant:
        readers = [threading.Thread(target=read) for _ in range(3)]
        for number, reader in enumerate(readers):
            reader.start()
            time.sleep(0.005 * number)
        most = 0
        for number in range(300):
            accountant.spend_many([f"user-{number}-{each}" for each in range(20)], coin("0.01"))
            most = max(most, log_bytes(path))
        over.set()
        for reader in readers:
            reader.join()
        assert looks
        assert 1 << 20 < most < 3 << 20
        check(accountant)


@pytest.mark.exhaustive
def test_erase_empties_the_log_or_says_that_it_could_not(path: Path) -> None:
    with Accountant(path) as accountant:
        accountant.spend("alice", coin("0.1"), key="k")
        assert accountant.erase("alice")
        assert log_bytes(path) == 0
        accountant.spend("bob", coin("0.1"), key="k")
        with store_of(accountant).snapshot() as rows:
            rows.end()
            with pytest.raises(LedgerError, match="gone from the ledger, but not from its log"):
                accountant.erase("bob")
            assert accountant.is_erased("bob")
            assert log_bytes(path) > 0
        assert not accountant.erase("bob"), "it was done before; now it is in the log no more"
        assert log_bytes(path) == 0
        check(accountant)


# -- no room on the disk -----------------------------------------------------------------------------------------

FILLING = """
import os, subprocess, sys
from ldp_budget import Accountant, LedgerError, mechanism
folder, kind = sys.argv[1:]
coin = mechanism("rr")(epsilon="0.001")
path = f"{folder}/budget.db"
accountant = Accountant(path)
accountant.set_policy("default", ["lifetime=1000"])

def spend(number):
    if kind == "single":
        accountant.spend(f"user-{number % 7}", coin, key=str(number))
        return 1
    result = accountant.spend_many([f"user-{number}-{n}" for n in range(500)], coin, key=str(number))
    assert result.refused == 0
    return 0 if result.repeated else 500

told, done, error = 0, 0, None
while error is None:
    try:
        done += spend(told)
        told += 1
    except LedgerError as caught:
        error = caught
if error.unknown:  # the last batch was charged, and the end of its run did not fit
    done += 500
else:
    assert "full. Nothing was charged." in str(error), error
used = os.stat(path).st_size
print(told, used)
assert used > 2_000_000, (told, used)
assert accountant.stats()["entries"] == done + 1
subprocess.run(["mount", "-o", "remount,size=40m", folder], check=True)
for number in range(told + 2):
    done += 0 if number < told and kind == "single" else spend(number)
assert accountant.stats()["entries"] == done + 1
assert accountant.verify().ok
accountant.close()
assert sorted(os.listdir(folder)) == ["budget.db", "budget.db.key"]
"""


TIGHT = """
import os, subprocess, sys
from ldp_budget import Accountant, mechanism
folder = sys.argv[1]
coin = mechanism("rr")(epsilon="0.001")
accountant = Accountant(f"{folder}/budget.db")
accountant.set_policy("default", ["lifetime=1000"])
while os.stat(f"{folder}/budget.db-wal").st_size < 1_100_000:
    accountant.spend("alice", coin)
entries = accountant.stats()["entries"]
free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
with open(f"{folder}/filler", "wb") as filler:
    filler.write(bytes(free - 1_300_000))
assert accountant.spend_many([f"user-{n}" for n in range(10_000)], coin).spent == 10_000
assert accountant.stats()["entries"] == entries + 10_000
subprocess.run(["mount", "-o", "remount,size=40m", folder], check=True)
assert accountant.verify().ok
"""


def on_a_disk_of(megabytes: int, place: Path, code: str, *arguments: str) -> None:
    """Run a script where a small disk is mounted at `place`, its first argument."""
    if subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no right to mount")
    script = f'mount -t tmpfs -o size={megabytes}m tmpfs "$1" && exec "$2" -c "$3" "$1" "$4"'
    command = ["unshare", "-rm", "sh", "-c", script, "sh", str(place), sys.executable, code, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["single", "bulk"])
def test_full_disk_is_filled_with_the_ledger_and_not_with_its_log(tmp_path: Path, kind: str) -> None:
    """With 8 MB it was full after 375 spends, nearly all of it log, and stayed so."""
    on_a_disk_of(3, tmp_path, FILLING, kind)


def test_transaction_without_room_gets_the_room_of_the_log(tmp_path: Path) -> None:
    on_a_disk_of(4, tmp_path, TIGHT)


# -- one at a time -----------------------------------------------------------------------------------------------


def test_commit_or_checkpoint_needs_the_write_lock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No commit may restart the log during a checkpoint, which SQLite's race needs."""
    with Accountant(path) as accountant:
        for number in range(30):
            accountant.spend("alice", coin("0.1"), key=str(number))
        monkeypatch.setattr("ldp_budget.ledger.sqlite.connection.BUSY_SECONDS", 0.05)
        with open(f"{path}.key", "rb") as key:
            fcntl.flock(key, fcntl.LOCK_EX)
            before = path.read_bytes(), Path(f"{path}-wal").read_bytes()
            calls: list[Any] = [
                lambda: accountant.spend("alice", coin("0.1")),
                lambda: accountant.erase("alice"),
                store_of(accountant).clear_log,
            ]
            for call in calls:
                with pytest.raises(
                    LedgerError, match=r"other processes kept it locked for 0\.05 s. Nothing was charged."
                ):
                    call()
            assert spent(accountant, "alice") == {"lifetime": 3}, "who reads need not wait"
            with Accountant(":memory:") as unrelated:
                unrelated.set_policy("default", ["lifetime=1"])
            accountant.close()
            assert (path.read_bytes(), Path(f"{path}-wal").read_bytes()) == before, "nor on closing"
    with Accountant(path, create=False) as accountant:
        assert spent(accountant, "alice") == {"lifetime": 3}
        check(accountant)


# -- an error that leaves it open whether a commit is on the disk ------------------------------------------------

NO_SYNC = """
import ctypes, os, struct, sys
from ldp_budget import Accountant, LedgerError, mechanism

def without_sync():
    '''From now on fsync and fdatasync answer with an error, as a failing disk does.'''
    calls = {"x86_64": (74, 75), "aarch64": (82, 83)}[os.uname().machine]
    instructions = [(0x20, 0, 0, 0)]  # the number of the call
    for left, call in zip((1, 0), calls):
        instructions.append((0x15, left, 0 if left else 1, call))
    instructions += [(0x06, 0, 0, 0x00050000 | 5), (0x06, 0, 0, 0x7FFF0000)]  # EIO; or as usual
    program = b"".join(struct.pack("HBBI", *each) for each in instructions)
    buffer = ctypes.create_string_buffer(program)
    filter = struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.create_string_buffer(filter)) == 0, ctypes.get_errno()

accountant = Accountant(sys.argv[1], create=False)
coin = mechanism("rr")(epsilon="0.1")
accountant.spend("alice", coin, key="before")
without_sync()
try:
    accountant.spend("alice", coin, key="k")
except LedgerError as error:
    print(error, flush=True)
os._exit(9)
"""


def test_failed_sync_at_the_commit_is_reported_as_unknown(path: Path) -> None:
    """The pages are written, and after a restart the charge may be there."""
    if os.uname().machine not in ("x86_64", "aarch64"):
        pytest.skip("the numbers of the system calls are not known here")
    done = subprocess.run([sys.executable, "-c", NO_SYNC, path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 9, done.stderr
    assert "It is unknown whether it was charged. Repeat the request with the same key." in done.stdout
    assert "Nothing was charged" not in done.stdout
    with Accountant(path, create=False) as accountant:
        accountant.spend("alice", coin("0.1"), key="k")
        assert spent(accountant, "alice") == {"lifetime": Decimal("0.2")}, "once, whether it was there or not"
        check(accountant)
