"""Faults at any point: a ledger charges all or nothing, acknowledges nothing that it lost, and stays usable.

Every change behind its back is found.
"""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ldp_budget
from case_files import case_table
from contract.acts import CURVE, check, coin, made, promising, send, spent, write_record
from fixed_clock import Clock
from ldp_budget import Accountant, LdpBudgetError, LedgerError
from ldp_budget.accounting.bulk_run import BulkResult
from ldp_budget.accounting.plans import Plan
from ldp_budget.guarantees import Approximate
from ldp_budget.ledger.keyed_hashing import Key
from ldp_budget.ledger.snapshot import Reading
from ldp_budget.ledger.sqlite import connection as files
from ldp_budget.ledger.sqlite import file_guard
from ldp_budget.ledger.verification import check_integrity
from ldp_budget.registry.collections import Collection
from ledger_inside import ledger_of, replace_writer, store_of, tables, transact, writer_of


def io_error() -> sqlite3.OperationalError:
    return sqlite3.OperationalError("disk I/O error")


def rows(accountant: Accountant) -> dict[str, list[Any]]:
    """Everything in every table."""
    with tables(accountant) as transaction:
        names = transaction.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'").fetchall()
        return {name: transaction.execute(f"SELECT * FROM main.{name}").fetchall() for (name,) in names}


def enrich(accountant: Accountant, clock: Clock) -> dict[str, str]:
    """Put something in every table; returns the receipts of two open reservations, plain and labelled."""
    rappor = promising(CURVE)
    accountant.set_policy("default", ["lifetime=30,1e-6", "day=20,1e-6"])
    accountant.set_policy("planned", [], plan=Plan(((coin(1), 2), (rappor, 2)), Decimal("1e-6")))
    poll = Collection("poll", ldp_budget.mechanism("oue")(epsilon=1, domain_size=2), ("a", "b"), minimum_group=1)
    accountant.add_collection(poll)
    for user in ("alice", "bob"):
        accountant.spend(user, poll, note=f"{user} at the door")
        accountant.spend(user, coin(1), key=f"{user}/1", reports=2)
        accountant.spend(user, rappor, label="home", reports=2)
        accountant.spend(user, coin(1), policy="planned")
        accountant.spend(user, promising(Approximate("0.5", "1e-9")))
    clock.advance(days=1)
    accountant.spend("alice", rappor, label="home", key="alice/2")
    accountant.spend_many(["alice", "bob", "carol"], coin("0.5"), key="run", note="second wave")
    accountant.commit(accountant.reserve("alice", coin("0.5")).receipt or "")
    accountant.void(accountant.reserve("bob", rappor, label="home").receipt or "")
    accountant.spend("bob", coin(100), key="refused")
    accountant.spend("dave", coin(1), key="dave/1", note="dave")
    send(accountant, "alice", b"\1", "sealed", poll)
    accountant.reports.seal("poll", "one")
    for user in ("bob", "dave"):
        send(accountant, user, b"\2", "waiting", poll)
    accountant.erase("dave")
    return {
        "plain": accountant.reserve("alice", coin("0.5")).receipt or "",
        "labelled": accountant.reserve("alice", rappor, label="work", policy="planned").receipt or "",
    }


# -- a failure at every statement ----------------------------------------------------------------------------


