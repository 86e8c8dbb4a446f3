"""The rules of ticked sets and of asked options: the programs of *tick all that apply*, and their laws.

**Ticked sets.** An answer is a set S of at most m of d options, see `tick_sets`. The own items are S and the first m - |S|
of m dummies: m of D = d + m items. The client draws how many own items a report has, i; then i of the own items and k - i
of the others, each uniformly. A bit decides if i is at least t. Given the bit, i has the odds C(m, i)·C(d, k - i). So all
k-subsets with at least t own items are equally likely, and so are all others:

    P(z | S) = π/A  if z holds at least t own items,  else (1 - π)/(C(D, k) - A),     A = Σ_{i≥t} C(m, i)·C(d, k - i).

Proof. The own items are m different items, because an option is below d and slot j of an empty place holds dummy j. The
draws from the others are moved past the own items in ascending order, which maps the d others one to one. The own items at the
first i of shuffled places are a uniform i-subset of these. The members of a uniform k-subset of the others at the last k - i of
shuffled places are a uniform (k - i)-subset of those. The law depends on the number of own items in z alone. So what tells two
answers apart is how many items of either one z holds; the number of z of each kind depends on how many items they share.

t = 1 is PrivSet (Wang et al., INFOCOM 2018), k = 1 padding-and-sampling (Wang, Li and Jha, IEEE S&P 2018).

**Asked options.** An answer is any set of d options. The client draws s of the options without the answer, and shows them.
The bits of the answer at these are one of 2^s cells. The report shows the own cell with probability π, else another one,
uniformly. Two answers differ at some of the asked options or at none, by the hypergeometric law. Then their cells
differ, and reports have the law of generalized randomized response over 2^s cells.

Both rules rebuild the program from the numbers that they read from it, and accept only a program that equals it.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from itertools import product
from math import comb
from typing import TYPE_CHECKING, Any

from ldp_budget.sampling import ONE
from ldp_budget.sdk.client_program import Program
from ldp_budget.sdk.report_law import Worst, loss_of
from ldp_budget.sdk.tick_sets import (
    MOST_ITEMS,
    MOST_SETS,
    MOST_TICKS,
    TickSets,
    asked_program,
    hit_weights,
    set_program,
)

from .rebuilt_programs import Rebuilt, hit_chances, likeliest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class TickedSets(Rebuilt):
    """The law of a program of ticked sets.

    Parameters:
        program: a client program.

    Raises:
        Unknown: the program is not `set_program` of any numbers.
    """

    rule = "ticked sets"
    form = "it is no program of ticked sets"

    def _read(self, steps: dict[str, Any]) -> Program:
        self.size = int(steps["drawn"][2])
        self.options = int(steps["drawn"][1])
        self.most = len(self.program.tables["starts"])
        self.least = int(steps["hits"][2][1])
        high = int(steps["likelier"][1])
        if not (1 <= self.least <= min(self.most, self.size) and 1 <= self.size <= self.options and 0 < high < ONE):
            raise ValueError
        if self.most > min(MOST_TICKS, self.options) or self.options + self.most > MOST_ITEMS:
            raise ValueError
        self.high = Fraction(high, ONE)
        """π of the module."""
        return set_program(self.options, self.most, self.size, self.least, high)

    @property
    def _domain(self) -> TickSets:
        return TickSets(self.options, self.most)

    @functools.cached_property
    def hits(self) -> list[Fraction]:
        """The probability of each number of own items in a report."""
        return hit_chances(hit_weights(self.most, self.options, self.size), self.least, self.high)

    def chance(self, own: int, other: int) -> Fraction:
        """Return the probability that a report holds certain items: so many own ones, and so many others; 0 if there are not."""
        ways = comb(self.most, own) * comb(self.options, other)
        held = (p * comb(i, own) * comb(self.size - i, other) for i, p in enumerate(self.hits))
        return Fraction(sum(held, Fraction(0)), ways) if ways else Fraction(0)

    @functools.cached_property
    def _pairs(self) -> dict[int, dict[Any, tuple[Fraction, Fraction]]]:
        d, m = self.options, self.most
        each = [
            likely / ways if ways else Fraction(0)
            for likely, ways in zip(self.hits, hit_weights(m, d, self.size), strict=True)
        ]
        # Of two sets of a ≤ b ticks that share c of these, the padded ones share c + m - b.
        shared = {
            c + m - b for b in range(m + 1) for a in range(b + 1) for c in range(max(0, a + b - d), a + 1) if c < b
        }
        found: dict[int, dict[Any, tuple[Fraction, Fraction]]] = {}
        for both in sorted(shared):
            sums: dict[Any, Fraction] = {}
            for x, y, z in product(range(both + 1), range(m - both + 1), range(m - both + 1)):
                rest = self.size - x - y - z
                ways = comb(both, x) * comb(m - both, y) * comb(m - both, z)
                ways *= comb(d - m + both, rest) if rest >= 0 else 0
                if ways:
                    sums[x + y, x + z] = sums.get((x + y, x + z), Fraction(0)) + ways
            found[both] = {(a, b): (ways * each[a], ways * each[b]) for (a, b), ways in sorted(sums.items())}
        return found

    def _items(self, answer: int) -> set[int]:
        ticks = self._domain.ticks_of(answer)
        return {*ticks, *range(self.options, self.options + self.most - len(ticks))}

    def _relation(self, first: int, second: int) -> int:
        return len(self._items(first) & self._items(second))

    def _keys(self, rows: NDArray[np.int64], first: int, second: int) -> list[Any]:
        import numpy as np

        sides = [np.isin(rows, sorted(self._items(answer))).sum(axis=1).tolist() for answer in (first, second)]
        return list(zip(*sides, strict=True))

    def marginal(self) -> tuple[dict[Any, Fraction], dict[Any, Fraction]]:
        """Return the law of whether a report holds an option, for users who ticked it and for others."""
        p, q = self.chance(1, 0), self.chance(0, 1)
        return {0: 1 - p, 1: p}, {0: 1 - q, 1: q}

    def worst(self) -> Worst:
        """Return two answers with the fewest items in common, and the report that shows the largest loss."""
        both, masses = next(iter(self._pairs.items()))
        (a, b), (p, q) = likeliest(masses)
        words = f"{a} items of the first set of ticks and {b} of the second, which share {both}"
        return Worst((self._domain.size - 1, 0), words, loss_of(p, q))


class AskedOptions(Rebuilt):
    """The law of a program of asked options.

    Parameters:
        program: a client program.

    Raises:
        Unknown: the program is not `asked_program` of any numbers.
    """

    rule = "asked options"
    form = "it is no program of asked options"

    def _read(self, steps: dict[str, Any]) -> Program:
        _, options, asked = steps["asked"]
        self.options, self.asked, keep = int(options), int(asked), int(steps["kept"][1])
        if not (1 <= self.asked <= self.options and 2**self.options <= MOST_SETS and 0 < keep < ONE):
            raise ValueError
        self.keep = Fraction(keep, ONE)
        """π of the module."""
        return asked_program(self.options, self.asked, keep)

    @property
    def _domain(self) -> TickSets:
        return TickSets(self.options, self.options)

    def chance(self, agree: int, differ: int) -> Fraction:
        """Return the probability that certain asked options are shown: so many of them as they are, and so many turned."""
        if agree + differ > self.asked:
            return Fraction(0)
        other = (1 - self.keep) / (2**self.asked - 1)
        ways = 2 ** (self.asked - agree - differ)
        return Fraction(ways * other if differ else self.keep + (ways - 1) * other)

    @functools.cached_property
    def _pairs(self) -> dict[int, dict[Any, tuple[Fraction, Fraction]]]:
        keep, other = self.keep, (1 - self.keep) / (2**self.asked - 1)
        found: dict[int, dict[Any, tuple[Fraction, Fraction]]] = {}
        for apart in range(1, self.options + 1):
            alike = Fraction(comb(self.options - apart, self.asked), comb(self.options, self.asked))
            seen = 1 - alike
            masses = {
                "first": (seen * keep, seen * other),
                "second": (seen * other, seen * keep),
                "neither": (seen * (1 - keep - other), seen * (1 - keep - other)),
                "alike": (alike, alike),
            }
            found[apart] = {key: mass for key, mass in masses.items() if mass[0]}
        return found

    def _relation(self, first: int, second: int) -> int:
        return (first ^ second).bit_count()

    def _keys(self, rows: NDArray[np.int64], first: int, second: int) -> list[Any]:
        import numpy as np

        options, bits = rows >> 1, rows & 1
        held = [(np.int64(answer) >> options) & 1 for answer in (first, second)]
        alike = (held[0] == held[1]).all(axis=1)
        shown = [(each == bits).all(axis=1) for each in held]
        keys = np.where(alike, "alike", np.where(shown[0], "first", np.where(shown[1], "second", "neither")))
        return list(keys.tolist())

    def marginal(self) -> tuple[dict[Any, Fraction], dict[Any, Fraction]]:
        """Return the law of an option: not asked (-1), shown as no (0) or as yes (1)."""
        share, p = Fraction(self.asked, self.options), self.chance(1, 0)
        held, other = {0: share * (1 - p), 1: share * p}, {0: share * p, 1: share * (1 - p)}
        rest = {-1: 1 - share} if share < 1 else {}
        return held | rest, other | rest

    def worst(self) -> Worst:
        """Return two answers that differ everywhere, and the report with the largest loss."""
        masses = self._pairs[self.options]
        # A program may keep its own cell more seldom than it shows another one.
        side = max(("first", "second"), key=lambda each: masses[each][0] / masses[each][1])
        words = f"the bits of the {side} answer at all asked options"
        return Worst((0, self._domain.size - 1), words, loss_of(*masses[side]))
