"""What an account was charged, worked out again from its history: to fill windows, to void, and to verify."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache, partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ..guarantees import Guarantee, Memoised, from_json
from ..guarantees.amounts import LARGEST, ZERO, Costs
from ..guarantees.memoised import cost_in_window, count_in_window, refund_in_window
from ..guarantees.orders import ZCDP, measured
from .entries import CHARGES, RESERVED, VOIDED, Entry, Repair
from .windows import code_at, holds, is_lifetime, measure_in, share_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from .reading import Reading

    Promises = Callable[[int], Guarantee]
    """The guarantee of a charge by its number."""

_LIFETIME_WINDOW = 0


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

    def copy(self) -> _Sum:
        """One that goes on from here by itself."""
        other = _Sum()
        other._known, other._unbounded = [*self._known], [*self._unbounded]
        return other

    def costs(self) -> Costs:
        """The sum as an account keeps it: None where it is unbounded, or too large to count."""
        pairs = zip(self._known, self._unbounded, strict=True)
        return Costs(*[None if unbounded or known > LARGEST else known for known, unbounded in pairs])


class Replay:
    """The charges of one account that were not voided, added up in the windows of some gauges.

    `since`: each gauge and where its first window starts. `labels` count reports by label, charge and window.

    A charge counts in the windows of the time it is dated, and at each later one of the `repairs` of the clock that
    is before that time in the windows of the repair as well: by then it was made, whatever it is dated. So a repair
    refills no window, and what was charged under a wrong clock counts more often rather than less.

    An account with labels is replayed from the first entry on: what labelled reports cost depends on all before them.
    """

    def __init__(self, since: dict[str, int], promises: Promises, repairs: Sequence[Repair]) -> None:
        self._since = since
        self._promises = promises
        self._repairs = repairs
        self._reserved: dict[int, tuple[int, int, bytes | None]] = {}
        self._sums: dict[int, _Sum] = defaultdict(_Sum)
        self.labels: dict[tuple[bytes, int, int], int] = defaultdict(int)
        self._reported: dict[tuple[bytes, int], int] = defaultdict(int)

    def copy(self) -> Replay:
        """One that goes on from here by itself."""
        other = Replay(self._since, self._promises, self._repairs)
        other._reserved.update(self._reserved)
        other._sums.update((window, total.copy()) for window, total in self._sums.items())
        other.labels.update(self.labels)
        other._reported.update(self._reported)
        return other

    @property
    def sums(self) -> dict[int, Costs]:
        """What was charged in each window."""
        return {window: total.costs() for window, total in self._sums.items()}

    def spent_in(self, window: int) -> Costs:
        """What was charged in one window."""
        return self._sums[window].costs() if window in self._sums else ZERO

    def add(self, entry: Entry, label: bytes | None) -> None:
        """Add the account's next entry; what charges nothing and gives nothing back adds nothing."""
        if entry.kind not in CHARGES:
            return
        number, at, times = entry.number, entry.at, 1
        if entry.kind == RESERVED:
            self._reserved[number] = number, at, label
        elif entry.kind == VOIDED:
            # A void takes back what its reservation charged, in the windows of that reservation.
            number, at, label = self._reserved.get(entry.resolves or 0, (0, -1, None))
            times = -1
        if label is not None:
            self._reported[label, entry.priced_mechanism] += times * entry.reports
        moments = self._moments(number, at) if self._repairs else (at,)
        for gauge, since in self._since.items():
            if not holds(gauge, entry.sub_limit):
                continue
            if is_lifetime(gauge):
                windows = {code_at(gauge, 0)}
            else:
                windows = {code_at(gauge, moment) for moment in moments if moment >= since}
            for window in windows:
                self._add(entry, label, gauge, window, times)

    def _moments(self, number: int, at: int) -> list[int]:
        """When a charge counts: where it is dated, and at the repairs of a clock that had dated it too late."""
        return [at, *[repair.at for repair in self._repairs if repair.entry > number and repair.at < at]]

    def _add(self, entry: Entry, label: bytes | None, gauge: str, window: int, times: int) -> None:
        measure = measure_in(gauge)
        if label is not None:
            costs = self._step(entry, label, gauge, window)
        else:
            costs = (
                entry.costs if measure is None else cost_under(measure, entry, self._promises(entry.priced_mechanism))
            )
        if window == _LIFETIME_WINDOW:
            costs = entry.costs
        elif entry.labelled and label is None:
            return  # the user was erased, and only the lifetime is kept
        self._sums[window].add(costs, times)

    def _step(self, entry: Entry, label: bytes, gauge: str, window: int) -> Costs:
        """What a labelled entry costs in a window, whose count of the label it changes."""
        key, measure, reports = (label, entry.priced_mechanism, window), measure_in(gauge), entry.reports
        curve = curve_of(self._promises(entry.priced_mechanism), entry.priced_mechanism)
        broken = bool(share_in(gauge)) or any(repair.entry < entry.number for repair in self._repairs)
        done, reported = self.labels[key], self._reported[label, entry.priced_mechanism]
        if entry.kind == VOIDED:
            self.labels[key] = done = done - reports
            over = code_at(gauge, entry.at) != window
            return ZERO.minus(refund_in_window(measure, curve, reported, done, reports, broken=broken, over=over))
        self.labels[key] += reports
        return cost_in_window(measure, curve, count_in_window(reported - reports, done, broken=broken), reports)


def cost_under(measure: str, entry: Entry, guarantee: Guarantee) -> Costs:
    """What the reports of an entry cost under a measure, negative for a void; they repeat no memoised value.

    Where nothing is set aside, ρ is what the entry was charged, whatever a newer release works out.
    """
    if measure == ZCDP and not guarantee.aside() and guarantee.concentrated() is not None:
        return Costs(0, 0, entry.costs.rho, 0)
    costs = measured(guarantee, measure).times(entry.reports)
    return ZERO.minus(costs) if entry.kind == VOIDED else costs


def by_account(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, Iterator[tuple[Any, ...]]]]:
    """Rows of histories, account by account."""
    return groupby(rows, key=itemgetter(3))


def promises(reading: Reading) -> Promises:
    """The guarantee of a charge by its number, each read once."""
    return cache(partial(promise, reading))


def promise(reading: Reading, charge: int) -> Guarantee:
    """The guarantee of a charge by its number."""
    return from_json(json.loads(reading.priced_mechanism(charge).guarantee))


def curve_of(guarantee: Guarantee, charge: int) -> Memoised:
    """The guarantee of a charge whose entries have labels. Raises `ValueError` unless it is memoised."""
    if not isinstance(guarantee, Memoised):
        raise ValueError(f"an entry of charge {charge} has a label, and the charge is not memoised")
    return guarantee
