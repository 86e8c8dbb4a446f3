"""Costs of memoised reports in a window, with and without labels.

A *cell* is one memoised draw of a user. Reports of different cells are independent. Let c(t) bound the loss of t
reports of one cell, with c(0) = 0 and t reports never losing more than t·a. A label names the cell that a report
repeats; a report without a label may repeat any cell. For a window, let label l have n_l reports before the window
and t_l in it, and let m and s be the reports without a label.

**All reports.** They lose at most U = Σ_l c(n_l + t_l) + (m + s)·a: each report without a label adds at most a to the
loss of its cell. If the user has at most `values` cells, they also lose at most C = values·cap. So they lose at most
Φ = min(C, U). More labels than `values` show that the user has more cells than was promised; then Φ = U.

**A window.** Given what the earlier reports showed, the reports in the window lose at most the smaller one of

- Φ of all reports, plus Φ of the earlier reports: their likelihood ratio is that of all reports divided by that of
  the earlier ones;
- Σ (c(n_l + t_l) + c(n_l)) over the labels with reports in the window, plus 2·a·m, plus 2·cap·s: only cells with
  reports in the window count, each with at most 2·cap. Each of the m earlier reports adds at most a to both terms of
  its cell. Each of the s reports adds at most a to the first term of a cell that counts already, or brings in a cell.

Without reports that have no label this is Σ (c(n_l + t_l) + c(n_l)); in a window that holds all reports, such as a
lifetime, it is Φ. Reports are charged what they add to this *charged loss*, so the charges of a window always sum up
to it at least, in any order and after any void.

A rule that charges a cell at once charges the pure loss c(n) + cap for each cell with reports in the window. A report
without a label may bring in a new cell, with all earlier reports before it. There are never more than `values` cells.

**Gaps.** This is valid only if no other report of the cell, outside the window, came between those in the window. A
window of time has no such gaps. Two windows may have gaps: the window of a sub-limit, as other sub-limits may repeat
the same value in between, and a window of a ledger whose clock was repaired. There every charge counts as the first
after all earlier reports, unless the window holds all of them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from .costs import measured
from .fixed_point import LARGEST, ZERO, Costs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .guarantees import Memoised

UNLABELLED = b""
"""Stands for the label of reports without a label in counts; the hash of a label is never empty."""


class LabelCount(NamedTuple):
    """Numbers of reports of one label: `earlier` than a window, and `done` in the window."""

    earlier: int
    done: int


def counts_in_window(
    reported: Mapping[bytes, int], done: Mapping[bytes, int], label: bytes, *, broken: bool
) -> dict[bytes, LabelCount]:
    """Return the counts of the reports before the next ones, for one window.

    Parameters:
        reported: the number of charged reports of each label, in any window.
        done: the number of them that count in this window.
        label: the label of the next reports, or `UNLABELLED`.
        broken: True if the window may have gaps: it belongs to a sub-limit, or the clock was repaired.
    """
    counts = {each: LabelCount(max(0, reported.get(each, 0) - n), n) for each, n in done.items()}
    counts |= {each: LabelCount(n, 0) for each, n in reported.items() if each not in counts}
    if not broken or not any(count.earlier for count in counts.values()):
        return counts
    if _is_mixed(counts, label):
        return {each: LabelCount(earlier + n, 0) for each, (earlier, n) in counts.items()}
    # Cells of different labels are independent, so a label of which the window holds all reports has no gaps.
    return {
        each: LabelCount(earlier + n, 0) if earlier else LabelCount(0, n) for each, (earlier, n) in counts.items()
    }


def cost_in_window(
    measure: str | None, curve: Memoised, counts: Mapping[bytes, LabelCount], label: bytes, reports: int
) -> Costs:
    """Return the costs that `reports` more reports of a label add to a window of a measure, or of none."""
    earlier, done = counts.get(label, (0, 0))
    after = charged_loss(measure, curve, {**counts, label: LabelCount(earlier, done + reports)})
    return _difference(after, charged_loss(measure, curve, counts))


def refund_in_window(
    measure: str | None,
    curve: Memoised,
    reported: Mapping[bytes, int],
    done: Mapping[bytes, int],
    label: bytes,
    reports: int,
    *,
    broken: bool,
    over: bool,
) -> Costs:
    """Return the costs that voiding `reports` reports of a label removes from a window.

    It never removes what the remaining reports were charged. `reported` and `done` exclude the voided reports. If the
    window is `over` or `broken`, the number of reports before it is unknown. Then nothing is removed, unless the
    window holds all reports that may be of the same cells.
    """
    counts = counts_in_window(reported, done, label, broken=False)
    same = counts.values() if _is_mixed(counts, label) else [counts.get(label, LabelCount(0, 0))]
    if (over or broken) and any(count.earlier for count in same):
        return ZERO
    return cost_in_window(measure, curve, counts, label, reports)


def most_reports(
    measure: str | None,
    curve: Memoised,
    counts: Mapping[bytes, LabelCount],
    label: bytes,
    room: tuple[tuple[int, int], ...],
) -> int:
    """Return the number of further reports of a label that cost at most `room`; `LARGEST` means any number.

    `room` has positions in `Costs`, each with the largest cost.
    """

    def fits(reports: int) -> bool:
        costs = cost_in_window(measure, curve, counts, label, reports)
        return all(cost is not None and cost <= most for cost, most in ((costs[place], most) for place, most in room))

    if any(most < 0 for _, most in room) or not fits(1):
        return 0
    if fits(_MANY):
        return LARGEST
    least, most = 1, 2
    while fits(most):
        least, most = most, 2 * most
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if fits(middle) else (least, middle)
    return least


_MANY = 2**60
"""A number of reports without a cap that costs more than a limit can count, unless each costs nothing."""


def charged_loss(measure: str | None, curve: Memoised, counts: Mapping[bytes, LabelCount]) -> Costs:
    """Return the sum that a window charges for all its reports, see the module."""
    earlier_plain, plain = counts.get(UNLABELLED, (0, 0))
    labels = [count for label, count in counts.items() if label != UNLABELLED and any(count)]
    open_labels = [count for count in labels if count.done]
    if not open_labels and not plain:
        return ZERO
    values = curve.values if curve.values is not None and len(labels) <= curve.values else None
    costs = ZERO
    for count in open_labels:
        costs = costs.plus(_whole(measure, curve, count.earlier + earlier_plain))
    if plain:
        each = _whole(measure, curve, earlier_plain + sum(count.earlier for count in labels))
        costs = costs.plus(each.times(plain))
        costs = costs if values is None else _least(costs, each.times(values))
    if measure is not None:
        return costs
    loss, added, cap = curve.loss_units, curve.added_units, curve.cap_units
    total = sum(loss(count.earlier + count.done) for count in labels) + (earlier_plain + plain) * added
    before = sum(loss(count.earlier) for count in labels) + earlier_plain * added
    most = None if values is None else values * cap
    by_all = sum(part if most is None else min(part, most) for part in (total, before))
    own = [loss(count.earlier + count.done) + loss(count.earlier) for count in open_labels]
    mixed = 2 * added * earlier_plain if open_labels else 0
    by_open = min(sum(own) + mixed, sum(min(each + mixed, 2 * cap) for each in own)) + 2 * cap * plain
    epsilon = min(by_all, by_open)
    return costs._replace(epsilon=epsilon if epsilon <= LARGEST else None)


def _is_mixed(counts: Mapping[bytes, LabelCount], label: bytes) -> bool:
    """True if reports without a label are among the reports, or are the next ones."""
    return label == UNLABELLED or any(counts.get(UNLABELLED, ()))


@lru_cache(maxsize=4096)
def _whole(measure: str | None, curve: Memoised, earlier: int) -> Costs:
    """Return the costs of any number of reports of one cell, given what `earlier` ones showed."""
    given = curve.given(earlier)
    return given.costs() if measure is None else measured(given, measure)


def _least(costs: Costs, most: Costs) -> Costs:
    """Return the smaller amount at each position; an unbounded amount is the larger one."""
    return Costs(*(b if a is None else a if b is None else min(a, b) for a, b in zip(costs, most, strict=True)))


def _difference(after: Costs, before: Costs) -> Costs:
    """Return what was added; an amount that became unbounded is unbounded, and no amount is negative."""
    return Costs(*(None if a is None or b is None else max(0, a - b) for a, b in zip(after, before, strict=True)))
