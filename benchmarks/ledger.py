"""The ledger beside hand-written SQLite that does the same work, in one run.

    python benchmarks/ledger.py [--quick]

Every row is a ratio of speeds, ours over the floor's: the two take turns in small rounds, and the median over the
rounds is shown, so that a busy moment of the machine meets both. All of it is durable (write-ahead log,
synchronous=FULL), in a temporary folder. diffprivlib's accountant, in memory, stands beside where it is installed.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path

import ldp_budget
from ldp_budget import Accountant

QUICK = "--quick" in sys.argv
ROUNDS, TURNS = (5, 200) if QUICK else (11, 400)
PAST = 10_000 if QUICK else 100_000
USERS = 100_000 if QUICK else 1_000_000
THREADS = 64
SECRET = bytes(32)

REPORT = ldp_budget.mechanism("oue")(epsilon="0.000001", domain_size=7)


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


class SingleFloor:
    """A conditional upsert and a journal row with a unique key, in one transaction."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)
        self._connection.execute("CREATE TABLE accounts (user BLOB PRIMARY KEY, spent INTEGER) WITHOUT ROWID")
        self._connection.execute("CREATE TABLE journal (key TEXT UNIQUE, user BLOB, cost INTEGER, at INTEGER)")
        self._number = 0

    def spend(self, together: int = 1) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        for _ in range(together):
            self._number += 1
            execute(
                "INSERT INTO accounts VALUES (?, ?) ON CONFLICT DO UPDATE SET spent = spent + excluded.spent"
                " WHERE spent + excluded.spent <= ?",
                (b"alice", 1000, 10**15),
            )
            execute("INSERT INTO journal VALUES (?, ?, ?, ?)", (f"k{self._number}", b"alice", 1000, self._number))
        execute("COMMIT")


