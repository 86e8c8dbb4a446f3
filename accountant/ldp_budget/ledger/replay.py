"""What an account was charged, worked out again from its history: to fill a new period, and to verify."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ..guarantees import Memoised, from_json
from ..guarantees.amounts import LARGEST, ZERO, Costs
from .entries import CHARGES, RESERVED, VOIDED, Entry, LabelRow
from .windows import LIFETIME, code_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .reading import Reading
    from .transaction import Transaction

    Curve = Callable[[int], Memoised]

_ROWS_TOGETHER = 10_000


class _Sum:
    """An exact sum of costs: unbounded ones are counted, and no number is too large."""

    __slots__ = ("_known", "_unbounded")

    def __init__(self) -> None:
        self._known = [0, 0, 0, 0]
        self._unbounded = [0, 0, 0, 0]

    def add(self, costs: Costs, times: int) -> None:
        """Add costs; `times` is -1 where they are given back, and then negative already, as far as they are known."""
        for place, amount in enumerate(costs):
            if amount is None:
                self._unbounded[place] += times
            else:
                self._known[place] += amount

    def costs(self) -> Costs:
        """The sum as an account keeps it: None where it is unbounded, or too large to count."""
        pairs = zip(self._known, self._unbounded, strict=True)
        return Costs(*[None if unbounded or known > LARGEST else known for known, unbounded in pairs])


class Replay:
    """The charges of one account that were not voided, added up in the windows of some periods.

    `since`: each period and where its first window starts. `labels` count reports by label, charge and window.
    """

    def __init__(self, since: dict[str, int], curve: Curve) -> None:
        self._since = since
        self._curve = curve
        self._reserved: dict[int, tuple[int, bytes | None]] = {}
        self._sums: dict[int, _Sum] = defaultdict(_Sum)
        self.labels: dict[tuple[bytes, int, int], int] = defaultdict(int)

    @property
    def sums(self) -> dict[int, Costs]:
        """What was charged in each window."""
        return {window: total.costs() for window, total in self._sums.items()}

    def add(self, entry: Entry, label: bytes | None) -> None:
        """Add the account's next entry; what charges nothing and gives nothing back adds nothing."""
        if entry.kind not in CHARGES:
            return
        at, times = entry.at, -1 if entry.kind == VOIDED else 1
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
            self._sums[window].add(costs, times)

    def _step(self, entry: Entry, label: bytes, window: int) -> Costs:
        """What a labelled entry costs in a window, along its curve from the start of that window.

        A memoised value never costs an unbounded amount, so its steps add up to its curve whichever was given back.
        """
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
    cut_off = {user.account for user in transaction.rows.users(1, LARGEST) if user.hash is None}
    for account, history in by_account(transaction.rows.histories(1, LARGEST, since)):
        if account in cut_off:
            continue  # of an erased user only the lifetime is kept
        replay = Replay({period: since}, curve)
        for row in history:
            replay.add(Entry.of(row), row[-2])
        rows += [(account, window, *costs) for window, costs in replay.sums.items()]
        for (label, charge, window), reports in replay.labels.items():
            transaction.rows.set_label_reports(LabelRow(account, label, charge, window, reports))
        if len(rows) >= _ROWS_TOGETHER:
            transaction.rows.set_sums(rows)
            rows = []
    transaction.rows.set_sums(rows)
