"""The sums of a window, worked out again from the journal: to fill a new period, and to verify."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from ..amounts import LARGEST, ZERO, Costs
from ..guarantees import Memoised, from_json
from ..windows import to_micros

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..windows import Window
    from .transaction import Transaction

# A void takes back what its reservation charged, in the windows of that reservation.
_CHARGED_AT = "coalesce((SELECT r.at FROM journal r WHERE r.entry = j.resolves), j.at)"
_KINDS = "('spent', 'reserved', 'voided')"


class LabelSums(NamedTuple):
    """Labelled charges of one window: amounts for each account, reports for each (account, label, charge)."""

    costs: dict[int, Costs]
    reports: dict[tuple[int, bytes, int], int]


def _bounds(window: Window) -> tuple[int, int]:
    if window.ends is None:
        return -LARGEST, LARGEST
    return to_micros(window.starts), to_micros(window.ends)


def plain_sums_query(window: Window) -> tuple[str, tuple[int, ...]]:
    """SQL for (account, four sums) of the charges without a label in a window, and its parameters.

    Their cost is the same in every window, so it is the entry's own.
    """
    sums = ", ".join(f"{_sum_or_null(name)} AS {name}" for name in Costs._fields)
    sql = (
        f"SELECT account, {sums} FROM journal j WHERE kind IN {_KINDS} AND labelled = 0"
        f" AND {_CHARGED_AT} >= ? AND {_CHARGED_AT} < ? GROUP BY account"
    )
    return sql, _bounds(window)


def labelled_sums(transaction: Transaction, window: Window) -> LabelSums:
    """The charges with a label in a window, each along its curve from the window's start."""
    costs: dict[int, Costs] = defaultdict(lambda: ZERO)
    reports: dict[tuple[int, bytes, int], int] = defaultdict(int)
    for account, charge, label, kind, count in _labelled_entries(transaction, window):
        key = (account, label, charge)
        curve = _curve(transaction, charge)
        if kind == "voided":
            reports[key] -= count
            step = curve.step(reports[key], count)
            costs[account] = costs[account].minus(step)
        else:
            costs[account] = costs[account].plus(curve.step(reports[key], count))
            reports[key] += count
    return LabelSums(dict(costs), dict(reports))


def _labelled_entries(transaction: Transaction, window: Window) -> Iterator[tuple[Any, ...]]:
    sql = (
        "SELECT j.account, j.charge, l.label, j.kind, j.reports FROM journal j"
        " JOIN entry_labels l ON l.entry = coalesce(j.resolves, j.entry)"
        f" WHERE j.kind IN {_KINDS} AND j.labelled = 1 AND {_CHARGED_AT} >= ? AND {_CHARGED_AT} < ? ORDER BY j.entry"
    )
    yield from transaction.execute(sql, _bounds(window))


def _curve(transaction: Transaction, charge: int) -> Memoised:
    import json

    guarantee = from_json(json.loads(transaction.stored_charge(charge)["guarantee"]))
    assert isinstance(guarantee, Memoised)
    return guarantee


def fill_window(transaction: Transaction, window: Window) -> None:
    """Write the account rows and label counts of a window that was not kept until now."""
    sql, bounds = plain_sums_query(window)
    transaction.execute(
        f"INSERT INTO accounts SELECT account, {window.code}, epsilon, delta, rho, mu_squared FROM ({sql})", bounds
    )
    labelled = labelled_sums(transaction, window)
    for account, costs in labelled.costs.items():
        transaction.set_spent(account, window.code, transaction.spent(account, window.code).plus(costs))
    for (account, label, charge), reports in labelled.reports.items():
        transaction.set_label_reports(account, label, charge, window.code, reports)


def _sum_or_null(column: str) -> str:
    """SQL for the sum of a column; NULL where any of it is, or where it grows too large to count."""
    # sum() fails where it leaves 64 bits; of the halves neither does, and their sum turns into a large real.
    total = f"(sum({column} >> 32) * 4294967296 + sum({column} & 4294967295))"
    return f"CASE WHEN count({column}) < count(*) OR {total} > {LARGEST} THEN NULL ELSE {total} END"
