"""The clock: reads and erasures never wait for it, charges do, and a repair restores no budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.acts import CURVE, check, coin, everything, promising, spent
from contract.model import Labelled, labelled_sum, same_window
from fixed_clock import Clock
from ldp_budget import Accountant, InvalidParameter, Mechanism
from ldp_budget.accounting.batch import Spend
from ldp_budget.errors import ClockError, ReservationConflict
from ldp_budget.guarantees import Approximate
from ldp_budget.guarantees.fixed_point import Costs
from ldp_budget.ledger import calendar as clocks
from ldp_budget.ledger.calendar import window_at
from ledger_inside import writer_of

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LATER = datetime(2099, 3, 5, 9, tzinfo=UTC)
LIMITS = ["lifetime=90", "day=9", "week=20", "month=30"]
RAPPOR = promising(CURVE)
SLACK = promising(Approximate("0.5", "1e-9"))
"""Has no ρ: its void computes the sums again."""

NO_CLOCKS: tuple[Any, ...] = (
    math.nan,
    math.inf,
    -math.inf,
    1e300,
    -1,
    datetime(9999, 6, 1, tzinfo=UTC),
    datetime.max.replace(tzinfo=UTC),
    datetime.min.replace(tzinfo=UTC),
    253402300800.0,
    datetime(2026, 11, 21, 12),  # of an unknown time zone
    "2026-11-21",
    None,
    True,
)


def everything_that_charges(accountant: Accountant, held: str) -> list[Callable[[], Any]]:
    return [
        lambda: accountant.quote("alice", coin(1)),
        lambda: accountant.spend("alice", coin(1), key="fresh"),
        lambda: accountant.spend_many(["alice", "bob"], coin(1)),
        lambda: accountant.reserve("alice", coin(1)),
        lambda: accountant.commit(held),
        lambda: accountant.void(held),
        lambda: accountant.set_policy("default", ["lifetime=5"]),
    ]


@pytest.fixture
def held(accountant: Accountant) -> str:
    """A ledger with one spend and one open reservation."""
    accountant.set_policy("default", LIMITS)
    accountant.spend("alice", coin(1), key="k")
    return accountant.reserve("alice", coin("0.5"), expires=3600).receipt or ""


# -- a clock that is far behind ----------------------------------------------------------------------------------


# -- a clock that is none ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", NO_CLOCKS, ids=str)
def test_clock_returning_no_time_raises_and_writes_nothing(said: Any) -> None:
    now: Any = NOON
    with Accountant(":memory:", clock=lambda: now) as accountant:
        accountant.set_policy("default", LIMITS)
        accountant.spend("alice", coin(1), key="k")
        held = accountant.reserve("alice", coin("0.5")).receipt or ""
        before = everything(accountant)
        now = said
        for charge in (*everything_that_charges(accountant, held), accountant.repair_clock):
            with pytest.raises(
                InvalidParameter,
                match=r"clock must be a function that returns a datetime with a time zone, or seconds since 1970",
            ):
                charge()
        assert everything(accountant) == before
        assert spent(accountant, "alice")["day"] == 1.5
        assert len(accountant.history("alice")) == 2
        assert accountant.erase("alice")
        check(accountant)
        now = NOON
        assert accountant.spend("bob", coin(1)).status == "spent"
        check(accountant)


def test_clock_of_an_empty_ledger_may_return_anything_for_reads() -> None:
    with Accountant(":memory:", clock=lambda: math.nan) as accountant:
        assert accountant.history("alice") == []
        assert not accountant.erase("alice", unknown=True)
        check(accountant)


# -- a clock that runs away --------------------------------------------------------------------------------------


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Moves the clock that never jumps, so that against it the default clock does."""
    moved = Clock()
    start, real = moved.now, clocks.steady
    monkeypatch.setattr(clocks, "steady", lambda: real() + (moved.now - start).total_seconds())
    return moved


@pytest.mark.parametrize("hours", [1.01, -1.01, 24 * 365 * 73])
def test_clock_running_away_is_refused_before_a_write(steady: Clock, hours: float) -> None:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", LIMITS)
        accountant.spend("alice", coin(1), key="k")
        held = accountant.reserve("alice", coin("0.5")).receipt or ""
        before = everything(accountant)
        steady.advance(hours=-hours)
        for charge in (*everything_that_charges(accountant, held), accountant.repair_clock):
            with pytest.raises(ClockError, match=r"than 3600 s (ahead of|behind) the time that has passed since"):
                charge()
        assert everything(accountant) == before
        assert spent(accountant, "alice")["day"] == 1.5
        assert accountant.erase("alice")
        steady.advance(hours=hours)
        assert accountant.spend("bob", coin(1)).status == "spent", "it came back"
        check(accountant)


