"""No caller waits for itself: signal handlers, calls within a transaction, forks, and the end of the interpreter."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from contract.acts import check, coin, spent
from ldp_budget import Accountant, LedgerError
from ledger_inside import ledger_of, store_of

PRELUDE = """
import os, signal, sys, threading, time
from ldp_budget import Accountant, LedgerError, mechanism
path = sys.argv[1]
coin = mechanism("rr")(epsilon="0.1")
"""


def run(script: str, *arguments: object, seconds: float = 60) -> str:
    """Return the output of a script in its own process, which must succeed, and soon."""
    command = [sys.executable, "-c", PRELUDE + dedent(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == "", "as where a hook of a fork fails"
    return done.stdout


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
    return path


# -- one thread, twice -------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[Accountant], Any]] = {
    "spend": lambda accountant: accountant.spend("bob", coin("0.1")),
    "spend_many": lambda accountant: accountant.spend_many(["bob"], coin("0.1")),
    "set_policy": lambda accountant: accountant.set_policy("other", ["lifetime=1"]),
    "store": lambda accountant: next(store_of(accountant).attempts()),
    "clear_log": lambda accountant: store_of(accountant).clear_log(),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("place", [":memory:", "budget.db"])
def test_write_within_its_own_transaction_is_an_error_at_once(tmp_path: Path, place: str, name: str) -> None:
    with Accountant(place if place == ":memory:" else tmp_path / place) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        told: list[str] = []

        def work(transaction: object) -> None:
            with pytest.raises(
                LedgerError, match=r"this thread is already writing to it. Finish that first."
            ) as error:
                CALLS[name](accountant)
            told.append(str(error.value))

        ledger_of(accountant).run(work)
        assert told
        assert accountant.spend("alice", coin("0.1"))
        check(accountant)


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", ["path", "':memory:'"])
def test_signal_handler_that_spends_is_charged_or_refused_at_once(path: Path, kind: str) -> None:
    """It is refused only while its own thread writes."""
    script = f"""
        accountant = Accountant({kind})
        accountant.set_policy("default", ["lifetime=1000"])
        told, failed, inside = 0, 0, False

        def handle(number, frame):
            global told, failed, inside
            if inside:  # the next signal came before this one was handled
                return
            inside = True
            try:
                accountant.spend("handler", coin)
                told += 1
            except LedgerError as error:
                assert "this thread is already writing to it" in str(error), error
                failed += 1
            finally:
                inside = False

        signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.0013)
        others = [threading.Thread(target=lambda: [accountant.spend("other", coin) for _ in range(200)])]
        for other in others: other.start()
        spent = 0
        while told + failed < 40 or spent < 100:
            accountant.spend("main", coin, key=str(spent))
            spent += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        for other in others: other.join()
        limits = [accountant.balance(user).limits[0] for user in ("main", "handler", "other")]
        sums = [limit.spent_units.epsilon // 10**8 for limit in limits]
        assert sums == [spent, told, 200], (sums, spent, told)
        assert accountant.verify().ok
        print(told + failed)
        """
    assert int(run(script, path)) >= 40


def test_thread_that_failed_within_its_transaction_can_write_afterwards(path: Path) -> None:
    with Accountant(path) as accountant:
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                ledger_of(accountant).run(lambda transaction: 1 / 0)
            assert accountant.spend("alice", coin("0.1"))


# -- forks -------------------------------------------------------------------------------------------------------


def test_every_use_in_the_child_of_a_fork_raises_and_the_parent_works(path: Path) -> None:
    script = """
        from ldp_budget.accounting.batch import Spend
        import asyncio

        accountant = Accountant(path)
        first = accountant.reserve("alice", coin).receipt
        view = accountant.acting_for(accountant.caller)
        uses = {
            "spend": lambda: accountant.spend("bob", coin),
            "view": lambda: view.spend("bob", coin),
            "spend_async": lambda: asyncio.run(accountant.spend_async("bob", coin)),
            "spend_many": lambda: accountant.spend_many(["bob"], coin),
            "spend_batch": lambda: accountant.spend_batch([Spend("bob", coin)], key="k"),
            "spend_each": lambda: accountant.spend_each([Spend("bob", coin)]),
            "reserve": lambda: accountant.reserve("bob", coin),
            "commit": lambda: accountant.commit(first),
            "quote": lambda: accountant.quote("bob", coin),
            "balance": lambda: accountant.balance("bob"),
            "history": lambda: accountant.history("bob"),
            "journal": lambda: list(accountant.journal()),
            "verify": lambda: accountant.verify(),
            "stats": lambda: accountant.stats(),
            "set_policy": lambda: accountant.set_policy("default", ["lifetime=1"]),
            "erase": lambda: accountant.erase("alice"),
            "checkpoint": lambda: accountant.checkpoint(),
        }
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            for name, use in uses.items():
                try:
                    use()
                    print(name, "was no error", flush=True)
                except LedgerError as error:
                    if "it was opened before this process was forked. Open it in the child process." not in str(error):
                        print(name, error, flush=True)
            accountant.close()
            with Accountant(path) as own:
                own.spend("bob", coin)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        accountant.spend("bob", coin)
        accountant.commit(first)
        assert accountant.verify().ok
        accountant.close()
        """
    assert run(script, path) == ""
    with Accountant(path, create=False) as accountant:
        assert spent(accountant, "bob")["lifetime"] * 10 == 2
        check(accountant)


def test_child_of_a_fork_that_ends_as_python_does_harms_nothing(path: Path) -> None:
    """Its copy of the accountant is dropped at the end of the interpreter, and its connections with it."""
    script = """
        accountant = Accountant(path)
        accountant.spend("bob", coin)
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        accountant.spend("bob", coin)
        assert accountant.verify().ok
        """
    run(script, path)
    with Accountant(path, create=False) as accountant:
        assert spent(accountant, "bob")["lifetime"] * 10 == 2
        check(accountant)


def test_child_whose_parent_dies_in_a_transaction_locks_out_no_other_process(path: Path) -> None:
    """The turn belongs to an open file, of which the child has a copy."""
    script = """
        accountant = Accountant(path)

        for attempt in accountant._ledger._store.attempts():
            with attempt as rows:
                rows[0]._connection.execute("UPDATE meta SET value = value")
                if os.fork() == 0:
                    time.sleep(20)
                    os._exit(0)
                print(flush=True)
                os._exit(0)
        """
    command = [sys.executable, "-c", PRELUDE + dedent(script), str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    process.stdout.readline()
    process.wait()
    result: list[Any] = []

    def spend() -> None:
        with Accountant(path, create=False) as accountant:
            result.append(accountant.spend("alice", coin("0.1")).status)

    thread = threading.Thread(target=spend, daemon=True)
    thread.start()
    thread.join(10)
    process.stdout.close()
    assert result == ["spent"]


def test_end_of_the_interpreter_waits_for_no_thread(path: Path) -> None:
    script = """
        accountant = Accountant(path)
        inside = threading.Event()

        def work(transaction):
            inside.set()
            time.sleep(600)

        threading.Thread(target=lambda: accountant._ledger.run(work), daemon=True).start()
        inside.wait()
        """
    run(script, path, seconds=20)
    with Accountant(path, create=False) as accountant:
        assert accountant.spend("alice", coin("0.1"))
        check(accountant)
