"""A bulk run gives way to single charges of its own process and of others."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

from contract.acts import coin
from ldp_budget import Accountant
from ldp_budget.accounting import batch
from ldp_budget.ledger import write_queue
from ldp_budget.ledger.ledger import Ledger
from ldp_budget.ledger.sqlite.store import SqliteStore

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who waits for a lock")
USERS = [f"user {number}" for number in range(40)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
    return tmp_path / "budget.db"


def wait_for(condition: object) -> None:
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:  # type: ignore[operator]
        time.sleep(0.001)
    assert condition()  # type: ignore[operator]


@LINUX
def test_ledger_is_wanted_while_another_accountant_waits_to_write(path: Path) -> None:
    with Accountant(path) as here, Accountant(path) as there:
        store = here._ledger._store
        assert isinstance(store, SqliteStore)
        there.spend("alice", coin(1))
        here.spend("alice", coin(1))
        assert not here._ledger.is_wanted()
        seen: list[bool] = []
        waiting = threading.Thread(target=lambda: there.spend("alice", coin(1)))

        def work(transaction: object) -> None:
            seen.append(here._ledger.is_wanted())
            waiting.start()
            wait_for(here._ledger.is_wanted)

        here._ledger.run(work)
        waiting.join()
        assert seen == [False]
        assert not here._ledger.is_wanted()


def test_ledger_in_memory_is_never_wanted() -> None:
    with Accountant(":memory:") as accountant:
        assert not accountant._ledger.is_wanted()


@pytest.mark.parametrize("wanted", [True, False])
def test_bulk_run_ends_its_transaction_after_a_part_while_another_process_waits(
    path: Path, monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    monkeypatch.setattr(batch, "PART", 4)
    monkeypatch.setattr(write_queue, "YIELD_SECONDS", 0)
    monkeypatch.setattr(Ledger, "is_wanted", lambda self: wanted)
    sizes: list[int] = []
    attempts = Ledger.attempts

    def counted(self: Ledger, partitions: list[int], items: list[object], *more: object) -> object:
        sizes.append(len(items))
        return attempts(self, partitions, items, *more)  # type: ignore[arg-type]

    with Accountant(path) as accountant:
        monkeypatch.setattr(Ledger, "attempts", counted)
        assert accountant.spend_many(USERS, coin("0.1")).spent == len(USERS)
    assert sizes == ([1] * 10 if wanted else [10])


def test_bulk_run_computes_hashes_while_no_charge_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that computed the hashes of 50,000 users delayed each statement of a charge by milliseconds."""
    monkeypatch.setattr(batch, "STEP", 10)
    pauses: list[None] = []
    monkeypatch.setattr(Ledger, "give_way", lambda self: pauses.append(None))
    with Accountant(path) as accountant:
        accountant.spend_many(USERS, coin("0.1"))
    assert len(pauses) >= len(USERS) // 10


def test_give_way_waits_for_a_charge_that_is_written_and_not_for_ever(path: Path) -> None:
    with Accountant(path) as accountant:
        begun, release = threading.Event(), threading.Event()

        def work(transaction: object) -> None:
            begun.set()
            release.wait(20)

        thread = threading.Thread(target=accountant._ledger.run, args=(work,))
        thread.start()
        assert begun.wait(20)
        accountant._ledger.give_way()  # ends although the charge does not
        release.set()
        thread.join()
        accountant._ledger.give_way()
