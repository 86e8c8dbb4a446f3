"""Reading a ledger without charging anything: its journal as rows, one user's history, and figures about it."""

from __future__ import annotations

import heapq
import json
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ..guarantees import from_json
from ..guarantees.amounts import DELTA_DIGITS, EPSILON_DIGITS, float_up, from_units
from .entries import CHARGES, CLOCK, COPIED, EXPIRED, MOVED, PERIOD, POLICY_SET, REOPENED, RESERVED, VOIDED, Entry
from .names import Name
from .reading import parts
from .verifying import head_of
from .windows import from_micros

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..guarantees import Guarantee
    from .ledger import Ledger
    from .reading import Reading

_ENTRIES_TOGETHER = 5_000
_IN_ALL = (POLICY_SET, CLOCK, PERIOD, MOVED, REOPENED, COPIED)


def journal_rows(ledger: Ledger) -> Iterator[dict[str, Any]]:
    """The journal in order, as far as it went when it was first read; that of several lanes by time, with `lane`.

    What was appended never changes, so it is read a part at a time, and nothing is held while others write.
    """
    if len(ledger.lanes) == 1:
        return _lane_rows(ledger, 0)
    return heapq.merge(*(_told_once(ledger, lane) for lane in ledger.lanes), key=itemgetter("at"))


def _told_once(ledger: Ledger, lane: int) -> Iterator[dict[str, Any]]:
    """The rows of one of several lanes. What was set in all of them is told by the first alone."""
    return (row for row in _lane_rows(ledger, lane) if lane == 0 or row["kind"] not in _IN_ALL)


def _lane_rows(ledger: Ledger, lane: int) -> Iterator[dict[str, Any]]:
    with ledger.reading(lane) as reading:
        last, shown = reading.end.entries, _Shown(reading)
    for first, until in parts(last, _ENTRIES_TOGETHER):
        with ledger.reading(lane) as reading:
            part = reading.rows.entries(first, until)
            rows = [shown.row(Entry.of(row)) for row, _ in part]
        yield from rows


class _Shown:
    """Entries as people read them, each with what it was charged for."""

    def __init__(self, reading: Reading) -> None:
        self._lane = {"lane": reading.lane} if reading.lanes > 1 else {}
        self._charges = {charge.number: charge for charge in reading.rows.charges()}
        self._policies = {policy.number: policy.name for policy in reading.rows.policies()}

    def row(self, entry: Entry) -> dict[str, Any]:
        charge = self._charges.get(entry.charge)
        return {
            **self._lane,
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


def open_reservations(ledger: Ledger, most: int) -> list[dict[str, Any]]:
    """The newest reservations that are open, at most so many, newest first, each with its `name`.

    Of each lane the last 50,000 entries are looked at.
    """
    rows: list[dict[str, Any]] = []
    for lane in ledger.lanes:
        with ledger.reading(lane) as reading:
            shown, last = _Shown(reading), reading.end.entries
            found: list[dict[str, Any]] = []
            for end in range(last, max(0, last - 10 * _ENTRIES_TOGETHER), -_ENTRIES_TOGETHER):
                part = [Entry.of(row) for row, _ in reading.rows.entries(max(1, end - _ENTRIES_TOGETHER + 1), end)]
                for entry in reversed(part):
                    if len(found) < most and entry.kind == RESERVED and _is_open(reading, entry):
                        found.append({**shown.row(entry), "name": Name(reading.generation, lane, entry.number)})
            rows += found
    return sorted(rows, key=itemgetter("at"), reverse=True)[:most]


def _is_open(reading: Reading, reservation: Entry) -> bool:
    return reading.rows.resolution(reservation.number) is None and not reading.is_over(reservation)


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


def stats(ledger: Ledger) -> dict[str, Any]:
    """Counts of what the ledger holds, its newest link, and which version of what engine keeps it."""
    with ledger.reading() as reading:
        counted, end, engine = _lane_stats(reading), reading.end, reading.rows.counts()["engine"]
        policies, periods = reading.newest_policies(), reading.periods()
    charges = end.charges
    for lane in ledger.lanes[1:]:
        with ledger.reading(lane) as reading:
            charges = max(charges, reading.end.charges)
            _add(counted, _lane_stats(reading))
    keys, at = counted.pop("keys"), counted.pop("at")
    return {
        **counted,
        "charges": charges,
        "policies": len(policies),
        "collections": end.collections,
        "keys": keys,
        "periods": list(periods),
        "last_entry_at": None if at is None else _iso(at),
        "head": head_of(ledger),
        **({"lanes": len(ledger.lanes)} if len(ledger.lanes) > 1 else {}),
        **engine,
    }


def _lane_stats(reading: Reading) -> dict[str, Any]:
    counts = reading.rows.counts()
    return {
        "users": counts["users"],
        "erased": counts["erased"],
        "entries": reading.end.entries,
        "entries_by_kind": counts["entries_by_kind"],
        "keys": counts["keys"],
        "at": reading.end.at,
    }


def _add(result: dict[str, Any], other: dict[str, Any]) -> None:
    """Add the counts of another lane."""
    for name in ("users", "erased", "entries", "keys"):
        result[name] += other[name]
    kinds = result["entries_by_kind"]
    for kind, count in other["entries_by_kind"].items():
        kinds[kind] = kinds.get(kind, 0) + count
    result["at"] = max((at for at in (result["at"], other["at"]) if at is not None), default=None)


def _iso(micros: int) -> str:
    return from_micros(micros).isoformat().replace("+00:00", "Z")


def _amount(units: int | None, digits: int) -> float | None:
    return None if units is None else float_up(from_units(units, digits))
