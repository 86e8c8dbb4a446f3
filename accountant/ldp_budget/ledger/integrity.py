"""Is the ledger what it was when it was written? Every link, sum, cost and seal, worked out again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..guarantees import from_json
from ..guarantees.amounts import ZERO, Costs
from ._sqlite.transaction import CHARGE_COLUMNS, POLICY_COLUMNS
from .journal import AMOUNTS, ENTRY_COLUMNS, NO_LINK, canonical_link, canonical_rows
from .replay import ERASED_ACCOUNTS, labelled_sums, plain_sums_of, plain_sums_query
from .windows import LIFETIME, PERIODS, from_micros, to_micros, window_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ._sqlite.transaction import Transaction

_MOST_PROBLEMS = 100


@dataclass(frozen=True)
class Verification:
    """`ok`, how many journal entries there are, the newest link (`head`), and what is wrong, in words."""

    ok: bool
    entries: int
    head: str
    problems: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """What `ledger verify --json` prints."""
        return {"ok": self.ok, "entries": self.entries, "head": self.head, "problems": list(self.problems)}


def verify(transaction: Transaction, expect: str | None = None) -> Verification:
    """Check the whole ledger. With `expect`, that link must be in the chain: nothing before it was rolled back."""
    chain = _Chain(transaction)
    checks: tuple[Callable[[], Iterator[str]], ...] = (
        lambda: _file(transaction),
        chain.check,
        lambda: _charges(transaction),
        lambda: _seals(transaction),
        lambda: _periods(transaction),
        lambda: _sums(transaction),
        lambda: _quotas(transaction),
        lambda: chain.holds(expect),
    )
    problems: list[str] = []
    for check in checks:
        try:
            problems += _first(check(), _MOST_PROBLEMS - len(problems))
        except Exception as error:  # whatever a changed value makes of the code that reads it
            problems.append(f"a stored value cannot be read: {error or type(error).__name__}")
    return Verification(not problems, chain.entries, chain.head.hex(), tuple(problems))


def _first(problems: Iterator[str], most: int) -> list[str]:
    found: list[str] = []
    for problem in problems:
        if len(found) >= most:
            break
        found.append(problem)
    return found


def _file(transaction: Transaction) -> Iterator[str]:
    for (line,) in transaction.execute("PRAGMA integrity_check(10)"):
        if line != "ok":
            yield f"the file is damaged: {line}"


class _Chain:
    """The keyed chain of links over the journal."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._charge = self._policy = 0
        self._links: set[str] = set()
        self.head = NO_LINK
        self.entries = 0

    def check(self) -> Iterator[str]:
        """Walk the chain from the first entry; every link must follow from the one before."""
        execute = self._transaction.execute
        rows: list[tuple[Any, ...]] = []
        for *row, link in execute(f"SELECT {ENTRY_COLUMNS}, link FROM journal ORDER BY entry"):
            rows.append(tuple(row))
            self.entries += 1
            if row[0] != self.entries:
                yield f"journal: entry {row[0]} stands where entry {self.entries} was written"
                self.entries = row[0]
            if link is not None:
                yield from self._link(rows, link)
                rows = []
        if rows:
            yield f"journal: entries {rows[0][0]} to {rows[-1][0]} have no link"
        for name, last in (("charge", self._charge), ("policy", self._policy)):
            table = "charges" if name == "charge" else "policies"
            for (number,) in execute(f"SELECT {name} FROM {table} WHERE {name} > ?", (last,)):
                yield f"{table}: {name} {number} stands in no transaction"

    def _link(self, rows: list[tuple[Any, ...]], link: bytes) -> Iterator[str]:
        charges = self._new("charges", CHARGE_COLUMNS, self._charge, max(row[4] for row in rows))
        policies = self._new("policies", POLICY_COLUMNS, self._policy, max(row[5] for row in rows))
        self._charge = max([self._charge, *(row[4] for row in rows)])
        self._policy = max([self._policy, *(row[5] for row in rows)])
        if self._transaction.key.link(canonical_link(self.head, canonical_rows(rows), charges, policies)) != link:
            yield (
                f"journal: the link of entries {rows[0][0]} to {rows[-1][0]} does not hold; "
                "an entry, a charge or a policy was changed"
            )
        self.head = link
        self._links.add(link.hex())

    def _new(self, table: str, columns: str, after: int, until: int) -> list[tuple[Any, ...]]:
        """The rows of a table that a transaction appended: those numbered above all before it."""
        number = columns.split(",")[0]
        sql = f"SELECT {columns} FROM {table} WHERE {number} > ? AND {number} <= ? ORDER BY {number}"
        return self._transaction.execute(sql, (after, until)).fetchall()

    def holds(self, expect: str | None) -> Iterator[str]:
        if expect is not None and expect.lower() not in self._links:
            yield f"the link {expect} is not in the chain: the ledger was rolled back, or it is another one"


