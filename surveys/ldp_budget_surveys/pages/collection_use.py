"""Charges of one collection in a ledger, and the largest sums of any account: confirmed, and without a verification.

The journal is read in columns, with every link of its chain computed again; so each entry is as it was written. The
sums of accounts are confirmed by their MACs, as charges confirm them, and the stored refusals by theirs. What any of
these finds is a `LedgerError`, and then nothing is shown.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ldp_budget.accounting.policies import Policy
from ldp_budget.errors import LedgerError
from ldp_budget.guarantees.fixed_point import ZERO, Costs
from ldp_budget.ledger.calendar import LIFETIME, micros_text
from ldp_budget.ledger.checked_sums import checked_sums
from ldp_budget.ledger.models import CHARGED, NUMBERED, VOIDED, BatchRunRecord
from ldp_budget.ledger.snapshot import covered, parts
from ldp_budget.ledger.verification import confirm_journal, head_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from ldp_budget.ledger import Ledger
    from ldp_budget.ledger.chain_verification import Whole
    from ldp_budget.ledger.checked_sums import Part
    from ldp_budget.ledger.hash_chain import Run

    Integers = NDArray[np.int64]

_REFUSALS_TOGETHER = 5_000
_MOST_IN_64_BITS = 2**62


class CollectionUse(NamedTuple):
    """The charges of one collection, and the largest sums of ε that one account was charged, in units.

    A sum is None where nothing bounds a charge.
    """

    accounts: int
    reports: int
    first: str | None
    last: str | None
    """The times of the first and the last charge, in ISO 8601."""
    largest: int | None
    """For the collection."""
    largest_total: int | None
    """For everything."""
    policies: dict[str, list[float | None]]
    """The policies that it was charged under: for each limit the most ε that one account has spent of it, by its rule.

    None for a limit whose windows begin again."""
    entries_by_kind: dict[str, int]
    refused: int
    """The refused requests of all collections that the ledger knows of."""
    head: str
    """The newest head of the ledger."""

    @property
    def entries(self) -> int:
        """The number of entries."""
        return sum(self.entries_by_kind.values())


def collection_use(
    ledger: Ledger, name: str, head: str | None, on_progress: Callable[[int, int], None]
) -> CollectionUse:
    """Return the charges of the collection of that name. Raises `LedgerError` if a row that counts was changed.

    `head` is a head that the journal must contain. The time is proportional to the size of the ledger.
    """
    gathered = [_Charges(name) for _ in ledger.partitions]

    def take(partition: int, whole: Whole, runs: list[Run]) -> None:
        gathered[partition].take(whole, runs)

    wholes = confirm_journal(ledger, head, take, on_progress)
    most = _LargestSums()
    for partition, whole in enumerate(wholes):
        for last in checked_sums(partial(ledger.reading, partition), most.take):
            on_progress(whole.numbered + last, whole.numbered + whole.opened)
    policies = {
        name: _largest(ledger, name, most) for name in sorted(set().union(*(each.policies for each in gathered)))
    }
    kinds = Counter[str]()
    for each in gathered:
        kinds.update(each.kinds)
    sums = [each.sums for each in gathered]
    return CollectionUse(
        sum(of.positive() for of, _ in sums),
        sum(each.reports for each in gathered),
        _iso(min((each.first for each in gathered if each.first is not None), default=None)),
        _iso(max((each.last for each in gathered if each.last is not None), default=None)),
        _maximum([of.largest() for of, _ in sums]),
        _maximum([every.largest() for _, every in sums]),
        policies,
        dict(kinds),
        sum(_refused(ledger, partition) for partition in ledger.partitions),
        wholes[0].end.head if len(wholes) == 1 else head_of(ledger),
    )


class _Sums:
    """Exact sums of ε by account, in units, and the accounts that were charged without a bound."""

    def __init__(self, accounts: int) -> None:
        self._known: NDArray[Any] = np.zeros(accounts + 1, np.int64)
        self._most = 0
        """No sum, and no sum on the way to it, is larger than this."""
        self._unbounded: set[int] = set()

    def add(self, accounts: Integers, units: int | None, back: bool) -> None:
        """Add the same units, None if unbounded, to accounts; one that was unbounded stays so when it gets them back."""
        if units is None:
            self._unbounded.update(() if back else accounts.tolist())
            return
        self._most += abs(units) * accounts.size
        if self._most > _MOST_IN_64_BITS and self._known.dtype != object:
            self._known = self._known.astype(object)
        np.add.at(self._known, accounts, units)

    def positive(self) -> int:
        """Return the number of accounts with a sum above zero."""
        known = set(np.flatnonzero(self._known > 0).tolist()) if self._unbounded else None
        return int(np.count_nonzero(self._known > 0)) if known is None else len(known | self._unbounded)

    def largest(self) -> int | None:
        """Return the largest sum, at least 0; None if one is unbounded."""
        return None if self._unbounded else max(0, int(self._known.max()))


class _Charges:
    """The charges of one partition, gathered from the parts of its journal."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.reports, self.policies = 0, set[str]()
        self.first: int | None = None
        self.last: int | None = None
        self.kinds = Counter[str]()
        self._sums: tuple[_Sums, _Sums] | None = None

    @property
    def sums(self) -> tuple[_Sums, _Sums]:
        """The sums of the collection, and those of everything."""
        return self._sums or (_Sums(0), _Sums(0))

    def take(self, whole: Whole, runs: list[Run]) -> None:
        """Add the runs of a part."""
        if self._sums is None:
            self._sums = _Sums(whole.opened), _Sums(whole.opened)
            self._mine = {each.number for each in whole.charges if each.collection_name == self._name}
            self._policies = {each.number: each.name for each in whole.policies}
        alone: dict[tuple[Any, ...], list[int]] = {}
        for row, accounts, _ in runs:
            self.kinds[row[2]] += len(accounts)
            if row[6] and row[3]:
                # Of a row, only what follows counts: kind, mechanism, policy, reports and ε.
                alone.setdefault((row[2], *row[4:8]), []).extend(accounts)
                if row[4] in self._mine:
                    self.first, self.last = min(self.first or row[1], row[1]), max(self.last or row[1], row[1])
        for (kind, charge, policy, reports, epsilon), accounts in alone.items():
            self._add(np.array(accounts, np.int64), kind == VOIDED, charge, policy, reports, epsilon)

    def _add(
        self, accounts: Integers, back: bool, charge: int, policy: int, reports: int, epsilon: int | None
    ) -> None:
        """Add entries of these accounts that are alike, but for their numbers and times."""
        assert self._sums is not None
        of_mine, every = self._sums
        every.add(accounts, epsilon, back)
        if charge in self._mine:
            of_mine.add(accounts, epsilon, back)
            self.reports += (-reports if back else reports) * accounts.size
            self.policies.add(self._policies[policy])


