"""The ledger of this checkout beside that of another one, in one run: python benchmarks/against.py OTHER_PYTHON.

OTHER_PYTHON is an interpreter in whose environment the other checkout is installed. Each figure is taken in turns,
`--rounds` times, each time in fresh processes; what is printed are the medians and their ratio.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

WORK = r"""
import json, sys, tempfile, threading, time
from pathlib import Path
import ldp_budget
from ldp_budget import Accountant

def rate(count, work):
    start = time.perf_counter()
    work()
    return count / (time.perf_counter() - start)

def single(path, count, **more):
    coin = ldp_budget.mechanism("rr")(epsilon="0.0001")
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=1000", "day=500"])
        for n in range(20):
            accountant.spend(f"user-{n}", coin)
        def work():
            for n in range(count):
                accountant.spend(f"user-{n % 50}", coin, **({"key": f"k{n}"} if more.get("key") else {}))
        return rate(count, work)

def labelled(path, count, label):
    rappor = ldp_budget.mechanism("rappor").calibrate(
        bits=16, hashes=2, cohorts=8, f="0.5", p="0.25", q="0.75")
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=1000000"])
        accountant.spend("alice", rappor, label="x")
        def work():
            for n in range(count):
                accountant.spend(f"user-{n % 50}", rappor, **({"label": "x"} if label else {}))
        return rate(count, work)

def threads(path, count, key):
    coin = ldp_budget.mechanism("rr")(epsilon="0.0001")
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=1000", "day=500"])
        def one(t):
            for n in range(count // 64):
                accountant.spend(f"user-{t}", coin, **({"key": f"{t}/{n}"} if key else {}))
        def work():
            crowd = [threading.Thread(target=one, args=(t,)) for t in range(64)]
            [t.start() for t in crowd]
            [t.join() for t in crowd]
        return rate(count // 64 * 64, work)

def bulk(path, count, known):
    coin = ldp_budget.mechanism("rr")(epsilon="0.0001")
    users = [f"user-{n}" for n in range(count)]
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=1000", "day=500"])
        if known:
            accountant.spend_many(users, coin)
        return rate(count, lambda: accountant.spend_many(users, coin))

def beside_a_reader(path, count, reader):
    coin = ldp_budget.mechanism("rr")(epsilon="0.0001")
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=1000", "day=500"])
        accountant.spend_many([f"user-{n}" for n in range(20000)], coin)
        stop = threading.Event()
        def read():
            # One who looks at the journal as it comes, and not as fast as a processor can.
            while not stop.is_set():
                for number, row in enumerate(accountant.journal()):
                    if stop.is_set():
                        break
                    if number % 100 == 0:
                        time.sleep(0.01)
        thread = threading.Thread(target=read)
        if reader:
            thread.start()
        def work():
            for n in range(count):
                accountant.spend(f"user-{n % 50}", coin)
        try:
            return rate(count, work)
        finally:
            stop.set()
            if reader:
                thread.join()

FIGURES = {
    "single": lambda path: single(path, 3000),
    "single with key": lambda path: single(path, 3000, key=True),
    "64 threads": lambda path: threads(path, 12800, False),
    "64 threads with key": lambda path: threads(path, 12800, True),
    "bulk, new users": lambda path: bulk(path, 300_000, False),
    "bulk, known users": lambda path: bulk(path, 300_000, True),
    "memory": lambda path: single(":memory:", 10_000),
    "memory, plain rappor": lambda path: labelled(":memory:", 5000, False),
    "memory, labelled rappor": lambda path: labelled(":memory:", 2000, True),
    "alone": lambda path: beside_a_reader(path, 3000, False),
    "beside a reader": lambda path: beside_a_reader(path, 3000, True),
}
if len(sys.argv) == 1:
    print(json.dumps(list(FIGURES)))
else:
    with tempfile.TemporaryDirectory(dir=sys.argv[2]) as folder:
        print(FIGURES[sys.argv[1]](Path(folder) / "budget.db"))
"""


def measure(python: str, figure: str, folder: Path) -> float:
    """One figure, in a process of its own; not a number where that fails or hangs."""
    try:
        done = subprocess.run(
            [python, "-c", WORK, figure, str(folder)], capture_output=True, text=True, timeout=120, check=True
        )
    except subprocess.SubprocessError:
        return float("nan")
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", help="the interpreter of the other checkout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help="figures whose names contain this")
    parser.add_argument("--folder", type=Path, default=Path("."), help="where the ledgers lie [default: here]")
    arguments = parser.parse_args()
    listed = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, check=True)
    print("| figure | other, a second | this, a second | this / other |\n| --- | --- | --- | --- |")
    for figure in json.loads(listed.stdout):
        if arguments.only and arguments.only not in figure:
            continue
        pairs = [
            (measure(arguments.other, figure, arguments.folder), measure(sys.executable, figure, arguments.folder))
            for _ in range(arguments.rounds)
        ]
        other, this = (statistics.median(each) for each in zip(*pairs, strict=True))
        ratio = statistics.median(mine / theirs for theirs, mine in pairs)
        print(f"| {figure} | {other:,.0f} | {this:,.0f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
