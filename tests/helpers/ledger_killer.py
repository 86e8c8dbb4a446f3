"""Spends in child processes and kills them at random moments; run by `test_ledger_crash`, one JSON line a child.

    python ledger_killer.py PATH MODE KILLS SEED

A child prints a result (`told`) only after the accountant has answered. Its keys are numbered, so a reader of
this knows what it may have asked beyond that.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time

import ldp_budget
from ldp_budget import Accountant
from ldp_budget.accounting import bulk_run

COIN = ldp_budget.mechanism("rr")(epsilon="0.001")
THREADS = 8
BULK_USERS = 400
# A child is killed some seconds after so many lines, of which the first says that it has opened the ledger.
MOST_LINES = {"single": 12, "grouped": 60, "bulk": 12}
LONGEST = 0.008


def users_of(number: int) -> list[str]:
    """The users of a bulk run."""
    return [f"user-{(number * 7 + n) % 1000}" for n in range(BULK_USERS)]


def say(pipe: int, told: object) -> None:
    os.write(pipe, (json.dumps(told) + "\n").encode())


def single(accountant: Accountant, pipe: int, child: int) -> None:
    """One spend after the other."""
    _spend_on(accountant, pipe, f"{child}/0")


def grouped(accountant: Accountant, pipe: int, child: int) -> None:
    """Threads, whose spends share transactions."""
    for number in range(THREADS):
        threading.Thread(target=_spend_on, args=(accountant, pipe, f"{child}/{number}"), daemon=True).start()
    time.sleep(10)


def _spend_on(accountant: Accountant, pipe: int, prefix: str) -> None:
    number = 0
    while True:
        receipt = accountant.spend(f"user-{number % 5}", COIN, key=f"{prefix}/{number}")
        say(pipe, [prefix, number, receipt.receipt])
        number += 1


def in_bulk(accountant: Accountant, pipe: int, child: int) -> None:
    """Runs of several batches each."""
    number = 0
    while True:
        result = accountant.spend_many(
            users_of(number), COIN, key=f"{child}/0/{number}", on_batch=lambda *batch: say(pipe, ["batch", 0, None])
        )
        say(pipe, [f"{child}/0", number, result.to_json()])
        number += 1


MODES = {"single": single, "grouped": grouped, "bulk": in_bulk}


def child(path: str, mode: str, number: int, pipe: int) -> None:
    bulk_run.BATCH = BULK_USERS // 4
    accountant = Accountant(path, create=False)
    say(pipe, ["head", 0, accountant.stats()["head"]])
    MODES[mode](accountant, pipe, number)


def kill_one(path: str, mode: str, number: int, lines: int, seconds: float) -> list[object]:
    """Return the results of a child before it was killed, some seconds after it had printed so many lines."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            child(path, mode, number, writing)
        finally:
            os._exit(1)
    os.close(writing)
    said = b""
    while said.count(b"\n") < lines:
        said += os.read(reading, 1 << 16)
    time.sleep(seconds)
    os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status), "it ended by itself"
    with os.fdopen(reading, "rb") as pipe:
        said += pipe.read()
    return [json.loads(line) for line in said.splitlines()]


def main(path: str, mode: str, kills: str, seed: str) -> None:
    moments = random.Random(seed)
    for number in range(int(kills)):
        told = kill_one(path, mode, number, moments.randint(0, MOST_LINES[mode]), moments.uniform(0, LONGEST))
        print(json.dumps({"child": number, "told": told}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
