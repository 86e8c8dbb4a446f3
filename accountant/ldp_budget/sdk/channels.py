"""What the reports of two inputs say of them: the two distributions that an attacker has to tell apart.

A report may hold far too much to list, but of one input against another only a few parts of it speak: of unary
encoding two bits, of a sketch the bits of two cells. A `Comparison` holds these alone. It is a mixture of *cases*,
drawn publicly and without the input (which hash function, which buckets), each made of independent *factors*; a
factor lists the probabilities (P[o], Q[o]) of its outcomes o under the first and under the second input, as exact
fractions of what the client draws.
"""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import product
from math import lcm, prod
from typing import TYPE_CHECKING

from .._validation import shown
from ..errors import NotSupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Mass = tuple[Fraction, Fraction]

_MOST_OUTCOMES = 1 << 18
# Far closer than a bound that is itself a logarithm rounded up to forty digits.
_WIDE = tuple(Context(prec=120, rounding=way, Emax=10**9, Emin=-(10**9)) for way in (ROUND_FLOOR, ROUND_CEILING))


@dataclass(frozen=True)
class Factor:
    """An independent part of a report: (P[o], Q[o]) for each of its outcomes; each side sums to one.

    Parameters:
        masses: these pairs, of fractions.

    Raises:
        ValueError: they are no such pairs of fractions.
    """

    masses: tuple[Mass, ...]

    def __post_init__(self) -> None:
        try:
            sides = list(zip("PQ", zip(*self.masses, strict=True), strict=True))
            bad = [each for each in sides if any(mass < 0 for mass in each[1]) or not _sum_to_one(each[1])]
        except (ArithmeticError, AttributeError, TypeError, ValueError):
            raise ValueError(f"expected pairs of fractions; found {shown(self.masses)}") from None
        for name, side in bad:
            raise ValueError(f"expected {name} to be probabilities that sum to 1; found {shown(side)}")

    def __repr__(self) -> str:
        return f"<Factor of {len(self.masses)} outcomes>"

    def __hash__(self) -> int:
        return self._hash

    @functools.cached_property
    def _hash(self) -> int:
        return hash(self.masses)

    def swapped(self) -> Factor:
        """The second input against the first.

        Raises:
            Nothing.
        """
        return Factor(tuple((q, p) for p, q in self.masses))

    @functools.cached_property
    def largest_ratio(self) -> Fraction | None:
        """The largest P/Q of an outcome; None where Q is zero and P is not. That of a product is the product."""
        if any(p and not q for p, q in self.masses):
            return None
        return max(p / q for p, q in self.masses if q)

    @functools.cached_property
    def loss(self) -> tuple[Decimal, Decimal]:
        """Bounds of the logarithm of a largest ratio that is finite, good to a hundred digits.

        Raises:
            ValueError: it is infinite.
        """
        ratio = self.largest_ratio
        if ratio is None:
            raise ValueError("expected a largest ratio; found a report that one input alone can give")
        if ratio == 1:
            return Decimal(0), Decimal(0)
        low, high = (
            context.ln(context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))) for context in _WIDE
        )
        return low, high

    @classmethod
    def of(cls, first: Iterable[Fraction], second: Iterable[Fraction]) -> Factor:
        """The factor with two distributions over the same outcomes.

        Parameters:
            first: the probabilities under the first input, fractions.
            second: those under the second.

        Raises:
            ValueError: they are no such distributions.
        """
        try:
            masses = tuple(zip(first, second, strict=True))
        except (TypeError, ValueError):
            expected = "expected as many fractions under the one input as under the other"
            raise ValueError(f"{expected}; found {shown(first)} and {shown(second)}") from None
        return cls(masses)

    @classmethod
    def bit(cls, first: Fraction, second: Fraction) -> Factor:
        """A bit; its outcomes are 0 and 1.

        Parameters:
            first: the probability of a one under the first input, a fraction.
            second: that under the second.

        Raises:
            ValueError: they are no such probabilities.
        """
        try:
            masses = (1 - first, 1 - second), (first, second)
        except (ArithmeticError, TypeError):
            raise ValueError(f"expected two fractions; found {shown(first)} and {shown(second)}") from None
        return cls(masses)


@dataclass(frozen=True)
class Case:
    """What may be drawn publicly, and without the input: the parts of a report that are independent then.

    Parameters:
        probability: of this case, a fraction.
        factors: these parts.

    Raises:
        Nothing.
    """

    probability: Fraction
    factors: tuple[Factor, ...]

    def __repr__(self) -> str:
        return f"<Case of {len(self.factors)} factors, with probability {float(self.probability):.6g}>"

    def masses(self) -> Iterator[Mass]:
        """(P, Q) of each outcome of all factors together, the last factor's changing fastest.

        Raises:
            Nothing.
        """
        for combined in product(*(factor.masses for factor in self.factors)):
            yield (
                self.probability * prod((p for p, _ in combined), start=Fraction(1)),
                self.probability * prod((q for _, q in combined), start=Fraction(1)),
            )

    def _counted(self) -> dict[Mass, int]:
        """Each (P, Q), and how many outcomes have it: factor by factor, as of many bits most are alike."""
        found = {(self.probability, self.probability): 1}
        for factor in self.factors:
            masses, before = Counter(factor.masses), found
            found = Counter()
            for ((p, q), count), ((first, second), times) in product(before.items(), masses.items()):
                found[p * first, q * second] += count * times
        return found