class Faulty:
    """A connection that fails once, before or after one of its statements; and if asked to, at the next ROLLBACK."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.statements: list[str] = []
        self.at = 0
        self.after = False
        self.error: BaseException = io_error()
        self.failing_rollback = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, *values: Any) -> Any:
        return self._run(self._connection.execute, sql, *values)

    def executemany(self, sql: str, *values: Any) -> Any:
        return self._run(self._connection.executemany, sql, *values)

    def _run(self, call: Callable[..., Any], sql: str, *values: Any) -> Any:
        self.statements.append(sql)
        if sql == "ROLLBACK" and self.failing_rollback:
            self.failing_rollback = False
            raise io_error()
        if len(self.statements) != self.at:
            return call(sql, *values)
        if self.after:
            call(sql, *values)
        raise self.error

    def plan(self, at: int, after: bool, error: BaseException, failing_rollback: bool = False) -> None:
        self.statements = []
        self.at, self.after, self.error, self.failing_rollback = at, after, error, failing_rollback

    def stop(self) -> list[str]:
        """Fail no more; the statements since `plan`."""
        self.at = 0
        return self.statements


class Bulk:
    """A bulk answer, asked as a single one is."""

    def __init__(self, result: BulkResult) -> None:
        self.repeated = result.repeated > 0


def repair_clock(accountant: Accountant) -> bool:
    """As if the day before had been a clock too far ahead."""
    ledger_of(accountant)._clock._read = lambda: Clock().now + timedelta(hours=1)
    return accountant.repair_clock()


Operation = Callable[[Accountant, dict[str, str]], Any]

OPERATIONS: dict[str, Operation] = {
    "spend": lambda a, held: a.spend("alice", coin("0.25"), key="new", policy="default"),
    "spend of a new user": lambda a, held: a.spend("erin", coin("0.25"), key="new"),
    "labelled spend under a plan": lambda a, held: a.spend("bob", promising(CURVE), label="new", policy="planned"),
    "refused spend": lambda a, held: a.spend("alice", coin(100), key="new"),
    "reserve": lambda a, held: a.reserve("alice", coin("0.125"), key="new"),
    "commit": lambda a, held: a.commit(held["plain"]),
    "void": lambda a, held: a.void(held["plain"]),
    "void along a curve and a plan": lambda a, held: a.void(held["labelled"]),
    "spend_many": lambda a, held: Bulk(a.spend_many(["alice", "erin", "erin", "dave"], coin("0.25"), key="new")),
    "erase": lambda a, held: a.erase("alice"),
    "set_policy": lambda a, held: a.set_policy("default", ["lifetime=30,1e-6", "month=30", "week=30"]),
    "repair_clock": lambda a, held: repair_clock(a),
    "add_collection": lambda a, held: a.add_collection(Collection("new", coin(1))),
    "balance": lambda a, held: a.balance("alice"),
}
KEYED = ("spend", "spend of a new user", "refused spend", "reserve", "spend_many")


@pytest.fixture
def faulty(accountant: Accountant) -> Faulty:
    made = Faulty(writer_of(accountant))
    replace_writer(accountant, made)
    return made


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("error", [io_error, KeyboardInterrupt, MemoryError], ids=lambda error: error.__name__)
def test_failure_at_any_statement_charges_all_or_nothing(
    accountant: Accountant, faulty: Faulty, clock: Clock, name: str, error: Callable[[], BaseException]
) -> None:
    operation, held = OPERATIONS[name], enrich(accountant, clock)
    before, head = rows(accountant), check(accountant)
    for number, after in ((number, after) for number in itertools.count(1) for after in (False, True)):
        faulty.plan(number, after, error())
        raised = answer = None
        try:
            answer = operation(accountant, held)
        except BaseException as caught:
            raised = caught
        statements = faulty.stop()
        if raised is None and name in KEYED and statements[number - 1 : number] == ["COMMIT"]:
            # The commit is unknown; the ledger has looked it up by the key itself.
            assert rows(accountant) != before
            assert operation(accountant, held).repeated
            break
        if raised is None:
            assert number > len(statements) > 3, "there are no more statements to fail at"
            assert name not in KEYED or not answer.repeated
            break
        assert isinstance(raised, LedgerError if error is io_error else error)
        if after and statements[number - 1] == "COMMIT" and rows(accountant) != before:
            # The response was lost. A retry with the key returns the result.
            assert name not in KEYED or operation(accountant, held).repeated
            break
        assert rows(accountant) == before, (statements, number, after)
    check(accountant, head)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spend", "spend_many", "balance"])
def test_failed_rollback_leaves_a_usable_ledger(tmp_path: Path, clock: Clock, name: str) -> None:
    with Accountant(tmp_path / "budget.db", clock=clock) as accountant:
        held = enrich(accountant, clock)
        before = rows(accountant)
        for number in (2, 4, 6):
            faulty = Faulty(writer_of(accountant))
            replace_writer(accountant, faulty)
            if name == "balance":
                replace_writer(accountant, None)
                for reader in store_of(accountant)._readers:
                    reader.close()
                store_of(accountant)._readers[:] = [faulty]
            faulty.plan(number, False, io_error(), failing_rollback=True)
            with pytest.raises(LedgerError):
                OPERATIONS[name](accountant, held)
            assert not faulty.failing_rollback
            assert rows(accountant) == before
        OPERATIONS[name](accountant, held)
        check(accountant)


@pytest.mark.slow
def test_failed_group_commit_raises_for_each_caller(tmp_path: Path, clock: Clock) -> None:
    """Threads share a transaction: if it fails, none of them may believe that it was charged."""
    with Accountant(tmp_path / "budget.db", clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=30"])
        faulty = Faulty(writer_of(accountant))
        replace_writer(accountant, faulty)
        commits: list[int] = []

        def fail_often(sql: str) -> None:
            if sql == "COMMIT":
                commits.append(1)
                if len(commits) % 3 == 1:
                    raise io_error()

        faulty._run = lambda call, sql, *values: (fail_often(sql), call(sql, *values))[1]  # type: ignore[method-assign]
        answers: dict[str, Any] = {}

        def work(number: int) -> None:
            for turn in range(5):
                key = f"{number}/{turn}"
                try:
                    answers[key] = accountant.spend("alice", coin("0.01"), key=key)
                except LedgerError as error:
                    answers[key] = error

        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        del faulty._run
        told = [key for key, answer in answers.items() if not isinstance(answer, LedgerError)]
        assert 0 < len(told) < 80
        assert spent(accountant, "alice") == {"lifetime": len(told) * Decimal("0.01")}
        assert all(accountant.spend("alice", coin("0.01"), key=key).repeated == (key in told) for key in answers)
        assert spent(accountant, "alice") == {"lifetime": Decimal("0.8")}
        check(accountant)


# -- no room, and no right to write ----------------------------------------------------------------------------


@pytest.mark.slow
def test_full_disk_charges_nothing_and_forgets_nothing(tmp_path: Path, clock: Clock) -> None:
    with Accountant(tmp_path / "budget.db", clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=30"])
        accountant.spend("alice", coin(1), key="k")
        before, head = rows(accountant), check(accountant)
        connection = writer_of(accountant)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 3}")
        for _ in range(3):
            with pytest.raises(LedgerError, match=r"full. Nothing was charged."):
                accountant.spend_many((f"user-{n}" for n in range(2000)), coin(1), key="run")
            after = rows(accountant)
            assert len(after["batch_runs"]) == 1, "the batch is bound to its key"
            unlike = {table for table in after if after[table] != before[table]}
            assert unlike <= {"batch_runs", "partitions", "meta"}
        assert accountant.spend("alice", coin(1), key="k").repeated
        connection.execute("PRAGMA max_page_count = 1000000")
        assert accountant.spend_many((f"user-{n}" for n in range(2000)), coin(1), key="run").spent == 2000
        check(accountant, head)


@pytest.fixture
def fallback(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list; while it is not empty, the next connection can only read.

    SQLite opens a file to read where it cannot open it to write, as with too many open files, and says nothing.
    """
    connect, next_ones = files._connect, list[str]()

    def fallen_back(path: str, how: str = "mode=rw") -> sqlite3.Connection:
        return connect(path, next_ones.pop() if next_ones else how)

    monkeypatch.setattr(files, "_connect", fallen_back)
    return next_ones


