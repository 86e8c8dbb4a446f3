"""Exact comparisons of two inputs: the two report distributions that an attacker has to tell apart.

A report may be far too large to list all its values. Yet only a few parts of it distinguish one input from another:
two bits of a unary encoding, or the bits of two cells of a sketch. A `Comparison` holds these parts alone.

A comparison is a mixture of *cases*. A case is drawn publicly and without the input: which hash function, which
buckets. Each case consists of independent *factors*. A factor lists the probabilities (P[o], Q[o]) of its outcomes o
under the first and the second input. They are the exact fractions with which the client draws.
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
    Covered = tuple[Fraction, Fraction, Fraction]

_MOST_OUTCOMES = 1 << 18
_MOST_COVERED = 300
# Much more precise than a claimed bound, which is itself a logarithm rounded up to forty digits.
_WIDE = tuple(Context(prec=120, rounding=way, Emax=10**9, Emin=-(10**9)) for way in (ROUND_FLOOR, ROUND_CEILING))


@dataclass(frozen=True)
class Factor:
    """An independent part of a report: (P[o], Q[o]) for each of its outcomes; each side sums to one.

    Parameters:
        masses: the pairs (P[o], Q[o]), fractions.
        floor: for `Comparison.covered`, a number for each outcome; empty if unknown.

    Raises:
        ValueError: `masses` are not pairs of fractions, a side does not sum to one, or `floor` has another length.
    """

    masses: tuple[Mass, ...]
    floor: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        if self.floor and len(self.floor) != len(self.masses):
            raise ValueError(
                f"there must be {len(self.masses)} floors, one for each outcome: got {shown(self.floor)}"
            )
        try:
            sides = list(zip("PQ", zip(*self.masses, strict=True), strict=True))
            bad = [each for each in sides if any(mass < 0 for mass in each[1]) or not _sum_to_one(each[1])]
        except (ArithmeticError, AttributeError, TypeError, ValueError):
            raise ValueError(f"masses must be pairs of fractions: got {shown(self.masses)}") from None
        for name, side in bad:
            raise ValueError(f"{name} must be probabilities that sum to 1: got {shown(side)}")

    def __repr__(self) -> str:
        return f"<Factor of {len(self.masses)} outcomes>"

    def __hash__(self) -> int:
        return self._hash

    @functools.cached_property
    def _hash(self) -> int:
        return hash(self.masses)

    def swapped(self) -> Factor:
        """Return the factor with the two inputs swapped."""
        return Factor(tuple((q, p) for p, q in self.masses), self.floor)

    @functools.cached_property
    def largest_ratio(self) -> Fraction | None:
        """The largest P/Q of an outcome; None where Q is zero and P is not. A product has the product of the ratios."""
        if any(p and not q for p, q in self.masses):
            return None
        return max(p / q for p, q in self.masses if q)

    @functools.cached_property
    def loss(self) -> tuple[Decimal, Decimal]:
        """Bounds of the logarithm of the largest ratio, precise to a hundred digits.

        Raises:
            ValueError: the largest ratio is infinite.
        """
        ratio = self.largest_ratio
        if ratio is None:
            raise ValueError("the channel has no largest ratio, because only one of the inputs can give some report")
        if ratio == 1:
            return Decimal(0), Decimal(0)
        low, high = (
            context.ln(context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))) for context in _WIDE
        )
        return low, high

    @classmethod
    def of(cls, first: Iterable[Fraction], second: Iterable[Fraction]) -> Factor:
        """Return the factor with two distributions over the same outcomes.

        Parameters:
            first: the probabilities under the first input, fractions.
            second: the probabilities under the second input, fractions.

        Returns:
            The factor, its outcomes in the given order.

        Raises:
            ValueError: `first` and `second` are not distributions over the same outcomes.
        """
        try:
            masses = tuple(zip(first, second, strict=True))
        except (TypeError, ValueError):
            expected = "the two inputs must have the same number of fractions"
            raise ValueError(f"{expected}: got {shown(first)} and {shown(second)}") from None
        return cls(masses)

    @classmethod
    def bit(cls, first: Fraction, second: Fraction, floor: tuple[Fraction, ...] = ()) -> Factor:
        """Return the factor of a bit; its outcomes are 0 and 1.

        Parameters:
            first: the probability of a one under the first input, a fraction.
            second: the probability of a one under the second input.
            floor: as for `Factor`.

        Returns:
            The factor with two outcomes.

        Raises:
            ValueError: `first` or `second` is not a probability.
        """
        try:
            masses = (1 - first, 1 - second), (first, second)
        except (ArithmeticError, TypeError):
            raise ValueError(
                f"the probabilities must be two fractions: got {shown(first)} and {shown(second)}"
            ) from None
        return cls(masses, floor)


@dataclass(frozen=True)
class Case:
    """A public draw, made without the input, and the parts of a report that are independent given this draw.

    Parameters:
        probability: the probability of this case, a fraction.
        factors: the independent parts.
    """

    probability: Fraction
    factors: tuple[Factor, ...]

    def __repr__(self) -> str:
        return f"<Case of {len(self.factors)} factors, with probability {float(self.probability):.6g}>"

    def masses(self) -> Iterator[Mass]:
        """Return (P, Q) of each outcome of all factors together, the last factor's changing fastest.

        Returns:
            An iterator of pairs of fractions.
        """
        for combined in product(*(factor.masses for factor in self.factors)):
            yield (
                self.probability * prod((p for p, _ in combined), start=Fraction(1)),
                self.probability * prod((q for _, q in combined), start=Fraction(1)),
            )

    def _counted(self) -> dict[Mass, int]:
        """Return each (P, Q) with the number of outcomes that have it.

        The factors are combined one by one, because most of many bits have the same (P, Q).
        """
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
        cases: the possible public draws.

    Raises:
        ValueError: `cases` is not a tuple of cases, or their probabilities do not sum to 1.
    """

    cases: tuple[Case, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.cases, tuple) or not all(isinstance(case, Case) for case in self.cases):
            raise ValueError(f"cases must be a tuple of `Case` objects: got {shown(self.cases)}")
        if sum(case.probability for case in self.cases) != 1:
            raise ValueError(
                f"the probabilities of the cases must sum to 1: got {sum(case.probability for case in self.cases)}"
            )

    def __repr__(self) -> str:
        return f"<Comparison of {self.size} outcomes in {len(self.cases)} case{'s' * (len(self.cases) != 1)}>"

    @classmethod
    def of(cls, *factors: Factor) -> Comparison:
        """Return the comparison with a single case.

        Parameters:
            factors: the factors of that case.

        Returns:
            The comparison; its case has probability 1.
        """
        return cls((Case(Fraction(1), factors),))

    @classmethod
    def rows(cls, first: Sequence[Fraction], second: Sequence[Fraction]) -> Comparison:
        """Return the comparison of two distributions over the same reports.

        Parameters:
            first: the probabilities of the reports under the first input, fractions.
            second: the probabilities under the second input, fractions.

        Returns:
            The comparison, with one outcome for each report.

        Raises:
            ValueError: `first` and `second` are not distributions over the same reports.
        """
        return cls.of(Factor.of(first, second))

    @property
    def size(self) -> int:
        """The number of outcomes."""
        return sum(prod(len(factor.masses) for factor in case.factors) for case in self.cases)

    def masses(self) -> list[Mass]:
        """Return (P, Q) of every outcome.

        Returns:
            A list of pairs of fractions.

        Raises:
            NotSupported: there are too many outcomes to list.
        """
        self._check_size()
        return [mass for case in self.cases for mass in case.masses()]

    def merged(self) -> list[Mass]:
        """Return (P, Q), with outcomes of the same (P, Q) added up. Merging does not change any divergence.

        Returns:
            A list of pairs of fractions.

        Raises:
            NotSupported: there are too many outcomes to list.
        """
        self._check_size()
        return [(p * count, q * count) for case in self.cases for (p, q), count in case._counted().items()]

    def _check_size(self) -> None:
        if self.size > _MOST_OUTCOMES:
            raise NotSupported(
                f"the channel has too many outcomes to list: {self.size}",
                hint="A `Pure` guarantee is checked without a list.",
            )

    def floors(self) -> list[Fraction] | None:
        """Return B of every outcome, in the order of `masses`; None if unknown. See `covered`.

        Returns:
            A list of fractions, or None.

        Raises:
            NotSupported: there are too many outcomes to list.
        """
        self._check_size()
        if not all(factor.floor for case in self.cases for factor in case.factors):
            return None
        rows = [(case.probability, product(*(factor.floor for factor in case.factors))) for case in self.cases]
        return [prod(floors, start=likely) for likely, every in rows for floors in every]

    def covered(self) -> list[Covered] | None:
        """Return (P, Q, B) of the outcomes, where every input's report has at least B of an outcome; None if unknown.

        B is the probability of the case times the floors of its outcomes. Reports of one outcome must have equal
        P/Q, and every input must give each of them at least its share of B, in the proportions of P + Q. Shuffling
        is bounded by that, see `composition.shuffle_amplification`. Equal outcomes are merged. None also if there
        are too many outcomes.

        Returns:
            A list of three fractions for each outcome, or None.

        Raises:
            ValueError: a B is larger than P or Q.
        """
        found: Counter[Covered] = Counter()
        for case in self.cases:
            if not case.factors or not all(factor.floor for factor in case.factors):
                return None
            own: Counter[Covered] = Counter({(case.probability,) * 3: 1})
            for factor, times in Counter(case.factors).items():
                for _ in range(times):
                    longer: Counter[Covered] = Counter()
                    outcomes = Counter(
                        (*mass, floor) for mass, floor in zip(factor.masses, factor.floor, strict=True)
                    )
                    for ((a, b, c), many), ((p, q, least), more) in product(own.items(), outcomes.items()):
                        longer[a * p, b * q, c * least] += many * more
                    own = longer
                    if len(own) > _MOST_COVERED:
                        return None
            found += own
        if any(not 0 <= least <= min(p, q) for p, q, least in found):
            raise ValueError("a floor is above a compared probability, and no input may fall below it")
        return [(p * many, q * many, least * many) for (p, q, least), many in found.items() if p]

    def largest_ratio(self) -> Fraction | None:
        """Return the largest P/Q of any outcome; None where Q is zero and P is not. No outcome has to be listed.

        Returns:
            A fraction, or None.
        """
        found = self._telling()
        if found is None:
            return None
        return max(prod((_finite(factor) ** count for factor, count in case), start=Fraction(1)) for case in found)

    def loss(self) -> tuple[Decimal, Decimal] | None:
        """Return bounds of the logarithm of the largest ratio, precise to a hundred digits; None where it is infinite.

        Returns:
            The lower and the upper bound, or None.
        """
        found = self._telling()
        if found is None:
            return None
        low, high = (max(_summed(case, side) for case in found) for side in range(len(_WIDE)))
        return low, high

    def _telling(self) -> list[list[tuple[Factor, int]]] | None:
        """Return the distinct factors of each possible case with their counts; None where a ratio is infinite."""
        cases = [list(Counter(case.factors).items()) for case in self.cases if case.probability]
        if any(factor.largest_ratio is None for case in cases for factor, _ in case):
            return None
        return cases

    def swapped(self) -> Comparison:
        """Return the comparison with the two inputs swapped.

        Returns:
            A new comparison.
        """
        distinct = dict.fromkeys(factor for case in self.cases for factor in case.factors)
        swapped = {factor: factor.swapped() for factor in distinct}
        return Comparison(
            tuple(Case(case.probability, tuple(map(swapped.__getitem__, case.factors))) for case in self.cases)
        )


def _sum_to_one(masses: Sequence[Fraction]) -> bool:
    """True if `masses` sum to one.

    They are summed over their common denominator, because adding fractions one by one reduces every partial sum.
    """
    common = lcm(*(mass.denominator for mass in masses))
    return sum(mass.numerator * (common // mass.denominator) for mass in masses) == common


def _finite(factor: Factor) -> Fraction:
    ratio = factor.largest_ratio
    assert ratio is not None
    return ratio


def _summed(factors: Iterable[tuple[Factor, int]], side: int) -> Decimal:
    """Return the loss of all factors together, each counted that often, rounded down (`side` 0) or up (1)."""
    context, total = _WIDE[side], Decimal(0)
    for factor, count in factors:
        total = context.add(total, context.multiply(Decimal(count), factor.loss[side]))
    return total