class _LargestSums:
    """The largest amounts of any account in each window that never ends, by gauge, each amount by itself.

    The ε that a limit gives for amounts is that of one amount, and infinite if the δ is above its share. Both grow with
    the amounts, so the largest amounts give the largest ε.
    """

    def __init__(self) -> None:
        self.by_gauge: dict[str, Costs] = {}

    def take(self, part: Part) -> int:
        """Add the sums of a part of the accounts; return the number of its last account."""
        lasting = [
            (place, gauge) for place, gauge in enumerate(part.gauges) if part.reading.windows[gauge].ends is None
        ]
        for costs in set(part.spent.values()):
            for place, gauge in lasting:
                before = self.by_gauge.get(gauge, ZERO)
                if before != costs[place]:
                    self.by_gauge[gauge] = Costs(*map(_larger, before, costs[place]))
        return part.last


def _larger(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)


def _maximum(sums: Iterable[int | None]) -> int | None:
    most: int | None = 0
    for each in sums:
        most = _larger(most, each)
    return most


def _largest(ledger: Ledger, name: str, most: _LargestSums) -> list[float | None]:
    """Return, for each limit of a policy, the most ε that one account has spent of it."""
    with ledger.reading() as reading:
        policy = Policy.read(reading.policy(name).definition)
    return [
        limit.epsilon_of(most.by_gauge.get(limit.gauge, ZERO)) if limit.period == LIFETIME else None
        for limit in policy.limits
    ]


def _refused(ledger: Ledger, partition: int) -> int:
    """Return the number of refusals that a partition stores, each confirmed, and none missing."""
    with ledger.reading(partition) as reading:
        last, refused, counted = reading.end.numbered_rows, 0, 0
    for first, until in parts(last, _REFUSALS_TOGETHER):
        with ledger.reading(partition) as reading:
            for record in reading.rows.refusals(first, until):
                reading.checked_idempotency_record(record)
                refused, counted = refused + 1, counted + 1
    for kind, table in NUMBERED.items():
        for first, until in parts(last, table.together):
            with ledger.reading(partition) as reading:
                for row in reading.rows.all_numbered(kind, first, until):
                    counted += 1
                    if isinstance(row, BatchRunRecord):
                        if reading.secret.row_mac(*covered(row, partition)) != row.row_mac:
                            raise LedgerError(ledger.name, f"{table.name}: the row {row.number} was changed")
                        refused += _refused_in(row)
    if counted != last:
        why = f"partitions: there are {counted} numbered rows, and {last} were written. Run: ldp-budget ledger verify"
        raise LedgerError(ledger.name, why)
    return refused


def _refused_in(run: BatchRunRecord) -> int:
    return len(json.loads(run.response)["refused"]) if run.kind == CHARGED else 0


def _iso(micros: int | None) -> str | None:
    return None if micros is None else micros_text(micros)