def test_open_with_too_many_open_files_is_an_error_and_leaves_nothing_behind(
    tmp_path: Path, fallback: list[str]
) -> None:
    """One EMFILE on opening left a process that could charge no user, while the check-up said that all was well."""
    Accountant(tmp_path / "budget.db").close()
    fallback.append("mode=ro")
    with pytest.raises(LedgerError, match=r"it can only be read: .*readonly.*Check .* the limit on open files"):
        Accountant(tmp_path / "budget.db")
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        assert accountant.spend("alice", coin("0.1"))


def test_guard_without_a_file_is_an_error_and_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended in a bare OSError, with a connection that stayed open until the process ended."""
    Accountant(tmp_path / "budget.db").close()
    before = len(file_guard._LEFT_OPEN)
    really_open = os.open

    def too_many(path: Any, *arguments: Any, **options: Any) -> int:
        if str(path) == str(tmp_path / "budget.db"):
            raise OSError(errno.EMFILE, "Too many open files")
        return really_open(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", too_many)
        with pytest.raises(LedgerError, match="it cannot be opened: Too many open files"):
            Accountant(tmp_path / "budget.db")
    assert len(file_guard._LEFT_OPEN) == before
    Accountant(tmp_path / "budget.db").close()


@pytest.mark.slow
def test_backup_that_stays_locked_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python tries each step of a copy for ever, so `backup` never returned where locks fail each time."""
    connect, held = files._connect, list[sqlite3.Connection]()

    def locked(path: str, how: str = "mode=rw") -> sqlite3.Connection:
        target = connect(path, how)
        if path.endswith("copy.db.copy"):
            target.execute("PRAGMA synchronous = FULL")
            held.append(connect(path, how))
            held[0].execute("BEGIN EXCLUSIVE")
        return target

    with Accountant(tmp_path / "budget.db") as accountant:
        monkeypatch.setattr(files, "BUSY_SECONDS", 0.05)
        monkeypatch.setattr(files, "_connect", locked)
        with pytest.raises(LedgerError, match=r"it was locked for 0\.05 s\. The copy was not made"):
            accountant.backup(tmp_path / "copy.db")
        held.pop().close()
        assert list(tmp_path.glob("copy*")) == []
        monkeypatch.setattr(files, "_connect", connect)
        accountant.backup(tmp_path / "copy.db")


