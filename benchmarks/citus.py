"""The ledger on a Citus cluster compared with the same ledger on one plain server, in turns that alternate.

    LDP_BUDGET_TEST_CITUS=FOLDER python benchmarks/citus.py [--workers 2] [--turns 5] [--seconds 2] [--only single]

FOLDER has the extension, see `tests/helpers/citus_servers.py`. All servers have all durability on. Shown are the
medians: charges a second, the ratio to the plain server in the turn next to it, and milliseconds of processor time of
one charge on the client, the coordinator and all workers together, and on the plain server.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import ldp_budget
from citus_servers import OwnNodes, binaries_with_citus, reason_for_none
from ldp_budget import Accountant
from postgres_servers import Server

COIN = ldp_budget.mechanism("rr")(epsilon="0.0001")
USERS = 2_000
LIMITS = ["lifetime=100000", "day=50000"]
TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(server: Server) -> float:
    """Return the processor time of a server's processes: of the living ones, and of those that have ended."""
    total = 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            if int(folder.name) == server.pid:
                total += sum(map(int, fields[11:15]))
            elif int(fields[1]) == server.pid:
                total += sum(map(int, fields[11:13]))
    return total / TICKS


def spend_for(accountant: Accountant, threads: int, seconds: float) -> int:
    """Return the number of charges of some threads in a time."""
    counts = [0] * threads

    def spend(number: int) -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            user = f"user {(number * 7919 + counts[number] * 104729) % USERS}"
            accountant.spend(user, COIN, key=f"{number}/{time.perf_counter_ns()}")
            counts[number] += 1

    workers = [threading.Thread(target=spend, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts)


def bulk(accountant: Accountant, users: int, known: bool) -> int:
    """Return the number of users that one run charges, all new or all known."""
    name = "bulk" if known else f"new {time.perf_counter_ns()}"
    accountant.spend_many((f"{name} {number}" for number in range(users)), COIN, key=f"run {time.perf_counter_ns()}")
    return users


class Took(NamedTuple):
    """One turn: charges a second, and milliseconds of processor time of one charge."""

    rate: float
    client: float
    first: float
    others: float


def turn(work: Callable[[], int], servers: list[Server]) -> Took:
    """Take a turn; `servers` are the coordinator or the plain server, and the workers."""
    before = [time.process_time(), *map(processor_seconds, servers)]
    start = time.perf_counter()
    count = work()
    took = time.perf_counter() - start
    client, first, *others = (
        (after - then) / count * 1000
        for after, then in zip([time.process_time(), *map(processor_seconds, servers)], before, strict=True)
    )
    return Took(count / took, client, first, sum(others))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--partitions", type=int, default=64)
    parser.add_argument("--users", type=int, default=20_000, help="of a bulk run")
    parser.add_argument("--only", default="", help="figures whose names contain this")
    arguments = parser.parse_args()
    if why := reason_for_none():
        sys.exit(why)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CONFIG_HOME"] = folder
        binaries = binaries_with_citus()
        nodes = OwnNodes(Path(folder) / "cluster", binaries, arguments.workers)
        with closing(nodes), Server(Path(folder) / "plain", binaries) as plain:
            ledgers = [
                nodes.new_ledger(arguments.partitions),
                f"{plain.create_database()}?partitions={arguments.partitions}",
            ]
            with Accountant(ledgers[0]) as there, Accountant(ledgers[1]) as here:
                measure(arguments, (there, nodes.servers), (here, [plain]))


def measure(
    arguments: argparse.Namespace, cluster: tuple[Accountant, list[Server]], plain: tuple[Accountant, list[Server]]
) -> None:
    """Print the figures."""
    for accountant, _ in (cluster, plain):
        accountant.set_policy("default", LIMITS)
        accountant.spend_many([f"user {number}" for number in range(USERS)], COIN)
    figures: dict[str, Callable[[Accountant], int]] = {
        "single": lambda accountant: spend_for(accountant, 1, arguments.seconds),
        "64 threads": lambda accountant: spend_for(accountant, 64, arguments.seconds),
        "bulk, new": lambda accountant: bulk(accountant, arguments.users, False),
        "bulk, known": lambda accountant: bulk(accountant, arguments.users, True),
    }
    print("| figure | cluster | plain | ratio | client | coordinator | workers | client, plain | plain |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, figure in figures.items():
        if arguments.only in name:
            turns = []
            for number in range(arguments.turns):
                pair = [(accountant, servers) for accountant, servers in (cluster, plain)]
                took = {}
                for accountant, servers in pair if number % 2 else pair[::-1]:
                    took[servers[0]] = turn(partial(figure, accountant), servers)
                turns.append((took[cluster[1][0]], took[plain[1][0]]))
            there, here = (
                Took(*map(statistics.median, zip(*side, strict=True))) for side in zip(*turns, strict=True)
            )
            ratio = statistics.median(a.rate / b.rate for a, b in turns)
            times = " | ".join(f"{each:.2f}" for each in (*there[1:], *here[1:3]))
            print(f"| {name} | {there.rate:,.0f} | {here.rate:,.0f} | {ratio:.2f} | {times} |", flush=True)


if __name__ == "__main__":
    main()
