"""The accountant's guarantee: for every order and every retry, no limit is exceeded and no charge is counted twice."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ldp_budget
from contract.acts import promising
from fixed_clock import Clock
from ldp_budget import Accountant, BudgetExceeded, InvalidParameter, LedgerError, Limit, Mechanism
from ldp_budget.accounting.priced_mechanism import priced_mechanism_of
from ldp_budget.guarantees import Pure, Unbounded, ZeroConcentrated
from ledger_inside import tables

Coin = Callable[[Any], Mechanism]


def dump(accountant: Accountant, *, keys: bool = False) -> dict[str, list[tuple[Any, ...]]]:
    """Everything the ledger holds, table by table; idempotency keys and counters only where they are asked for."""
    with tables(accountant) as transaction:
        names = transaction.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
        listed = [
            name for (name,) in names if keys or name not in ("idempotency_records", "batch_runs", "partitions")
        ]
        return {table: transaction.execute(f"SELECT * FROM {table}").fetchall() for table in listed}


# -- one limit -----------------------------------------------------------------------------------------------


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


# -- several limits and windows ------------------------------------------------------------------------------


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


# -- the clock -----------------------------------------------------------------------------------------------


def test_clock_behind_repeatedly_does_not_move_back(accountant: Accountant, coin: Coin, clock: Clock) -> None:
    accountant.set_policy("default", ["lifetime=10"])
    newest = clock.now
    accountant.spend("alice", coin(1))
    clock.now = newest - timedelta(seconds=4)
    accountant.spend("alice", coin(1))
    clock.now = newest - timedelta(seconds=8)
    with pytest.raises(LedgerError, match="clock"):
        accountant.spend("alice", coin(1))


# -- policies ------------------------------------------------------------------------------------------------


def test_set_policy_with_invalid_limits_changes_nothing(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=1"])
    before = dump(accountant)
    with pytest.raises(InvalidParameter):
        accountant.set_policy("default", ["lifetime=1", "day=0"])
    with pytest.raises(InvalidParameter):
        accountant.set_policy("other", ["day=1"])
    assert dump(accountant) == before


# -- many at once --------------------------------------------------------------------------------------------


def test_closed_accountant_raises(coin: Coin) -> None:
    accountant = Accountant(":memory:")
    accountant.close()
    accountant.close()
    with pytest.raises(LedgerError, match="this accountant is closed"):
        accountant.spend("alice", coin(1))


def test_accountant_opens_a_store_by_the_scheme_of_its_url(monkeypatch: pytest.MonkeyPatch) -> None:
    def entries(*, group: str, name: str) -> list[EntryPoint]:
        toy = [EntryPoint("toy", "contract.toy_store:opened", "ldp_budget.stores")]
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
    from ldp_budget_surveys.planning.composition_comparison import message_of
    from ldp_budget_surveys.planning.shuffle_amplification import shuffled

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
    assert priced_mechanism_of(one).cost.epsilon == 1_010_000_000
    Changing.promised = "1.99"
    other = Changing()
    assert one == other
    assert one.fingerprint == other.fingerprint
    assert priced_mechanism_of(other).cost.epsilon == 1_990_000_000
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

    assert priced_mechanism_of(checked).checked == "exact"
    assert priced_mechanism_of(EqualToAll(epsilon=1, domain_size=4)).checked == "no"
    assert (
        priced_mechanism_of(EqualToAll(epsilon=1, domain_size=5)).fingerprint
        != priced_mechanism_of(checked).fingerprint
    )