def test_create_after_a_crash_of_creating_makes_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash between key and ledger left a place that was refused for ever: "the ledger is missing"."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", lambda *names: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            Accountant(tmp_path / "budget.db")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["budget.db.key", "budget.db.new"]
    secret = (tmp_path / "budget.db.key").read_bytes()
    with pytest.raises(LedgerError, match="the ledger is missing"):
        Accountant(tmp_path / "budget.db", create=False)
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        assert accountant.spend("alice", coin("0.1"))
        check(accountant)
    assert (tmp_path / "budget.db.key").read_bytes() == secret
    assert sorted(file.name for file in tmp_path.iterdir()) == ["budget.db", "budget.db.key"]


@pytest.mark.parametrize("left", ["nothing", "cut off", "charged", "of another key"])
def test_create_with_a_key_but_no_ledger_is_refused(tmp_path: Path, left: str) -> None:
    """Only an empty draft of the same key was never a ledger; all else may have held charges."""
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=1"])
    draft = tmp_path / "budget.db.new"
    if left == "charged":
        (tmp_path / "budget.db").rename(draft)
    elif left != "nothing":
        Accountant(tmp_path / "other.db").close()
        if left == "of another key":
            (tmp_path / "other.db").rename(draft)
        else:
            draft.write_bytes((tmp_path / "other.db").read_bytes()[:5000])
    (tmp_path / "budget.db").unlink(missing_ok=True)
    with pytest.raises(LedgerError, match="the ledger is missing"):
        Accountant(tmp_path / "budget.db")
    assert not (tmp_path / "budget.db").exists()


# -- changed behind its back ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accountant]:
    """A ledger with something in every table, in one file without a log."""
    clock = Clock()
    path = tmp_path_factory.mktemp("rich") / "budget.db"
    with Accountant(path, clock=clock) as accountant:
        enrich(accountant, clock)
        made(accountant, "team-a")
        write_record(accountant, "key-revoked", "team-a", {})
        accountant.checkpoint()
        accountant.spend("after", coin("0.001"))
        accountant.checkpoint()
        check(accountant)
        yield accountant


class Undo(Exception):  # noqa: N818 - not an error
    """Ends a transaction without a trace."""


class OneMoment:
    """A ledger as a transaction sees it."""

    partitions = range(1)

    def __init__(self, rows: Any, key: Key) -> None:
        self.key = key
        self._rows = rows

    def reading(self, partition: int = 0) -> Any:
        return nullcontext(Reading(self._rows, self.key, Clock()))  # type: ignore[arg-type]


def problems_after(accountant: Accountant, *statements: tuple[str, tuple[Any, ...]]) -> tuple[str, ...] | None:
    """Return the result of verification after some changes, then undo them; None if SQLite itself forbids them."""
    found: tuple[str, ...] = ()
    try:

        def change(partitions: Any) -> None:
            nonlocal found
            rows = partitions[0]
            for sql, values in statements:
                rows._connection.execute(sql, values)
            rows.known_end = None  # what this process remembers of its last transaction
            found = check_integrity(OneMoment(rows, store_of(accountant).key)).problems  # type: ignore[arg-type]
            raise Undo

        transact(accountant, change)
    except Undo:
        return found
    except LedgerError as refused:
        return None if isinstance(refused.__cause__, sqlite3.IntegrityError) else (str(refused),)


COLUMNS = case_table("ledger_faults", "COLUMNS")
OTHERS = {
    "erased_records": "number row_mac",
    "closings": "number generation changes move ledger identity row_mac",
    "key_epochs": "number generation of_partition secret entries checkpoints checkpoint_hash row_mac",
    "moved_entries": "number generation of_partition entry to_partition to_entry row_mac",
}
"""Those that only a ledger has that was moved, whose key was rotated, or that erased a refused user."""
VALUES = [f"{table}.{column}" for table, columns in COLUMNS.items() for column in columns.split()]


