"""Forks while other threads use ledgers: no child hangs, no lock is inherited, and no charge is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from contract.acts import check
from ldp_budget import Accountant

PROLOGUE = """
import gc, os, random, signal, subprocess, sys, tempfile, threading, time
import ldp_budget
from ldp_budget import Accountant, LedgerError
from ldp_budget.ledger.sqlite import fork_gate
path, coin, stop = sys.argv[1], ldp_budget.mechanism("rr")(epsilon="0.0001"), threading.Event()
done = []

def spend(accountant, user):
    accountant.spend(user, coin)
    done.append(user)

def child_spends(seconds=30):
    signal.alarm(seconds)
    with Accountant(path, create=False) as own:
        own.spend("child", coin)
        assert own.balance("child").limits
    os._exit(0)
"""

CHURN = """
shared = Accountant(path)

def open_and_close():
    with Accountant(path) as other:
        spend(other, "closed")

def open_and_drop():
    other = Accountant(path)
    spend(other, "dropped")
    del other
    gc.collect(0)

def read():
    shared.balance("steady")
    for _ in shared.history("steady"):
        pass

def back_up():
    shared.backup(os.path.join(tempfile.mkdtemp(dir=os.path.dirname(path)), "copy.db"))

def make():
    with Accountant(os.path.join(tempfile.mkdtemp(dir=os.path.dirname(path)), "new.db")) as other:
        other.set_policy("default", ["lifetime=1"])

def again(work):
    while not stop.is_set():
        work()

works = [open_and_close, open_and_drop, lambda: spend(shared, "steady"), read, read, back_up, make]
threads = [threading.Thread(target=again, args=(work,)) for work in works]
for thread in threads:
    thread.start()
codes = []
for number in range(int(sys.argv[2])):
    time.sleep(random.random() / 50)
    child = os.fork()
    if child == 0:
        child_spends()
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
for thread in threads:
    thread.join()
assert set(codes) == {0}, codes
print(len(done) + len(codes))
"""


def run(script: str, *arguments: object, seconds: float = 300) -> str:
    command = [sys.executable, "-c", PROLOGUE + dedent(script), *map(str, arguments)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=seconds)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return ended.stdout


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
    return tmp_path / "budget.db"


@pytest.mark.some(2)
@pytest.mark.parametrize("forks", [25, 200])
def test_fork_while_threads_open_close_drop_read_and_copy_hangs_no_child(path: Path, forks: int) -> None:
    """A child had the locks of threads that were opening or closing a ledger, and waited for them forever."""
    charges = int(run(CHURN, path, forks))
    with Accountant(path, create=False) as accountant:
        check(accountant)
        assert accountant.stats()["entries"] == charges + 1


def test_fork_from_two_threads_at_once_hangs_no_child(path: Path) -> None:
    script = """
        shared, codes = Accountant(path), []

        def fork():
            for _ in range(8):
                child = os.fork()
                if child == 0:
                    child_spends()
                codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

        forkers = [threading.Thread(target=fork) for _ in range(3)]
        for thread in forkers:
            thread.start()
        while any(thread.is_alive() for thread in forkers):
            spend(shared, "steady")
        print(len(done) + len(codes), set(codes))
        """
    charges, codes = run(script, path).split(maxsplit=1)
    assert codes == "{0}\n"
    with Accountant(path, create=False) as accountant:
        assert accountant.stats()["entries"] == int(charges) + 1


def test_child_outlives_its_parent_and_holds_locks_of_its_own(path: Path) -> None:
    """SQLite in the child counted the parent's locks as its own, so the next process reset the index under it."""
    script = """
        accountant = Accountant(path)
        spend(accountant, "parent")
        with accountant._ledger.reading():
            if os.fork():
                os._exit(0)
        own = Accountant(path)
        own.spend("child", coin)
        for number in range(5):
            other = "import sys; from ldp_budget import Accountant, mechanism; "
            other += "Accountant(sys.argv[1]).spend('other', mechanism('rr')(epsilon='0.0001'))"
            subprocess.run([sys.executable, "-c", other, path], check=True)
            own.spend("child", coin)
        own.close()
        print("done")
        """
    assert run(script, path) == "done\n"
    with Accountant(path, create=False) as accountant:
        check(accountant)
        assert accountant.stats()["entries"] == 1 + 1 + 6 + 5
    assert sorted(file.name for file in path.parent.iterdir() if file.is_file()) == [path.name, f"{path.name}.key"]


def test_fork_next_to_a_transaction_that_does_not_end_is_made_after_a_time(path: Path) -> None:
    script = """
        fork_gate.SECONDS = 0.5
        accountant, inside, go = Accountant(path), threading.Event(), threading.Event()

        def write(transaction):
            inside.set()
            go.wait(30)

        writer = threading.Thread(target=accountant._ledger.run, args=(write,))
        writer.start()
        inside.wait(30)
        child = os.fork()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        go.set()
        writer.join()
        spend(accountant, "parent")
        child = os.fork()
        if child == 0:
            child_spends()
        print(os.waitpid(child, 0)[1])
        """
    assert run(script, path) == "0\n"


def test_fork_within_an_own_snapshot_or_transaction_returns(path: Path) -> None:
    script = """
        accountant = Accountant(path)

        def write(transaction):
            child = os.fork()
            if child == 0:
                os._exit(0)
            return os.waitpid(child, 0)[1]

        print(accountant._ledger.run(write))
        with accountant._ledger.reading() as reading:
            child = os.fork()
            if child == 0:
                try:
                    reading.rows.entry(1)
                except Exception:
                    os._exit(7)
                os._exit(8)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            reading.rows.end()
        spend(accountant, "parent")
        """
    assert run(script, path) in ("0\n7\n", "0\n8\n")
    with Accountant(path, create=False) as accountant:
        check(accountant)
