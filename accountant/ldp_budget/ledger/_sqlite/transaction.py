"""The statements of one transaction on a SQLite ledger: plain SQL, each indexed, none that grows with the past."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ...guarantees.amounts import ZERO, Costs
from ..journal import AMOUNTS, ENTRY_COLUMNS, Entry, JournalEnd
from ..windows import PERIODS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from ..keys import Key
    from ..windows import Moment, Window
    from .known import Known

# A user's account, and what was charged to it in each period's window.
Standing = tuple[int | None, dict[str, Costs]]

CHARGE_COLUMNS = f"charge, fingerprint, mechanism, declared, guarantee, {AMOUNTS}"
POLICY_COLUMNS = "policy, name, version, created_at, definition"
_SPENT = f"SELECT {AMOUNTS} FROM accounts WHERE account = ? AND window = ?"
_ANSWER = "SELECT key, request, answer FROM keys WHERE key IN"
_SET_SPENT = "INSERT OR REPLACE INTO accounts VALUES (?, ?, ?, ?, ?, ?)"


class StoredAnswer(NamedTuple):
    """What a key was used for, and what was answered."""

    request: bytes
    answer: str


class Transaction:
    """The statements of one transaction. What it reads cannot change before it ends.

    Sums, answers and journal entries are kept back and written together, at the latest when it ends: one statement
    for all that a group of threads did. Whoever runs SQL by `execute` sees them written.
    """

    def __init__(self, connection: sqlite3.Connection, key: Key, known: Known) -> None:
        self._execute = connection.execute
        self._execute_many = connection.executemany
        self._connection = connection
        self.key = key
        self.moment: Moment | None = None
        self._windows: dict[str, Window] | None = None
        self._known = known
        self._journal = JournalEnd(connection, key, known)
        self._kept_back = 0
        self._sums: dict[tuple[int, int], Costs] = {}
        self._answers: dict[bytes, tuple[Any, ...]] = {}
        # What was read ahead, by user and by key; good until something is written, and for one question each.
        self._standings: dict[bytes, Standing] = {}
        self._stored_answers: dict[bytes, StoredAnswer | None] = {}
        # What this transaction appends beside entries, for its link.
        self._charges: list[tuple[Any, ...]] = []
        self._policies: list[tuple[Any, ...]] = []

    @property
    def writes(self) -> int:
        """A number that grows with everything written or kept back; tells whether a step wrote anything."""
        return self._connection.total_changes + self._kept_back

    def execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run a statement that sees everything the transaction did."""
        self._write_back()
        return self._execute(sql, values)

    def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row."""
        self._write_back()
        self._execute_many(sql, rows)

    def finish(self) -> None:
        """Write what was kept back, and the link over it."""
        self._write_sums_and_answers()
        self._journal.close(self._charges, self._policies)

    def _write_back(self) -> None:
        self._standings, self._stored_answers = {}, {}
        if self._kept_back:
            writes = self.writes
            self._write_sums_and_answers()
            self._journal.write()
            self._kept_back -= self.writes - writes  # what was kept back was counted before

    def _write_sums_and_answers(self) -> None:
        if self._sums:
            rows = [(account, window, *costs) for (account, window), costs in self._sums.items()]
            self._execute_many(_SET_SPENT, rows)
            self._sums = {}
        if self._answers:
            self._execute_many("INSERT INTO keys VALUES (?, ?, ?, ?, ?)", self._answers.values())
            self._answers = {}

    def read_ahead(self, users: list[bytes], keys: list[bytes], windows: dict[str, Window]) -> None:
        """Read at once what `standing` and `answer_to` are about to be asked for."""
        self._standings = self._read_standings(users, windows)
        self._stored_answers = dict.fromkeys(keys)
        for key, *stored in self._execute(_in_query(_ANSWER, len(keys)), keys) if keys else ():
            self._stored_answers[key] = StoredAnswer._make(stored)

    # -- time and keys ----------------------------------------------------------------------------------

    def last_entry_at(self) -> int | None:
        """When the newest journal entry was written, in microseconds."""
        return self._journal.newest()[1]

    def answer_to(self, key: bytes) -> StoredAnswer | None:
        """What was asked and answered under an idempotency key."""
        row = self._answers.get(key)
        if row is not None:
            return StoredAnswer(row[2], row[3])
        if key in self._stored_answers:
            return self._stored_answers.pop(key)
        row = self._execute(_in_query(_ANSWER, 1), (key,)).fetchone()
        return None if row is None else StoredAnswer._make(row[1:])

    def store_answer(self, key: bytes, user: bytes | None, request: bytes, answer: str) -> None:
        """Bind an answer to its key, for as long as the account lives; without a user, for ever."""
        row = (key, user, request, answer)
        self._answers[key] = (*row, self.key.seal(*row))
        self._kept_back += 1

    # -- accounts ---------------------------------------------------------------------------------------

    def standing(self, user: bytes, windows: dict[str, Window]) -> Standing:
        """A user's account, None before the first charge, and what was charged to it in each period's window."""
        known = self._standings.pop(user, None)
        account, spent = known or self._read_standings([user], windows)[user]
        if self._sums and account is not None:
            for period, window in windows.items():
                spent[period] = self._sums.get((account, window.code), spent[period])
        return account, spent

    def _read_standings(self, users: list[bytes], windows: dict[str, Window]) -> dict[bytes, Standing]:
        codes = [window.code for window in windows.values()]
        standings: dict[bytes, Standing] = {user: (None, dict.fromkeys(windows, ZERO)) for user in users}
        for row in self._execute(_in_query(_standing(len(codes)), len(users)), (*codes, *users)):
            user, account, window = row[:3]
            spent = standings[user][1]
            standings[user] = account, spent
            if window is not None:
                spent[PERIODS[window % len(PERIODS)]] = Costs._make(row[3:])
        return standings

    def account(self, user: bytes) -> int | None:
        """The number of a user's account; None before the first charge."""
        row = self._execute("SELECT account FROM users WHERE hash = ?", (user,)).fetchone()
        return None if row is None else row[0]

    def is_erased(self, user: bytes) -> bool:
        """Whether a user was erased."""
        return self._execute("SELECT 1 FROM tombstones WHERE hash = ?", (user,)).fetchone() is not None

    def open_account(self, user: bytes) -> int:
        """Give a new user an account."""
        number = self.last_account() + 1
        self._execute("INSERT INTO users VALUES (?, ?, ?)", (number, user, self.key.seal(number, user)))
        return number

    def last_account(self) -> int:
        """The number of the newest account."""
        number: int = self._execute("SELECT coalesce(max(account), 0) FROM users").fetchone()[0]
        return number

    def spent(self, account: int | None, window: int) -> Costs:
        """What was charged to an account in a window."""
        if account is None:
            return ZERO
        kept_back = self._sums.get((account, window))
        if kept_back is not None:
            return kept_back
        row = self._execute(_SPENT, (account, window)).fetchone()
        return ZERO if row is None else Costs._make(row)

    def set_spent(self, account: int, window: int, costs: Costs) -> None:
        """Replace what was charged to an account in a window."""
        self._sums[account, window] = costs
        self._kept_back += 1

    def label_reports(self, account: int | None, label: bytes, charge: int | None, window: int) -> int:
        """How many reports of a memoised value were charged in a window."""
        row = self._execute(
            "SELECT reports FROM labels WHERE account = ? AND label = ? AND charge = ? AND window = ?",
            (account, label, charge, window),
        ).fetchone()
        return 0 if row is None else row[0]

    def set_label_reports(self, account: int, label: bytes, charge: int, window: int, reports: int) -> None:
        """Replace how many reports of a memoised value were charged in a window."""
        row = (account, label, charge, window, reports)
        self._execute("INSERT OR REPLACE INTO labels VALUES (?, ?, ?, ?, ?)", row)

    def quota_used(self, account: int | None, plan: str, promise: str) -> int:
        """How much of a plan's quota was used."""
        row = self._execute(
            "SELECT used FROM quotas WHERE account = ? AND plan = ? AND promise = ?", (account, plan, promise)
        ).fetchone()
        return 0 if row is None else row[0]

    def set_quota_used(self, account: int, plan: str, promise: str, used: int) -> None:
        """Replace how much of a plan's quota was used."""
        self._execute("INSERT OR REPLACE INTO quotas VALUES (?, ?, ?, ?)", (account, plan, promise, used))

    def erase(self, user: bytes, account: int | None, at: int) -> None:
        """Cut a user from the account, leave a tombstone, and delete keys, labels and all sums but the lifetime's.

        The journal does not say which account it was: a tombstone of the same time would lead there.
        """
        self.execute("INSERT INTO tombstones VALUES (?, ?, ?)", (user, at, self.key.seal(user, at)))
        self.execute("DELETE FROM keys WHERE user = ?", (user,))
        if account is not None:
            mine = "entry IN (SELECT entry FROM journal WHERE account = ?)"
            self.execute(f"DELETE FROM entry_labels WHERE {mine}", (account,))
            self.execute("DELETE FROM labels WHERE account = ?", (account,))
            self.execute("DELETE FROM accounts WHERE account = ? AND window <> 0", (account,))
            self.execute("UPDATE users SET hash = NULL, seal = NULL WHERE account = ?", (account,))
        self.append(Entry(0, at, "erased", 0, 0, 0, 0 if account is None else 1, Costs(0, 0, 0, 0)))

    def is_cut_off(self, account: int) -> bool:
        """Whether an account is that of an erased user."""
        row = self.execute("SELECT 1 FROM users WHERE account = ? AND hash IS NULL", (account,)).fetchone()
        return row is not None

    # -- windows ----------------------------------------------------------------------------------------

    def periods(self) -> list[str]:
        """The periods for which windows are kept."""
        return list(self.kept_since())

    def windows(self, moment: Moment) -> dict[str, Window]:
        """The windows that are kept and contain the moment of this transaction."""
        if self._windows is None:
            self._windows = {period: moment.window(period) for period in self.kept_since()}
        return self._windows

    def kept_since(self) -> dict[str, int]:
        """The periods for which windows are kept, and when the first of them starts."""
        if self._known.periods is None:
            self._known.periods = dict(self.execute("SELECT period, since FROM periods").fetchall())
        return self._known.periods

    def keep_period(self, period: str, since: int) -> None:
        """Keep windows of `period` from the one on that starts at `since`."""
        self.execute("INSERT INTO periods VALUES (?, ?)", (period, since))
        self._known.periods = self._windows = None

    # -- charges and the journal ------------------------------------------------------------------------

    def charge(self, fingerprint: str, mechanism: str, declared: str, guarantee: str, costs: Costs) -> int:
        """The number of a stored charge, stored first if it is new."""
        known = self.known_charge(fingerprint, guarantee)
        if known is not None:
            return known
        row = (fingerprint, mechanism, declared, guarantee, *costs)
        number = _number(
            self.execute(f"INSERT INTO charges ({CHARGE_COLUMNS}) VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        )
        self._charges.append((number, *row))
        return number

    def known_charge(self, fingerprint: str, guarantee: str) -> int | None:
        """The number of a charge that is stored already."""
        known = self._known.charges.get((fingerprint, guarantee))
        if known is None:
            row = self._execute(
                "SELECT charge FROM charges WHERE fingerprint = ? AND guarantee = ?", (fingerprint, guarantee)
            ).fetchone()
            if row is not None:
                known = self._known.charges[fingerprint, guarantee] = row[0]
        return known

    def stored_charge(self, charge: int) -> dict[str, Any]:
        """A stored charge by its number."""
        names = [name.strip() for name in CHARGE_COLUMNS.split(",")]
        row = self.execute(f"SELECT {CHARGE_COLUMNS} FROM charges WHERE charge = ?", (charge,)).fetchone()
        return dict(zip(names, row, strict=True))

    def append(self, entry: Entry, label: bytes | None = None) -> int:
        """Append to the journal, with its label if it has one; returns its number (the one given is not used)."""
        number = self._journal.append(entry)
        self._kept_back += 1
        if label is not None:
            self._execute("INSERT INTO entry_labels VALUES (?, ?)", (number, label))
        return number

    def label_of(self, number: int) -> bytes | None:
        """The label of a journal entry."""
        row = self.execute("SELECT label FROM entry_labels WHERE entry = ?", (number,)).fetchone()
        return None if row is None else row[0]

    def append_batch(self, common: tuple[Any, ...]) -> None:
        """Append an entry of one report for every account of the temporary table `charged`.

        `common` holds at, kind, charge, policy and the four amounts.
        """
        self._write_back()
        self._journal.append_batch(common)

    def entry(self, number: int) -> Entry | None:
        """A journal entry by its number."""
        return self._find_entry("entry", number)

    def resolution(self, number: int) -> Entry | None:
        """The entry that committed or voided a reservation."""
        return self._find_entry("resolves", number)

    def _find_entry(self, column: str, number: int) -> Entry | None:
        row = self.execute(f"SELECT {ENTRY_COLUMNS} FROM journal WHERE {column} = ?", (number,)).fetchone()
        return None if row is None else Entry.of(row)

    def last_link(self) -> bytes:
        """The newest link; before the first one, zeros."""
        return self._journal.newest()[2]

    # -- policies and collections -----------------------------------------------------------------------

    def policy(self, name: str) -> tuple[int, str] | None:
        """The number and definition of the newest version of a policy."""
        if name not in self._known.policies:
            row = self._execute(
                "SELECT policy, definition FROM policies WHERE name = ? ORDER BY version DESC LIMIT 1", (name,)
            ).fetchone()
            if row is None:
                return None
            self._known.policies[name] = row
        return self._known.policies[name]

    def policy_definition(self, number: int) -> str:
        """The definition of one version of a policy, by its number."""
        definition: str = self.execute("SELECT definition FROM policies WHERE policy = ?", (number,)).fetchone()[0]
        return definition

    def policies(self) -> list[str]:
        """The definitions of the newest versions of all policies, by name."""
        rows = self.execute(
            "SELECT definition FROM policies p WHERE version ="
            " (SELECT max(version) FROM policies WHERE name = p.name) ORDER BY name"
        )
        return [row[0] for row in rows]

    def add_policy(self, name: str, version: int, at: int, definition: str) -> None:
        """Store a version of a policy."""
        row = (name, version, at, definition)
        number = _number(self.execute(f"INSERT INTO policies ({POLICY_COLUMNS}) VALUES (NULL, ?, ?, ?, ?)", row))
        self._policies.append((number, *row))
        self._known.policies.pop(name, None)
        self.append(Entry(0, at, "policy", 0, 0, number, 0, Costs(0, 0, 0, 0)))

    def charged_versions(self, name: str) -> list[str]:
        """The definitions of the versions of a policy under which somebody was charged, oldest first."""
        rows = self.execute(
            "SELECT definition FROM policies p WHERE name = ?"
            " AND EXISTS (SELECT 1 FROM journal WHERE policy = p.policy AND charge > 0) ORDER BY version",
            (name,),
        )
        return [row[0] for row in rows]

    def collection(self, name: str) -> str | None:
        """The definition of a collection."""
        row = self.execute("SELECT definition FROM collections WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def collections(self) -> list[str]:
        """The definitions of all collections, by name."""
        return [row[0] for row in self.execute("SELECT definition FROM collections ORDER BY name")]

    def add_collection(self, name: str, fingerprint: str, definition: str) -> None:
        """Store a collection; it never changes."""
        row = (name, fingerprint, definition)
        self.execute("INSERT INTO collections VALUES (?, ?, ?, ?)", (*row, self.key.seal(*row)))


@cache
def _standing(windows: int) -> str:
    return (
        f"SELECT u.hash, u.account, a.window, {', '.join(f'a.{name}' for name in Costs._fields)} FROM users u"
        f" LEFT JOIN accounts a ON a.account = u.account AND a.window IN ({_places(windows)}) WHERE u.hash IN"
    )


@cache
def _in_query(start: str, values: int) -> str:
    """A query that ends in IN, for so many values."""
    return f"{start} ({_places(values)})"


def _places(values: int) -> str:
    return ", ".join("?" * values)


def _number(cursor: sqlite3.Cursor) -> int:
    """The number of the row just inserted."""
    number = cursor.lastrowid
    assert number is not None
    return number
