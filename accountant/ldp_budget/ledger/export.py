"""Read-only export of a ledger: journal rows, one user's history, open reservations and statistics."""

from __future__ import annotations

import heapq
import json
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ..guarantees.fixed_point import DELTA_DIGITS, EPSILON_DIGITS, ZERO, float_of_units
from .calendar import from_micros, micros_text, order_of, utc_text
from .hash_chain import Name
from .key_rotation import secret_for
from .models import (
    CHARGES,
    CLOCK,
    COPIED,
    EXPIRED,
    MOVED,
    PERIOD,
    POLICY_SET,
    RECORDED,
    REKEYED,
    REOPENED,
    RESERVED,
    VOIDED,
    BatchRunRecord,
    Entry,
)
from .snapshot import parts
from .verification import head_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..guarantees.fixed_point import Costs
    from .ledger import Ledger
    from .models import EntryNote, PricedMechanism
    from .snapshot import Reading

_ENTRIES_TOGETHER = 5_000
_IN_ALL = (POLICY_SET, CLOCK, PERIOD, MOVED, REOPENED, COPIED, REKEYED)


Names = dict[tuple[int, int], str]
"""User names by partition and account."""


def name_callers(ledger: Ledger, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with the name of each row's API key in place of its number.

    API keys are stored in the first partition, so no reading may be open during the call.
    """
    wanted = {row["by"] for row in rows} - {None}
    if wanted:
        with ledger.reading() as reading:
            names = {number: _name_of(reading, number) for number in wanted}
        for row in rows:
            row["by"] = names.get(row["by"])
    return rows


def _name_of(reading: Reading, number: int) -> str:
    """Return the name of an API key by the number of the administrative record that created it."""
    record = next(reading.rows.admin_log(number), None)
    return f"record {number}" if record is None or record.number != number else record.name


def journal_rows(ledger: Ledger, names: Names | None = None) -> Iterator[dict[str, Any]]:
    """Return the journal in order, up to its end when it was first read.

    The entries of several partitions are merged by time, and each row names its `partition`. With `names`, each row
    has the `user` of its account, if `names` contains it. The journal is read in parts, without a snapshot held while
    others write: appended entries never change.
    """
    if len(ledger.partitions) == 1:
        return _partition_rows(ledger, 0, names)
    return heapq.merge(
        *(_told_once(ledger, partition, names) for partition in ledger.partitions), key=itemgetter("at")
    )


def _told_once(ledger: Ledger, partition: int, names: Names | None) -> Iterator[dict[str, Any]]:
    """Return the rows of one of several partitions.

    Entries written to all partitions come from the first one only.
    """
    return (row for row in _partition_rows(ledger, partition, names) if partition == 0 or row["kind"] not in _IN_ALL)


def _partition_rows(ledger: Ledger, partition: int, names: Names | None) -> Iterator[dict[str, Any]]:
    with ledger.reading(partition) as reading:
        last, shown = reading.end.entries, _Shown(reading, names)
    for first, until in parts(last, _ENTRIES_TOGETHER):
        with ledger.reading(partition) as reading:
            notes = notes_by_entry(reading.rows.notes(first, until))
            rows = [shown.row_of_journal(Entry.of(row), notes) for row, _ in reading.rows.entries(first, until)]
            if not rows:  # else one changed number would be searched for without end
                raise LookupError(f"the entries {first} to {until} are missing")
        yield from name_callers(ledger, rows)


class _Shown:
    """Journal entries as rows for output, each with its mechanism and policy."""

    def __init__(self, reading: Reading, names: Names | None = None) -> None:
        self._number, self._names = reading.partition, names
        self._partition = {"partition": reading.partition} if reading.partitions > 1 else {}
        self._charges = {charge.number: charge for charge in reading.rows.priced_mechanisms()}
        self._policies = {policy.number: policy.name for policy in reading.rows.policies()}
        self._records = {record.number: record for record in reading.rows.admin_log()}

    def row(self, entry: Entry, notes: Mapping[int, str]) -> dict[str, Any]:
        charge = self._charges.get(entry.priced_mechanism)
        return {
            **self._partition,
            "entry": entry.number,
            "at": micros_text(entry.at),
            "kind": entry.kind,
            "account": entry.account or None,
            **({} if self._names is None else {"user": self._names.get((self._number, entry.account))}),
            "mechanism": None if charge is None else charge.mechanism,
            "declared": None if charge is None else json.loads(charge.declared),
            "fingerprint": None if charge is None else charge.fingerprint,
            "collection": None if charge is None else charge.collection_name or None,
            "tags": [] if charge is None else [*charge.named_tags],
            "policy": self._policies.get(entry.policy),
            "reports": entry.reports,
            "epsilon": float_of_units(entry.costs.epsilon, EPSILON_DIGITS),
            "delta": float_of_units(entry.costs.delta, DELTA_DIGITS),
            "labelled": entry.labelled,
            "expires": None if entry.expires is None else micros_text(entry.expires),
            "resolves": entry.resolves,
            "note": notes.get(entry.number),
            "by": entry.api_key or None,
        }

    def row_of_journal(self, entry: Entry, notes: Mapping[int, str]) -> dict[str, Any]:
        """Return the row of any entry, with the administrative record if the entry belongs to one."""
        row, record = self.row(entry, notes), self._records.get(entry.reports) if entry.kind == RECORDED else None
        if record is None:
            return {**row, "record": None}
        said = {"number": record.number, "kind": record.kind, "name": record.name, "body": _body(record.body)}
        return {**row, "reports": 0, "record": said}


def _body(text: str) -> Any:
    """Return the body of a record; one that is not JSON, which `verify` reports, as plain text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def notes_by_entry(notes: Iterable[EntryNote]) -> dict[int, str]:
    """Return notes by the number of their entry."""
    return {each.entry: each.note for each in notes}


def history_rows(reading: Reading, account: int, first: int = 1, most: int | None = None) -> list[dict[str, Any]]:
    """Return an account's journal rows from an entry on, each reservation with its current `state`.

    A reservation that was not resolved in time is expired, and no longer reserved.
    """
    entries = [entry for entry, _ in reading.history(account, first, most)]
    if not entries:
        return []
    shown, last = _Shown(reading), entries[-1].number
    notes = notes_by_entry(reading.rows.notes(entries[0].number, last, account))
    ends = {entry.resolves: entry.kind for entry in entries}
    rows = []
    for entry in entries:
        state = None
        if entry.kind == RESERVED:
            state = ends.get(entry.number) or _state(reading, entry)
        rows.append({**shown.row(entry, notes), "state": state})
    return rows


def entry_row(reading: Reading, entry: Entry) -> dict[str, Any]:
    """Return the row of one entry; of a reservation with its current `state`."""
    state = _state(reading, entry) if entry.kind == RESERVED else None
    notes = notes_by_entry(reading.rows.notes(entry.number, entry.number)) if entry.has_note else {}
    return {**_Shown(reading).row(entry, notes), "state": state}


def _state(reading: Reading, entry: Entry) -> str:
    """Return the current state of a reservation."""
    end = reading.rows.resolution(entry.number)
    return Entry.of(end).kind if end is not None else EXPIRED if reading.is_over(entry) else RESERVED


def open_reservations(ledger: Ledger, user: bytes | None = None, most: int | None = None) -> list[dict[str, Any]]:
    """Return the open reservations of one user or of all, newest first, at most `most`.

    Each row has the `name` and the `secret` of the reservation.
    """
    rows: list[dict[str, Any]] = []
    for partition in ledger.partitions if user is None else (ledger.partition_of(user),):
        with ledger.reading(partition) as reading:
            account = None if user is None else reading.number_of(user)
            if user is None or account is not None:
                rows += _open_in(reading, account, most)
    return name_callers(ledger, sorted(rows, key=itemgetter("at", "entry"), reverse=True)[:most])


def _open_in(reading: Reading, account: int | None, most: int | None) -> list[dict[str, Any]]:
    """Return the open reservations of a partition, or of one account in it."""
    # A clock repair has ended all reservations before it.
    repaired = max((repair.entry for repair in reading.repairs()), default=0)
    entries = [Entry.of(row) for row in reading.rows.reserved(reading.moment.micros, account) if row[0] > repaired]
    shown, rows = _Shown(reading), []
    for entry in entries[-most:] if most else entries:
        notes = notes_by_entry(reading.rows.notes(entry.number, entry.number)) if entry.has_note else {}
        name = Name(reading.generation, reading.partition, entry.number)
        rows.append({**shown.row(entry, notes), "name": name, "secret": secret_for(reading, name)})
    return rows


def charges_of(reading: Reading, account: int) -> list[tuple[PricedMechanism, int, int | None]]:
    """Return every mechanism that an account was charged for, how often, and the ε charged for it, in units.

    A memoised value counts once for each label. The ε is None if it is unbounded.
    """
    reports: dict[tuple[int, bool], int] = {}
    charged: dict[tuple[int, bool], Costs] = {}
    labels: dict[tuple[int, bool], set[bytes]] = {}
    for entry, label in reading.history(account):
        if entry.kind in CHARGES:
            kind = entry.priced_mechanism, entry.labelled
            count = -entry.reports if entry.kind == VOIDED else entry.reports
            reports[kind] = reports.get(kind, 0) + count
            charged[kind] = charged.get(kind, ZERO).plus(entry.costs)
            labels.setdefault(kind, set()).update(() if label is None else (label,))
    return [
        (reading.priced_mechanism(kind[0]), len(labels[kind]) or count, charged[kind].epsilon)
        for kind, count in reports.items()
        if count > 0
    ]


def stats(ledger: Ledger) -> dict[str, Any]:
    """Return counts of the ledger's content, its head, and the name and version of its storage engine."""
    with ledger.reading() as reading:
        counted, end, engine = _partition_stats(reading), reading.end, reading.rows.counts()["engine"]
        policies, periods = reading.newest_policies(), sorted(reading.periods(), key=order_of)
    charges = end.priced_mechanisms
    for partition in ledger.partitions[1:]:
        with ledger.reading(partition) as reading:
            charges = max(charges, reading.end.priced_mechanisms)
            _add(counted, _partition_stats(reading))
    keys, at = counted.pop("keys"), counted.pop("at")
    return {
        **counted,
        "charges": charges,
        "policies": len(policies),
        "collections": end.collections,
        "keys": keys,
        "periods": periods,
        "last_entry_at": None if at is None else utc_text(at),
        "head": head_of(ledger),
        **({"partitions": len(ledger.partitions)} if len(ledger.partitions) > 1 else {}),
        **engine,
    }


def _partition_stats(reading: Reading) -> dict[str, Any]:
    counts = reading.rows.counts()
    return {
        "users": counts["users"],
        "erased": counts["erased"],
        "entries": reading.end.entries,
        "entries_by_kind": counts["entries_by_kind"],
        "keys": counts["keys"] - _parts_of_runs(reading),
        "at": None if reading.end.at is None else from_micros(reading.end.at),
    }


def _parts_of_runs(reading: Reading) -> int:
    """Return the number of records that belong to a key of another record: a run counts once."""
    return sum(run.is_part for run in reading.rows.all_numbered(BatchRunRecord, 1, reading.end.numbered_rows))


def _add(result: dict[str, Any], other: dict[str, Any]) -> None:
    """Add the counts of another partition to `result`."""
    for name in ("users", "erased", "entries", "keys"):
        result[name] += other[name]
    kinds = result["entries_by_kind"]
    for kind, count in other["entries_by_kind"].items():
        kinds[kind] = kinds.get(kind, 0) + count
    result["at"] = max((at for at in (result["at"], other["at"]) if at is not None), default=None)
