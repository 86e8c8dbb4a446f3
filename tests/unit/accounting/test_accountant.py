"""The accountant's guarantee: for every order and every retry, no limit is exceeded and no charge is counted twice."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ldp_budget
from ldp_budget import (
    Accountant,
    BudgetExceeded,
    InvalidParameter,
    KeyConflict,
    LedgerError,
    Limit,
    Mechanism,
    NameTaken,
    UnknownName,
)
from ldp_budget.accounting.charge_request import MOST_REPORTS, charge_of
from ldp_budget.guarantees import SAME_CHANGE_PATTERN, Guarantee, Memoised, Pure, Unbounded, ZeroConcentrated
from ldp_budget.ledger.calendar import TOLERANCE_MICROS
from ldp_budget.registry.collections import Collection
from ldp_budget.sdk.mechanism import Mechanism as Base
from ldp_budget.sdk.parameters import real
from ledger_inside import tables

if TYPE_CHECKING:
    from fixed_clock import Clock

Coin = Callable[[Any], Mechanism]


class Promise(Base):
    """A mechanism of a given guarantee, without a client."""

    name = "promise"
    of = real("tells two promises apart", default=0)
    promised: Guarantee = Unbounded()

    @property
    def guarantee(self) -> Guarantee:
        return self.promised


def promising(guarantee: Guarantee) -> Mechanism:
    return type("Promise", (Promise,), {"promised": guarantee})()


def dump(accountant: Accountant, *, keys: bool = False) -> dict[str, list[tuple[Any, ...]]]:
    """Everything the ledger holds, table by table; idempotency keys and counters only where they are asked for."""
    with tables(accountant) as transaction:
        names = transaction.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
        listed = [
            name for (name,) in names if keys or name not in ("idempotency_records", "batch_runs", "partitions")
        ]
        return {table: transaction.execute(f"SELECT * FROM {table}").fetchall() for table in listed}


def spent(accountant: Accountant, user: str, policy: str = "default") -> dict[str, Decimal]:
    """ε spent in each period of the policy, exactly."""
    limits = accountant.balance(user, policy).limits
    return {state.limit.period: Decimal(state.spent_units.epsilon or 0).scaleb(-9) for state in limits}


# -- one limit -----------------------------------------------------------------------------------------------


def test_spend_of_a_tenth_fits_ten_times_into_one(accountant: Accountant, coin: Coin) -> None:
    accountant.set_policy("default", [Limit("lifetime", epsilon=1)])
    assert [accountant.spend("alice", coin(0.1)).status for _ in range(11)] == ["spent"] * 10 + ["refused"]
    assert spent(accountant, "alice") == {"lifetime": 1}
    assert accountant.spend("bob", coin(0.1)).status == "spent", "another user has a budget of their own"


@pytest.mark.slow
@given(
    st.decimals(min_value="0.01", max_value=3, allow_nan=False, places=11),
    st.decimals(min_value="0.1", max_value=3, allow_nan=False, places=11),
)
def test_spend_is_granted_as_often_as_whole_units_fit(cost: Decimal, capacity: Decimal) -> None:
    fits = math.floor(Fraction(capacity) * 10**9) // math.ceil(Fraction(cost) * 10**9)
    mechanism = ldp_budget.mechanism("rr")(epsilon=cost)
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon=capacity)])
        assert accountant.quote("alice", mechanism).affordable_reports == fits
        if fits:
            assert accountant.spend("alice", mechanism, reports=fits)
        assert not accountant.spend("alice", mechanism)


@pytest.mark.parametrize("tiny", ["1e-9", "1e-10", "1e-300", "1e-499999"])
def test_spend_of_a_tiny_cost_charges_at_least_one_unit(accountant: Accountant, tiny: str) -> None:
    """Also once the budget is used up: a spend too small to see would otherwise be free for ever."""
    accountant.set_policy("default", [Limit("lifetime", epsilon="3e-9")])
    mechanism = promising(Pure(tiny))
    assert [accountant.spend("alice", mechanism).status for _ in range(4)] == ["spent"] * 3 + ["refused"]
    assert accountant.spend("bob", mechanism, reports=4).status == "refused"


def test_spend_receipt_states_cost_spent_left_and_affordable(accountant: Accountant, coin: Coin) -> None:
    accountant.set_policy("default", ["lifetime=1", "day=0.5"])
    first = accountant.spend("alice", coin(0.2))
    assert first
    assert (first.status, first.user, first.policy, first.epsilon, first.delta) == (
        "spent",
        "alice",
        "default",
        0.2,
        0,
    )
    assert (first.binding, first.affordable_reports, first.repeated) == ((), 1, False)
    assert first.receipt is not None

    refused = accountant.spend("alice", coin(0.2), reports=2)
    assert not refused
    assert (refused.status, refused.receipt, refused.epsilon) == ("refused", None, 0.4)
    assert (refused.binding, refused.affordable_reports) == (("day",), 1)
    lifetime, day = refused.to_json()["limits"]
    assert lifetime["spent"]["epsilon"] == day["spent"]["epsilon"] == 0.2
    assert (lifetime["remaining"]["epsilon"], day["remaining"]["epsilon"]) == (0.8, 0.3)
    assert (lifetime["resets_at"], day["resets_at"]) == (None, "2026-11-22T00:00:00Z")
    for words in (
        "ε = 0.4",
        "2 reports",
        "day limit",
        "0.2 spent",
        "0.3 left",
        "2026-11-22T00:00:00Z",
        "1 such report fits",
    ):
        assert words in refused.explain()


def test_spend_strict_over_the_limit_raises(accountant: Accountant, coin: Coin) -> None:
    accountant.set_policy("default", ["lifetime=1"])
    with pytest.raises(BudgetExceeded, match="lifetime limit") as caught:
        accountant.spend("alice", coin(2), strict=True)
    assert caught.value.receipt.binding == ("lifetime",)
    assert accountant.spend("alice", coin(1), strict=True).status == "spent"


def test_spend_refused_changes_nothing(accountant: Accountant, coin: Coin) -> None:
    accountant.set_policy("default", ["lifetime=1", "day=0.5"])
    accountant.spend("alice", coin(0.4))
    before = dump(accountant)
    assert accountant.spend("alice", coin(0.4)).status == "refused"
    assert accountant.spend("bob", coin(0.6), reports=3).status == "refused"
    assert accountant.spend("carol", coin(0.7), key="k").status == "refused"
    assert accountant.spend("alice", promising(Unbounded())).status == "refused"
    assert dump(accountant) == before


def test_quote_changes_nothing_and_equals_the_spend(accountant: Accountant, coin: Coin) -> None:
    accountant.set_policy("default", ["lifetime=1"])
    before = dump(accountant, keys=True)
    quote = accountant.quote("alice", coin(0.3), reports=2)
    assert (quote.status, quote.epsilon, quote.binding, quote.affordable_reports) == ("quoted", 0.6, (), 3)
    assert "It fits" in quote.explain()
    over = accountant.quote("alice", coin(0.3), reports=4)
    assert (over.status, over.binding) == ("quoted", ("lifetime",))
    assert "It does not fit" in over.explain()
    assert dump(accountant, keys=True) == before


def test_spend_of_an_unbounded_mechanism_is_refused(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=1e12"])
    refused = accountant.spend("alice", promising(Unbounded()))
    assert refused.status == "refused"
    assert (refused.epsilon, refused.affordable_reports) == (None, 0)
    assert "ε = unbounded" in refused.explain()
    assert accountant.spend("alice", promising(ZeroConcentrated("0.1"))).status == "refused", "basic needs an ε"


@pytest.mark.parametrize("reports", [0, -1, MOST_REPORTS + 1, 1.5, True, "2", None])
def test_spend_with_an_invalid_count_raises(accountant: Accountant, coin: Coin, reports: Any) -> None:
    accountant.set_policy("default", ["lifetime=1"])
    before = dump(accountant)
    with pytest.raises(InvalidParameter, match=f"reports must be a whole number from 1 to {MOST_REPORTS}: got "):
        accountant.spend("alice", coin(0.1), reports=reports)
    assert dump(accountant) == before


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ({"user": ""}, "user"),
        ({"user": None}, "user"),
        ({"user": 7}, "user"),
        ({"key": ""}, "key"),
        ({"key": 7}, "key"),
        ({"digest": "xyz"}, "digest"),
        ({"digest": "abc"}, "digest"),
        ({"digest": 7}, "digest"),
    ],
)
def test_spend_with_a_malformed_argument_raises_with_its_name(
    accountant: Accountant, coin: Coin, arguments: dict[str, Any], option: str
) -> None:
    accountant.set_policy("default", ["lifetime=1"])
    before = dump(accountant, keys=True)
    with pytest.raises(InvalidParameter) as caught:
        accountant.spend(**{"user": "alice", "mechanism": coin(0.1), **arguments})
    assert caught.value.option == option
    assert dump(accountant, keys=True) == before


def test_spend_without_its_policy_raises_and_stores_nothing(accountant: Accountant, coin: Coin) -> None:
    for call in (accountant.spend, accountant.quote):
        with pytest.raises(UnknownName, match="no policy is named 'default'"):
            call("alice", coin(0.1), key="k") if call == accountant.spend else call("alice", coin(0.1))
    with pytest.raises(UnknownName, match="There are no policies"):
        accountant.balance("alice")
    accountant.set_policy("default", ["lifetime=1"])
    assert accountant.spend("alice", coin(0.1), key="k").status == "spent", "a failure stores nothing under its key"


# -- several limits and windows ------------------------------------------------------------------------------


def test_spend_charges_every_limit_or_none(accountant: Accountant, coin: Coin, clock: Clock) -> None:
    accountant.set_policy("default", ["lifetime=1", "day=0.5"])
    assert accountant.spend("alice", coin(0.4))
    assert spent(accountant, "alice") == {"lifetime": Decimal("0.4"), "day": Decimal("0.4")}

    refused = accountant.spend("alice", coin(0.2))
    assert refused.binding == ("day",)
    assert spent(accountant, "alice") == {"lifetime": Decimal("0.4"), "day": Decimal("0.4")}

    clock.advance(days=1)
    assert accountant.spend("alice", coin(0.5))
    clock.advance(days=1)
    refused = accountant.spend("alice", coin(0.2))
    assert refused.binding == ("lifetime",), "a fresh day does not renew the lifetime"
    assert spent(accountant, "alice") == {"lifetime": Decimal("0.9"), "day": 0}
    assert accountant.spend("alice", coin(2)).binding == ("lifetime", "day")


@pytest.mark.parametrize(
    ("period", "last", "next_window"),
    [
        ("day", datetime(2026, 11, 21, 23, 59, 59, 999_999), datetime(2026, 11, 22)),
        ("week", datetime(2026, 11, 22, 23, 59, 59, 999_999), datetime(2026, 11, 23)),
        ("month", datetime(2026, 11, 30, 23, 59, 59, 999_999), datetime(2026, 12, 1)),
    ],
)
def test_window_refills_at_the_exact_microsecond_of_its_end(
    accountant: Accountant, coin: Coin, clock: Clock, period: str, last: datetime, next_window: datetime
) -> None:
    accountant.set_policy("default", [f"{period}=1"], unbounded=True)
    assert accountant.spend("alice", coin(1))
    clock.now = last.replace(tzinfo=UTC)
    assert not accountant.spend("alice", coin(0.1))
    clock.now = next_window.replace(tzinfo=UTC)
    assert accountant.spend("alice", coin(1)), "nothing of the old window counts in the new one"
    assert not accountant.spend("alice", coin(0.1)), "and nothing unused was carried over"


def test_window_reset_carries_nothing_over_and_keeps_old_sums(
    accountant: Accountant, coin: Coin, clock: Clock
) -> None:
    accountant.set_policy("default", ["day=1"], unbounded=True)
    for _ in range(3):
        assert accountant.spend("alice", coin(0.6))
        assert not accountant.spend("alice", coin(0.6))
        clock.advance(days=1)
    accountant.set_policy("default", ["lifetime=1.8", "day=1"])
    assert spent(accountant, "alice") == {"lifetime": Decimal("1.8"), "day": 0}
    assert accountant.spend("alice", coin(0.1)).binding == ("lifetime",)


def test_set_policy_with_a_new_period_backfills_from_the_journal(
    accountant: Accountant, coin: Coin, clock: Clock
) -> None:
    clock.now = datetime(2026, 10, 31, 12, tzinfo=UTC)
    accountant.set_policy("default", ["lifetime=10"])
    accountant.spend("alice", coin(1))  # last month
    clock.now = datetime(2026, 11, 15, 12, tzinfo=UTC)
    accountant.spend("alice", coin(2))  # Sunday of last week
    clock.now = datetime(2026, 11, 16, 0, 0, 0, tzinfo=UTC)
    accountant.spend("alice", coin("0.5"), reports=2)  # Monday's first moment
    accountant.spend("bob", coin(3))
    clock.now = datetime(2026, 11, 17, 9, tzinfo=UTC)
    accountant.set_policy("default", ["lifetime=10", "day=4", "week=4", "month=4"])
    assert spent(accountant, "alice") == {"lifetime": 4, "day": 0, "week": 1, "month": 3}
    assert spent(accountant, "bob") == {"lifetime": 3, "day": 0, "week": 3, "month": 3}
    assert accountant.spend("bob", coin(2)).binding == ("week", "month")
    accountant.spend("alice", coin(1))
    assert spent(accountant, "alice") == {"lifetime": 5, "day": 1, "week": 2, "month": 4}


def test_set_policy_with_a_new_period_backfills_sums_above_64_bits(accountant: Accountant, clock: Clock) -> None:
    """Ten times δ = 0.9 is more than a 64-bit count of 1e-18; it must become unbounded, not an error."""
    gaussian = ldp_budget.mechanism("gaussian")(epsilon=1, delta="0.9")
    clock.now = datetime(2026, 11, 1, tzinfo=UTC)
    accountant.set_policy("default", ["day=10,0.95"], unbounded=True)
    for _ in range(12):
        assert accountant.spend("alice", gaussian)
        clock.advance(days=1)
    accountant.set_policy("monthly", ["month=100,0.99"], unbounded=True)
    (month,) = accountant.balance("alice", "monthly").limits
    assert (month.spent_units.epsilon, month.spent_units.delta) == (12 * 10**9, None)
    assert accountant.spend("alice", gaussian, policy="monthly").binding == ("month",)


def test_limit_counts_charges_under_other_policies(accountant: Accountant, coin: Coin) -> None:
    accountant.set_policy("one", ["lifetime=1"])
    accountant.set_policy("two", ["lifetime=1"])
    assert accountant.spend("alice", coin(0.7), policy="one")
    refused = accountant.spend("alice", coin(0.7), policy="two")
    assert (refused.status, refused.policy) == ("refused", "two")
    assert accountant.spend("alice", coin(0.3), policy="two")
    assert not accountant.spend("alice", coin(0.1), policy="one")


# -- the clock -----------------------------------------------------------------------------------------------


def test_clock_slightly_behind_is_tolerated_and_further_behind_raises(
    accountant: Accountant, coin: Coin, clock: Clock
) -> None:
    accountant.set_policy("default", ["lifetime=10", "day=1"])
    newest = clock.now = datetime(2026, 11, 22, tzinfo=UTC)
    accountant.spend("alice", coin(1))

    clock.now = newest - timedelta(microseconds=TOLERANCE_MICROS)
    assert accountant.spend("alice", coin(1)).binding == ("day",), "5 s before midnight it is still the new day"

    clock.now = newest - timedelta(microseconds=TOLERANCE_MICROS + 1)
    before = dump(accountant)
    for call in (
        lambda: accountant.spend("bob", coin(1), key="k"),
        lambda: accountant.quote("bob", coin(1)),
        lambda: accountant.set_policy("default", ["lifetime=20", "day=1"]),
    ):
        with pytest.raises(LedgerError, match=r"more than 5 s before the newest entry of"):
            call()
    assert dump(accountant) == before

    clock.now = newest
    assert accountant.spend("bob", coin(1), key="k").repeated is False, "the failure stored no answer"


def test_clock_behind_repeatedly_does_not_move_back(accountant: Accountant, coin: Coin, clock: Clock) -> None:
    accountant.set_policy("default", ["lifetime=10"])
    newest = clock.now
    accountant.spend("alice", coin(1))
    clock.now = newest - timedelta(seconds=4)
    accountant.spend("alice", coin(1))
    clock.now = newest - timedelta(seconds=8)
    with pytest.raises(LedgerError, match="clock"):
        accountant.spend("alice", coin(1))


def test_clock_returning_seconds_is_accepted(coin: Coin) -> None:
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    with Accountant(":memory:", clock=now.timestamp) as accountant:
        accountant.set_policy("default", ["day=1"], unbounded=True)
        assert accountant.balance("alice").to_json()["limits"][0]["resets_at"] == "2026-11-22T00:00:00Z"


# -- keys ----------------------------------------------------------------------------------------------------


def test_spend_again_with_the_same_key_is_charged_once(accountant: Accountant, coin: Coin, clock: Clock) -> None:
    accountant.set_policy("default", ["lifetime=1"])
    first = accountant.spend("alice", coin(0.4), key="k")
    before = dump(accountant, keys=True)
    clock.advance(days=3)
    again = accountant.spend("alice", coin("0.40"), key="k")
    assert again.repeated
    assert again.to_json() == {**first.to_json(), "repeated": True}
    assert dump(accountant, keys=True) == before
    assert accountant.spend("alice", coin(0.4)).status == "spent", "without a key every spend is a new one"
    assert accountant.spend("alice", coin(0.4), key="l").status == "refused"


@pytest.mark.parametrize(
    "other",
    [
        {"mechanism": ldp_budget.mechanism("rr")(epsilon=0.2)},
        {"reports": 2},
        {"label": "value-1"},
        {"digest": "00"},
        {"policy": "second"},
    ],
)
def test_spend_with_used_key_and_another_request_raises(
    accountant: Accountant, coin: Coin, other: dict[str, Any]
) -> None:
    for name in ("default", "second"):
        accountant.set_policy(name, ["lifetime=1"])
    request = {"user": "alice", "mechanism": coin(0.1), "key": "k"}
    accountant.spend(**request)
    before = dump(accountant, keys=True)
    with pytest.raises(KeyConflict, match="idempotency key 'k' was already used for a different request") as caught:
        accountant.spend(**{**request, **other})
    assert caught.value.key == "k"
    assert dump(accountant, keys=True) == before


def test_spend_with_used_key_and_another_digest_raises(accountant: Accountant, coin: Coin) -> None:
    accountant.set_policy("default", ["lifetime=1"])
    accountant.spend("alice", coin(0.1), key="k", digest="AB12")
    assert accountant.spend("alice", coin(0.1), key="k", digest="ab12").repeated
    for digest in ("ab13", None):
        with pytest.raises(KeyConflict):
            accountant.spend("alice", coin(0.1), key="k", digest=digest)


def test_spend_with_a_refused_key_stays_refused(accountant: Accountant, coin: Coin) -> None:
    """A retry after the budget grew must not turn a refusal the client acted on into a charge."""
    accountant.set_policy("default", ["lifetime=1"])
    first = accountant.spend("alice", coin(2), key="k")
    assert first.status == "refused"
    accountant.set_policy("default", ["lifetime=5"])
    again = accountant.spend("alice", coin(2), key="k")
    assert (again.status, again.repeated) == ("refused", True)
    assert again.to_json() == {**first.to_json(), "repeated": True}
    with pytest.raises(BudgetExceeded):
        accountant.spend("alice", coin(2), key="k", strict=True)
    assert spent(accountant, "alice") == {"lifetime": 0}
    assert accountant.spend("alice", coin(2), key="l").status == "spent"


def test_user_names_with_equal_joined_text_have_separate_accounts(accountant: Accountant, coin: Coin) -> None:
    """A user, a key and a policy of the same name have nothing to do with each other; nor have similar names."""
    accountant.set_policy("x", ["lifetime=1"])
    names = ["x", "X", "x x", "é", "e", "名"]
    for name in names:
        assert accountant.spend(name, coin(1), key=name, policy="x").status == "spent"
    for name in names:
        assert accountant.spend(name, coin(1), key=name, policy="x").repeated


# -- policies ------------------------------------------------------------------------------------------------


def test_set_policy_again_keeps_the_spent_sums(accountant: Accountant, coin: Coin) -> None:
    assert accountant.set_policy("default", ["lifetime=1"]).version == 1
    accountant.spend("alice", coin(0.8))
    assert accountant.set_policy("default", ["lifetime=2", "day=2"]).version == 2
    assert spent(accountant, "alice") == {"lifetime": Decimal("0.8"), "day": Decimal("0.8")}
    accountant.set_policy("default", ["lifetime=0.5"])
    assert accountant.spend("alice", coin("1e-9")).status == "refused", "lowered below what is spent"
    (lifetime,) = accountant.balance("alice").to_json()["limits"]
    assert lifetime["remaining"]["epsilon"] == 0
    assert [policy.version for policy in accountant.policies()] == [3]
    assert accountant.policy().limits == (Limit("lifetime", epsilon=Decimal("0.5")),)


def test_set_policy_may_change_rule_and_delta_until_the_first_charge(accountant: Accountant, coin: Coin) -> None:
    accountant.set_policy("default", ["lifetime=1"])
    accountant.set_policy("default", ["lifetime=1,1e-6"])
    accountant.set_policy("default", ["lifetime=1,1e-6,zcdp"])
    accountant.spend("alice", coin(0.1))
    for other in ("lifetime=1", "lifetime=1,1e-6", "lifetime=1,1e-6,gdp", "lifetime=1,2e-6,zcdp"):
        with pytest.raises(
            InvalidParameter, match=r"rule zcdp with delta 0\.000001 for lifetime, which users were charged"
        ):
            accountant.set_policy("default", [other])
    assert accountant.set_policy("default", ["lifetime=2,1e-6,zcdp"]).version == 4


def test_set_policy_restoring_a_charged_limit_with_another_rule_raises(accountant: Accountant, coin: Coin) -> None:
    accountant.set_policy("default", ["lifetime=5", "day=1"])
    accountant.spend("alice", coin(0.1))
    accountant.set_policy("default", ["lifetime=5"])
    accountant.spend("alice", coin(0.1))
    with pytest.raises(InvalidParameter, match="rule basic with delta 0 for day, which users were charged by"):
        accountant.set_policy("default", ["lifetime=5", "day=1,0.5"])
    assert accountant.set_policy("default", ["lifetime=5", "day=2"]).version == 3


def test_set_policy_with_invalid_limits_changes_nothing(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=1"])
    before = dump(accountant)
    with pytest.raises(InvalidParameter):
        accountant.set_policy("default", ["lifetime=1", "day=0"])
    with pytest.raises(InvalidParameter):
        accountant.set_policy("other", ["day=1"])
    assert dump(accountant) == before


def test_policy_with_relation_any_refuses_other_guarantees(accountant: Accountant, coin: Coin) -> None:
    accountant.set_policy("default", ["lifetime=9"], relation="any")
    accountant.set_policy("lenient", ["lifetime=9"])
    pattern = promising(Memoised((1,), 2, None, SAME_CHANGE_PATTERN))
    refused = accountant.spend("alice", pattern)
    assert (refused.status, refused.binding, refused.affordable_reports) == ("refused", (), 0)
    assert "admits only guarantees for any inputs" in refused.explain()
    assert "It does not fit" in accountant.quote("alice", pattern).explain()
    assert accountant.spend("alice", pattern, policy="lenient").status == "spent"
    assert accountant.spend("alice", coin(1)).status == "spent"


def test_balance_of_an_unbounded_policy_states_the_cost_of_a_year(accountant: Accountant) -> None:
    accountant.set_policy("default", ["day=0.1", "week=0.5"], unbounded=True)
    assert accountant.balance("alice").to_json()["worst_epsilon_per_year"] == pytest.approx(27)
    accountant.set_policy("bounded", ["lifetime=1"])
    assert "worst_epsilon_per_year" not in accountant.balance("alice", "bounded").to_json()


# -- collections ---------------------------------------------------------------------------------------------


def test_add_collection_twice_stores_one(accountant: Accountant) -> None:
    oue = ldp_budget.mechanism("oue")(epsilon=1, domain_size=2)
    poll = Collection("poll", oue, ("yes", "no"))
    accountant.add_collection(poll)
    accountant.add_collection(poll)
    assert accountant.collection("poll") == poll
    assert accountant.collection("poll").fingerprint == poll.fingerprint
    with pytest.raises(NameTaken, match="collection 'poll' exists with another definition"):
        accountant.add_collection(Collection("poll", oue, ("no", "yes")))
    with pytest.raises(UnknownName, match=r"no collection is named 'pool'. Collections: poll. Did you mean 'poll'."):
        accountant.collection("pool")
    assert [collection["name"] for collection in accountant.collections()] == ["poll"]


# -- many at once --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [":memory:", "budget.db"])
def test_spend_by_eight_threads_grants_exactly_the_limit(tmp_path: Path, coin: Coin, place: str) -> None:
    path = place if place == ":memory:" else tmp_path / place
    granted: list[int] = []
    start = threading.Barrier(8)

    def spend(accountant: Accountant) -> None:
        start.wait()
        granted.append(sum(bool(accountant.spend("alice", coin(0.1))) for _ in range(10)))

    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=3.75", "day=9"])
        threads = [threading.Thread(target=spend, args=(accountant,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(granted) == 8
        assert sum(granted) == 37
        assert spent(accountant, "alice") == {"lifetime": Decimal("3.7"), "day": Decimal("3.7")}


def test_spend_by_threads_with_one_key_charges_once(accountant: Accountant, coin: Coin) -> None:
    accountant.set_policy("default", ["lifetime=9"])
    receipts: list[Any] = []
    start = threading.Barrier(8)

    def spend() -> None:
        start.wait()
        receipts.append(accountant.spend("alice", coin(1), key="k"))

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(receipt.repeated for receipt in receipts) == [False] + [True] * 7
    assert len({receipt.receipt for receipt in receipts}) == 1
    assert spent(accountant, "alice") == {"lifetime": 1}


def test_closed_accountant_raises(coin: Coin) -> None:
    accountant = Accountant(":memory:")
    accountant.close()
    accountant.close()
    with pytest.raises(LedgerError, match="this accountant is closed"):
        accountant.spend("alice", coin(1))


def test_accountant_opens_a_store_by_the_scheme_of_its_url(monkeypatch: pytest.MonkeyPatch) -> None:
    def entries(*, group: str, name: str) -> list[EntryPoint]:
        toy = [EntryPoint("toy", "toy_store:opened", "ldp_budget.stores")]
        return [entry for entry in toy if (entry.group, entry.name) == (group, name)]

    monkeypatch.setattr("importlib.metadata.entry_points", entries)
    with Accountant("toy://anywhere", create=True) as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        assert accountant.spend("alice", ldp_budget.mechanism("rr")(epsilon=1)).status == "spent"


def test_accountant_with_an_unknown_url_scheme_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidParameter, match=r"ledger must be a path.*mysql://…") as error:
        Accountant("mysql://me:secret@host/db")
    assert "secret" not in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_balance_states_the_shuffled_figure_and_does_not_enforce_it(accountant: Accountant, coin: Coin) -> None:
    """Twenty reports at ε = .5, each among ten thousand: centrally about a hundredth of their sum."""
    from ldp_budget.accounting.rule_comparison import message_of
    from ldp_budget.composition.shuffle_amplification import shuffled

    accountant.set_policy("default", ["lifetime=10,1e-6"])
    assert accountant.balance("alice").shuffled(10_000) is None
    accountant.spend("alice", coin("0.5"), reports=20)
    found = accountant.balance("alice").shuffled(10_000)
    assert found is not None
    assert found["epsilon"] == shuffled([(message_of(coin("0.5")), 20)], 10_000, "1e-6").epsilon < 0.15
    assert found["epsilon"] < 0.95 * shuffled([(coin("0.5").guarantee, 20)], 10_000, "1e-6").epsilon
    assert (found["local"], found["enforced"]) == (10, False)
    assert accountant.balance("alice").limits[0].to_json()["remaining"]["epsilon"] == 0
    assert not accountant.spend("alice", coin("0.5"))
    with pytest.raises(InvalidParameter, match="users"):
        accountant.balance("alice").shuffled(0)


def test_balance_of_memoised_reports_states_no_shuffled_figure(accountant: Accountant) -> None:
    """29 reports of a label were one charge, and 0.0512 was stated for them all; δ there is at least 8.3e-3."""
    mean = ldp_budget.mechanism("one-bit-mean").calibrate(epsilon=1, lower=0, upper=1, rounding=0.5, flip=0.2)
    accountant.set_policy("default", ["lifetime=10,1e-6"])
    for reports in (1, 28):
        accountant.spend("alice", mean, label="home", reports=reports)
        assert accountant.balance("alice").shuffled(10_000) is None


def test_charge_of_equal_mechanisms_with_different_guarantees_is_separate(accountant: Accountant) -> None:
    """Charges were cached by fingerprint: what first came at ε = 1.01 was charged so at 1.99 too."""
    from ldp_budget.guarantees import Pure

    class Changing(Mechanism):
        name = "changing"
        promised = "1.01"

        @property
        def guarantee(self) -> Pure:
            return Pure(self.promised)

    one = Changing()
    assert charge_of(one).cost.epsilon == 1_010_000_000
    Changing.promised = "1.99"
    other = Changing()
    assert one == other
    assert one.fingerprint == other.fingerprint
    assert charge_of(other).cost.epsilon == 1_990_000_000
    accountant.set_policy("default", ["lifetime=10"])
    assert accountant.spend("alice", other).epsilon == 1.99


def test_charge_of_a_mechanism_equal_to_a_checked_one_is_not_checked() -> None:
    """A subclass of oue that equals every object was "exact" after one charge of oue, and passed a checked policy."""
    checked = ldp_budget.mechanism("oue")(epsilon=1, domain_size=4)

    class EqualToAll(type(checked)):  # type: ignore[misc]
        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return hash(checked)

    assert charge_of(checked).checked == "exact"
    assert charge_of(EqualToAll(epsilon=1, domain_size=4)).checked == "no"
    assert charge_of(EqualToAll(epsilon=1, domain_size=5)).fingerprint != charge_of(checked).fingerprint
