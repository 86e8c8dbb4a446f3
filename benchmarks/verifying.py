"""`verify` of a million entries compared with plain reading of every row, each in a process of its own.

    python benchmarks/verifying.py [--entries N]

The ledger is made by `spend_many`, half of its users charged twice, in a temporary folder. Seconds and memory are
those of whole processes, which take turns three times; the medians are shown, and their ratios. Needs a Unix.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import ldp_budget
from ldp_budget import Accountant

TURNS = 3
MOST_SECONDS, MOST_MIB = 40, 300

VERIFY = """
import sys
from ldp_budget import Accountant
told = []
result = Accountant(sys.argv[1], create=False).verify(on_progress=lambda done, total: told.append(done))
assert result.ok and told
"""

READ = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
    for row in connection.execute(f"SELECT * FROM {table}"):
        pass
"""

# A process starts with the peak of the one that started it, so a small one stands between.
WATCH = """
import resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], check=True)
seconds, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
print(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10))
"""


def fill(path: str, entries: int) -> None:
    """A ledger of so many charges."""
    report = ldp_budget.mechanism("oue")(epsilon="0.000001", domain_size=7)
    users = entries * 2 // 3
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=4", "day=1", "month=2"])
        for many in (users, entries - users):
            accountant.spend_many((f"user{number}" for number in range(many)), report, on_batch=lambda *batch: None)


def watched(script: str, path: str) -> tuple[float, ...]:
    """Seconds, seconds of processor time, and peak memory in MiB of a process that runs a script."""
    command = [sys.executable, "-c", WATCH, sys.executable, "-c", script, path]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return tuple(float(figure) for figure in found.stdout.split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1_000_000, metavar="N")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "budget.db")
        fill(path, options.entries)
        turns = [(watched(VERIFY, path), watched(READ, path)) for _ in range(TURNS)]
    ours, floor = ([statistics.median(column) for column in zip(*side, strict=True)] for side in zip(*turns))  # noqa: B905
    print(f"{f'{options.entries:,} entries':32}{'verify':>10}{'reading':>10}{'ratio':>8}")
    limits = (MOST_SECONDS, None, MOST_MIB)
    for name, mine, other, most in zip(
        ("seconds", "of processor time", "peak MiB"), ours, floor, limits, strict=True
    ):
        verdict = "" if most is None else f"  {'met' if mine <= most else 'MISSED'} (<= {most})"
        print(f"{name:32}{mine:10.1f}{other:10.1f}{mine / other:8.1f}{verdict}")


if __name__ == "__main__":
    main()
