"""Built-in clients draw the distributions of their proofs: whole reports, enumerated in exact fractions.

It is this that lets them be called "exact": nothing is sampled, and nothing of a report is left out. Only that each
draw of `ldp_budget.sampling` has the probability it promises is taken from the tests of that room. Not enumerated
are reports that repeat a secret's words and numbers on a grid, whose draws are tested where they are made.
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

import ldp_budget
from ldp_budget import Comparison, Mechanism
from ldp_budget.guarantees import Copies, Pure
from ldp_budget.registry.plugins import registry
from ldp_budget.sampling import ONE, Stream
from ldp_budget_verify.exact.dominance import HOLDS, check, hockey_stick

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


SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("randomized-response", {"epsilon": "0.7"}),
    ("randomized-response", {"truth": "0.4", "yes": "0.3"}),
    ("unary-encoding", {"p": "0.6", "q": "0.2", "domain_size": 4}),
    ("sue", {"epsilon": 1, "domain_size": 4}),
    ("oue", {"epsilon": 2, "domain_size": 5}),
    ("random-substitution", {"epsilon": 1, "domain_size": 5}),
    ("random-substitution", {"epsilon": 1, "domain_size": 4, "draws": 2}),
    ("random-substitution", {"epsilon": 1, "domain_size": 5, "draws": 3, "sampling": "distinct"}),
    ("random-substitution", {"epsilon": 1, "domain_size": 5, "draws": 3, "sampling": "distinct", "ordered": True}),
    ("subset-selection", {"epsilon": 1, "domain_size": 6}),
    ("subset-selection", {"epsilon": 3, "domain_size": 6, "draws": 5}),
    ("pgr", {"epsilon": 1, "domain_size": 4}),
    ("pgr", {"epsilon": 1, "domain_size": 6}),
    ("pgr", {"epsilon": 3, "domain_size": 11}),
    ("matrix-substitution", {"matrix": [["0.5", "0.25"], ["0.25", "0.5"], ["0.25", "0.25"]]}),
    ("cms", {"epsilon": 2, "hashes": 3, "width": 4, "domain_size": 4}),
    ("hcms", {"epsilon": 2, "hashes": 3, "width": 4, "domain_size": 4}),
    ("heavy-hitters", {"epsilon": 1, "length": 1, "hashes": 3}),
    ("olh", {"epsilon": 1, "domain_size": 4, "functions": 3}),
    ("grid", {"epsilon": 1, "items": 2, "domain_size": 3, "asked": 2, "threshold": 1}),
    ("grid", {"epsilon": 1, "items": 2, "domain_size": 4, "size": 2}),
    ("ticks", {"epsilon": 1, "domain_size": 5, "at_most": 2, "k": 2}),
    ("ticks", {"epsilon": 2, "domain_size": 4}),
    ("one-bit-mean", {"epsilon": 1, "maximum": 10}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 5, "bits": 5}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 5, "bits": 2}),
    ("one-sided", {"g": "0.3"}),
]
ON_A_GRID = {
    "gaussian",
    "laplace",
    "staircase",
    "bounded-laplace",
    "bounded-staircase",
    "hybrid",
    "square-wave",
    "random-threshold",
    "rounded-response",
}
OF_A_SECRET = {"loloha", "rappor"}
OF_VECTORS = {"discrete-gaussian"}
"""Without a client program, and tested in tests/unit/plugins."""


def test_enumeration_includes_every_built_in_mechanism_except_grids_and_secrets() -> None:
    own = {cls.name for cls, plugin in registry().items() if plugin.own and cls.checkable}
    assert {name for name, _ in SETTINGS} == own - ON_A_GRID - OF_A_SECRET - OF_VECTORS


@pytest.mark.slow
@pytest.mark.some(9)
@pytest.mark.parametrize(("name", "parameters"), SETTINGS, ids=lambda item: item if isinstance(item, str) else "")
def test_reports_are_drawn_as_described_and_within_the_guarantee(name: str, parameters: dict[str, Any]) -> None:
    made = ldp_budget.mechanism(name)(**parameters)
    values = list(made.critical_inputs())
    laws = {value: drawn_law(made, value) for value in values}
    assert all(sum(law.values()) == 1 for law, _ in laws.values())
    for first, second in combinations(values, 2):
        whole, outcomes = compared(made, (first, second), laws)
        described = made.compare(first, second)
        assert outcomes == described.masses(), (first, second)
        for one, other in ((whole, described), (whole.swapped(), described.swapped())):
            assert same_curve(one.masses(), other.masses())
            # That of several draws says of one draw what each of them loses, and so nothing of a whole report.
            promise = Pure(made.guarantee.loss()[0]) if isinstance(made.guarantee, Copies) else made.guarantee
            assert check(promise, one).verdict == HOLDS


def compared(made: Mechanism, pair: tuple[Any, Any], laws: Any) -> tuple[Comparison, list[tuple[Fraction, Fraction]]]:
    """The two laws over whole reports, and over the outcomes that `outcomes` says they are."""
    (first, seen), (second, others) = (laws[value] for value in pair)
    reports = {**seen, **others}
    masses = [(first.get(key, Fraction(0)), second.get(key, Fraction(0))) for key in reports]
    codes = np.asarray(made.outcomes(np.concatenate(list(reports.values())), *pair)).tolist()
    sums: dict[int, list[Fraction]] = defaultdict(lambda: [Fraction(0), Fraction(0)])
    for code, mass in zip(codes, masses, strict=True):
        sums[code] = [had + more for had, more in zip(sums[code], mass, strict=True)]
    count = made.compare(*pair).size
    return Comparison.rows(*zip(*masses, strict=True)), [(*sums[code],) for code in range(count)]  # type: ignore[misc]


def same_curve(one: list[tuple[Fraction, Fraction]], other: list[tuple[Fraction, Fraction]]) -> bool:
    """True if they are equally hard to distinguish: one divergence at every kink of either."""
    kinks = {p / q for p, q in (*one, *other) if q}
    return all(hockey_stick(one, kink) == hockey_stick(other, kink) for kink in kinks)


def test_threshold_off_by_one_is_found() -> None:
    """The law is exact: a client whose threshold is one in 2**64 too large is not as described."""
    oue = ldp_budget.mechanism("oue")

    class OneOff(oue):  # type: ignore[misc, valid-type]
        name = "one-off"

        def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
            other = oue(**self.declared)
            vars(other)["thresholds"] = (self.thresholds[0] + 1, self.thresholds[1])
            return other.randomize(values, rng=rng, secrets=secrets)

    made = OneOff(epsilon=1, domain_size=3)
    laws = {value: drawn_law(made, value) for value in (0, 1)}
    whole, outcomes = compared(made, (0, 1), laws)
    assert outcomes != made.compare(0, 1).masses()
    assert not same_curve(whole.masses(), made.compare(0, 1).masses())
