"""Long reads of a ledger against reading its rows: `report`, `balance --all`, `ledger verify`, `export`, `move`.

    python benchmarks/reads.py [--users N[,N...]] [--skip-move]

A ledger is made for each number of users in a temporary folder, by one run of `spend_many`. Every figure is that of a
whole process: its processor time and the most memory that it held (its resident set). The floor, in the same run, is a
process of the sqlite3 module that reads all rows of the journal, the users, their sums and their MACs, and does nothing with them.
The cost for each user should not grow with their number. `report` is measured within an hour of a verification. Needs
a Unix.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

SCRIPT = str(Path(sys.executable).with_name("ldp-budget"))
MOST_MEGABYTES = 200
USERS = "10000,100000"
LIMITS = ("--limit", "lifetime=10", "--limit", "month=2")
FLOOR = """
import sqlite3
connection = sqlite3.connect("budget.db")
for table in ("journal", "users", "window_sums", "account_macs"):
    for row in connection.execute(f"SELECT * FROM {table}"):
        pass
"""
SECONDS_OF_A_MILLION = {"report": 6.0, "balance --all --csv": 30.0, "ledger move": 70.0}
"""The most processor seconds for a million users."""


def run(*words: str) -> tuple[float, float, float]:
    """(clock, processor, megabytes) of one process."""
    start = perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)}: {said}")
    kilobytes = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return perf_counter() - start, usage.ru_utime + usage.ru_stime, kilobytes * 1024 / 1e6


def fill(users: int) -> None:
    """Make a ledger whose users have one charge each."""
    with open("answers.csv", "w") as file:
        file.write("user,answer\n")
        file.writelines(f"user {number},{('yes', 'no', 'maybe')[number % 3]}\n" for number in range(users))
    run(SCRIPT, "ledger", "init")
    run(SCRIPT, "policy", "set", "default", *LIMITS)
    run(SCRIPT, "collection", "add", "mood", "oue", "--categories", "yes,no,maybe", "--epsilon", "1")
    columns = ("--column", "answer", "--user-column", "user", "--spend", "--out", "mood.reports")
    run(SCRIPT, "randomize", "mood", "answers.csv", *columns)


def measure(users: int, move: bool) -> None:
    fill(users)
    commands = {
        "floor": (sys.executable, "-c", FLOOR),
        "ledger verify": (SCRIPT, "ledger", "verify"),
        "report": (SCRIPT, "report", "mood", "mood.reports", "--out", "mood.html", "--overwrite"),
        "estimate": (SCRIPT, "estimate", "mood", "mood.reports", "--json"),
        "balance --all --csv": (SCRIPT, "balance", "--all", "--csv"),
        "ledger export": (SCRIPT, "ledger", "export", "--to", "journal.ndjson"),
        **({"ledger move": (SCRIPT, "ledger", "move", "budget.db", "moved.db", "--yes")} if move else {}),
    }
    floor = 0.0
    for name, words in commands.items():
        clock, processor, megabytes = run(*words)
        floor = floor or processor
        most = SECONDS_OF_A_MILLION.get(name)
        verdict = ""
        if most is not None:
            fits = processor * 1e6 <= most * max(users, 1e6) and megabytes <= MOST_MEGABYTES
            verdict = f"{'met' if fits else 'MISSED'} (<= {most:g} s, {MOST_MEGABYTES} MB)"
        each = processor / users * 1e6
        print(
            f"| {users:,} | {name} | {clock:.1f} s | {processor:.1f} s | {each:.1f} µs | {processor / floor:.1f} | "
            f"{megabytes:.0f} MB | {verdict} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", default=USERS, help="the sizes, separated by commas")
    parser.add_argument("--skip-move", action="store_true")
    given = parser.parse_args()
    print(
        "| users | command | clock | processor | of it a user | times the floor | most memory | goal for a million |"
    )
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for users in map(int, given.users.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            os.environ["LDP_BUDGET_LEDGER"] = "budget.db"
            measure(users, not given.skip_move)
            os.chdir("/")


if __name__ == "__main__":
    main()
