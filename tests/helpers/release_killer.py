"""Kill a run of `release` at every step, and read every report that is on the disk then.

`python release_killer.py FOLDER POLICY` prints a line of JSON for each step at which a process was killed, and one
for the run that came to its end.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ldp_budget
import ldp_budget.reports.charged_release as room
from ldp_budget import Accountant, Collection
from ldp_budget.accounting.plans import Plan

BATCH = 4
USERS = [f"user{number:03}" for number in range(8)]
REFUSED = USERS[1:6:2]
SURVEY = Collection("survey", ldp_budget.mechanism("oue")(epsilon=1, domain_size=16))
VALUES = np.arange(8)
_TAG = re.compile(rb"<(user\d{3}) ([0-9a-f]{8})>")
_SLOT = 64


def tagged(self: Collection, values: Any, **options: Any) -> Any:
    """Reports that say whose they are and which draw, so that they are found in any file."""
    rows = b"".join(f"<{USERS[value]} {os.urandom(4).hex()}>".encode() for value in values)
    return np.frombuffer(rows, np.uint8).reshape(len(values), -1 if len(values) else 18)


def release(folder: Path, policy: str) -> None:
    with Accountant(folder / "budget.db") as accountant:
        room.release(folder / "out", SURVEY, accountant, VALUES, USERS, policy=policy)


def killed_at(step: int, folder: Path, policy: str) -> bool:
    """Run in a process of its own, which is killed at that step; whether it came so far."""
    child = os.fork()
    if not child:
        try:
            _count_steps(step)
            release(folder, policy)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def _count_steps(last: int) -> None:
    """Die before or after a call to the disk or the ledger, at that step."""
    reached = 0

    def step() -> None:
        nonlocal reached
        reached += 1
        if reached == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def between(call: Callable[..., Any]) -> Callable[..., Any]:
        def stepping(*arguments: Any, **options: Any) -> Any:
            step()
            result = call(*arguments, **options)
            step()
            return result

        return stepping

    for name in ("fsync", "replace", "unlink"):
        setattr(os, name, between(getattr(os, name)))
    for name in ("spend", "spend_many"):
        setattr(Accountant, name, between(getattr(Accountant, name)))


def readable(folder: Path) -> dict[str, list[str]]:
    """The draws of each user that a reader of the folder sees, masked or not."""
    found: dict[str, set[str]] = {}
    for path in folder.iterdir():
        content = path.read_bytes()
        for text in (content, *_unmasked(content)):
            for user, draw in _TAG.findall(text):
                found.setdefault(user.decode(), set()).add(draw.decode())
    return {user: sorted(draws) for user, draws in found.items()}


def _unmasked(content: bytes) -> list[bytes]:
    """Open all that a key in the file opens, which may belong to an unfinished block."""
    texts = []
    for start, size, slot in blocks(content):
        masked, key = np.frombuffer(content[start : start + size], np.uint8), content[slot : slot + 32]
        if len(key) == 32 and any(key):
            mask = np.frombuffer(hashlib.shake_256(key).digest(len(masked)), np.uint8)
            texts.append((masked ^ mask).tobytes())
    return texts


def blocks(content: bytes) -> list[tuple[int, int, int]]:
    """Return the start of the masked reports of each block of `OUT.partial`, their size, and the place of its key."""
    if not content.startswith(b"ldp-budget run ") or content.count(b"\n") < 2:
        return []
    found, place = [], content.index(b"\n", len(room._MAGIC)) + 1
    while place + 4 <= len(content):
        [size] = struct.unpack_from("<I", content, place)
        slot = -(-(place + 8 + size) // _SLOT) * _SLOT
        found.append((place + 4, size, slot))
        place = slot + _SLOT
    return found


def spent(folder: Path) -> dict[str, int]:
    with Accountant(folder / "budget.db") as accountant:
        return {user: len(accountant.history(user)) for user in USERS}


def main(folder: Path, policy: str) -> None:
    room._BATCH = BATCH
    Collection.randomize = tagged  # type: ignore[method-assign]
    with Accountant(folder / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        accountant.set_policy("planned", [], plan=Plan(((SURVEY.mechanism.guarantee, 1),), "1e-6"))
        for user in REFUSED:
            accountant.spend(user, SURVEY.mechanism, policy=policy)
    step, going = 0, True
    while going:
        step += 1
        place = folder / str(step)
        place.mkdir()
        for name in ("budget.db", "budget.db.key"):
            shutil.copy(folder / name, place)
        going = killed_at(step, place, policy)
        row = {"charged": spent(place), "read": readable(place), "released": (place / "out").exists()}
        if going:
            if not (place / "out").exists() or (place / "out.partial").exists():
                release(place, policy)
            row["then"] = {"charged": spent(place), "read": readable(place)}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
