"""Concurrency: processes, threads and streams of users never exceed a limit, and never wait forever."""

from __future__ import annotations

import itertools
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

from fixed_clock import Clock
from ldp_budget import Accountant, InvalidParameter, KeyConflict, LedgerError, Mechanism, NotSupported
from ldp_budget.accounting import batch as batches
from ldp_budget.accounting import bulk_run
from ldp_budget.accounting.policies import Plan
from ldp_budget.guarantees import Approximate, Gaussian, Memoised, Pure, Unbounded, ZeroConcentrated
from ldp_budget.ledger.sqlite import connection
from ledger_contract import check, coin, in_threads, promising, spent
from ledger_inside import tables

# -- processes and threads -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_spend_by_64_threads_with_keys_shares_transactions(tmp_path: Path, clock: Clock) -> None:
    with Accountant(tmp_path / "budget.db", clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=20"])

        def spend(number: int) -> list[Any]:
            # Half of the keys are asked by two threads.
            keys = [f"{number // 2}/{turn}" if turn % 2 else f"{number}|{turn}" for turn in range(6)]
            return [(key, accountant.spend("alice", coin("0.1"), key=key)) for key in keys]

        answers = list(itertools.chain(*in_threads(64, spend)))
        first = {key: receipt for key, receipt in answers if not receipt.repeated}
        assert len(first) == 64 * 3 + 32 * 3 == len(answers) - sum(receipt.repeated for _, receipt in answers)
        for key, receipt in answers:
            assert (receipt.status, receipt.receipt) == (first[key].status, first[key].receipt)
        assert sum(bool(receipt) for receipt in first.values()) == 200
        assert spent(accountant, "alice") == {"lifetime": 20}
        with tables(accountant) as transaction:
            links = transaction.execute("SELECT count(*) FROM journal WHERE chain_hash IS NOT NULL").fetchone()[0]
        assert links < 201, "some spends shared a transaction, and so a link and a wait for the disk"
        check(accountant)


def test_spend_with_an_error_in_one_thread_affects_no_other(tmp_path: Path, clock: Clock) -> None:
    """Threads that share a transaction share no errors of the caller's making."""
    with Accountant(tmp_path / "budget.db", clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
        accountant.spend("alice", coin(1), key="taken")

        def work(number: int) -> Any:
            if number % 3 == 0:
                return accountant.spend("alice", coin(2), key="taken")
            if number % 3 == 1:
                return accountant.spend("alice", coin(1), policy="unknown")
            return accountant.spend("alice", coin(1))

        answers = in_threads(24, work)
        assert [type(answer).__name__ for answer in answers] == ["KeyConflict", "UnknownName", "Receipt"] * 8
        assert spent(accountant, "alice") == {"lifetime": 9}


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


def test_spend_many_charges_a_stream_as_it_arrives(accountant: Accountant, small_batches: int) -> None:
    """No more than one batch is held at a time."""
    accountant.set_policy("default", ["lifetime=3"])
    taken, charged = 0, 0

    def stream() -> Iterator[str]:
        nonlocal taken
        for number in range(950):
            assert taken - charged < small_batches
            taken += 1
            yield f"user-{number}"

    def on_batch(users: int, refused: list[str]) -> None:
        nonlocal charged
        charged += users
        assert accountant.stats()["users"] == charged, "the batch is in the ledger when it is reported"

    result = accountant.spend_many(stream(), coin(1), on_batch=on_batch)
    assert result.to_json() == {"spent": 950, "refused": 0, "repeated": 0}
    assert charged == taken == 950


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


def test_spend_many_without_callback_returns_the_refused_users(accountant: Accountant, small_batches: int) -> None:
    accountant.set_policy("default", ["lifetime=1"])
    users = [f"user-{number % 130}" for number in range(390)]
    result = accountant.spend_many(users, coin("0.5"))
    assert result.to_json() == {"spent": 260, "refused": 130, "repeated": 0}
    assert Counter(result.refused_users) == Counter(users[:130])


@pytest.mark.parametrize("together", [True, False])
def test_spend_many_charges_a_user_listed_twice_twice(
    accountant: Accountant, small_batches: int, together: bool
) -> None:
    """In one batch or in two."""
    accountant.set_policy("default", ["lifetime=10"])
    apart = [] if together else [f"other-{number}" for number in range(small_batches)]
    assert accountant.spend_many(["alice", "bob", *apart, "alice"], coin(1)).spent == 3 + len(apart)
    assert spent(accountant, "alice") == {"lifetime": 2}
    assert [row["epsilon"] for row in accountant.history("alice")] == [1, 1]
    check(accountant)


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


@pytest.mark.slow
def test_spend_many_again_with_other_users_is_a_conflict(accountant: Accountant, small_batches: int) -> None:
    accountant.set_policy("default", ["lifetime=10"])
    accountant.set_policy("other", ["lifetime=10"])
    users = [f"user-{number}" for number in range(250)]
    accountant.spend_many(users, coin(1), key="run", digest="00")
    for changed, mechanism, more in (
        ([*users[:249], "mallory"], coin(1), {"digest": "00"}),
        ([*users[1:], users[0]], coin(1), {"digest": "00"}),
        (users[:249], coin(1), {"digest": "00"}),
        (users, coin(2), {"digest": "00"}),
        (users, coin(1), {"digest": "01"}),
        (users, coin(1), {}),
        (users, coin(1), {"digest": "00", "policy": "other"}),
    ):
        with pytest.raises(KeyConflict, match=r"'run' was already used for a different request"):
            accountant.spend_many(changed, mechanism, key="run", **more)
    assert {spent(accountant, user)["lifetime"] for user in users} == {1}
    assert spent(accountant, "mallory") == {"lifetime": 0}
    assert not accountant.spend("alice", coin(1), key="run#1").repeated, "a user's keys are another matter"
    result = accountant.spend_many([*users, *users[:60]], coin(1), key="longer")
    assert result.spent == 310, "another key is another run"


@pytest.mark.parametrize("length", [0, 100, 200])
@pytest.mark.parametrize("shards", [1, 2, 3])
def test_spend_many_again_with_more_or_fewer_users_is_a_conflict(
    accountant: Accountant, small_batches: int, length: int, shards: int
) -> None:
    """A run of 200 users, in batches of 100, was repeated with 201: user 201 was charged; with 100, all was well."""
    accountant.set_policy("default", ["lifetime=10"])
    users = [f"user-{number}" for number in range(300)]
    for shard in range(1, shards + 1):
        accountant.spend_many(users[:length], coin(1), key="run", shard=(shard, shards))
    before = accountant.stats()["entries"]
    again = accountant.spend_many(users[:length], coin(1), key="run")
    assert again.to_json() == {"spent": 0, "refused": 0, "repeated": length}
    for other in {0, 1, 100, 101, 200, 201, 300} - {length}:
        with pytest.raises(KeyConflict):
            accountant.spend_many(users[:other], coin(1), key="run")
        conflicts = 0
        for shard in range(1, shards + 1):
            try:
                accountant.spend_many(users[:other], coin(1), key="run", shard=(shard, shards))
            except KeyConflict:
                conflicts += 1
        assert conflicts, "one of the shards at least"
    assert accountant.stats()["entries"] == before
    check(accountant)


def test_spend_many_interrupted_at_the_end_of_a_batch_takes_the_remaining_users(
    accountant: Accountant, small_batches: int
) -> None:
    """The end is bound where the list ends, and nowhere before."""
    accountant.set_policy("default", ["lifetime=10"])
    users = [f"user-{number}" for number in range(200)]

    def failing() -> Iterator[str]:
        yield from users[:100]
        raise ConnectionError("the source of users is gone")

    with pytest.raises(ConnectionError):
        accountant.spend_many(failing(), coin(1), key="run")
    assert accountant.spend_many(users, coin(1), key="run").to_json() == {"spent": 100, "refused": 0, "repeated": 100}
    check(accountant)


def test_spend_many_tells_lists_with_equal_joined_text_apart(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=1"])
    for number, users in enumerate((["a\nb", "c"], ["a,b", "c"], ["a", "b,c"], ["a', 'b", "c"])):
        accountant.spend_many(users, coin("0.1"), key=f"run-{number}")
    for number, users in enumerate((["a", "b\nc"], ["a", "b,c"], ["a,b", "c"], ["a", "b', 'c"])):
        with pytest.raises(KeyConflict):
            accountant.spend_many(users, coin("0.1"), key=f"run-{number}")


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


def test_spend_many_counts_refusals_by_limit(accountant: Accountant, clock: Clock) -> None:
    accountant.set_policy("default", ["lifetime=3", "lifetime=4,1e-6,zcdp", "day=1.5,1e-9", "day=4,1e-6,gdp"])
    for _ in range(2):
        assert accountant.spend("used up long ago", coin("0.1"), reports=13)
        clock.advance(days=1)
    accountant.spend("used up today", coin("0.1"), reports=10)
    accountant.spend("a little", coin("0.1"))
    users = ["used up long ago", "used up today", "a little", "new"]
    refused = accountant.spend_many(users, coin("0.6")).refused_users
    assert set(refused) == {"used up long ago", "used up today"}
    assert accountant.quote("used up long ago", coin("0.6")).binding == ("lifetime",)
    assert accountant.quote("used up today", coin("0.6")).binding[0] == "day"
    check(accountant)


def test_spend_many_refuses_an_unbounded_sum_only_where_it_counts(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=9,1e-6"])
    accountant.set_policy("zcdp", ["lifetime=9,1e-6,zcdp"])
    rho = promising(ZeroConcentrated("0.01"))
    assert accountant.spend("alice", rho, policy="zcdp").status == "spent"
    assert accountant.spend_many(["alice", "bob"], rho, policy="zcdp").spent == 2
    assert accountant.spend_many(["alice", "carol"], coin("0.1")).refused_users == ["alice"]
    assert accountant.spend_many(["alice", "carol"], coin("0.1"), policy="zcdp").spent == 2
    assert accountant.spend_many(["dave"], promising(Unbounded()), policy="zcdp").refused == 1
    assert accountant.balance("bob", "default").limits[0].spent_units.epsilon is None
    check(accountant)


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
