"""Memoised reports without labels: the ledger charges at least the exact loss, and stops at the cap over all values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ldp_budget
from contract.acts import check, promising, spent
from fixed_clock import Clock
from ldp_budget import Accountant, Limit
from ldp_budget.accounting import decision_replay
from ldp_budget.guarantees import Memoised, memoised_costs
from ldp_budget.guarantees.memoised_costs import LabelCount
from memoised_oracle import CLIENTS, most_lost, promise

LOLOHA = ldp_budget.mechanism("loloha").calibrate(epsilon_lifetime=4, epsilon_first="0.061", domain_size=50, g=2)
OPEN = ["lifetime=1000", "day=1000", Limit("month", 1000, "1e-6", "zcdp")]


def lifetime(accountant: Accountant) -> float:
    return float(spent(accountant, "alice")["lifetime"])


def test_thousand_loloha_reports_without_labels_are_charged_the_cap_over_all_cells(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=10"])
    for _ in range(40):
        assert accountant.spend("alice", LOLOHA, reports=25)
    assert lifetime(accountant) == 8
    assert accountant.quote("alice", LOLOHA).to_json()["affordable_reports"] is None
    check(accountant)


def test_spend_without_labels_is_granted_exactly_as_often_as_it_fits(accountant: Accountant) -> None:
    few = promising(Memoised(("0.3", "0.5"), "0.6", 5))
    accountant.set_policy("default", ["lifetime=1"])
    assert accountant.quote("alice", few).affordable_reports == 3
    assert [bool(accountant.spend("alice", few)) for _ in range(4)] == [True] * 3 + [False]
    assert accountant.spend_many(["bob", "carol"], few).spent == 2
    check(accountant)


CELLS = st.integers(0, 2)
EVENTS = st.one_of(
    st.tuples(st.just("spend"), CELLS, st.booleans()),
    st.tuples(st.just("spend"), CELLS, st.booleans()),
    st.tuples(st.just("reserve"), CELLS, st.booleans()),
    st.tuples(st.just("wait"), st.just(0), st.just(False)),
    st.tuples(st.just("limit"), st.just(0), st.just(False)),
)


@pytest.mark.slow
@given(st.sampled_from([None, 3]), st.lists(EVENTS, max_size=7))
def test_ledger_never_charges_less_than_the_exact_loss(values: int | None, events: list[tuple[Any, ...]]) -> None:
    client, clock = CLIENTS["loloha"], Clock()
    mechanism = promising(promise(client, values))
    sent: list[tuple[int, int]] = []
    with Accountant(":memory:", clock=clock) as accountant:
        accountant.set_policy("default", OPEN)
        for event, cell, labelled in events:
            label = f"cell {cell}" if labelled else None
            if event == "spend":
                assert accountant.spend("alice", mechanism, label=label)
                sent.append((clock.now.toordinal(), cell))
            elif event == "reserve":
                accountant.void(accountant.reserve("alice", mechanism, label=label).receipt or "")
            elif event == "wait":
                clock.advance(days=1)
            else:
                accountant.set_policy("default", [*OPEN, "week=1000"])
            today = clock.now.toordinal()
            earlier, window = ([each for day, each in sent if (day == today) == now] for now in (False, True))
            charged = spent(accountant, "alice")
            assert float(charged["lifetime"]) >= most_lost(client, [], [*earlier, *window]) - 1e-8
            assert float(charged["day"]) >= most_lost(client, earlier, window) - 1e-8
            if values is not None:
                assert float(charged["lifetime"]) <= values * client.cap + 1e-8
        check(accountant)


@contextlib.contextmanager
def wrong_cap(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A ledger that charges as if there were one value only."""
    right = memoised_costs.charged_loss

    def wrong(measure: str | None, curve: Memoised, counts: dict[bytes, LabelCount]) -> Any:
        return right(measure, Memoised(curve.curve, curve.cap, 1, curve.relation), counts)

    with monkeypatch.context() as patch:
        patch.setattr(memoised_costs, "charged_loss", wrong)
        yield


@pytest.mark.parametrize("labels", [(None, None), ("a", None), (None, "a", None)])
def test_verify_finds_reports_that_were_charged_by_a_wrong_cap(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch, labels: tuple[str | None, ...]
) -> None:
    accountant.set_policy("default", ["lifetime=10"])
    with wrong_cap(monkeypatch):
        for label in labels:
            accountant.spend("alice", LOLOHA, reports=90, label=label)
    problems = accountant.verify().problems
    assert any("charges less than its guarantee costs" in problem for problem in problems), problems


def test_verify_finds_a_void_that_gives_back_more_than_the_rest_allows(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the cap a void gives back nothing: the remaining reports alone are charged the cap."""
    accountant.set_policy("default", ["lifetime=10"])
    accountant.spend("alice", LOLOHA, reports=500)
    held = accountant.reserve("alice", LOLOHA, reports=500).receipt or ""
    accountant.void(held)
    assert lifetime(accountant) == 8
    check(accountant)
    held = accountant.reserve("alice", LOLOHA, label="a", reports=5).receipt or ""
    monkeypatch.setattr(
        "ldp_budget.accounting.reservation_settlement._cost",
        lambda *arguments: decision_replay.ZERO._replace(epsilon=1),
    )
    accountant.void(held)
    problems = accountant.verify().problems
    assert any("gives back more than its reservation charged" in problem for problem in problems), problems


def test_reservations_without_labels_are_given_back_in_any_order(accountant: Accountant) -> None:
    few = promising(Memoised(("0.3", "0.5"), "0.6", 2))
    accountant.set_policy("default", ["lifetime=10", "day=10"])
    held = [accountant.reserve("alice", few, reports=count).receipt or "" for count in (1, 3, 2)]
    assert lifetime(accountant) == 1.2
    for receipt, left in ((held[1], 0.9), (held[0], 0.6), (held[2], 0)):
        accountant.void(receipt)
        assert lifetime(accountant) == pytest.approx(left)
        assert float(spent(accountant, "alice")["day"]) == pytest.approx(left)
    check(accountant)