@pytest.mark.parametrize("bound", [0, -1, math.nan, "3600", None, True])
def test_clock_bound_is_a_number_of_seconds(bound: Any) -> None:
    with pytest.raises(InvalidParameter, match="clock_bound must be a number of seconds > 0"):
        Accountant(":memory:", clock_bound=bound)


# -- a repair ----------------------------------------------------------------------------------------------------


def test_clock_repair_before_midnight_counts_charges_dated_after_it(accountant: Accountant, clock: Clock) -> None:
    accountant.set_policy("default", LIMITS)
    midnight = datetime(2026, 12, 1, tzinfo=UTC)
    clock.now = midnight + timedelta(seconds=5)
    accountant.spend("alice", coin(9))
    clock.now = midnight - timedelta(seconds=1)
    assert accountant.repair_clock()
    assert not accountant.spend("alice", coin("1e-9"))
    clock.now = midnight
    assert accountant.spend("alice", coin("1e-9")).binding == ("day",), "there it counts as well"
    check(accountant)


def test_verify_without_the_sums_of_a_clock_repair_finds_it(accountant: Accountant, clock: Clock) -> None:
    """Plain charges, whose sums would be right without the repair."""
    accountant.set_policy("default", LIMITS)
    clock.now = LATER
    accountant.spend("alice", coin(9))
    clock.now = NOON
    accountant.repair_clock()
    windows = sorted(window_at(period, NOON).name for period in ("day", "week", "month"))
    for window in windows:
        writer_of(accountant).execute("DELETE FROM window_sums WHERE window_name = ?", (window,))
    problems = accountant.verify().problems
    assert problems == tuple(f"window_sums: account 1, window {each}, differs from the journal" for each in windows)


