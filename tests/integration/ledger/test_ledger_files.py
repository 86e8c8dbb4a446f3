"""Ledger files under several processes, forks and kills: none loses an acknowledged charge."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from ldp_budget import Accountant, Mechanism

if TYPE_CHECKING:
    pass

Coin = Callable[[Any], Mechanism]

PRELUDE = """
import os, signal, sys, threading, time
import ldp_budget
path = sys.argv[1]
coin = ldp_budget.mechanism("rr")(epsilon="0.1")
"""


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Run a script in a process of its own; `path` is its first argument."""
    command = [sys.executable, "-c", PRELUDE + dedent(script), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def output(process: subprocess.Popen[str]) -> str:
    """Return the output of a process, which must succeed."""
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return printed


def count(path: Path, user: str) -> int:
    """Return the number of spends of 0.1 by a user."""
    with Accountant(path, create=False) as accountant:
        epsilon = accountant.balance(user).limits[0].spent_units.epsilon
    assert epsilon is not None
    assert epsilon % 10**8 == 0
    return epsilon // 10**8


@pytest.fixture
def path(tmp_path: Path, coin: Coin) -> Path:
    """A ledger in which alice spent 0.1 once, closed."""
    path = tmp_path / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
        accountant.spend("alice", coin("0.1"))
    return path


# -- many processes, killed ones, forked ones ----------------------------------------------------------------


KILLED = """
    with ldp_budget.Accountant(path) as accountant:
        for number in range(int(sys.argv[2]), 10**9):
            receipt = accountant.spend("bob", coin, key=f"key-{number}")
            print(number, receipt.repeated, flush=True)
    """


@pytest.mark.parametrize("rounds", [3, pytest.param(100, marks=pytest.mark.exhaustive)])
def test_killed_process_loses_no_acknowledged_charge(path: Path, coin: Coin, rounds: int) -> None:
    acknowledged = -1
    for number in range(rounds):
        process = start(KILLED, path, acknowledged + 1)
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        time.sleep(0.003 * (number % 7))
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.read().splitlines(keepends=True)
        process.wait()
        process.stdout.close()
        told = [line.split() for line in lines if line.endswith("\n")]
        # At most the one spend that was in flight at the last kill is there without having been told.
        assert [int(key) for key, _ in told] == list(range(acknowledged + 1, acknowledged + 1 + len(told)))
        assert [repeated for _, repeated in told[1:]] == ["False"] * (len(told) - 1)
        acknowledged = int(told[-1][0])
        assert count(path, "bob") in (acknowledged + 1, acknowledged + 2)
    with Accountant(path) as accountant:
        for number in range(acknowledged + 1):
            assert accountant.spend("bob", coin("0.1"), key=f"key-{number}").repeated
        accountant.spend("bob", coin("0.1"), key=f"key-{acknowledged + 1}")
    assert count(path, "bob") == acknowledged + 2, "every key was charged once"


IN_CHILD = """
    def refused(accountant):
        try:
            accountant.spend("bob", coin)
        except ldp_budget.LedgerError as error:
            assert "it was opened before this process was forked. Open it in the child process." in str(error), error
            return True
    """


def test_child_of_fork_opens_its_own_ledger_and_loses_nothing_when_parent_closes(path: Path) -> None:
    """SQLite's locks do not cross a fork: the parent's closing deletes the log that an inherited state writes to."""
    script = """
        accountant = ldp_budget.Accountant(path)
        accountant.spend("bob", coin)
        from_child, to_parent = os.pipe()
        from_parent, to_child = os.pipe()
        if os.fork() == 0:
            assert refused(accountant)
            own = ldp_budget.Accountant(path)
            own.spend("bob", coin)
            os.write(to_parent, b"x")
            os.read(from_parent, 1)
            for _ in range(5):
                own.spend("bob", coin)
            os._exit(0)
        os.read(from_child, 1)
        accountant.close()
        os.write(to_child, b"x")
        print(os.wait()[1])
        """
    assert output(start(dedent(IN_CHILD) + dedent(script), path)) == "0\n"
    assert count(path, "bob") == 7


def test_fork_while_threads_spend_loses_nothing_and_does_not_hang(path: Path) -> None:
    """SQLite in the child may take a write of its parent for one of its own: then the ledger is locked for it."""
    script = """
        from ldp_budget.ledger.sqlite import connection
        connection.BUSY_SECONDS = 0.5
        accountant = ldp_budget.Accountant(path)
        stop = threading.Event()
        done, children = [], []

        def spend():
            while not stop.is_set():
                done.append(bool(accountant.spend("alice", coin)))

        threads = [threading.Thread(target=spend) for _ in range(4)]
        for thread in threads: thread.start()
        for _ in range(10):
            time.sleep(0.005)
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                assert refused(accountant)
                try:
                    with ldp_budget.Accountant(path) as own:
                        own.spend("bob", coin)
                except ldp_budget.LedgerError as error:
                    assert "other processes kept it locked" in str(error), error
                    os._exit(3)
                os._exit(0)
            children.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        stop.set()
        for thread in threads: thread.join()
        assert set(children) <= {0, 3}, children
        print(len(done), children.count(0))
        """
    alice, bob = map(int, output(start(dedent(IN_CHILD) + dedent(script), path)).split())
    assert count(path, "alice") == alice + 1
    assert count(path, "bob") == bob
    with Accountant(path) as accountant:
        assert accountant.verify().ok


def test_ledger_in_memory_is_refused_in_a_child_and_works_in_the_parent(path: Path) -> None:
    script = """
        accountant = ldp_budget.Accountant(":memory:")
        accountant.set_policy("default", ["lifetime=1"])
        if os.fork() == 0:
            print(refused(accountant), flush=True)
            os._exit(0)
        os.wait()
        print(accountant.spend("bob", coin).status)
        """
    assert output(start(dedent(IN_CHILD) + dedent(script), path)).splitlines() == ["True", "spent"]


if TYPE_CHECKING:
    pass


@pytest.mark.exhaustive
def test_create_by_several_processes_gives_all_one_ledger(tmp_path: Path) -> None:
    """The file and its key appear one after the other; another process must not take the gap for a loss."""
    script = """
        for number in range(8):
            while not os.path.exists(f"{path}/go"): pass
            with ldp_budget.Accountant(f"{path}/{number}.db") as accountant:
                accountant.set_policy(f"of-{os.getpid()}", ["lifetime=1"])
        """
    makers = [start(script, tmp_path) for _ in range(4)]
    (tmp_path / "go").touch()
    for maker in makers:
        output(maker)
    for number in range(8):
        with Accountant(tmp_path / f"{number}.db", create=False) as accountant:
            assert len(accountant.policies()) == 4


@pytest.mark.exhaustive
def test_spend_by_eight_processes_grants_exactly_the_limit(path: Path) -> None:
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=7.77"])
    script = """
        with ldp_budget.Accountant(path) as accountant:
            print(flush=True)
            sys.stdin.readline()
            print(sum(bool(accountant.spend("bob", coin)) for _ in range(15)))
        """
    command = [sys.executable, "-c", PRELUDE + dedent(script), str(path)]
    spenders = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    for spender in spenders:
        assert spender.stdout is not None
        assert spender.stdout.readline() == "\n"
    granted = []
    for spender in spenders:
        assert spender.stdin is not None
        spender.stdin.write("\n")
        spender.stdin.flush()
    for spender in spenders:
        granted.append(int(output(spender)))
    assert sum(granted) == 77
    assert count(path, "bob") == 77
