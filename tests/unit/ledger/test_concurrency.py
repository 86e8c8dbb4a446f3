"""Concurrency: processes, threads and streams of users never exceed a limit, and never wait forever."""

from __future__ import annotations

import sqlite3
import threading
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.acts import check, coin, promising, spent
from fixed_clock import Clock
from ldp_budget import Accountant, InvalidParameter, KeyConflict, LedgerError, Mechanism, NotSupported
from ldp_budget.accounting import batch as batches
from ldp_budget.accounting import bulk_run
from ldp_budget.accounting.plans import Plan
from ldp_budget.guarantees import Approximate, Gaussian, Memoised, Pure, Unbounded, ZeroConcentrated
from ldp_budget.ledger.sqlite import connection

# -- processes and threads -----------------------------------------------------------------------------------


# -- a locked ledger -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_spend_on_a_locked_ledger_raises_after_the_waiting_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=3"])
        monkeypatch.setattr(connection, "BUSY_SECONDS", 0.05)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for call in (
            lambda: accountant.spend("alice", coin(1), key="k"),
            lambda: accountant.spend_many(["alice"], coin(1), key="run"),
            lambda: accountant.erase("alice"),
            lambda: accountant.set_policy("default", ["lifetime=4"]),
        ):
            with pytest.raises(
                LedgerError, match=r"other processes kept it locked for 0\.05 s. Nothing was charged."
            ):
                call()
        assert spent(accountant, "alice") == {"lifetime": 0}, "reads continue meanwhile"
        assert accountant.quote("alice", coin(1)).affordable_reports == 3
        other.execute("ROLLBACK")
        other.close()
        assert not accountant.spend("alice", coin(1), key="k").repeated
        assert accountant.spend_many(["alice"], coin(1), key="run").spent == 1


def test_spend_waiting_for_a_lock_is_served_after_its_release(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=3"])
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.1, other.execute, ["ROLLBACK"])
        release.start()
        assert accountant.spend("alice", coin(1)).status == "spent"
        release.join()
        other.close()


# -- streams of users ----------------------------------------------------------------------------------------


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(bulk_run, "BATCH", 100)
    return 100


def test_spend_many_in_any_number_of_shards_is_one_run(accountant: Accountant, small_batches: int) -> None:
    accountant.set_policy("default", ["lifetime=3"])
    users = [f"user-{number}" for number in range(950)]

    def charged(*shard: int) -> tuple[int, ...]:
        result = accountant.spend_many(users, coin(1), key="monday", shard=shard or None)  # type: ignore[arg-type]
        return tuple(result.to_json().values())

    assert charged(4, 4) == (200, 0, 0)
    assert charged(1, 4) == (300, 0, 0)
    assert charged(1, 2) == (200, 0, 300)
    assert charged(12, 12) == (0, 0, 0)
    assert charged() == (250, 0, 700)
    assert accountant.stats()["users"] == 950
    with pytest.raises(KeyConflict):
        accountant.spend_many(users[1:], coin(1), key="monday", shard=(2, 4))
    for wrong in ((0, 2), (3, 2), (1, 0), (1, 2, 3), "12", 1, [1, 2]):
        with pytest.raises(InvalidParameter, match="shard"):
            accountant.spend_many(users, coin(1), key="tuesday", shard=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="key is missing: it must be the name of the run"):
        accountant.spend_many(users, coin(1), shard=(1, 2))


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("limit", ["lifetime=1000", "lifetime=0.5"], ids=["charged", "refused"])
def test_spend_many_memory_does_not_grow_with_the_stream(tmp_path: Path, small_batches: int, limit: str) -> None:
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", [limit])

        def peak(users: int) -> int:
            stream = (f"user-{number % 300}" for number in range(users))
            tracemalloc.start()
            accountant.spend_many(stream, coin(1), key=f"run-{users}", on_batch=lambda users, refused: None)
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            return most

        peak(400)  # what is allocated once
        short, long = peak(500), peak(5_000)
        assert long < 1.5 * short