def _charges(transaction: Transaction) -> Iterator[str]:
    """A stored cost must not be below what its guarantee certainly costs."""
    for number, text, *stored in transaction.execute(
        "SELECT charge, guarantee, epsilon, delta, rho, mu_squared FROM charges"
    ):
        # Each cost is a ceiling of a bound good to twelve digits, so a true one is at most this much below.
        for name, amount, cost in zip(Costs._fields, stored, from_json(json.loads(text)).costs(), strict=True):
            least = None if cost is None else cost - 1 - cost // 10**12
            if amount is not None and (least is None or amount < least):
                yield f"charges: charge {number} has {name} {amount}, below the {cost} its guarantee costs"


def _seals(transaction: Transaction) -> Iterator[str]:
    """Users, tombstones, stored answers and collections bear a keyed hash of their row."""
    seal, execute = transaction.key.seal, transaction.execute
    for account, user, sealed in execute("SELECT account, hash, seal FROM users"):
        if (user is None) != (sealed is None) or (user is not None and seal(account, user) != sealed):
            yield f"users: the row of account {account} was changed"
    for user, at, sealed in execute("SELECT hash, at, seal FROM tombstones"):
        if seal(user, at) != sealed:
            yield f"tombstones: the row {user.hex()} was changed"
    for *row, sealed in execute("SELECT key, user, request, answer, seal FROM keys"):
        if seal(*row) != sealed:
            yield f"keys: the row {row[0].hex()} was changed"
    for *row, sealed in execute("SELECT name, fingerprint, definition, seal FROM collections"):
        if seal(*row) != sealed:
            yield f"collections: {row[0]} was changed"
    erased, cut_off = execute("SELECT count(*), total(reports) FROM journal WHERE kind = 'erased'").fetchone()
    for table, sql, count in (
        ("tombstones", "SELECT count(*) FROM tombstones", erased),
        ("users", f"SELECT count(*) FROM ({ERASED_ACCOUNTS})", cut_off),
    ):
        found = execute(sql).fetchone()[0]
        if found != count:
            yield f"{table}: there are {found} of erased users, and {count:g} were erased"
    for (account,) in execute("SELECT DISTINCT account FROM accounts EXCEPT SELECT account FROM users"):
        yield f"users: account {account} has no row"


def _periods(transaction: Transaction) -> Iterator[str]:
    """Windows are kept of every period since the first policy that limits it."""
    kept = transaction.kept_since()
    first = {LIFETIME: 0}
    for at, definition in transaction.execute("SELECT created_at, definition FROM policies ORDER BY policy"):
        for limit in json.loads(definition)["limits"]:
            first.setdefault(limit["period"], at)
    for period, at in first.items():
        since = 0 if period == LIFETIME else to_micros(window_at(period, from_micros(at)).starts)
        if kept.get(period) != since:
            yield f"periods: {period} is kept since {kept.get(period)}, and was limited since {since}"
    for period in kept.keys() - first.keys():
        yield f"periods: {period} is kept, and no policy limits it"


