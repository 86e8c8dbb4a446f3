"""The sums of a period's windows, worked out again from the journal: to fill a new period, and to verify."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from ..guarantees import Memoised, from_json
from ..guarantees.amounts import LARGEST, ZERO, Costs
from .windows import LIFETIME, from_micros, window_at

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from ._sqlite.transaction import Transaction

ERASED_ACCOUNTS = "SELECT account FROM users WHERE hash IS NULL"

# A void takes back what its reservation charged, in the windows of that reservation.
_CHARGED_AT = "coalesce((SELECT r.at FROM journal r WHERE r.entry = j.resolves), j.at)"
_CHARGES = f"SELECT j.*, {_CHARGED_AT} AS charged_at FROM journal j WHERE kind IN ('spent', 'reserved', 'voided')"


class LabelSums(NamedTuple):
    """Labelled charges of a period's windows: amounts for each (account, window), reports for each label in it.

    The latter by (account, label, charge, window).
    """

    costs: dict[tuple[int, int], Costs]
    reports: dict[tuple[int, bytes, int, int], int]


def define_windows(connection: sqlite3.Connection) -> None:
    """Let SQL ask in which window a moment lies."""
    connection.create_function("window_of", 2, _window_of, deterministic=True)


def _window_of(period: str, micros: int) -> int:
    return window_at(period, from_micros(micros)).code


def plain_sums_query(period: str, since: int) -> tuple[str, tuple[Any, ...]]:
    """SQL for (account, window, four sums) of what was charged since a moment, and its parameters.

    An entry says what it added to the lifetime. Without a label that is its cost in every window; with one it is not,
    so there they are left out (see `labelled_sums`), as are erased users, of whom only the lifetime is kept.
    """
    sums = ", ".join(f"{_sum_or_null(name)} AS {name}" for name in Costs._fields)
    if period == LIFETIME:
        return f"SELECT account, 0 AS window, {sums} FROM ({_CHARGES}) GROUP BY account", ()
    sql = (
        f"SELECT account, window_of(?, charged_at) AS window, {sums} FROM ({_CHARGES})"
        f" WHERE labelled = 0 AND charged_at >= ? AND account NOT IN ({ERASED_ACCOUNTS}) GROUP BY account, window"
    )
    return sql, (period, since)


def plain_sums_of(transaction: Transaction, account: int, period: str, since: int) -> dict[int, Costs]:
    """The same for one account, added one by one as they were charged: {window: sums}.

    Where a sum once grew too large to count it is unbounded, whatever was voided later; SQL does not see that.
    """
    sums: dict[int, Costs] = defaultdict(lambda: ZERO)
    for at, labelled, *amounts in transaction.execute(
        f"SELECT charged_at, labelled, epsilon, delta, rho, mu_squared FROM ({_CHARGES} AND account = ?)"
        " WHERE charged_at >= ? ORDER BY entry",
        (account, -LARGEST if period == LIFETIME else since),
    ):
        if period == LIFETIME or not labelled:
            window = _window_of(period, at)
            sums[window] = sums[window].plus(Costs(*amounts))
    return sums


def labelled_sums(transaction: Transaction, period: str, since: int) -> LabelSums:
    """The charges with a label since a moment, each along its curve from the start of its window."""
    costs: dict[tuple[int, int], Costs] = defaultdict(lambda: ZERO)
    reports: dict[tuple[int, bytes, int, int], int] = defaultdict(int)
    curves: dict[int, Memoised] = {}
    for account, charge, label, kind, count, window in _labelled_entries(transaction, period, since):
        key = (account, label, charge, window)
        if charge not in curves:
            curves[charge] = _curve(transaction, charge)
        if kind == "voided":
            reports[key] -= count
            costs[account, window] = costs[account, window].minus(curves[charge].step(reports[key], count))
        else:
            costs[account, window] = costs[account, window].plus(curves[charge].step(reports[key], count))
            reports[key] += count
    return LabelSums(dict(costs), dict(reports))


def _labelled_entries(transaction: Transaction, period: str, since: int) -> Iterator[tuple[Any, ...]]:
    sql = (
        "SELECT c.account, c.charge, l.label, c.kind, c.reports, window_of(?, c.charged_at)"
        f" FROM ({_CHARGES} AND labelled = 1) c JOIN entry_labels l ON l.entry = coalesce(c.resolves, c.entry)"
        " WHERE c.charged_at >= ? ORDER BY c.entry"
    )
    yield from transaction.execute(sql, (period, -LARGEST if period == LIFETIME else since))


def _curve(transaction: Transaction, charge: int) -> Memoised:
    guarantee = from_json(json.loads(transaction.stored_charge(charge)["guarantee"]))
    if not isinstance(guarantee, Memoised):
        raise ValueError(f"an entry of charge {charge} has a label, and the charge is not memoised")
    return guarantee


def fill_period(transaction: Transaction, period: str, since: int) -> None:
    """Write the account rows and label counts of a period that was not kept until now."""
    sql, values = plain_sums_query(period, since)
    transaction.execute(f"INSERT INTO accounts SELECT * FROM ({sql})", values)
    labelled = labelled_sums(transaction, period, since)
    for (account, window), costs in labelled.costs.items():
        transaction.set_spent(account, window, transaction.spent(account, window).plus(costs))
    for (account, label, charge, window), reports in labelled.reports.items():
        transaction.set_label_reports(account, label, charge, window, reports)


def _sum_or_null(column: str) -> str:
    """SQL for the sum of a column; NULL where any of it is, or where it grows too large to count."""
    # sum() fails where it leaves 64 bits; of the halves neither does, and their sum turns into a large real.
    total = f"(sum({column} >> 32) * 4294967296 + sum({column} & 4294967295))"
    return f"CASE WHEN count({column}) < count(*) OR {total} > {LARGEST} THEN NULL ELSE {total} END"
