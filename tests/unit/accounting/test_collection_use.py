"""Charges of a collection: those of the journal, and none if a row that counts was changed by hand."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ldp_budget
from case_files import case_table
from contract.acts import coin
from fixed_clock import Clock
from ldp_budget import Accountant, LedgerError
from ldp_budget.ledger import hash_chain
from ldp_budget.registry.collections import Collection
from ldp_budget_surveys.pages import collection_use
from ldp_budget_surveys.pages.collection_use import CollectionUse

POLL = Collection("poll", ldp_budget.mechanism("oue")(epsilon="0.5", domain_size=2), ("a", "b"), minimum_group=1)
OTHER = Collection("other", ldp_budget.mechanism("oue")(epsilon=1, domain_size=2), ("a", "b"), minimum_group=1)


def of_journal(accountant: Accountant, name: str) -> dict[str, Any]:
    """The same from the rows of the journal, one after the other."""
    mine: dict[int, int] = {}
    every: dict[int, int] = {}
    times, reports = [], 0
    for row in accountant.journal():
        if row["account"] is None or not row["reports"]:
            continue
        sign = -1 if row["kind"] == "voided" else 1
        units = sign * round(abs(row["epsilon"]) * 1e9)
        every[row["account"]] = every.get(row["account"], 0) + units
        if row["collection"] == name:
            mine[row["account"]] = mine.get(row["account"], 0) + units
            times.append(row["at"])
            reports += sign * row["reports"]
    return {
        "accounts": sum(units > 0 for units in mine.values()),
        "reports": reports,
        "first": min(times, default=None),
        "last": max(times, default=None),
        "largest": max(mine.values(), default=0),
        "largest_total": max(every.values(), default=0),
    }


def figures(use: CollectionUse) -> dict[str, Any]:
    return {name: getattr(use, name) for name in ("accounts", "reports", "first", "last", "largest", "largest_total")}


ACTIONS = st.lists(
    st.tuples(st.sampled_from("srvcbe"), st.integers(0, 4), st.booleans(), st.integers(1, 3)), min_size=1, max_size=12
)


@pytest.mark.slow
@given(actions=ACTIONS)
def test_use_of_any_history_is_that_of_its_journal(actions: list[tuple[str, int, bool, int]]) -> None:
    clock = Clock()
    with Accountant(":memory:", clock=clock) as accountant, pytest.MonkeyPatch.context() as patch:
        patch.setattr(hash_chain, "_ALIKE", 2)
        accountant.set_policy("default", ["lifetime=20", "day=9"])
        for collection in (POLL, OTHER):
            accountant.add_collection(collection)
        for action, number, is_poll, reports in actions:
            clock.advance(minutes=1)
            user, what = f"user {number}", POLL if is_poll else OTHER
            if accountant.is_erased(user):
                continue
            if action == "s":
                accountant.spend(user, what, reports=reports)
            elif action in "vcr":
                receipt = accountant.reserve(user, what, reports=reports).receipt
                if receipt and action != "r":
                    (accountant.void if action == "v" else accountant.commit)(receipt)
            elif action == "b":
                fresh = [f"{user} of {place}" for place in range(9)]
                accountant.spend_many([each for each in fresh if not accountant.is_erased(each)], what)
            else:
                accountant.erase(user, unknown=True)
        for name in ("poll", "other", "none"):
            assert figures(accountant.ledger.collection_use(name)) == of_journal(accountant, name)


def test_use_of_an_unbounded_total_is_not_a_number(clock: Clock) -> None:
    with Accountant(":memory:", clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9,1e-5,zcdp"])
        accountant.add_collection(POLL)
        accountant.spend("alice", POLL)
        accountant.spend("alice", ldp_budget.mechanism("gaussian")(sigma=20))
        use = accountant.ledger.collection_use("poll")
        assert use.largest == 500_000_000
        assert use.largest_total is None
        [most] = use.policies["default"]
        assert most is not None
        assert 0 < most < 9


def test_sums_above_64_bits_are_exact() -> None:
    sums, units = collection_use._Sums(3), 2**62 + 1
    for _ in range(3):
        sums.add(np.array([1, 2, 2]), units, back=False)
    sums.add(np.array([1, 1, 1]), -units, back=True)
    assert (sums.largest(), sums.positive()) == (6 * units, 1)


@pytest.fixture
def path(tmp_path: Path, clock: Clock) -> Path:
    with Accountant(tmp_path / "budget.db", clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=2", "day=1"])
        for collection in (POLL, OTHER):
            accountant.add_collection(collection)
        accountant.spend_many([f"user {number}" for number in range(60)], POLL)
        accountant.spend("alice", OTHER, key="k")
        accountant.spend("alice", OTHER, key="refused")
        accountant.spend_many(["alice", "bob"], POLL, key="run")
    return tmp_path / "budget.db"


CHANGES = case_table("collection_use", "CHANGES")


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_use_with_a_changed_row_is_refused(path: Path, clock: Clock, change: str) -> None:
    with sqlite3.connect(path) as connection:
        assert connection.execute(CHANGES[change]).rowcount
    connection.close()
    with Accountant(path, create=False, clock=clock) as accountant, pytest.raises(LedgerError):
        accountant.ledger.collection_use("poll")


@pytest.mark.slow
def test_use_counts_the_refusals_of_requests_and_runs(path: Path, clock: Clock) -> None:
    with Accountant(path, create=False, clock=clock) as accountant:
        totals = accountant.ledger.overview().totals()
        assert accountant.ledger.collection_use("poll").refused == totals["refused"] + totals["refused_in_bulk"] == 2


@pytest.mark.slow
def test_use_without_the_expected_head_is_refused(path: Path, clock: Clock, tmp_path: Path) -> None:
    with Accountant(path, create=False, clock=clock) as accountant:
        head = accountant.verify().head
        accountant.spend("carol", coin("0.5"))
        assert accountant.ledger.collection_use("poll", head=head).accounts == 61
        later = accountant.verify().head
        foreign = f"{1 - int(head[0], 16) % 2}{head[1:]}"
        with pytest.raises(LedgerError, match="not in the chain"):
            accountant.ledger.collection_use("poll", head=foreign)
        assert accountant.ledger.collection_use("poll", head=later).accounts == 61
