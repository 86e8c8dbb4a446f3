"""Reading a ledger without charging anything: its journal as rows, one user's history, and figures about it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..guarantees import from_json
from ..guarantees.amounts import DELTA_DIGITS, EPSILON_DIGITS, float_up, from_units
from .entries import CHARGES, EXPIRED, RESERVED, VOIDED, Entry
from .windows import from_micros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from ..guarantees import Guarantee
    from .reading import Reading

_ENTRIES_TOGETHER = 5_000


def journal_rows(open_reading: Callable[[], AbstractContextManager[Reading]]) -> Iterator[dict[str, Any]]:
    """The journal in order, as far as it went when it was first read.

    What was appended never changes, so it is read a part at a time, and nothing is held while others write.
    """
    with open_reading() as reading:
        last, shown = reading.end.entries, _Shown(reading)
    for first in range(1, last + 1, _ENTRIES_TOGETHER):
        with open_reading() as reading:
            part = reading.rows.entries(first, min(last, first + _ENTRIES_TOGETHER - 1))
            rows = [shown.row(Entry.of(row)) for row, _ in part]
        yield from rows


class _Shown:
    """Entries as people read them, each with what it was charged for."""

    def __init__(self, reading: Reading) -> None:
        self._charges = {charge.number: charge for charge in reading.rows.charges()}
        self._policies = {policy.number: policy.name for policy in reading.rows.policies()}

    def row(self, entry: Entry) -> dict[str, Any]:
        charge = self._charges.get(entry.charge)
        return {
            "entry": entry.number,
            "at": _iso(entry.at),
            "kind": entry.kind,
            "account": entry.account or None,
            "mechanism": None if charge is None else charge.mechanism,
            "declared": None if charge is None else json.loads(charge.declared),
            "fingerprint": None if charge is None else charge.fingerprint,
            "policy": self._policies.get(entry.policy),
            "reports": entry.reports,
            "epsilon": _amount(entry.costs.epsilon, EPSILON_DIGITS),
            "delta": _amount(entry.costs.delta, DELTA_DIGITS),
            "labelled": entry.labelled,
            "expires": None if entry.expires is None else _iso(entry.expires),
            "resolves": entry.resolves,
        }


def history_rows(reading: Reading, account: int) -> list[dict[str, Any]]:
    """One account's part of the journal, each reservation with the `state` it is in now.

    One that nobody resolved in time is expired, and no longer reserved.
    """
    shown = _Shown(reading)
    entries = [entry for entry, _ in reading.history(account)]
    ends = {entry.resolves: entry.kind for entry in entries}
    rows = []
    for entry in entries:
        state = None
        if entry.kind == RESERVED:
            state = ends.get(entry.number) or (EXPIRED if reading.is_over(entry) else RESERVED)
        rows.append({**shown.row(entry), "state": state})
    return rows


def charges_of(reading: Reading, account: int) -> tuple[tuple[Guarantee, int], ...]:
    """Every guarantee an account was charged for, and how often; of a memoised value that is once for each label."""
    reports: dict[tuple[int, bool], int] = {}
    labels: dict[tuple[int, bool], set[bytes]] = {}
    for entry, label in reading.history(account):
        if entry.kind in CHARGES:
            kind = entry.charge, entry.labelled
            count = -entry.reports if entry.kind == VOIDED else entry.reports
            reports[kind] = reports.get(kind, 0) + count
            labels.setdefault(kind, set()).update(() if label is None else (label,))
    return tuple(
        (from_json(json.loads(reading.stored_charge(kind[0]).guarantee)), len(labels[kind]) or count)
        for kind, count in reports.items()
        if count > 0
    )


def stats(reading: Reading) -> dict[str, Any]:
    """Counts of what the ledger holds, its newest link, and which version of what engine keeps it."""
    end, counts = reading.end, reading.rows.counts()
    return {
        "users": counts["users"],
        "erased": counts["erased"],
        "entries": end.entries,
        "entries_by_kind": counts["entries_by_kind"],
        "charges": end.charges,
        "policies": len(reading.newest_policies()),
        "collections": end.collections,
        "keys": counts["keys"],
        "periods": list(reading.periods()),
        "last_entry_at": None if end.at is None else _iso(end.at),
        "head": end.head,
        **counts["engine"],
    }


def _iso(micros: int) -> str:
    return from_micros(micros).isoformat().replace("+00:00", "Z")


def _amount(units: int | None, digits: int) -> float | None:
    return None if units is None else float_up(from_units(units, digits))
