"""Last verification of a ledger: its time and its head, from the administrative log or a note on this machine.

A service records its verifications in the administrative log. The note is a small file next to the key file. Nothing
secret is in either, and a reader who finds none verifies the ledger. The MAC of the note is made with the secret in use,
in whose salt the ledger's id is. So a file that was edited, or that belongs to another ledger, or that was written before
the key was rotated, is not believed. A verification of an earlier time is a true statement about that time: a reader
looks at its age, and checks that its head is in the chain. That also confirms a record.
"""

from __future__ import annotations

import json
from contextlib import suppress
from hmac import compare_digest
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .._files import canonical_json, replacing
from ..ledger.calendar import to_micros
from ..ledger.key_file import key_path
from .admin_log import records
from .admin_records import VERIFIED

if TYPE_CHECKING:
    from ..ledger import Ledger
    from ..ledger.verification import Integrity

_MOST_BYTES = 4_096


class LastVerification(NamedTuple):
    """A verification that found no open problem: when it began (microseconds), the entries, and the head."""

    at: int
    entries: int
    head: str


def note(ledger: Ledger, found: Integrity, at: int) -> None:
    """Note a verification that began at a time. One that failed removes the note of an earlier one.

    A file that cannot be written is no error: the next reader verifies.
    """
    path = _path(ledger)
    if path is None:
        return
    with suppress(OSError):
        if not found.ok:
            path.unlink(missing_ok=True)
            return
        last = LastVerification(at, found.entries, found.head)
        with replacing(path) as file:
            file.write(canonical_json({**last._asdict(), "mac": _mac(ledger, last).hex()}).encode("ascii") + b"\n")


def last_verification(ledger: Ledger, since: int) -> LastVerification | None:
    """Return the last verification between `since` and now; None if there is none to believe, or if it found problems."""
    last, now = _noted(ledger), ledger.now().micros
    recorded = next((each for each in reversed(records(ledger, 1)) if each.kind == VERIFIED and not each.fault), None)
    if recorded is not None and (last is None or to_micros(recorded.at) > last.at):
        if not recorded.body["ok"]:
            return None
        last = LastVerification(to_micros(recorded.at), recorded.body["entries"], recorded.body["head"])
    return last if last is not None and since <= last.at <= now else None


def _noted(ledger: Ledger) -> LastVerification | None:
    """Return what the note on this machine says; None if there is none to believe."""
    path = _path(ledger)
    try:
        if path is None or path.stat().st_size > _MOST_BYTES:
            return None
        stored = json.loads(path.read_text("ascii"))
        last = LastVerification(*[stored[name] for name in LastVerification._fields])
        mac = bytes.fromhex(stored["mac"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return last if compare_digest(mac, _mac(ledger, last)) else None


def _mac(ledger: Ledger, last: LastVerification) -> bytes:
    secret = ledger.key.in_use
    return secret.row_mac("verification", secret.ledger_id, *last)


def forget_verification(ledger: str) -> None:
    """Remove what was noted about a ledger in a file, which is replaced by other content."""
    with suppress(OSError):
        _next_to(str(key_path(Path(ledger)))).unlink(missing_ok=True)


def _path(ledger: Ledger) -> Path | None:
    return _next_to(ledger.key_file) if ledger.key_file else None


def _next_to(key_file: str) -> Path:
    return Path(f"{key_file.removesuffix('.key')}.verified")
