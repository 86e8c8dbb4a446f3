"""The ledger compared with hand-written SQLite that does the same work, in one run.

    python benchmarks/ledger.py [--quick] [--peer PYTHON]
    python benchmarks/ledger.py --against FOLDER    # ratios to another checkout, see short_path.py

Every ratio is one of speeds, ours over the floor's, both durable (write-ahead log, synchronous=FULL) and with the
same settings, in a temporary folder. The two take turns in small rounds, and the median over the rounds is shown, so
that a busy moment of the machine, or of its disk, meets both. Takes some minutes, with `--quick` less than one. Needs
a Unix.

diffprivlib's accountant, in memory, is measured too where the interpreter `--peer` (this one, if not given) can import
it: diffprivlib 0.6.5 does so with scikit-learn < 1.5 and numpy < 2, in an environment of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import short_path

import ldp_budget
from ldp_budget import Accountant
from ldp_budget.accounting.batch import Spend

TURN = 40  # single transactions of each side in one round; or spends of each thread
BATCH = 50_000  # users of each side in one round, as many as `spend_many` takes at once
THREADS = 64
ASKED = 5_000  # users of a list whose balances are asked for
LOG_BYTES = 100 << 20
RULES = ("basic", "zcdp", "gdp")
MOST = 10**15
SECRET = bytes(32)
SMALL = ("oue", "--epsilon", "0.000001", "--domain-size", "7")
REPORT = ldp_budget.mechanism("oue")(epsilon="0.000001", domain_size=7)


@dataclass(frozen=True)
class Sizes:
    """Sizes of the work."""

    rounds: int
    past: int
    users: int
    runs: int


FULL, QUICK = Sizes(31, 100_000, 1_000_000, 3), Sizes(9, 10_000, 100_000, 1)


# -- rows of the table ---------------------------------------------------------------------------------------


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ratio(
    name: str, target: float | None, rounds: int, ours: Callable[[], float], floor: Callable[[], float]
) -> None:
    """Print the median ratio of two speeds over rounds that take turns."""
    pairs = []
    for number in range(rounds):
        first = floor() if number % 2 else 0.0  # neither is always the first
        mine = ours()
        pairs.append((mine, first or floor()))
    found = statistics.median(mine / other for mine, other in pairs)
    mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    verdict = "" if target is None else f"{'met' if found >= target else 'MISSED'} (>= {target:g})"
    print(f"{name:52}{mine:12,.0f}{other:12,.0f}{found:8.2f}  {verdict}", flush=True)


def amount(name: str, found: float, target: float) -> None:
    """Print a size that should not be above the target."""
    verdict = f"{'met' if found <= target else 'MISSED'} (<= {target:g})"
    print(f"{name:52}{found:12,.0f}{'':20}  {verdict}", flush=True)


def key_of(user: str, number: int) -> str:
    """A key as the documentation has them."""
    return f"2026-11-21/{user}/{number}"


# -- one at a time, and threads ------------------------------------------------------------------------------


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 4000", "cache_size = -65536"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


class Floor:
    """A conditional upsert and a journal row with a unique key for each user, all in one transaction."""

    def __init__(self, path: Path) -> None:
        self._execute = connect(path).execute
        self._execute("CREATE TABLE accounts (user TEXT PRIMARY KEY, spent INTEGER NOT NULL) WITHOUT ROWID")
        self._execute("CREATE TABLE journal (entry INTEGER PRIMARY KEY, key TEXT UNIQUE, user TEXT, cost INTEGER)")
        self._keys = itertools.count()

    def spend(self, users: Iterable[str]) -> None:
        execute = self._execute
        execute("BEGIN IMMEDIATE")
        for user in users:
            changed = execute(
                "INSERT INTO accounts VALUES (?, ?) ON CONFLICT DO UPDATE SET spent = spent + excluded.spent"
                " WHERE spent + excluded.spent <= ?",
                (user, 1000, MOST),
            ).rowcount
            if changed:
                row = (key_of(user, next(self._keys)), user, 1000)
                execute("INSERT INTO journal (key, user, cost) VALUES (?, ?, ?)", row)
        execute("COMMIT")

    def speed(self, users: list[str], together: int) -> float:
        """Spends a second, `together` in each transaction."""

        def spend() -> None:
            for place in range(0, len(users), together):
                self.spend(users[place : place + together])

        return len(users) / seconds(spend)


class Ours:
    """The ledger, with a policy for each rule."""

    def __init__(self, path: Path) -> None:
        self.accountant = Accountant(path)
        self._keys = itertools.count()
        for rule in RULES:
            limit = "lifetime=1000000" + ("" if rule == "basic" else f",1e-6,{rule}")
            self.accountant.set_policy(rule, [limit])

    def speed(self, user: str, rule: str = "basic", times: int = TURN) -> float:
        """Spends a second of one thread, each with a key."""

        def spend() -> None:
            for _ in range(times):
                self.accountant.spend(user, REPORT, key=key_of(user, next(self._keys)), policy=rule)

        return times / seconds(spend)

    def threads_speed(self, user: Callable[[int], str], spends: int, keys: bool) -> float:
        """Spends a second of all threads together."""

        def work(place: int) -> None:
            for _ in range(spends // THREADS):
                key = key_of(user(place), next(self._keys)) if keys else None
                self.accountant.spend(user(place), REPORT, key=key, policy="basic")

        threads = [threading.Thread(target=work, args=(place,)) for place in range(THREADS)]

        def run() -> None:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        return spends / seconds(run)

    def tasks_speed(self, users: list[str]) -> float:
        """Spends a second of tasks of one event loop, one task for each user, all with keys."""

        async def work(user: str) -> None:
            for _ in range(TURN):
                await self.accountant.spend_async(user, REPORT, key=key_of(user, next(self._keys)), policy="basic")

        async def run() -> None:
            await asyncio.gather(*map(work, users))

        return TURN * len(users) / seconds(lambda: asyncio.run(run()))

    def lines_speed(self, users: list[str]) -> float:
        """Spends a second of one caller who gives a line for each user at once, each with a key."""

        def run() -> None:
            for _ in range(TURN):
                keys = [key_of(user, next(self._keys)) for user in users]
                self.accountant.spend_each(
                    [Spend(user, REPORT, policy="basic", key=key) for user, key in zip(users, keys, strict=True)]
                )

        return TURN * len(users) / seconds(run)


def singles(folder: Path, sizes: Sizes) -> None:
    ours, floor = Ours(folder / "single.db"), Floor(folder / "floor.db")
    alice = ["alice"] * TURN
    ours.speed("alice"), floor.speed(alice, 1)  # both begin warm
    ratio(
        "one durable spend with a key",
        0.5,
        2 * sizes.rounds,
        lambda: ours.speed("alice"),
        lambda: floor.speed(alice, 1),
    )
    ours.threads_speed(lambda place: "heavy", sizes.past, False)
    for rule in RULES:
        light = f"light-{rule}"
        ours.speed(light, rule, 10)
        ratio(
            f"after {sizes.past:,} past spends, against 10, {rule}",
            0.9,
            2 * sizes.rounds,
            lambda rule=rule: ours.speed("heavy", rule),  # type: ignore[misc]
            lambda rule=rule, light=light: ours.speed(light, rule),  # type: ignore[misc]
        )
    ours.accountant.close()


def threads(folder: Path, sizes: Sizes) -> None:
    ours, floor = Ours(folder / "threads.db"), Floor(folder / "floor-64.db")
    users = [f"user{number}" for number in range(THREADS)]
    for keys, kind, target in ((True, "64 threads, with keys", 0.2), (False, "64 threads, without keys", None)):

        def speed(keys: bool = keys) -> float:
            return ours.threads_speed(users.__getitem__, THREADS * TURN, keys)

        speed(), floor.speed(users * TURN, THREADS)
        single = None if target is None else 1.5
        ratio(f"{kind}, against one transaction each", single, sizes.rounds, speed, lambda: floor.speed(users * 5, 1))
        ratio(
            f"{kind}, against a batch of 64",
            target,
            sizes.rounds,
            speed,
            lambda: floor.speed(users * TURN, THREADS),
        )
    for kind, batch in (
        ("64 tasks of one event loop", ours.tasks_speed),
        ("64 lines of one caller", ours.lines_speed),
    ):
        batch(users)
        ratio(
            f"{kind}, against a batch of 64",
            None,
            sizes.rounds,
            lambda batch=batch: batch(users),  # type: ignore[misc]
            lambda: floor.speed(users * TURN, THREADS),
        )
    ours.accountant.close()


# -- many users ----------------------------------------------------------------------------------------------


class BulkFloor:
    """Each user of a batch charged once: hash, temporary table, UPDATE ... FROM, INSERT ... SELECT, a journal row."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)
        execute = self._connection.execute
        execute("CREATE TABLE accounts (user BLOB PRIMARY KEY, spent INTEGER NOT NULL) WITHOUT ROWID")
        execute("CREATE TABLE journal (entry INTEGER PRIMARY KEY, user BLOB, cost INTEGER, at REAL)")
        execute("CREATE TEMP TABLE batch (user BLOB PRIMARY KEY) WITHOUT ROWID")

    def spend(self, users: list[str]) -> None:
        execute = self._connection.execute
        hashes = sorted(blake2b(user.encode(), digest_size=16, key=SECRET).digest() for user in users)
        execute("BEGIN IMMEDIATE")
        execute("DELETE FROM batch")
        self._connection.executemany("INSERT INTO batch VALUES (?)", zip(hashes, strict=True))
        over = "SELECT user FROM batch b CROSS JOIN accounts a USING (user) WHERE a.spent > ?"
        execute(f"DELETE FROM batch WHERE user IN ({over})", (MOST - 1000,))
        # Without the cross join SQLite reads every account there is, rather than those of the batch.
        known = "SELECT a.user AS u FROM batch b CROSS JOIN accounts a USING (user)"
        changed = execute(f"UPDATE accounts SET spent = spent + 1000 FROM ({known}) WHERE user = u").rowcount
        if changed < len(users):
            execute("INSERT INTO accounts SELECT user, 1000 FROM batch WHERE true ON CONFLICT DO NOTHING")
        execute("INSERT INTO journal (user, cost, at) SELECT user, 1000, ? FROM batch", (time.time(),))
        execute("COMMIT")


