"""The administrative log: an append-only list of records, such as a new API key or a proposed policy change.

The current state is computed from all records, and no record is ever changed. A caller who adds a record gives the
number of the newest record that it has read. So no decision is made on an outdated state.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from .._files import canonical_json
from .._validation import check_instance, check_text, check_whole, shown
from ..errors import InvalidParameter, RecordConflict
from ..guarantees.fixed_point import LARGEST
from ..ledger.calendar import from_micros, utc_text
from .admin_records import KEY, body_of, fault_of, is_own, name_of_key
from .charge_request import LOCAL
from .policy_approval import check_key_maker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..ledger import Ledger, Reading, Transaction
    from ..ledger.models import AdminLogEntry
    from ..ledger.storage import Snapshot
    from .charge_request import Principal

MOST_NAME = 200
"""The largest number of characters in the name of a record."""
MOST_BODY = 100_000
"""The largest number of bytes in the body of a record, as canonical JSON."""

_KIND = re.compile(r"[a-z][a-z-]{0,39}")


@dataclass(frozen=True)
class Record:
    """One record of the administrative log.

    `number` counts from 1; `at` is the time at which the record was added, in UTC. `kind` and `name` give its
    subject, and `body` is a JSON object with the rest. `by` is the name of the API key that added the record. It is
    None for a record that was added on the ledger's host without a key.
    """

    number: int
    at: datetime
    kind: str
    name: str
    body: Mapping[str, Any]
    by: str | None = None
    fault: str | None = None
    """The reason why the record cannot be used as its kind; None if it can."""

    def __repr__(self) -> str:
        by = "" if self.by is None else f" by {self.by}"
        return f"<Record {self.number}: {self.kind} {self.name}, {self.at.isoformat()}{by}>"

    def to_json(self) -> dict[str, Any]:
        """A JSON object of all fields."""
        return {
            "number": self.number,
            "at": utc_text(self.at),
            "kind": self.kind,
            "name": self.name,
            "body": dict(self.body),
            "by": self.by,
            **({} if self.fault is None else {"fault": self.fault}),
        }


def records(ledger: Ledger, first: int) -> list[Record]:
    """Return the records of the administrative log from a number on, in order."""
    check_whole("first", first, 1, LARGEST)
    with ledger.reading() as reading:
        found = list(reading.rows.admin_log(first))
        names = _names(reading.rows, found)
        shown_records = [_shown(stored, names) for stored in found]
    if found:
        ledger.see_record(found[-1].number)
    return shown_records


def record(ledger: Ledger, caller: Principal, kind: str, name: str, body: dict[str, Any], *, expected: int) -> Record:
    """Add a permanent, journaled record, unless another caller has added one meanwhile."""
    check_record(kind, name, body, expected)
    return _add(ledger, caller, kind, name, body, expected)


def record_own(
    ledger: Ledger, caller: Principal, kind: str, name: str, body: dict[str, Any], *, expected: int, remote: bool
) -> Record:
    """Add a record of one of the library's own kinds; `remote` says that a client on another machine sent it."""
    check_own_record(kind, name, body, expected)
    # The maker of a key holds two keys, and could approve with the second what they proposed with the first.
    check = check_key_maker if kind == KEY and (remote or caller.number) else None
    return _add(ledger, caller, kind, name, body, expected, check)


def record_local(ledger: Ledger, kind: str, name: str, body: dict[str, Any]) -> Record:
    """Add a record of one of the library's own kinds, written on the ledger's host, after the newest one."""
    while True:
        with ledger.reading() as reading:
            newest = newest_number(reading)
        check_own_record(kind, name, body, newest)
        with suppress(RecordConflict):  # another caller has added one meanwhile
            return _add(ledger, LOCAL, kind, name, body, newest)


def record_faults(found: Iterable[Record]) -> tuple[str, ...]:
    """Name the records that cannot be used as their kind, each with the reason; such records are skipped."""
    return tuple(
        f"record {each.number} ({each.kind} {each.name!r}) is skipped: {each.fault}"
        for each in found
        if each.fault is not None
    )


