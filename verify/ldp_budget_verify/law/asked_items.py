"""The rule of grids: the program of several items that are randomized together, and its law.

The client draws s of the items without the answers, and shows them. For each it reports a set of ω of the d answers. The
number i of sets that hold the answer of their item has the odds C(s, i)·ω^i·(d - ω)^(s - i), given a bit that decides if i is at
least t. The sets at the i first of shuffled places hold the answer, with ω - 1 of the others; the rest hold ω of the others.
So given the asked items all rows of sets with at least t hits are equally likely, and so are all others:

    P(z | a) = π/A  if at least t sets hold the answer,  else (1 - π)/(C(d, ω)^s - A),     A = Σ_{i≥t} C(s, i)·α^i·β^(s - i)

with α = C(d-1, ω-1) sets that hold an answer and β = C(d-1, ω) others: α/β = ω/(d - ω). Two answers differ at some of the asked
items, by the hypergeometric law. What tells them apart is how many sets hold the one and the other.

The rule rebuilds the program from the numbers that it reads from it, and accepts only a program that equals it.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, Any

from ldp_budget.sampling import ONE
from ldp_budget.sdk.grid_answers import MOST_ASKED, GridAnswers, grid_program, hit_weights
from ldp_budget.sdk.report_law import Pairs, Worst, loss_of

from .rebuilt_programs import Rebuilt, hit_chances, likeliest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sdk.client_program import Program

    Polynomial = dict[tuple[int, int], int]


class AskedItems(Rebuilt):
    """The law of a program of a grid.

    Parameters:
        program: a client program.

    Raises:
        Unknown: the program is not `grid_program` of any numbers.
    """

    rule = "asked items"
    form = "it is no program of a grid"

    def _read(self, steps: dict[str, Any]) -> Program:
        _, items, asked = steps["asked"]
        self.items, self.asked = int(items), int(asked)
        self.answers, self.size = int(steps["own0"][2]), int(steps["others0"][2])
        self.least, high = int(steps["hits"][2][1]), int(steps["likelier"][1])
        if not (1 <= self.asked <= min(self.items, MOST_ASKED) and 1 <= self.size < self.answers and 0 < high < ONE):
            raise ValueError
        if not 1 <= self.least <= self.asked:
            raise ValueError
        self.high = Fraction(high, ONE)
        """π of the module."""
        return grid_program(self.items, self.answers, self.asked, self.size, self.least, high)

    @property
    def _domain(self) -> GridAnswers:
        return GridAnswers(self.items, self.answers)

    @functools.cached_property
    def hits(self) -> list[Fraction]:
        """The probability of each number of sets that hold the answer."""
        return hit_chances(hit_weights(self.asked, self.answers, self.size), self.least, self.high)

    def chance(self, own: int, other: int) -> Fraction:
        """Return the probability that certain sets hold certain answers: so many the own ones, and so many others."""
        s, d, w = self.asked, self.answers, self.size
        if own + other > s:
            return Fraction(0)
        found = Fraction(0)
        for i, p in enumerate(self.hits):
            # Of the other answers, `held` are in sets that also hold the own one.
            for held in range(other + 1):
                rest = s - own - other
                ways = comb(other, held) * (comb(rest, i - own - held) if i >= own + held else 0)
                there = Fraction(w - 1, d - 1) ** held * Fraction(w, d - 1) ** (other - held)
                found += p * Fraction(ways, comb(s, i)) * there
        return found

    @functools.cached_property
    def _pairs(self) -> dict[int, dict[Any, tuple[Fraction, Fraction]]]:
        s, d, w = self.asked, self.answers, self.size
        held, missed = comb(d - 1, w - 1), comb(d - 1, w)
        each = [p / (comb(s, i) * held**i * missed ** (s - i)) for i, p in enumerate(self.hits)]
        alike = {(1, 1): held, (0, 0): missed}
        apart = {(1, 1): _choose(d - 2, w - 2), (1, 0): _choose(d - 2, w - 1), (0, 1): _choose(d - 2, w - 1)}
        apart[0, 0] = _choose(d - 2, w)
        known: list[Polynomial] = [_power(apart, alike, differ, s) for differ in range(s + 1)]
        found: dict[int, dict[Any, tuple[Fraction, Fraction]]] = {}
        for differ in range(1, self.items + 1):
            sums: dict[Any, tuple[Fraction, Fraction]] = {}
            for among in range(max(0, s - (self.items - differ)), min(s, differ) + 1):
                asked = Fraction(comb(differ, among) * comb(self.items - differ, s - among), comb(self.items, s))
                for (a, b), ways in known[among].items():
                    p, q = sums.get((a, b), (Fraction(0), Fraction(0)))
                    sums[a, b] = p + asked * ways * each[a], q + asked * ways * each[b]
            found[differ] = dict(sorted(sums.items()))
        return found

    def pairs(self) -> list[Pairs]:
        return [list(masses.values()) for masses in self._pairs.values()]

    def _relation(self, first: int, second: int) -> int:
        one, other = self._domain.chosen([first, second])
        return int((one != other).sum())

    def _keys(self, rows: NDArray[np.int64], first: int, second: int) -> list[Any]:
        import numpy as np

        chosen = self._domain.chosen([first, second])
        cells = np.arange(self.items) * self.answers + chosen
        sides = [np.isin(rows, each).sum(axis=1).tolist() for each in cells]
        return list(zip(*sides, strict=True))

    def marginal(self) -> tuple[dict[Any, Fraction], dict[Any, Fraction]]:
        """Return the law of whether a report holds a cell, for users who chose it and for others."""
        share = Fraction(self.asked, self.items)
        p, q = share * self.chance(1, 0), share * self.chance(0, 1)
        return {0: 1 - p, 1: p}, {0: 1 - q, 1: q}

    def worst(self) -> Worst:
        """Return two answers that differ at every item, and the report with the largest loss."""
        masses = self._pairs[self.items]
        (a, b), (p, q) = likeliest(masses)
        words = f"{a} sets hold the first answer and {b} the second, of {self.asked} asked items"
        return Worst((0, self._domain.number_of([1] * self.items)), words, loss_of(p, q))


def _choose(count: int, some: int) -> int:
    return comb(count, some) if some >= 0 else 0


def _power(apart: Polynomial, alike: Polynomial, differ: int, asked: int) -> Polynomial:
    """Return how many rows of sets hold the one answer a times and the other b times, if so many asked items differ."""
    found: Polynomial = {(0, 0): 1}
    for place in range(asked):
        sums: Polynomial = {}
        for (a, b), ways in found.items():
            for (x, y), more in (apart if place < differ else alike).items():
                if more:
                    sums[a + x, b + y] = sums.get((a + x, b + y), 0) + ways * more
        found = sums
    return found