@dataclass(frozen=True)
class Comparison:
    """The reports of two inputs, as far as they differ. Outcomes are numbered case by case, see `Case.masses`.

    Parameters:
        cases: what may be drawn publicly.

    Raises:
        ValueError: they are no cases, or their probabilities do not sum to 1.
    """

    cases: tuple[Case, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.cases, tuple) or not all(isinstance(case, Case) for case in self.cases):
            raise ValueError(f"expected a tuple of cases; found {shown(self.cases)}")
        if sum(case.probability for case in self.cases) != 1:
            raise ValueError("expected the probabilities of the cases to sum to 1")

    def __repr__(self) -> str:
        return f"<Comparison of {self.size} outcomes in {len(self.cases)} case{'s' * (len(self.cases) != 1)}>"

    @classmethod
    def of(cls, *factors: Factor) -> Comparison:
        """The comparison with one case alone.

        Parameters:
            factors: of that case.

        Raises:
            Nothing.
        """
        return cls((Case(Fraction(1), factors),))

    @classmethod
    def rows(cls, first: Sequence[Fraction], second: Sequence[Fraction]) -> Comparison:
        """The comparison of two distributions over the same reports.

        Parameters:
            first: the probabilities of the reports under the first input, fractions.
            second: those under the second.

        Raises:
            ValueError: they are no such distributions.
        """
        return cls.of(Factor.of(first, second))

    @property
    def size(self) -> int:
        """How many outcomes there are."""
        return sum(prod(len(factor.masses) for factor in case.factors) for case in self.cases)

    def masses(self) -> list[Mass]:
        """(P, Q) of every outcome.

        Raises:
            NotSupported: there are too many to list.
        """
        self._check_size()
        return [mass for case in self.cases for mass in case.masses()]

    def merged(self) -> list[Mass]:
        """(P, Q) of outcomes taken together whose (P, Q) is the same: every divergence is what it is of all.

        Raises:
            NotSupported: the outcomes are too many to list.
        """
        self._check_size()
        return [(p * count, q * count) for case in self.cases for (p, q), count in case._counted().items()]

    def _check_size(self) -> None:
        if self.size > _MOST_OUTCOMES:
            raise NotSupported(
                "the outcomes of the channel are too many to list; a `Pure` promise is checked without"
            )

    def largest_ratio(self) -> Fraction | None:
        """The largest P/Q of any outcome; None where Q is zero and P is not. Nothing is listed for it.

        Raises:
            Nothing.
        """
        found = self._telling()
        if found is None:
            return None
        return max(prod((_finite(factor) ** count for factor, count in case), start=Fraction(1)) for case in found)

    def loss(self) -> tuple[Decimal, Decimal] | None:
        """The bounds of the logarithm of the largest ratio, good to a hundred digits; None where it is infinite.

        Raises:
            Nothing.
        """
        found = self._telling()
        if found is None:
            return None
        low, high = (max(_summed(case, side) for case in found) for side in range(len(_WIDE)))
        return low, high

    def _telling(self) -> list[list[tuple[Factor, int]]] | None:
        """In each possible case the different factors and how often they come; None where a ratio is infinite."""
        cases = [list(Counter(case.factors).items()) for case in self.cases if case.probability]
        if any(factor.largest_ratio is None for case in cases for factor, _ in case):
            return None
        return cases

    def swapped(self) -> Comparison:
        """The second input against the first.

        Raises:
            Nothing.
        """
        distinct = dict.fromkeys(factor for case in self.cases for factor in case.factors)
        swapped = {factor: factor.swapped() for factor in distinct}
        return Comparison(
            tuple(Case(case.probability, tuple(map(swapped.__getitem__, case.factors))) for case in self.cases)
        )


def _sum_to_one(masses: Sequence[Fraction]) -> bool:
    """Whether they do, over their common denominator: one by one, every sum would be reduced."""
    common = lcm(*(mass.denominator for mass in masses))
    return sum(mass.numerator * (common // mass.denominator) for mass in masses) == common


def _finite(factor: Factor) -> Fraction:
    ratio = factor.largest_ratio
    assert ratio is not None
    return ratio


def _summed(factors: Iterable[tuple[Factor, int]], side: int) -> Decimal:
    """The loss of so many of each of the factors together, rounded down (`side` 0) or up (1)."""
    context, total = _WIDE[side], Decimal(0)
    for factor, count in factors:
        total = context.add(total, context.multiply(Decimal(count), factor.loss[side]))
    return total
