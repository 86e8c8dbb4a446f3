"""Consumers of a stream, which charge each message and then commit its offset, and the ledger that they charge."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO

import ldp_budget
from ldp_budget import Accountant
from ldp_budget.registry.collections import Collection
from ldp_budget.reports.inbox import Inbox

_CONSUMER = """
import os, sys
from ldp_budget import Accountant
from ldp_budget.reports.inbox import Inbox, Sent

path, offset, messages, together = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
with Accountant(path) as accountant:
    inbox = Inbox(accountant, accountant.collection("poll"))
    at = int(open(offset).read()) if os.path.exists(offset) else 0
    while at < messages:
        batch = range(at, min(at + together, messages))
        print("begin", flush=True)
        taken, refused = inbox.take_many([Sent(f"user {n}", f"key {n}", bytes([n % 2])) for n in batch])
        assert (len(taken), refused) == (len(batch), [])
        print("charged", sum(receipt.repeated for receipt in taken), flush=True)  # it waits for `answer` to commit
        sys.stdin.readline()
        at = batch.stop
        with open(offset + ".new", "w") as file:
            file.write(str(at))
        os.replace(offset + ".new", offset)
"""


def consumer(path: Path, messages: int, together: int) -> list[str]:
    """Return the command of a consumer of so many messages, so many in a batch; its offset is a file beside the ledger.

    Of each batch it prints `begin`, and then `charged` with the number of messages that an earlier consumer had charged.
    """
    offset = path.with_name("offset")
    return [sys.executable, "-c", _CONSUMER, str(path), str(offset), str(messages), str(together)]


def answer(stdin: IO[str]) -> None:
    """Let a consumer commit and go on."""
    stdin.write("\n")
    stdin.flush()


def open_poll(path: Path) -> None:
    """Create the ledger of the consumers."""
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=5"])
        made = ldp_budget.mechanism("randomized-response").calibrate(epsilon=1)
        accountant.add_collection(Collection("poll", made))


def charged(path: Path) -> tuple[list[int], int]:
    """Each account's charge, in units of 10^-9, and the number of stored reports of a ledger that verifies."""
    with Accountant(path) as accountant:
        assert accountant.verify().ok
        spent = [balance.limits[0].spent_units.epsilon for balance in accountant.balances()]
        return spent, len(Inbox(accountant, accountant.collection("poll")))
