"""The exact distribution of a client's report of one user: every path of its draws, with its probability.

The functions of `ldp_budget.sampling` that draw are replaced by ones that take every outcome in turn, with the
probability that they promise, a fraction of integer thresholds; that they keep this promise is tested with them.
What the client makes of each is then seen whole, so a law of a few thousand reports is enumerated and not sampled.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from ldp_budget import Mechanism
from ldp_budget.sampling import ONE, Stream

Law = dict[bytes, Fraction]


class Draws:
    """Goes through all the outcomes of a run of draws, one path after another."""

    def __init__(self) -> None:
        self._path: list[int] = []
        self._widths: list[int] = []
        self._depth = 0
        self.probability = Fraction(1)

    def choose(self, chances: list[Fraction]) -> int:
        """The outcome of one draw on this path, a place among `chances`; those of no chance are left out."""
        possible = [place for place, chance in enumerate(chances) if chance]
        if self._depth == len(self._path):
            self._path.append(0)
            self._widths.append(len(possible))
        place = possible[self._path[self._depth]]
        self._depth += 1
        self.probability *= chances[place]
        return place

    def restart(self) -> None:
        self._depth, self.probability = 0, Fraction(1)

    def advance(self) -> bool:
        """Continue with the next path; return False if there is none."""
        while self._path and self._path[-1] + 1 == self._widths[-1]:
            self._path.pop()
            self._widths.pop()
        if self._path:
            self._path[-1] += 1
        return bool(self._path)

    # -- in the place of ldp_budget.sampling ----------------------------------------------------------

    def bernoulli(self, stream: Any, threshold: Any, size: int) -> Any:
        each = np.broadcast_to(np.asarray(threshold, dtype=object), (size,))
        chances = [Fraction(int(one), ONE) for one in each]
        return np.array([self.choose([1 - chance, chance]) == 1 for chance in chances], dtype=np.bool_)

    def integers(self, stream: Any, bound: Any, size: int) -> Any:
        each = np.broadcast_to(np.asarray(bound, dtype=object), (size,))
        return np.array([self.choose([Fraction(1, int(one))] * int(one)) for one in each], dtype=np.int64)

    def subsets(self, stream: Any, population: int, size: int, count: int) -> Any:
        rows = list(combinations(range(population), size))
        drawn = [rows[self.choose([Fraction(1, len(rows))] * len(rows))] for _ in range(count)]
        return np.array(drawn, dtype=np.int64).reshape(count, size)


def drawn_law(mechanism: Mechanism, value: Any) -> tuple[Law, dict[bytes, Any]]:
    """The probability of every report of one user with that value, by its bytes; and the reports themselves."""
    draws = Draws()
    law: Law = defaultdict(Fraction)
    seen: dict[bytes, Any] = {}
    mechanism.randomize(np.array([value]), rng=1)  # import everything before anything is replaced
    with pytest.MonkeyPatch.context() as patch:
        for name in ("bernoulli", "integers", "subsets"):
            _replace(patch, name, getattr(draws, name))
        while True:
            draws.restart()
            report = np.asarray(mechanism.randomize(np.array([value]), rng=Untouched()))
            law[report.tobytes()] += draws.probability
            seen[report.tobytes()] = report
            if not draws.advance():
                return dict(law), seen


def _replace(patch: pytest.MonkeyPatch, name: str, draw: Callable[..., Any]) -> None:
    """In every module of ours that knows the function."""
    import ldp_budget.sampling

    honest = getattr(ldp_budget.sampling, name)
    patch.setitem(vars(ldp_budget.sampling), name, draw)
    for module in list(sys.modules.values()):
        if module.__name__.startswith("ldp_budget") and vars(module).get(name) is honest:
            patch.setattr(module, name, draw)


class Untouched(Stream):
    """A stream that must not be read: draws from it would not be enumerated."""

    def read(self, count: int) -> bytes:
        assert not count, "a draw that is not enumerated"
        return b""
