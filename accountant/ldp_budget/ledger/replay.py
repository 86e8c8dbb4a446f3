"""What an account was charged, worked out again from its history: to fill a new period, and to verify."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ..guarantees import Memoised, from_json
from ..guarantees.amounts import ZERO, Costs
from .entries import RESERVED, VOIDED, Entry, LabelRow
from .windows import LIFETIME, code_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .reading import Reading
    from .transaction import Transaction

    Curve = Callable[[int], Memoised]

_ROWS_TOGETHER = 10_000


class Replay:
    """The sums of one account in the windows of some periods, added up entry by entry as they were charged.

    `since`: each period and where its first window starts. `sums` are by window; `labels` count reports by label,
    charge and window.
    """

    def __init__(self, since: dict[str, int], curve: Curve) -> None:
        self._since = since
        self._curve = curve
        self._reserved: dict[int, tuple[int, bytes | None]] = {}
        self.sums: dict[int, Costs] = defaultdict(lambda: ZERO)
        self.labels: dict[tuple[bytes, int, int], int] = defaultdict(int)

    def add(self, entry: Entry, label: bytes | None) -> None:
        """Add the next entry that charged the account, or gave a charge back."""
        at = entry.at
        if entry.kind == RESERVED:
            self._reserved[entry.number] = at, label
        elif entry.kind == VOIDED:
            # A void takes back what its reservation charged, in the windows of that reservation.
            at, label = self._reserved.get(entry.resolves or 0, (-1, None))
        for period, since in self._since.items():
            if period != LIFETIME and at < since:
                continue
            window = code_at(period, at)
            costs = entry.costs
            if label is not None:
                costs = self._step(entry, label, window)
            if period == LIFETIME:
                costs = entry.costs
            elif entry.labelled and label is None:
                continue  # the user was erased, and only the lifetime is kept
            self.sums[window] = self.sums[window].plus(costs)

    def _step(self, entry: Entry, label: bytes, window: int) -> Costs:
        """What a labelled entry costs in a window, along its curve from the start of that window."""
        key = (label, entry.charge, window)
        curve = self._curve(entry.charge)
        if entry.kind == VOIDED:
            self.labels[key] -= entry.reports
            return ZERO.minus(curve.step(self.labels[key], entry.reports))
        self.labels[key] += entry.reports
        return curve.step(self.labels[key] - entry.reports, entry.reports)


def by_account(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, Iterator[tuple[Any, ...]]]]:
    """Rows of histories, account by account."""
    return groupby(rows, key=itemgetter(3))


def curves(reading: Reading) -> Curve:
    """The memoised guarantee of a charge by its number, each read once. It raises ValueError for any other one."""
    known: dict[int, Memoised] = {}

    def curve(charge: int) -> Memoised:
        if charge not in known:
            guarantee = from_json(json.loads(reading.stored_charge(charge).guarantee))
            if not isinstance(guarantee, Memoised):
                raise ValueError(f"an entry of charge {charge} has a label, and the charge is not memoised")
            known[charge] = guarantee
        return known[charge]

    return curve


def fill_period(transaction: Transaction, period: str, since: int) -> None:
    """Write the sums and label counts of a period that was not kept until now, from the journal."""
    transaction.keep_period(period, since)
    curve = curves(transaction)
    rows: list[tuple[Any, ...]] = []
    cut_off = {user.account for user in transaction.rows.users() if user.hash is None}
    for account, history in by_account(transaction.rows.histories(since)):
        if account in cut_off:
            continue  # of an erased user only the lifetime is kept
        replay = Replay({period: since}, curve)
        for row in history:
            replay.add(Entry.of(row), row[-1])
        rows += [(account, window, *costs) for window, costs in replay.sums.items()]
        for (label, charge, window), reports in replay.labels.items():
            transaction.rows.set_label_reports(LabelRow(account, label, charge, window, reports))
        if len(rows) >= _ROWS_TOGETHER:
            transaction.rows.set_sums(rows)
            rows = []
    transaction.rows.set_sums(rows)
