"""Labeled reports in windows: reports of earlier windows count, by exact fractions of the memoized draws."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

import ldp_budget
from contract.acts import CURVE, check, promising, spent
from fixed_clock import Clock
from ldp_budget import Accountant, Limit
from ldp_budget.guarantees import Copies, Memoised
from ldp_budget.guarantees.fixed_point import LARGEST, Costs
from ldp_budget.guarantees.memoised_costs import (
    LabelCount,
    cost_in_window,
    counts_in_window,
    most_reports,
    refund_in_window,
)
from ldp_budget.ledger import window_backfill
from ldp_budget_service.api_keys import ApiKeys
from ledger_inside import ledger_of

RAPPOR = ldp_budget.mechanism("rappor")(f=0.5, p=0.25, q=0.75, hashes=2, bits=32, cohorts=8, domain_size=4)
MEAN = ldp_budget.mechanism("one-bit-mean").calibrate(epsilon=4, lower=0, upper=1, rounding=0.5, flip=0.3)
HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


def worst(one: Fraction, other: Fraction, sent: Fraction, before: int, reports: int) -> Fraction:
    """The largest likelihood ratio of more reports given earlier ones, of a bit that is memoised and then noised.

    The bit is 1 with probability `one` or `other`; a report repeats it with probability `sent`. Every number of ones
    in every part is tried.
    """

    def likelihood(chance: Fraction, ones: int, count: int) -> Fraction:
        kept = sent**ones * (1 - sent) ** (count - ones)
        return chance * kept + (1 - chance) * sent ** (count - ones) * (1 - sent) ** ones

    ratios = [Fraction(1)]
    for seen in range(before + 1):
        prior = likelihood(one, seen, before) / likelihood(other, seen, before)
        for ones in range(seen, seen + reports + 1):
            together = likelihood(one, ones, before + reports) / likelihood(other, ones, before + reports)
            ratios += [together / prior, prior / together]
    return max(ratios)


def step(curve: Memoised, done: int, reports: int, *, earlier: int = 0) -> Costs:
    """The costs of more reports of one label after `done` in a window and `earlier` before it."""
    return cost_in_window(None, curve, {b"home": LabelCount(earlier, done)}, b"home", reports)


def odds_of(epsilon: float) -> Fraction:
    return Fraction(1 / (1 + math.exp(epsilon))).limit_denominator(10**9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "bits", "chances", "sent", "reports", "charged_before", "lost"),
    [
        (RAPPOR, 4, (1 - QUARTER, QUARTER), Fraction(3, 4), 7, 4.390, 8.288),
        (MEAN, 1, (1 - odds_of(4), odds_of(4)), Fraction(7, 10), 30, 4.000, 7.999),
    ],
    ids=["rappor", "one-bit-mean"],
)
def test_window_after_reports_of_the_label_is_charged_at_least_what_can_be_lost(
    accountant: Accountant,
    clock: Clock,
    mechanism: Any,
    bits: int,
    chances: tuple[Fraction, Fraction],
    sent: Fraction,
    reports: int,
    charged_before: float,
    lost: float,
) -> None:
    """A day began the curve again: 7 + 7 RAPPOR reports were charged 4.390 there and lost 8.288; 30 + 30 bits 8.0."""
    accountant.set_policy("default", ["lifetime=90", "day=90"])
    accountant.spend("alice", mechanism, reports=reports, label="home")
    assert float(spent(accountant, "alice")["day"]) == pytest.approx(charged_before, abs=1e-3), "the first day's"
    clock.advance(days=1)
    accountant.spend("alice", mechanism, reports=reports, label="home")
    truth = bits * math.log(worst(*chances, sent, reports, reports))
    assert truth == pytest.approx(lost, abs=2e-3)
    day, cap = float(spent(accountant, "alice")["day"]), float(mechanism.guarantee.cap)
    assert truth <= day <= 2 * cap + 1e-9
    assert float(spent(accountant, "alice")["lifetime"]) <= cap + 1e-9
    check(accountant)


@pytest.mark.parametrize("before", range(7))
@pytest.mark.parametrize("reports", range(1, 5))
def test_step_after_any_number_of_reports_covers_every_history(before: int, reports: int) -> None:
    truth = 4 * math.log(worst(1 - QUARTER, QUARTER, Fraction(3, 4), before, reports))
    curve = RAPPOR.guarantee
    assert isinstance(curve, Memoised)
    charged = [step(curve, done, 1, earlier=before).epsilon for done in range(reports)]
    assert None not in charged
    assert sum(each or 0 for each in charged) >= truth * 1e9
    assert step(curve, 0, reports, earlier=before).epsilon == sum(each or 0 for each in charged)


@pytest.mark.parametrize("steps", [False, True])
def test_filled_window_knows_the_reports_before_it(
    accountant: Accountant, clock: Clock, monkeypatch: pytest.MonkeyPatch, steps: bool
) -> None:
    """A day that is limited later is filled with what the same reports would have been charged: 2.04 + 3.39."""
    if steps:
        monkeypatch.setattr(window_backfill, "_MOST_AT_ONCE", 0)
    accountant.set_policy("default", ["lifetime=90"])
    for user in ("alice", "bob"):
        accountant.spend(user, promising(CURVE), label="home")
    clock.advance(days=1)
    accountant.spend("alice", promising(CURVE), label="home")
    accountant.set_policy("default", ["lifetime=90", "day=90", Limit("month", 90, "1e-6", "zcdp")])
    assert float(spent(accountant, "alice")["day"]) == 5.43
    assert float(spent(accountant, "bob")["day"]) == 0
    accountant.spend("bob", promising(CURVE), label="home")
    assert float(spent(accountant, "bob")["day"]) == 5.43, "of whom nothing was dated in the window"
    check(accountant)


def test_void_gives_back_what_the_window_was_charged(accountant: Accountant, clock: Clock) -> None:
    accountant.set_policy("default", ["lifetime=90", "day=90"])
    accountant.spend("alice", promising(CURVE), label="home", reports=2)
    clock.advance(days=1)
    accountant.spend("alice", promising(CURVE), label="home")
    held = accountant.reserve("alice", promising(CURVE), label="home").receipt or ""
    assert float(spent(accountant, "alice")["day"]) == 7.78, "3.39 + 4.39"
    accountant.void(held)
    assert float(spent(accountant, "alice")["day"]) == 7.41, "3.39 + 4.02"
    held = accountant.reserve("alice", promising(CURVE), label="home", expires=10**6).receipt or ""
    clock.advance(days=1)
    accountant.void(held)
    check(accountant)


def test_affordable_reports_in_a_window_are_those_that_fit(accountant: Accountant, clock: Clock) -> None:
    accountant.set_policy("default", ["lifetime=90", "day=6.1"])
    accountant.spend("alice", promising(CURVE), label="home")
    clock.advance(days=1)
    receipt = accountant.quote("alice", promising(CURVE), label="home")
    assert receipt.affordable_reports == 2, "2.04 + 4.02 fits and 2.04 + 4.39 does not"
    assert not accountant.spend("alice", promising(CURVE), label="home", reports=3)
    assert accountant.spend("alice", promising(CURVE), label="home", reports=2)
    assert accountant.quote("alice", promising(CURVE), label="home").affordable_reports == 0


@pytest.mark.parametrize("earlier", [0, 1, 3, 9])
def test_most_reports_after_earlier_ones_is_the_last_that_fits(earlier: int) -> None:
    for done in range(6):
        for epsilon in range(0, 10 * 10**9, 333_333_333):
            most = most_reports(None, CURVE, {b"home": LabelCount(earlier, done)}, b"home", ((0, epsilon),))
            costs = [step(CURVE, done, reports, earlier=earlier).epsilon or 0 for reports in range(1, 12)]
            fitting = sum(cost <= epsilon for cost in costs)
            assert most == (LARGEST if fitting == 11 else fitting), (done, epsilon)


def test_window_with_gaps_counts_every_charge_after_all_reports() -> None:
    def counts(reported: int, done: int, *, broken: bool) -> LabelCount:
        return counts_in_window({b"a": reported}, {b"a": done}, b"a", broken=broken)[b"a"]

    def refund(reported: int, *, broken: bool, over: bool) -> int | None:
        return refund_in_window(None, CURVE, {b"a": reported}, {}, b"a", 1, broken=broken, over=over).epsilon

    assert counts(5, 2, broken=False) == LabelCount(3, 2)
    assert counts(5, 2, broken=True) == LabelCount(5, 0)
    assert counts(2, 2, broken=True) == LabelCount(0, 2)
    assert refund(3, broken=True, over=False) == 0
    assert refund(3, broken=False, over=True) == 0
    assert refund(0, broken=True, over=True) == 2_040_000_000


def test_window_after_earlier_reports_is_charged_both_caps() -> None:
    """Under rules that charge a value at once a window charged ρ of the cap also after earlier reports."""
    first, later = step(CURVE, 0, 1), step(CURVE, 0, 1, earlier=9)
    assert Memoised(("8.78",), "8.78").costs().rho == later.rho
    assert (first.rho or 0) < (later.rho or 0)


# -- reports without a label -----------------------------------------------------------------------------------


def likely(chance: Fraction, ones: int, zeros: int) -> Fraction:
    """Return the probability of reports of a RAPPOR bit that is kept as 1 by `chance`, with p = 0.4 and q = 0.9."""
    one, zero = Fraction(9, 10), Fraction(4, 10)
    return chance * one**ones * (1 - one) ** zeros + (1 - chance) * zero**ones * (1 - zero) ** zeros


def lost_after(before: int) -> float:
    """The most that one more report loses after so many: each of the two values sets two bits."""
    chances = Fraction(9, 10), Fraction(1, 10)
    total = 0.0
    for own, other in (chances, chances[::-1]):
        ratios = []
        for ones in range(before + 1):
            seen = likely(own, ones, before - ones) / likely(other, ones, before - ones)
            for bit in range(2):
                count = ones + bit, before + 1 - ones - bit
                ratios.append(likely(own, *count) / likely(other, *count) / seen)
        total += 2 * math.log(max(ratios))
    return total


def test_unlabelled_report_of_a_value_seen_before_can_lose_more_than_one_of_a_new_value() -> None:
    """A day was charged 3.871 for an unlabelled RAPPOR report, which lost 3.955 after seven reports of its value."""
    rappor = ldp_budget.mechanism("rappor")(f=0.2, p=0.4, q=0.9, hashes=2, bits=32, cohorts=8)
    assert lost_after(0) == pytest.approx(rappor.guarantee.epsilon, abs=1e-6) == pytest.approx(3.871, abs=1e-3)
    assert lost_after(7) == pytest.approx(3.955, abs=1e-3)


@pytest.mark.parametrize(
    ("limits", "period"), [(["day=90"], "day"), (["week=90"], "week"), (["month=90,1e-6,zcdp"], "month")]
)
def test_spend_of_several_memoised_draws_under_a_window_is_refused(
    accountant: Accountant, limits: list[str], period: str
) -> None:
    accountant.set_policy("default", ["lifetime=90", *limits])
    mechanism = promising(Copies(2, CURVE))
    receipt = accountant.spend("alice", mechanism)
    assert not receipt
    assert f"limit {period}" in receipt.why
    assert not accountant.reserve("alice", mechanism)
    many = accountant.spend_many(["bob", "carol"], mechanism)
    assert (many.spent, many.refused) == (0, 2)
    check(accountant)


def test_spend_of_unlabelled_memoised_report_under_a_lifetime_is_charged_as_a_new_value(
    accountant: Accountant,
) -> None:
    accountant.set_policy("default", ["lifetime=90"])
    assert accountant.spend("alice", promising(CURVE), reports=2)
    assert accountant.spend_many(["bob"], promising(CURVE)).spent == 1
    assert float(spent(accountant, "alice")["lifetime"]) == 4.08
    check(accountant)


def test_spend_of_unlabelled_memoised_report_in_a_window_covers_what_earlier_ones_showed(
    accountant: Accountant, clock: Clock
) -> None:
    """It may repeat the value of the earlier report (3.39 + 2.04), or be a new one; it never loses more than 2·4.39."""
    accountant.set_policy("default", ["lifetime=90", "day=90"])
    accountant.spend("alice", promising(CURVE))
    clock.advance(days=1)
    accountant.spend("alice", promising(CURVE))
    assert float(spent(accountant, "alice")["day"]) == 6.12, "2.04 + 4.08"
    for _ in range(4):
        accountant.spend("alice", promising(CURVE))
        clock.advance(days=1)
    accountant.spend("alice", promising(CURVE))
    assert float(spent(accountant, "alice")["day"]) == 8.78
    check(accountant)


def test_spend_of_labelled_report_in_a_window_covers_earlier_reports_without_a_label(
    accountant: Accountant, clock: Clock
) -> None:
    accountant.set_policy("default", ["lifetime=90", "day=90"])
    accountant.spend("alice", promising(CURVE))
    clock.advance(days=1)
    accountant.spend("alice", promising(CURVE), label="home")
    assert float(spent(accountant, "alice")["day"]) >= 3.39 + 2.04
    check(accountant)


def test_spend_of_unlabelled_memoised_report_through_a_share_covers_all_reports(accountant: Accountant) -> None:
    """The share may repeat a value of which other shares have charged reports in between."""
    accountant.set_policy("default", ["lifetime=90"], shares={"team": ["lifetime=40"]})
    team = accountant.acting_for(ApiKeys(accountant).create("key-of-team", ["spend"], share="team")[0].caller)
    assert team.spend("alice", promising(CURVE))
    assert accountant.spend("alice", promising(CURVE))
    assert team.spend("alice", promising(CURVE))
    share = next(state for state in team.balance("alice").limits if "team" in state.limit.label)
    assert share.spent.epsilon == 2.04 + 8.78
    check(accountant)


# -- stored labels ---------------------------------------------------------------------------------------------------


@pytest.mark.policy("lifetime=9")
def test_equal_labels_of_two_users_have_different_hashes(accountant: Accountant) -> None:
    for user in ("alice", "bob"):
        accountant.spend(user, promising(CURVE), label="home")
    with ledger_of(accountant).reading() as reading:
        assert len({row[1] for row in reading.rows.memoised_counts(1, 2)}) == 2