@pytest.mark.slow
def test_tested_columns_are_all_columns(rich: Accountant) -> None:
    with tables(rich) as transaction:
        columns = transaction.execute(
            "SELECT s.name || '.' || c.name FROM sqlite_schema s, pragma_table_info(s.name) c WHERE s.type = 'table'"
        ).fetchall()
    others = {"meta.name", "meta.value", "_sqlite_migrations"}
    assert {name for (name,) in columns if name not in others and not name.startswith("_sqlite")} == {
        *VALUES,
        *(f"{table}.{column}" for table, columns in OTHERS.items() for column in columns.split()),
    }


@pytest.mark.slow
@pytest.mark.some(6)
@pytest.mark.parametrize("value", VALUES)
def test_verify_with_a_changed_value_finds_it(rich: Accountant, value: str, thorough: bool) -> None:
    """In every row: another number, text or byte, the most extreme ones, and nothing at all.

    Where there are many rows, they share these between them; with `--exhaustive`, each meets them all.
    """
    table, column = value.split(".")
    with tables(rich) as transaction:
        info = transaction.execute(f"SELECT * FROM pragma_table_info('{table}') ORDER BY pk DESC").fetchall()
        identity = [row[1] for row in info if row[5]]
        stored = transaction.execute(f"SELECT {column}, {', '.join(identity)} FROM {table}").fetchall()
    assert stored
    change = f"UPDATE {table} SET {column} = ? WHERE " + " AND ".join(f"{name} = ?" for name in identity)
    step = 1 if thorough or len(stored) < 9 else 3
    for number, (old, *key) in enumerate(stored):
        for new in changed(old)[number % step :: step]:
            found = problems_after(rich, (change, (new, *key)))
            assert found is None or found, (old, new, key)


def changed(old: Any) -> list[Any]:
    """Other values that the same column may hold."""
    if isinstance(old, int):
        others: list[Any] = [old + 1, old - 1, 0, -(2**62), 2**62, None]
    elif isinstance(old, str):
        others = [old + " ", old[:-1], old.replace("1", "2", 1), "", "{", "[]", None]
    elif isinstance(old, bytes):
        if not old:
            return [b"x", None]
        others = [bytes([old[0] ^ 1]) + old[1:], old[:-1] + bytes([old[-1] ^ 128]), old[:-1], b"", None]
    else:
        others = [0, 1, "x", b"\0" * 16]
    return [other for other in others if other != old]


@pytest.mark.slow
@pytest.mark.parametrize("table", case_table("ledger_faults", "test_verify_with_a_deleted_row_finds_it"))
def test_verify_with_a_deleted_row_finds_it(rich: Accountant, table: str) -> None:
    with tables(rich) as transaction:
        count = transaction.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        info = transaction.execute(f"SELECT name FROM pragma_table_info('{table}') WHERE pk").fetchall()
    identity = ", ".join(name for (name,) in info)
    assert count
    for number in range(count):
        chosen = f"(SELECT {identity} FROM {table} ORDER BY {identity} LIMIT 1 OFFSET {number})"
        assert problems_after(rich, (f"DELETE FROM {table} WHERE ({identity}) = {chosen}", ())), number


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rich ledger at rest, in one file."""
    clock = Clock()
    path = tmp_path_factory.mktemp("closed") / "budget.db"
    with Accountant(path, clock=clock) as accountant:
        enrich(accountant, clock)
    return path


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.floats(0, 1, exclude_max=True), mask=st.integers(1, 255))
def test_verify_with_a_changed_byte_finds_it_unless_unused(
    closed: Path, tmp_path: Path, where: float, mask: int
) -> None:
    """Every byte of the file belongs to a value that is checked, or changing it changes no value."""
    copy = tmp_path / "copy.db"
    content = bytearray(closed.read_bytes())
    content[int(where * len(content))] ^= mask
    copy.write_bytes(content)
    shutil.copy(closed.with_name("budget.db.key"), copy.with_name("copy.db.key"))
    clock = Clock()
    clock.advance(days=2)
    try:
        with Accountant(copy, create=False, clock=clock) as accountant:
            if accountant.verify().ok:
                assert stored_values(copy) == stored_values(closed)
    except LdpBudgetError:
        pass
    finally:
        for end in ("", "-wal", "-shm"):
            copy.with_name(copy.name + end).unlink(missing_ok=True)


def stored_values(path: Path) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        return [connection.execute(f"SELECT * FROM {table}").fetchall() for table in COLUMNS]
    finally:
        connection.close()
