"""Processes that spend from one ledger at the same time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Forks the given number of children, which start together; each prints the result of WORK for its number.
TOGETHER = """
import os, sys, threading
import ldp_budget
from ldp_budget import Accountant
from ldp_budget.ledger.sqlite import connection as sqlite

path, processes = sys.argv[1], int(sys.argv[2])
coin = ldp_budget.mechanism("rr")(epsilon="0.1")
ready, go = os.pipe(), os.pipe()

def say(answer):
    os.write(1, (str(answer) + chr(10)).encode())

def work(accountant, number):
WORK

children = []
for number in range(processes):
    child = os.fork()
    if not child:
        os.close(go[1])
        try:
            with Accountant(path, create=False) as accountant:
                os.write(ready[1], b".")
                os.read(go[0], 1)
                say(work(accountant, number))
        except BaseException as error:
            say(repr(error))
        os._exit(0)
    children.append(child)
for _ in children:
    os.read(ready[0], 1)
os.close(go[1])
for child in children:
    os.waitpid(child, 0)
"""


def together(path: Path, processes: int, work: str) -> list[str]:
    """Return the output of `processes` processes that do `work` at the same time on one ledger."""
    script = TOGETHER.replace("WORK", "\n".join("    " + line for line in work.strip().splitlines()))
    command = [sys.executable, "-c", script, str(path), str(processes)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout.split("\n")[:-1]