def _add(
    ledger: Ledger,
    caller: Principal,
    kind: str,
    name: str,
    body: Mapping[str, Any],
    expected: int,
    check: Callable[[Reading], None] | None = None,
) -> Record:
    """Add a record of any kind after number `expected`. Raises `InvalidParameter`, `RecordConflict`."""
    text = _check(kind, name, body, expected)

    def work(transaction: Transaction) -> AdminLogEntry:
        newest = max((each.number for each in transaction.rows.admin_log(expected or 1)), default=0)
        if newest != expected:
            raise RecordConflict(expected, newest or newest_number(transaction))
        if check is not None:
            check(transaction)
        return transaction.add_record(expected + 1, kind, name, text)

    stored = ledger.run(work)
    ledger.see_record(stored.number)
    return _shown(stored, {caller.number: caller.name} if caller.number else {})


def check_record(kind: str, name: str, body: Mapping[str, Any], expected: int) -> None:
    """Check the fields of a record whose kind is not one of the library's own. Raises `InvalidParameter`."""
    _check(kind, name, body, expected)
    if is_own(kind):
        raise InvalidParameter("kind", "a kind of your own, because the library itself writes this one", shown(kind))


def check_own_record(kind: str, name: str, body: Mapping[str, Any], expected: int) -> None:
    """Check the fields of a record of one of the library's own kinds. Raises `InvalidParameter`."""
    _check(kind, name, body, expected)
    fault = fault_of(kind, name, body) if is_own(kind) else "the library does not write this kind"
    if fault is not None:
        raise InvalidParameter("body", f"a valid body of a record of the kind {kind}", f"{shown(body)}, but {fault}")


def _check(kind: str, name: str, body: Mapping[str, Any], expected: int) -> str:
    """Check the fields of a record and return its body as stored text. Raises `InvalidParameter`."""
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise InvalidParameter(
            "kind", "1 to 40 lower-case ASCII letters and hyphens, with a letter first", shown(kind)
        )
    if len(check_text("name", name)) > MOST_NAME:
        raise InvalidParameter("name", f"at most {MOST_NAME} characters long", f"{len(name)} characters")
    text = _text(body)
    check_whole("expected", expected, 0, LARGEST)
    return text


def newest_number(reading: Reading) -> int:
    """Return the number of the newest record; 0 if there is none."""
    return max((each.number for each in reading.rows.admin_log()), default=0)


def _text(body: Mapping[str, Any]) -> str:
    """Return a body as stored text. Raises `InvalidParameter`."""
    try:
        text = canonical_json(check_instance("body", body, dict, "a dict that JSON can represent"))
        text.encode("ascii")
        if json.loads(text) == body and len(text) <= MOST_BODY:
            return text
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidParameter):
            raise
        raise InvalidParameter("body", "a dict that JSON can represent", shown(body)) from None
    expected = f"a dict that JSON returns unchanged, of at most {MOST_BODY} bytes"
    raise InvalidParameter("body", expected, f"{len(text)} bytes: {shown(body)}")


def _names(rows: Snapshot, found: Iterable[AdminLogEntry]) -> dict[int, str]:
    """Return the names of the keys that added records, by key number; number 0 is the ledger's host."""
    made = {number: next(rows.admin_log(number), None) for number in {each.api_key for each in found} - {0}}
    return {number: name_of_key(number, key) for number, key in made.items()}


def _shown(stored: AdminLogEntry, names: Mapping[int, str]) -> Record:
    body = body_of(stored.body)
    fault = "its body is not an object of JSON" if body is None else fault_of(stored.kind, stored.name, body)
    at, by = from_micros(stored.at), names.get(stored.api_key)
    return Record(stored.number, at, stored.kind, stored.name, {} if body is None else body, by, fault)
