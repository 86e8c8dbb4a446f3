"""Certified bounds for the answers of all libraries: lines of JSON in and out, as worker.py.

    PYTHON judge.py

Runs in the environment of ldp-budget. An ε is what its exact composition says of the noise that was really asked
for: between a certified lower and a certified upper bound, at the δ that was asked for. A client is audited by its
reports, drawn in its own environment; the lower bound of its loss that follows from them is wrong at most once in a
hundred.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import work

from ldp_budget import Mechanism, audit, compose
from ldp_budget.composition import compose_delta
from ldp_budget.guarantees import Gaussian, Guarantee, Laplace, Pure
from ldp_budget.sdk.domain import Categories
from ldp_budget.sdk.parameters import real


def gaussian(sigma: float, epsilon: float, delta: float) -> dict[str, float]:
    """ε of Gaussian noise of that σ at δ, and a lower bound of its δ at ε."""
    charges = [(Gaussian(1 / sigma), 1)]
    return _bounds(charges, delta) | {"delta_lost": compose_delta(charges, epsilon)[0]}


def composition(case: str) -> dict[str, float]:
    delta, reports = work.COMPOSITIONS[case]
    kinds = {"rr": Pure, "laplace": lambda b: Laplace(1 / b), "gaussian": lambda sigma: Gaussian(1 / sigma)}
    return _bounds([(kinds[kind](size), count) for kind, size, count in reports], delta)


def _bounds(charges: list[tuple[Guarantee, int]], delta: float) -> dict[str, float]:
    total = compose(charges, delta=delta, rule="exact")
    return {"lower": total.lower, "upper": total.epsilon}


def audited(command: list[str], mechanism: str) -> dict[str, Any]:
    """The lower bound of the loss of a client that `command` starts, next to its promise."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as worker:
        client = _client(worker, mechanism)
        made = client(epsilon=1)
        # What is promised is known with the first report only.
        made.randomize(np.zeros(1, dtype=np.int64), secrets=[bytes(32)])
        reports = work.MEMOISED_REPORTS if mechanism == "memoised" else 1
        found = audit(made, samples=work.AUDITED_REPORTS, reports=reports, search=True)
        worker.stdin.close()  # type: ignore[union-attr]
    return {"promised": client.promised, "lower": found.lower_bound, "event": found.event}


def _client(worker: Any, mechanism: str) -> Any:
    class Theirs(Mechanism):
        """A client of which nothing is known but its answers."""

        name = "theirs"
        promised = 0.0
        epsilon = real("privacy loss of one report", above=0)

        @property
        def guarantee(self) -> Guarantee:
            return Pure(self.epsilon)

        @property
        def domain(self) -> Categories:
            return Categories(work.AUDITED[mechanism]["answers"])

        def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
            asked = {
                "do": "rows",
                "mechanism": mechanism,
                "values": np.asarray(values).tolist(),
                "secrets": None if mechanism != "memoised" else [bytes(secret).hex() for secret in secrets],
            }
            worker.stdin.write(json.dumps(asked) + "\n")
            worker.stdin.flush()
            said = json.loads(worker.stdout.readline())
            if "found" not in said:
                raise _SaidError(said)
            Theirs.promised = said["found"]["epsilon"]
            return np.array(said["found"]["rows"], dtype=np.int32)

    return Theirs


class _SaidError(Exception):
    """Answer of a client in place of reports."""


ASKED = {call.__name__: call for call in (gaussian, composition, audited)}


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = {"found": ASKED[asked.pop("do")](**asked)}
        except _SaidError as error:
            answer = error.args[0]
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {error}"[:160]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
