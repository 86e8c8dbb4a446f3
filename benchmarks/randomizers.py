"""The clients of this checkout compared with those of another one: python benchmarks/randomizers.py OTHER_PYTHON.

OTHER_PYTHON is an interpreter in whose environment the other checkout is installed. Each checkout runs in a process of
its own, and they randomize in turns. Printed are, for each mechanism, the medians of the processor time of one user in
a call of many, and of a call with one user; and how fast this checkout is, relative to the other one. The last columns
say if the seeded reports of single users, and of all users of one call, are the same bytes. About two minutes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import secrets
import statistics
import subprocess
import sys
from time import process_time
from typing import Any

UNIT: dict[str, Any] = {"epsilon": 1, "lower": 0, "upper": 1}
SKETCH: dict[str, Any] = {"epsilon": 1, "hashes": 64, "width": 256, "domain_size": 100}
BLOOM: dict[str, Any] = {
    "bits": 32,
    "hashes": 2,
    "cohorts": 8,
    "epsilon": 1,
    "epsilon_lifetime": 4,
    "domain_size": 100,
}
LETTERS = 500
"""Different words of heavy hitters."""
CASES: list[tuple[str, dict[str, Any]]] = [
    ("grr", {"epsilon": 1, "domain_size": 100}),
    ("grr", {"epsilon": 1, "domain_size": 100, "draws": 3}),
    ("grr", {"epsilon": 1, "domain_size": 100, "draws": 3, "sampling": "distinct", "ordered": True}),
    ("subset-selection", {"epsilon": 1, "domain_size": 100}),
    ("sue", {"epsilon": 1, "domain_size": 100}),
    ("oue", {"epsilon": 1, "domain_size": 100}),
    ("unary-encoding", {"p": "0.6", "q": "0.2", "domain_size": 100}),
    ("randomized-response", {"epsilon": 1}),
    ("matrix-substitution", {"matrix": [["0.5", "0.2", "0.1"], ["0.3", "0.6", "0.2"], ["0.2", "0.2", "0.7"]]}),
    ("pgr", {"epsilon": 1, "domain_size": 100}),
    ("pgr", {"epsilon": 2, "domain_size": 10000}),
    ("rappor", BLOOM),
    ("rappor", {**BLOOM, "any_inputs": True}),
    ("cms", SKETCH),
    ("hcms", SKETCH),
    ("loloha", {"epsilon_lifetime": 2, "epsilon_first": 1, "domain_size": 100}),
    ("heavy-hitters", {"epsilon": 1, "length": 4}),
    ("heavy-hitters", {"epsilon": 1, "length": 12}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 20, "bits": 4}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 20, "bits": 20}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 20, "bits": 4, "memoize": True}),
    ("one-bit-mean", UNIT),
    ("one-bit-mean", {"rounding": "0.25", "flip": "0.1", **UNIT}),
    ("laplace", UNIT),
    ("gaussian", {"delta": "1e-6", **UNIT}),
    ("staircase", UNIT),
    ("bounded-laplace", UNIT),
    ("bounded-staircase", UNIT),
    ("square-wave", UNIT),
    ("hybrid", UNIT),
]
SINGLE = 50
"""Calls with one user in a turn."""


# -- a checkout ------------------------------------------------------------------------------------------------------


class Client:
    """A mechanism of the checkout in which this process runs, and the values of its users."""

    def __init__(self, name: str, parameters: dict[str, Any], users: int) -> None:
        import numpy as np

        import ldp_budget

        self.mechanism: Any = ldp_budget.mechanism(name).calibrate(**parameters)
        program, random = self.mechanism.client_program(), np.random.default_rng(1)
        if program.input["kind"] == "number":
            self.values: Any = random.random(users)
        elif program.input["kind"] == "word":
            length = self.mechanism.length
            words = ["".join(map(chr, random.integers(97, 123, 1 + place % length))) for place in range(LETTERS)]
            self.values = [words[place] for place in random.integers(0, LETTERS, users)]
        else:
            self.values = random.integers(0, int(program.input["count"]), users)
        self.secrets = [secrets.token_bytes(16) for _ in range(users)] if program.memo else None

    def call(self, start: int, end: int, seed: int | None = None, *, known: bool = False) -> bytes:
        """Randomize some users. `known`: with secrets that both checkouts know."""
        own = self.secrets and ([bytes(16)] * (end - start) if known else self.secrets[start:end])
        return bytes(self.mechanism.randomize(self.values[start:end], rng=seed, secrets=own).tobytes())

    def many(self) -> float:
        start = process_time()
        self.call(0, len(self.values))
        return (process_time() - start) / len(self.values)

    def one(self) -> float:
        start = process_time()
        for user in range(SINGLE):
            self.call(user, user + 1)
        return (process_time() - start) / SINGLE

    def bytes_of_one(self) -> str:
        reports = b"".join(self.call(user, user + 1, user, known=True) for user in range(SINGLE))
        return hashlib.sha256(reports).hexdigest()

    def bytes_of_many(self) -> str:
        return hashlib.sha256(self.call(0, len(self.values), 1, known=True)).hexdigest()


def serve() -> None:
    """Answer the requests of the process that compares, one a line."""
    client: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        if isinstance(request, list):
            client = Client(*request)
            client.many(), client.one()
            print("null", flush=True)
        else:
            print(json.dumps(getattr(client, request)()), flush=True)


# -- both ------------------------------------------------------------------------------------------------------------


class Worker:
    """The process of a checkout."""

    def __init__(self, python: str) -> None:
        command = [python, __file__, "--serve"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, request: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate()


def compare(other: str, turns: int, users: int, only: str) -> None:
    """Print a row for each mechanism, and the least and the median ratio."""
    workers = [Worker(other), Worker(sys.executable)]
    rows = ["client", "other", "this", "this / other", "one user, other", "this", "this / other", "bytes"]
    print(f"| {' | '.join(rows)} |\n|{' --- |' * len(rows)}")
    many: list[float] = []
    one: list[float] = []
    for name, parameters in CASES:
        if only not in name:
            continue
        for worker in workers:
            worker.ask([name, parameters, users])
        cells = [f"{name} {' '.join(f'{k}={v}' for k, v in parameters.items() if k not in UNIT and k != 'matrix')}"]
        for figure, unit, ratios in (("many", 1e9, many), ("one", 1e6, one)):
            pairs = [[worker.ask(figure) for worker in workers] for _ in range(turns)]
            theirs, ours = (statistics.median(each) for each in zip(*pairs, strict=True))
            ratios.append(theirs / ours)
            cells += [f"{unit * theirs:.0f}", f"{unit * ours:.0f}", f"{ratios[-1]:.2f}"]
        same = [len({worker.ask(each) for worker in workers}) == 1 for each in ("bytes_of_one", "bytes_of_many")]
        cells.append("differ" if not same[0] else "same" if same[1] else "same of one")
        print(f"| {' | '.join(cells)} |", flush=True)
    for worker in workers:
        worker.close()
    print(f"\nMany users: least {min(many):.2f}, median {statistics.median(many):.2f}.")
    print(f"One user: least {min(one):.2f}, median {statistics.median(one):.2f}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", nargs="?", help="the interpreter of the other checkout")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--users", type=int, default=60_000)
    parser.add_argument("--only", default="", help="mechanisms whose names contain this")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve()
    elif arguments.other is None:
        parser.error("OTHER_PYTHON is missing: the interpreter of the other checkout")
    else:
        compare(arguments.other, arguments.turns, arguments.users, arguments.only)


if __name__ == "__main__":
    main()