def names(users: int) -> Iterator[str]:
    return (f"user{number}" for number in range(users))


def ignore(users: int, refused: list[str]) -> None:
    """Takes the place of a list of the refused."""


def bulk(folder: Path, sizes: Sizes) -> None:
    ours, floor = Ours(folder / "bulk.db"), BulkFloor(folder / "bulk-floor.db")
    for kind in ("new", "known"):
        mine, other = names(sizes.users), names(sizes.users)

        def spend(source: Iterator[str] = mine) -> float:
            users = list(itertools.islice(source, BATCH))
            taken = seconds(lambda: ours.accountant.spend_many(users, REPORT, policy="basic", on_batch=ignore))
            return BATCH / taken

        def spend_floor(source: Iterator[str] = other) -> float:
            users = list(itertools.islice(source, BATCH))
            return BATCH / seconds(lambda: floor.spend(users))

        ratio(f"{sizes.users:,} {kind} users, in batches", 0.4, sizes.users // BATCH, spend, spend_floor)
    ours.accountant.close()
    amount("p99 of a single spend next to a bulk run, ms", wait_next_to_bulk(folder, sizes.users), 40)
    amount("bytes a user: accounts, users and their indexes", bytes_a_user(folder / "bulk.db", sizes.users), 120)
    processes(folder, sizes)


def wait_next_to_bulk(folder: Path, users: int) -> float:
    """The 99th percentile of how long a single spend takes while another thread charges many users, in ms."""
    ours = Ours(folder / "next.db")
    run = threading.Thread(
        target=lambda: ours.accountant.spend_many(names(users), REPORT, policy="basic", on_batch=ignore)
    )
    took = []
    run.start()
    while run.is_alive():
        took.append(
            1000 * seconds(lambda: ours.accountant.spend("alice", REPORT, policy="basic", key=str(len(took))))
        )
        time.sleep(0.005)
    ours.accountant.close()
    return statistics.quantiles(took, n=100)[98]


def bytes_a_user(path: Path, users: int) -> float:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        tables = "'users', 'accounts', 'sqlite_autoindex_users_1'"
        pages: int = connection.execute(f"SELECT sum(pgsize) FROM dbstat WHERE name IN ({tables})").fetchone()[0]
    return pages / users


LIBRARY = """
import sys
from ldp_budget import Accountant, mechanism
report = mechanism("oue")(epsilon="0.000001", domain_size=7)
with Accountant(sys.argv[1]) as accountant:
    users = (f"user{number}" for number in range(int(sys.argv[2])))
    accountant.spend_many(users, report, policy="basic", on_batch=lambda users, refused: None)
"""


def processes(folder: Path, sizes: Sizes) -> None:
    """Whole processes that charge all users: one of Python that calls the library, and `spend-many` from a CSV."""
    path, users = str(folder / "bulk.db"), folder / "users.csv"
    users.write_text("user\n" + "\n".join(names(sizes.users)) + "\n")
    script = str(Path(sys.executable).with_name("ldp-budget"))
    command = [script, "--ledger", path, "spend-many", str(users), *SMALL, "--policy", "basic"]
    library = [sys.executable, "-c", LIBRARY, path, str(sizes.users)]
    peaks: dict[str, float] = {}

    def speed(words: list[str]) -> float:
        start = time.perf_counter()
        peaks[words[0]] = max(peaks.get(words[0], 0), peak_of(words))
        return sizes.users / (time.perf_counter() - start)

    name = "spend-many from a CSV, against the library"
    ratio(name, 0.5, sizes.runs, lambda: speed(command), lambda: speed(library))
    amount("peak memory of the library's process, MiB", peaks[library[0]], 300)
    amount("peak memory of spend-many, MiB", peaks[command[0]], 300)


def balances(folder: Path, sizes: Sizes) -> None:
    """Sums of 5,000 of many users: `balances` against one reading for each; and as a whole process."""
    path, users, asked = folder / "balances.db", folder / "asked.csv", [*names(ASKED)]
    users.write_text("user\n" + "\n".join(asked) + "\n")
    ours = Ours(path)
    ours.accountant.spend_many(names(max(ASKED, sizes.users // 10)), REPORT, policy="basic", on_batch=ignore)

    def together() -> float:
        return ASKED / seconds(lambda: [each.to_row() for each in ours.accountant.balances(asked, "basic")])

    def each() -> float:
        some = asked[:: ASKED // 500]
        return len(some) / seconds(lambda: [ours.accountant.balance(user, "basic").to_row() for user in some])

    ratio(f"balances of {ASKED:,} users, against one reading each", 2, max(3, sizes.rounds // 3), together, each)
    ours.accountant.close()
    script = str(Path(sys.executable).with_name("ldp-budget"))
    command = [script, "--ledger", str(path), "balance", "--users", str(users), "--policy", "basic"]
    for form in ("--csv", "--nl", "--json"):
        took = min(
            seconds(lambda form=form: subprocess.run([*command, form], check=True, stdout=subprocess.DEVNULL))
            for _ in range(3)
        )
        amount(f"balance --users {form} of {ASKED:,}, milliseconds", took * 1000, 2000)


def readers(folder: Path, sizes: Sizes) -> None:
    """Spends next to a snapshot that a reader holds, as a backup does, once the log is long; against none."""
    held, alone = Ours(folder / "next.db"), Ours(folder / "alone.db")
    held.speed("alice"), alone.speed("alice")
    with contextlib.closing(sqlite3.connect(folder / "next.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM journal").fetchone()
        log, batches = folder / "next.db-wal", 0
        while log.stat().st_size < LOG_BYTES:
            users = [f"user{batches}-{number}" for number in range(20_000)]
            for ours in (held, alone):
                ours.accountant.spend_many(users, REPORT, policy="basic")
            batches += 1
        ratio(
            f"a spend, a snapshot held, log {LOG_BYTES >> 20} MiB; against none",
            0.8,
            2 * sizes.rounds,
            lambda: held.speed("alice"),
            lambda: alone.speed("alice"),
        )
    held.accountant.close(), alone.accountant.close()


# A process starts with the peak of the one that started it, so a small one stands between.
WATCH = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak_of(words: list[str]) -> float:
    """Run a process; its peak memory in MiB."""
    watched = subprocess.run([sys.executable, "-c", WATCH, *words], capture_output=True, text=True, check=True)
    return int(watched.stdout) / (2**20 if sys.platform == "darwin" else 2**10)


# -- a neighbour ---------------------------------------------------------------------------------------------

PEER = """
import time
from diffprivlib.accountant import BudgetAccountant
for past in (10, 1000, 5000):
    accountant = BudgetAccountant(epsilon=1e9, delta=0.5, spent_budget=[(1e-5, 0.0)] * past)
    start = time.perf_counter()
    for _ in range(50):
        accountant.spend(1e-5, 0)
    print(past, 50 / (time.perf_counter() - start))
"""


def peer(python: str) -> None:
    """diffprivlib's accountant: nothing durable, no threads, and slower with everything that was spent."""
    found = subprocess.run([python, "-W", "ignore", "-c", PEER], capture_output=True, text=True, check=False)
    if found.returncode:
        print(f"diffprivlib cannot be imported: {found.stderr.strip().splitlines()[-1]}")
    for line in found.stdout.splitlines():
        past, speed = line.split()
        print(f"{f'diffprivlib in memory, after {int(past):,} past spends':52}{float(speed):12,.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--peer", default=sys.executable, metavar="PYTHON", help="an interpreter with diffprivlib")
    short_path.add_option(parser)
    options = parser.parse_args()
    if options.against is not None:
        short_path.compare("ledger", options.against, options.figure)
        return
    print(f"SQLite {sqlite3.sqlite_version}, Python {sys.version.split()[0]}, {os.cpu_count()} processors")
    print(f"{'':52}{'ours/s':>12}{'floor/s':>12}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for part in (singles, threads, readers, bulk, balances):
            part(Path(folder), QUICK if options.quick else FULL)
    peer(options.peer)


if __name__ == "__main__":
    main()
