"""The ledger of this checkout compared with that of another one, in one run: python benchmarks/against.py OTHER_PYTHON.

OTHER_PYTHON is an interpreter in whose environment the other checkout is installed. Each figure is taken in turns,
`--rounds` times, each time in a fresh process; printed are the medians, and the median of the ratios of one turn. The
figures on PostgreSQL start a server of their own, as the tests do, and make a database for each turn.

A checkout without calls for asyncio takes 64 threads in place of 64 tasks. Figures are rates a second; `p99` is the
reverse of the 99th percentile of a spend's seconds, so that larger is better everywhere.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ldp_budget
from ldp_budget import Accountant

THREADS = 64
COIN = ldp_budget.mechanism("rr")(epsilon="0.0001")
LIMITS = ["lifetime=1000", "day=500"]


# -- figures -------------------------------------------------------------------------------------------------


def rate(count: int, work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return count / (time.perf_counter() - start)


def opened(ledger: str) -> Accountant:
    """Open a new ledger with a policy."""
    accountant = Accountant(ledger)
    accountant.set_policy("default", LIMITS)
    return accountant


def in_threads(work: Callable[[int], object], threads: int = THREADS) -> None:
    crowd = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()


def single(ledger: str, count: int, key: bool = True) -> float:
    with opened(ledger) as accountant:
        for number in range(20):
            accountant.spend(f"user-{number}", COIN)

        def work() -> None:
            for number in range(count):
                accountant.spend(f"user-{number % 50}", COIN, key=f"k{number}" if key else None)

        return rate(count, work)


def threads(ledger: str, count: int, key: bool = True) -> float:
    each = count // THREADS
    with opened(ledger) as accountant:

        def one(thread: int) -> None:
            for number in range(each):
                accountant.spend(f"user-{thread}", COIN, key=f"{thread}/{number}" if key else None)

        return rate(each * THREADS, lambda: in_threads(one))


def tasks(ledger: str, count: int) -> float:
    each = count // THREADS
    if not hasattr(Accountant, "spend_async"):
        return threads(ledger, count)
    with opened(ledger) as accountant:

        async def one(task: int) -> None:
            for number in range(each):
                await accountant.spend_async(f"user-{task}", COIN, key=f"{task}/{number}")

        async def crowd() -> None:
            await asyncio.gather(*map(one, range(THREADS)))

        return rate(each * THREADS, lambda: asyncio.run(crowd()))


def lines(ledger: str, count: int) -> float:
    """64 lines of one caller at a time, each with a key of its own."""
    try:
        from ldp_budget.accounting.batch import Spend
    except ImportError:
        from ldp_budget.accounting.batch_run import Spend  # type: ignore[import-not-found, no-redef]
    with opened(ledger) as accountant:

        def work() -> None:
            for first in range(0, count, 64):
                accountant.spend_each(
                    [Spend(f"user-{number - first}", COIN, key=f"k{number}") for number in range(first, first + 64)]
                )

        return rate(count // 64 * 64, work)


def bulk(ledger: str, count: int, known: bool) -> float:
    users = [f"user-{number}" for number in range(count)]
    with opened(ledger) as accountant:
        if known:
            accountant.spend_many(users, COIN)
        return rate(count, lambda: accountant.spend_many(users, COIN))


def labelled(ledger: str, count: int, label: bool) -> float:
    rappor = ldp_budget.mechanism("rappor").calibrate(bits=16, hashes=2, cohorts=8, f="0.5", p="0.25", q="0.75")
    with Accountant(ledger) as accountant:
        accountant.set_policy("default", ["lifetime=1000000"])
        accountant.spend("alice", rappor, label="x")

        def work() -> None:
            for number in range(count):
                accountant.spend(f"user-{number % 50}", rappor, label="x" if label else None)

        return rate(count, work)


def next_to(ledger: str, count: int, other: Callable[[Accountant, threading.Event], None]) -> list[float]:
    """Spend one by one while another thread uses the ledger; return the seconds of each spend."""
    took: list[float] = []
    with opened(ledger) as accountant:
        accountant.spend_many([f"user-{number}" for number in range(20_000)], COIN)
        stop = threading.Event()
        thread = threading.Thread(target=other, args=(accountant, stop))
        thread.start()
        for number in range(count):
            start = time.perf_counter()
            accountant.spend(f"user-{number % 50}", COIN)
            took.append(time.perf_counter() - start)
        stop.set()
        thread.join()
    return took


def reader(accountant: Accountant, stop: threading.Event) -> None:
    """Read the journal as it comes, and not as fast as a processor can."""
    while not stop.is_set():
        for number, _ in enumerate(accountant.journal()):
            if stop.is_set():
                break
            if number % 100 == 0:
                time.sleep(0.01)


def writer(accountant: Accountant, stop: threading.Event) -> None:
    """Charge users in bulk."""
    round_ = 0
    while not stop.is_set():
        accountant.spend_many([f"bulk-{round_}-{number}" for number in range(20_000)], COIN)
        round_ += 1


def speed(took: list[float]) -> float:
    return len(took) / sum(took)


def p99(took: list[float]) -> float:
    return 1 / statistics.quantiles(took, n=100)[98]


def part_of_crowd(ledger: str, seconds: float, part: int) -> None:
    """Spend in 16 threads until a time is over; print how many spends that were."""
    counts = [0] * 16
    with Accountant(ledger, create=False) as accountant:
        accountant.spend("first", COIN)
        print("ready", flush=True)
        sys.stdin.readline()
        end = time.perf_counter() + seconds

        def one(thread: int) -> None:
            while time.perf_counter() < end:
                user = f"user-{(thread * 7919 + counts[thread] * 104729) % 5000}"
                accountant.spend(user, COIN, key=f"{part}/{thread}/{counts[thread]}")
                counts[thread] += 1

        in_threads(one, 16)
    print(sum(counts))


def processes(ledger: str, seconds: float, parts: int = 4) -> float:
    """Spend in 16 threads of each of several processes."""
    with opened(ledger) as accountant:
        accountant.spend_many([f"user-{number}" for number in range(5000)], COIN)
    crowd = [
        subprocess.Popen(
            [sys.executable, __file__, "--part", str(part), "--ledger", ledger, "--seconds", str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for part in range(parts)
    ]
    for process in crowd:
        assert process.stdout is not None
        process.stdout.readline()
    for process in crowd:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return sum(int(process.communicate()[0]) for process in crowd) / seconds


FIGURES: dict[str, Callable[[str], float]] = {
    "single, no key": lambda ledger: single(ledger, 3000, False),
    "single, key": lambda ledger: single(ledger, 3000),
    "64 threads, no key": lambda ledger: threads(ledger, 12_800, False),
    "64 threads, key": lambda ledger: threads(ledger, 12_800),
    "64 tasks, key": lambda ledger: tasks(ledger, 25_600),
    "64 lines, key": lambda ledger: lines(ledger, 25_600),
    "bulk, new users": lambda ledger: bulk(ledger, 300_000, False),
    "bulk, known users": lambda ledger: bulk(ledger, 300_000, True),
    "alone": lambda ledger: speed(next_to(ledger, 3000, lambda accountant, stop: None)),
    "next to a reader": lambda ledger: speed(next_to(ledger, 3000, reader)),
    "next to a bulk run, p99": lambda ledger: p99(next_to(ledger, 1500, writer)),
    "memory": lambda ledger: single(":memory:", 10_000, False),
    "memory, plain rappor": lambda ledger: labelled(":memory:", 5000, False),
    "memory, labelled rappor": lambda ledger: labelled(":memory:", 2000, True),
    "PostgreSQL, single": lambda ledger: single(ledger, 2000),
    "PostgreSQL, 64 threads": lambda ledger: threads(ledger, 12_800),
    "PostgreSQL, 4 processes of 16": lambda ledger: processes(ledger, 4.0),
    "PostgreSQL, bulk, new users": lambda ledger: bulk(ledger, 100_000, False),
    "PostgreSQL, bulk, known users": lambda ledger: bulk(ledger, 100_000, True),
}


# -- turns ---------------------------------------------------------------------------------------------------


def measure(python: str, figure: str, folder: Path, server: Any) -> float:
    """Take one figure in a process of its own; not a number where that fails or hangs."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        ledger = str(Path(place) / "budget.db")
        if figure.startswith("PostgreSQL"):
            url = server.create_database()
            ledger = f"{url}{'&' if '?' in url else '?'}partitions=64"
        command = [python, __file__, "--figure", figure, "--ledger", ledger]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
        except subprocess.SubprocessError as error:
            print(error, getattr(error, "stderr", ""), file=sys.stderr)
            return float("nan")
    return float(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", nargs="?", help="the interpreter of the other checkout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="figures whose names contain this")
    parser.add_argument("--folder", type=Path, default=Path("."), help="where the ledgers lie [default: here]")
    for inner in ("--figure", "--ledger", "--part", "--seconds"):
        parser.add_argument(inner, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part is not None:
        part_of_crowd(arguments.ledger, float(arguments.seconds), int(arguments.part))
    elif arguments.figure is not None:
        print(FIGURES[arguments.figure](arguments.ledger))
    elif arguments.other is None:
        parser.error("OTHER_PYTHON is missing: the interpreter of the other checkout")
    else:
        compare(arguments.other, arguments.rounds, arguments.only, arguments.folder)


def compare(other: str, rounds: int, only: str, folder: Path) -> None:
    """Print a row for each figure."""
    chosen = [figure for figure in FIGURES if only in figure]
    server = None
    if any(figure.startswith("PostgreSQL") for figure in chosen):
        sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))
        from postgres_servers import shared_server

        server = shared_server()
    print("| figure | other, a second | this, a second | this / other |\n| --- | --- | --- | --- |")
    for figure in chosen:
        pairs = [
            (measure(other, figure, folder, server), measure(sys.executable, figure, folder, server))
            for _ in range(rounds)
        ]
        theirs, ours = (statistics.median(each) for each in zip(*pairs, strict=True))
        ratio = statistics.median(mine / their for their, mine in pairs)
        print(f"| {figure} | {theirs:,.1f} | {ours:,.1f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