def test_verify_with_an_earlier_date_than_a_repair_finds_it(
    accountant: Accountant, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    accountant.set_policy("default", LIMITS)
    monkeypatch.setattr(clocks.Clock, "moment", lambda self, newest: self._now())
    clock.advance(seconds=-1)
    accountant.spend("alice", coin(1))
    assert accountant.verify().problems == ("journal: entry 2 is dated before the one before it",)


def test_clock_repair_ends_earlier_reservations(accountant: Accountant, clock: Clock) -> None:
    """The age of a reservation is unknown, so it stays charged, as one that was not voided in time."""
    accountant.set_policy("default", LIMITS)
    early = accountant.reserve("alice", coin(1)).receipt or ""
    voided = accountant.reserve("alice", coin(3)).receipt or ""
    clock.now = LATER
    late = accountant.reserve("alice", coin(2)).receipt or ""
    gone = accountant.reserve("alice", coin(3)).receipt or ""
    accountant.void(gone)
    with pytest.raises(ReservationConflict):
        accountant.void(voided)
    clock.now = NOON + timedelta(minutes=1)
    accountant.repair_clock()
    assert [row["state"] for row in accountant.history("alice")][:3] == ["expired"] * 3
    for receipt in (early, late, voided):
        with pytest.raises(ReservationConflict, match="is expired"):
            accountant.void(receipt)
    assert accountant.commit(late).status == "expired"
    assert spent(accountant, "alice")["day"] == 6
    fresh = accountant.reserve("alice", coin(1)).receipt or ""
    accountant.void(fresh)
    assert spent(accountant, "alice")["day"] == 6
    check(accountant)


# -- against a recomputation -------------------------------------------------------------------------------------

SECONDS = st.sampled_from((-400 * 86_400, -90_000, -86_400, -3600, -6, 1, 3600, 86_400, 200_000, 40 * 86_400))
STEPS = st.one_of(
    st.tuples(st.just("clock"), SECONDS),
    st.tuples(st.just("clock"), SECONDS),
    st.tuples(st.just("spend"), st.sampled_from(("alice", "bob"))),
    st.tuples(st.just("spend"), st.sampled_from(("alice", "bob"))),
    st.tuples(st.just("label"), st.sampled_from(("alice", "bob"))),
    st.tuples(st.just("reserve"), st.sampled_from(("alice", "bob"))),
    st.tuples(st.just("void"), st.integers(0, 9)),
    st.tuples(st.just("bulk"), st.none()),
    st.tuples(st.just("limit"), st.sampled_from(("day", "week", "month"))),
    st.tuples(st.just("erase"), st.just("bob")),
)


class Charged:
    """The charges, and every moment at which they count."""

    def __init__(self, user: str, at: datetime, cost: Mechanism, receipt: str = "") -> None:
        self.user, self.cost, self.receipt = user, cost, receipt
        self.at, self.moments, self.voidable = at, [at], bool(receipt)


class Replayed:
    """A ledger's windows in plain Python, where the clock goes back and is repaired."""

    def __init__(self) -> None:
        self.charges: list[Charged] = []
        self.labelled: list[Labelled] = []
        self.late = False

    def repaired(self, at: datetime) -> None:
        self.late = True
        for entry in self.labelled:
            if entry.at > at:
                entry.moments = (*entry.moments, at)
        for charge in self.charges:
            charge.voidable = False
            if charge.at > at:
                charge.moments.append(at)

    def spent(self, user: str, period: str, now: datetime) -> Costs:
        total = labelled_sum([each for each in self.labelled if each.value[0] == user], period, now)
        for charge in self.charges:
            if charge.user == user and any(same_window(period, moment, now) for moment in charge.moments):
                total = total.plus(charge.cost.guarantee.costs())
        return total


@pytest.mark.slow
@given(st.booleans(), st.lists(STEPS, max_size=30))
def test_clock_of_any_course_keeps_windows_equal_to_charges(daily: bool, steps: list[tuple[str, Any]]) -> None:
    clock, model, erased = Clock(), Replayed(), False
    with Accountant(":memory:", clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=1e6,0.5", *(["day=1e6,0.5"] if daily else [])])
        for step, what in steps:
            if step == "clock":
                clock.now += timedelta(seconds=what)
                continue
            if step == "erase":
                erased = accountant.erase("bob", unknown=True) or True
                continue
            newest = datetime.fromisoformat(accountant.stats()["last_entry_at"])
            if clock.now < newest - timedelta(seconds=5):
                with pytest.raises(ClockError):
                    accountant.spend("alice", coin(1))
                assert accountant.repair_clock()
                newest = clock.now
                model.repaired(clock.now)
            now = max(clock.now, newest)
            if step == "limit":
                accountant.set_policy(what, [f"{what}=1e6,0.5"], unbounded=True)
            elif step == "bulk":
                accountant.spend_many(["alice", "bob"], coin(2))
                model.charges += [Charged(user, now, coin(2)) for user in ("alice", "bob")[: 2 - erased]]
            elif step == "void":
                open_ones = [charge for charge in model.charges if charge.voidable]
                if open_ones:
                    chosen = open_ones[what % len(open_ones)]
                    accountant.void(chosen.receipt)
                    model.charges.remove(chosen)
            elif what == "bob" and erased:
                assert not accountant.spend(what, coin(1))
            elif step == "reserve":
                receipt = accountant.reserve(what, SLACK, expires=300 * 86_400)
                model.charges.append(Charged(what, now, SLACK, receipt.receipt or ""))
            elif step == "spend":
                accountant.spend(what, coin(1))
                model.charges.append(Charged(what, now, coin(1)))
            else:
                accountant.spend(what, RAPPOR, label="home")
                model.labelled.append(Labelled((what, CURVE), 1, now, late=model.late))
            for charge in model.charges:
                charge.voidable = charge.voidable and now < charge.at + timedelta(days=300)
            for policy in accountant.policies():
                for user in ("alice", "bob")[: 2 - erased]:
                    for state in accountant.balance(user, policy.name).limits:
                        period = state.limit.period
                        assert state.spent_units == model.spent(user, period, now), (user, period)
        check(accountant)


# -- what was answered before ------------------------------------------------------------------------------------


def test_repeats_while_the_clock_is_behind_return_the_stored_answers(tmp_path: Path, clock: Clock) -> None:
    """A repeat of a `commit` or a `void` that was acknowledged raised `ClockError`: the device could not know."""
    with Accountant(tmp_path / "budget.db", clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=10", "day=5"])
        kept, voided = (accountant.reserve("alice", coin("0.1"), key=key).receipt for key in ("r1", "r2"))
        assert kept is not None
        assert voided is not None
        calls: dict[str, Callable[[], Any]] = {
            "commit": lambda: accountant.commit(kept),
            "void": lambda: accountant.void(voided),
            "spend": lambda: accountant.spend("alice", coin("0.1"), key="k"),
            "refusal": lambda: accountant.spend("alice", coin(20), key="refused"),
            "each": lambda: accountant.spend_each([Spend("alice", coin("0.1"), key=f"e{n}") for n in range(3)]),
            "many": lambda: accountant.spend_many(["bob", "carol"], coin("0.1"), key="run"),
        }
        first = {name: call() for name, call in calls.items()}
        clock.now -= timedelta(hours=2)
        for name, call in calls.items():
            told = call()
            answers = told if name == "each" else [told]
            assert all(each.repeated for each in answers), name
            if name not in ("each", "many"):
                assert told.status == first[name].status
        with pytest.raises(ClockError):
            accountant.spend("alice", coin("0.1"), key="new")
        mixed = accountant.spend_each([Spend("alice", coin("0.1"), key=key) for key in ("e0", "newer")])
        assert getattr(mixed[0], "repeated", False)
        assert isinstance(mixed[1], ClockError)
        check(accountant)