def test_spend_many_interrupted_is_completed_by_running_it_again(accountant: Accountant, small_batches: int) -> None:
    accountant.set_policy("default", ["lifetime=1"])
    accountant.spend("user-7", coin(1))
    users = [f"user-{number}" for number in range(450)]

    def failing() -> Iterator[str]:
        yield from users[:250]
        raise ConnectionError("the source of users is gone")

    with pytest.raises(ConnectionError):
        accountant.spend_many(failing(), coin(1), key="run")
    assert accountant.stats()["users"] == 200, "whole batches"
    seen: list[tuple[int, list[str]]] = []
    result = accountant.spend_many(users, coin(1), key="run", on_batch=lambda *batch: seen.append(batch))
    assert result.to_json() == {"spent": 250, "refused": 1, "repeated": 199}
    assert seen == [(100, ["user-7"]), (100, []), (100, []), (100, []), (50, [])]
    assert accountant.spend_many(users, coin(1), key="run").to_json() == {"spent": 0, "refused": 1, "repeated": 449}
    check(accountant)


@pytest.mark.parametrize("users", ["alice", b"alice", [""], ["alice", 7], ["alice", None]])
def test_spend_many_of_invalid_users_raises(accountant: Accountant, users: Any) -> None:
    """A single name would otherwise be charged letter by letter."""
    accountant.set_policy("default", ["lifetime=1"])
    with pytest.raises(InvalidParameter, match="user"):
        accountant.spend_many(users, coin(1))
    assert accountant.stats()["users"] == 0


def test_spend_many_under_a_plan_charges_one_user_at_a_time(accountant: Accountant) -> None:
    accountant.set_policy("default", [], plan=Plan(((coin(1), 1),), Decimal("1e-6")))
    with pytest.raises(NotSupported, match="has a plan, so its users cannot be charged in bulk"):
        accountant.spend_many(["alice"], coin(1))
    assert accountant.stats()["users"] == 0


# -- the law: in bulk is one by one ---------------------------------------------------------------------------

LAW_POLICIES = (
    ["lifetime=1"],
    ["lifetime=2,1e-6", "day=1,1e-6"],
    ["lifetime=3,1e-6,zcdp"],
    ["lifetime=2", "lifetime=4,1e-6,zcdp", "week=4,1e-6,gdp"],
)
LAW_MECHANISMS = tuple(
    promising(guarantee)
    for guarantee in (
        Pure("0.3"),
        Pure("0"),
        Pure("1e-12"),
        Approximate("0.4", "4e-7"),
        ZeroConcentrated("0.02"),
        Gaussian("0.3", "0.5", "1e-7"),
        Memoised(("0.3", "0.5"), "0.6"),
        Unbounded(),
    )
)
USERS = st.sampled_from(("alice", "bob", "carol", "dave"))


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples * 2 // 5)
@given(
    limits=st.sampled_from(LAW_POLICIES),
    relation=st.sampled_from((None, "any")),
    past=st.lists(st.tuples(USERS, st.sampled_from(LAW_MECHANISMS), st.integers(1, 3)), max_size=8),
    erased=st.sets(USERS, max_size=1),
    runs=st.lists(st.tuples(st.lists(USERS, max_size=9), st.sampled_from(LAW_MECHANISMS)), min_size=1, max_size=3),
    batch=st.integers(1, 5),
    few=st.sampled_from((1, 8)),
)
def test_spend_many_equals_single_spends(
    limits: list[str],
    relation: str | None,
    past: list[tuple[str, Mechanism, int]],
    erased: set[str],
    runs: list[tuple[list[str], Mechanism]],
    batch: int,
    few: int,
) -> None:
    """Choose the charging of equal lines: by set-based statements, as from `few` on, or by the engine."""
    clock = Clock()
    with (
        Accountant(":memory:", clock=clock) as one,
        Accountant(":memory:", clock=clock) as many,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(bulk_run, "BATCH", batch)
        patch.setattr(batches, "FEW", few)
        for accountant in (one, many):
            accountant.set_policy("default", limits, relation=relation)
            for user, mechanism, reports in past:
                accountant.spend(user, mechanism, reports=reports, label="home")
            for user in erased:
                accountant.erase(user, unknown=True)
        for users, mechanism in runs:
            refused = Counter(user for user in users if not one.spend(user, mechanism))
            assert Counter(many.spend_many(users, mechanism).refused_users) == refused
        for user in ("alice", "bob", "carol", "dave"):
            assert many.balance(user).to_json() == one.balance(user).to_json()
            if user not in erased:
                assert [facts(row) for row in many.history(user)] == [facts(row) for row in one.history(user)]
        check(one)
        check(many)


def facts(row: dict[str, Any]) -> dict[str, Any]:
    """An entry without the numbers that depend on its place in the ledger."""
    return {name: value for name, value in row.items() if name not in ("entry", "account")}
