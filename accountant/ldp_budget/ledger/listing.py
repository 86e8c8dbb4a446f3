"""Reading a ledger without charging anything: its journal as rows, one user's history, and figures about it."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..accounting.receipts import EXPIRED, RESERVED
from ..guarantees import Guarantee, from_json
from ..guarantees.amounts import DELTA_DIGITS, EPSILON_DIGITS, float_up, from_units
from .journal import ENTRY_COLUMNS, Entry
from .windows import from_micros

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._sqlite.transaction import Transaction


def journal_rows(transaction: Transaction, account: int | None = None) -> Iterator[dict[str, Any]]:
    """The journal in order, or one account's part of it, each entry with what it was charged for."""
    charges = {
        row[0]: row for row in transaction.execute("SELECT charge, mechanism, declared, fingerprint FROM charges")
    }
    policies = dict(transaction.execute("SELECT policy, name FROM policies").fetchall())
    where, values = ("", ()) if account is None else ("WHERE account = ?", (account,))
    for row in transaction.execute(f"SELECT {ENTRY_COLUMNS} FROM journal {where} ORDER BY entry", values):
        entry = Entry.of(row)
        _, mechanism, declared, fingerprint = charges.get(entry.charge, (0, None, "null", None))
        yield {
            "entry": entry.number,
            "at": _iso(entry.at),
            "kind": entry.kind,
            "account": entry.account or None,
            "mechanism": mechanism,
            "declared": json.loads(declared),
            "fingerprint": fingerprint,
            "policy": policies.get(entry.policy),
            "reports": entry.reports,
            "epsilon": _amount(entry.costs.epsilon, EPSILON_DIGITS),
            "delta": _amount(entry.costs.delta, DELTA_DIGITS),
            "labelled": entry.labelled,
            "expires": None if entry.expires is None else _iso(entry.expires),
            "resolves": entry.resolves,
        }


def history_rows(transaction: Transaction, account: int, now: datetime) -> list[dict[str, Any]]:
    """One account's part of the journal, each reservation with the `state` it is in now.

    One that nobody resolved in time is expired, and no longer reserved.
    """
    rows = list(journal_rows(transaction, account))
    ends = {row["resolves"]: row["kind"] for row in rows}
    for row in rows:
        row["state"] = None
        if row["kind"] == RESERVED:
            over = datetime.fromisoformat(row["expires"]) <= now
            row["state"] = ends.get(row["entry"], EXPIRED if over else RESERVED)
    return rows


def charges_of(transaction: Transaction, account: int) -> tuple[tuple[Guarantee, int], ...]:
    """Every guarantee an account was charged for, and how often; of a memoised value that is once for each label."""
    sql = (
        "SELECT c.guarantee, sum(CASE kind WHEN 'voided' THEN -reports ELSE reports END), count(DISTINCT l.label)"
        " FROM journal j JOIN charges c USING (charge) LEFT JOIN entry_labels l ON l.entry = j.entry"
        " WHERE j.account = ? AND kind IN ('spent', 'reserved', 'voided') GROUP BY j.charge, j.labelled"
    )
    rows = transaction.execute(sql, (account,)).fetchall()
    return tuple((from_json(json.loads(text)), labels or reports) for text, reports, labels in rows if reports > 0)


def stats(transaction: Transaction) -> dict[str, Any]:
    """Counts of what the ledger holds, and its newest link."""
    execute = transaction.execute

    def count(table: str) -> int:
        number: int = execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return number

    kinds = dict(execute("SELECT kind, count(*) FROM journal GROUP BY kind ORDER BY kind").fetchall())
    last = transaction.last_entry_at()
    return {
        "users": execute("SELECT count(*) FROM users WHERE hash IS NOT NULL").fetchone()[0],
        "erased": count("tombstones"),
        "entries": count("journal"),
        "entries_by_kind": kinds,
        "charges": count("charges"),
        "policies": len(transaction.policies()),
        "collections": count("collections"),
        "keys": count("keys"),
        "periods": transaction.periods(),
        "last_entry_at": None if last is None else _iso(last),
        "head": transaction.last_link().hex(),
    }


def _iso(micros: int) -> str:
    return from_micros(micros).isoformat().replace("+00:00", "Z")


def _amount(units: int | None, digits: int) -> float | None:
    return None if units is None else float_up(from_units(units, digits))