def _sums(transaction: Transaction) -> Iterator[str]:
    """Every account's sums, in every window, must be those of the journal."""
    kept = transaction.kept_since()
    for table in ("accounts", "labels"):
        for (window,) in transaction.execute(f"SELECT DISTINCT window FROM {table}"):
            if PERIODS[window % len(PERIODS)] not in kept:
                yield f"{table}: window {window} is of a period that no policy limits"
    for period, since in kept.items():
        yield from _period_sums(transaction, period, since)


def _period_sums(transaction: Transaction, period: str, since: int) -> Iterator[str]:
    labelled = labelled_sums(transaction, period, since)
    suspects = _differing(transaction, period, since)
    if period != LIFETIME:
        suspects |= set(labelled.costs)
    account, plain = 0, dict[int, Costs]()
    for suspect, window in sorted(suspects):
        if suspect != account:
            account, plain = suspect, plain_sums_of(transaction, suspect, period, since)
        expected = plain.get(window, ZERO)
        if period != LIFETIME:
            expected = expected.plus(labelled.costs.get((account, window), ZERO))
        if transaction.spent(account, window) != expected:
            yield f"accounts: account {account}, window {window}, differs from the journal"
    yield from _label_counts(transaction, period, labelled.reports)


def _differing(transaction: Transaction, period: str, since: int) -> set[tuple[int, int]]:
    """(account, window) wherever the stored sums are not those that SQL makes of the journal."""
    sql, values = plain_sums_query(period, since)
    stored = f"SELECT account, window, {AMOUNTS} FROM accounts WHERE {_of_period(period)}"
    differing = transaction.execute(
        f"WITH stored AS ({stored}), replayed AS ({sql}) SELECT DISTINCT account, window FROM"
        " (SELECT * FROM (SELECT * FROM stored EXCEPT SELECT * FROM replayed)"
        " UNION SELECT * FROM (SELECT * FROM replayed EXCEPT SELECT * FROM stored))",
        values,
    )
    return set(differing)


def _of_period(period: str) -> str:
    # The remainder, for numbers below zero as well.
    return f"window & {len(PERIODS) - 1} = {PERIODS.index(period)}"


def _label_counts(transaction: Transaction, period: str, expected: dict[Any, int]) -> Iterator[str]:
    sql = f"SELECT account, label, charge, window, reports FROM labels WHERE {_of_period(period)}"
    stored = {tuple(key): count for *key, count in transaction.execute(sql)}
    for key in sorted(stored.keys() | expected.keys()):
        if stored.get(key) != expected.get(key):
            yield f"labels: a label of account {key[0]}, window {key[3]}, differs from the journal"


def _quotas(transaction: Transaction) -> Iterator[str]:
    """What was used of a plan's quotas must be what the journal says."""
    plans: dict[int, str] = {}
    for number, definition in transaction.execute("SELECT policy, definition FROM policies"):
        plan = json.loads(definition)["plan"]
        if plan is not None:
            plans[number] = plan["identity"]
    used: dict[tuple[int, str, str], int] = {}
    if plans:
        sql = (
            "SELECT j.account, j.policy, c.guarantee, sum(CASE kind WHEN 'voided' THEN -reports ELSE reports END)"
            " FROM journal j JOIN charges c USING (charge) WHERE kind IN ('spent', 'reserved', 'voided')"
            " GROUP BY j.account, j.policy, c.guarantee"
        )
        for account, policy, promise, reports in transaction.execute(sql):
            if policy in plans:
                key = (account, plans[policy], promise)
                used[key] = used.get(key, 0) + reports
    stored = {
        tuple(row[:3]): row[3] for row in transaction.execute("SELECT account, plan, promise, used FROM quotas")
    }
    for key in sorted(stored.keys() | used.keys()):
        if stored.get(key, 0) != used.get(key, 0):
            yield f"quotas: account {key[0]} differs from the journal"
