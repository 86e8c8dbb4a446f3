"""What filters add beside the four amounts of `Costs`: a Rényi divergence at one order, and δ that is set aside.

A *measure* is `renyi:ALPHA`, the divergence at that order, or `zcdp`, the ρ of what is left once a report's own δ is
set aside. Under either, a report has two amounts: that one, and the δ that it sets aside. Orders come from a
published grid, so that ledgers name them by their number: α - 1 is one of 25 round numbers times a power of ten.

These amounts follow from a guarantee by decimal arithmetic alone, the same on every machine, as sums of them are
worked out again from the journal.

The cost of labelled reports in a window: more reports of one memoised value, after reports seen before it.

Let c(t) be the curve of the value, with c(0) = 0. Given what n earlier reports showed, t more lose at most
c(n + t) + c(n): their likelihood ratio is that of all n + t reports over that of the first n. A window charges that
to its t reports of a label, where n counts the reports of the label before the first of them. A window that holds
all reports of the label charges its curve, as n is 0 there: a lifetime does.

This holds for reports with none of the label in between that the window does not hold. A window of time has no such
gaps. The window of a share may have some, as other shares repeat the same value in between, and so may a window of a
ledger whose clock was repaired. There every charge counts as the first after all reports of the label, unless the
window holds all of them.

A rule that charges a value at once charges the pure loss c(n) + cap with the first report of the label.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from .fixed_point import DELTA_DIGITS, RHO_DIGITS, UP, ZERO, Costs, canonical, decimal, from_units, to_cost

if TYPE_CHECKING:
    from .guarantees import Guarantee, Memoised


ZCDP = "zcdp"
RENYI = "renyi"

_TENTHS = (10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 25, 28, 30, 33, 36, 40, 45, 50, 55, 60, 65, 70, 75, 80, 90)
ORDERS = tuple([UP.add(Decimal(1), from_units(tenths, 1 - power)) for power in range(-2, 7) for tenths in _TENTHS])
"""The orders that a rule may have, ascending, from 1.01 to 9000001. None is ever added in between."""

MEASURES = (ZCDP, *(f"{RENYI}:{canonical(order)}" for order in ORDERS))
"""Every measure, at the place that stands for it in a ledger."""


def measure_at(order: Decimal) -> str:
    """The name of the divergence at an order of the grid."""
    return f"{RENYI}:{canonical(order)}"


def order_of(measure: str) -> Decimal:
    """The order that `renyi:ALPHA` names. Raises ValueError, naming its neighbours, if it is not on the grid."""
    _, _, text = measure.partition(":")
    try:
        order = decimal(text)
    except ValueError:
        raise ValueError(f"expected an order > 1, such as 3; found {text!r}") from None
    if measure_at(order) not in MEASURES:
        raise ValueError(f"expected an order of the published grid, such as {_neighbours(order)}; found {text}")
    return order


def _neighbours(order: Decimal) -> str:
    nearest = sorted(ORDERS, key=lambda each: abs(Fraction(each) - Fraction(order)))[:2]
    return " or ".join(canonical(each) for each in sorted(nearest))


def nearest_order(excess: float) -> Decimal:
    """The order of the grid whose α - 1 is nearest to `excess` by their ratio."""
    if not excess:
        return ORDERS[0]
    return min(ORDERS, key=lambda each: abs(math.log(float(UP.subtract(each, Decimal(1))) / excess)))


@lru_cache(maxsize=4096)
def measured(guarantee: Guarantee, measure: str) -> Costs:
    """What one report costs under a measure: in place of ρ the measure's own amount, in place of δ what is set aside.

    Both in their units, rounded up; None where unbounded. The other two amounts are zero, as nothing limits them.
    """
    amount = guarantee.concentrated() if measure == ZCDP else guarantee.divergence(order_of(measure))
    return Costs(0, to_cost(guarantee.aside(), DELTA_DIGITS), to_cost(amount, RHO_DIGITS), 0)


class LabelCount(NamedTuple):
    """Reports of one label: those `earlier` than a window, and those `done` in it."""

    earlier: int
    done: int


def count_in_window(reported: int, done: int, *, broken: bool) -> LabelCount:
    """The reports of a label that the next ones are charged after, in a window.

    Parameters:
        reported: how many reports of the label were charged, in any window.
        done: how many of them count in this window.
        broken: whether the window may have gaps: it is that of a share, or the clock was repaired.
    """
    if broken and done < reported:
        return LabelCount(reported, 0)
    return LabelCount(max(0, reported - done), done)


def cost_in_window(measure: str | None, curve: Memoised, count: LabelCount, reports: int) -> Costs:
    """What `reports` more reports of a label add to a window that counts in a measure, or in none."""
    if measure is None:
        return curve.step(count.done, reports, earlier=count.earlier)
    return measured(curve.given(count.earlier), measure) if count.done == 0 and reports > 0 else ZERO


def refund_in_window(
    measure: str | None, curve: Memoised, reported: int, done: int, reports: int, *, broken: bool, over: bool
) -> Costs:
    """What a void of `reports` reports takes out of a window: never what the reports that are left were charged.

    `reported` and `done` are counted without the voided reports. If the window is `over`, or `broken`, how many
    reports came before it is not known. Then nothing is taken out, unless the window holds all reports of the label.
    """
    if reported > done and (over or broken):
        return ZERO
    return cost_in_window(measure, curve, count_in_window(reported, done, broken=False), reports)