def rate(work: Callable[[], object], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        work()
    return times / (time.perf_counter() - start)


def ratio(name: str, ours: Callable[[], float], floor: Callable[[], float], target: float | None) -> None:
    """Print the median ratio of two speeds over rounds that take turns."""
    ours(), floor()  # warms the caches
    pairs = [(ours(), floor()) for _ in range(ROUNDS)]
    found = statistics.median(mine / other for mine, other in pairs)
    mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    verdict = "" if target is None else f"{'met' if found >= target else 'MISSED'} (>= {target})"
    row(name, mine, other, verdict, found)


def row(name: str, mine: float, other: float, verdict: str, found: float | None = None) -> None:
    found = mine / other if found is None else found
    print(f"{name:58}{mine:12,.0f}{other:12,.0f}{found:8.2f}  {verdict}", flush=True)


@contextlib.contextmanager
def ledger(folder: Path, name: str) -> Iterator[Accountant]:
    with Accountant(folder / name) as accountant:
        for rule in ("basic", "zcdp", "gdp"):
            limit = "lifetime=1000000" + ("" if rule == "basic" else f",1e-6,{rule}")
            accountant.set_policy(rule, [limit])
        yield accountant


def singles(folder: Path) -> None:
    floor = SingleFloor(folder / "floor.db")
    numbers = iter(range(10**9))
    with ledger(folder, "single.db") as accountant:

        def spend(user: str, rule: str) -> Callable[[], float]:
            return lambda: rate(lambda: accountant.spend(user, REPORT, key=f"key{next(numbers)}", policy=rule), TURNS)

        ratio("one durable spend with a key", spend("alice", "basic"), lambda: rate(floor.spend, TURNS), 0.5)
        in_threads(accountant, PAST, lambda place: "heavy")
        for rule in ("basic", "zcdp", "gdp"):
            name = f"after {PAST:,} past spends, beside a new user, {rule}"
            ratio(name, spend("heavy", rule), spend(f"light-{rule}", rule), 0.9)


def in_threads(accountant: Accountant, spends: int, user: Callable[[int], str]) -> float:
    """Spends a second of 64 threads that share the accountant."""

    def work(place: int) -> None:
        for _ in range(spends // THREADS):
            accountant.spend(user(place), REPORT, policy="basic")

    threads = [threading.Thread(target=work, args=(place,)) for place in range(THREADS)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return spends / (time.perf_counter() - start)


def groups(folder: Path) -> None:
    floor = SingleFloor(folder / "floor-64.db")
    with ledger(folder, "threads.db") as accountant:

        def ours() -> float:
            return in_threads(accountant, 64 * 40, lambda place: f"user{place}")

        ratio("64 threads, beside one transaction each", ours, lambda: rate(floor.spend, TURNS), 1.5)
        ratio("64 threads, beside a batch of 64", ours, lambda: 64 * rate(lambda: floor.spend(64), 40), 0.2)


def bulk_floor(connection: sqlite3.Connection, users: Iterator[str]) -> None:
    """Charge every user once: hash, temporary table, UPDATE ... FROM, INSERT ... SELECT, a journal row each."""
    execute = connection.execute
    execute("CREATE TEMP TABLE IF NOT EXISTS batch (user BLOB PRIMARY KEY) WITHOUT ROWID")
    while True:
        batch = itertools.islice(users, 50_000)
        hashes = sorted(blake2b(user.encode(), digest_size=16, key=SECRET).digest() for user in batch)
        if not hashes:
            return
        execute("BEGIN IMMEDIATE")
        execute("DELETE FROM batch")
        connection.executemany("INSERT INTO batch VALUES (?)", ((user,) for user in hashes))
        execute("UPDATE accounts SET spent = spent + 1000 FROM batch b WHERE accounts.user = b.user")
        execute("INSERT INTO accounts SELECT user, 1000 FROM batch WHERE user NOT IN (SELECT user FROM accounts)")
        execute("INSERT INTO journal SELECT NULL, user, 1000, 0 FROM batch")
        execute("COMMIT")


def names() -> Iterator[str]:
    return (f"user{number}" for number in range(USERS))


def bulk(folder: Path) -> None:
    connection = connect(folder / "bulk-floor.db")
    connection.execute("CREATE TABLE accounts (user BLOB PRIMARY KEY, spent INTEGER) WITHOUT ROWID")
    connection.execute("CREATE TABLE journal (key TEXT, user BLOB, cost INTEGER, at INTEGER)")
    with ledger(folder, "bulk.db") as accountant:
        for kind in ("new", "known"):
            mine = USERS * rate(lambda: accountant.spend_many(names(), REPORT, policy="basic", on_batch=ignore), 1)
            other = USERS * rate(lambda: bulk_floor(connection, names()), 1)
            verdict = "met" if mine / other >= 0.4 else "MISSED"
            row(f"{USERS:,} {kind} users at once", mine, other, f"{verdict} (>= 0.4)")
        library = mine
    print(f"{'bytes a user, accounts and users with their indexes':58}{bytes_a_user(folder / 'bulk.db'):12.0f}")
    command = USERS / csv_seconds(folder)
    verdict = "met" if command / library >= 0.5 else "MISSED"
    row("spend-many from a CSV, beside the library", command, library, f"{verdict} (>= 0.5)")


def ignore(users: int, refused: list[str]) -> None:
    """Takes the place of a list of the refused."""


def bytes_a_user(path: Path) -> float:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        tables = "'users', 'accounts', 'sqlite_autoindex_users_1'"
        pages = connection.execute(f"SELECT sum(pgsize) FROM dbstat WHERE name IN ({tables})").fetchone()[0]
    return pages / USERS


def csv_seconds(folder: Path) -> float:
    """The whole `spend-many` process over the same users, known by then; prints its peak memory."""
    users = folder / "users.csv"
    users.write_text("user\n" + "\n".join(names()) + "\n")
    script = str(Path(sys.executable).with_name("ldp-budget"))
    words = ["spend-many", str(users), "oue", "--epsilon", "0.000001", "--domain-size", "7", "--policy", "basic"]
    start = time.perf_counter()
    subprocess.run(
        [script, "--ledger", str(folder / "bulk.db"), *words],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ,
    )
    taken = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{'peak memory of spend-many, MiB':58}{peak:12.0f}{'':20}  {'met' if peak <= 300 else 'MISSED'} (<= 300)")
    return taken


def peer() -> None:
    """diffprivlib's accountant, in memory: it grows slower with what was spent."""
    try:
        from diffprivlib.accountant import BudgetAccountant
    except ImportError:
        print("diffprivlib: not installed")
        return
    for past in (10, 1000, 5000):
        accountant = BudgetAccountant(epsilon=1e9, delta=0.5, spent_budget=[(1e-6, 0.0)] * past)
        speed = rate(functools.partial(accountant.spend, 1e-6, 0), 50)
        print(f"{f'diffprivlib in memory after {past:,} spends':58}{speed:12,.0f}")


def main() -> None:
    print(f"{'':58}{'ours/s':>12}{'floor/s':>12}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for part in (singles, groups, bulk):
            part(Path(folder))
    peer()


if __name__ == "__main__":
    main()
