"""The cost of labelled reports in a window: more reports of one memoised value, after reports seen before it.

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

from typing import TYPE_CHECKING, NamedTuple

from .amounts import ZERO, Costs
from .orders import measured

if TYPE_CHECKING:
    from .vocabulary import Memoised


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
