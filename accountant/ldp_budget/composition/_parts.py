"""A list of charges taken apart for exact composition: what has a closed form, and what needs a lattice."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from ..errors import NotSupported
from ..guarantees import Approximate, FinitePair, Gaussian, Guarantee, Laplace, Memoised, Pure, SymmetricPair
from ..guarantees.amounts import DOWN, UP, exp_down, exp_up, ln_up
from ._steps import Finite, LaplaceNoise, Step, Symmetric

if TYPE_CHECKING:
    from .charges import Charges

ONE = Decimal(1)


@dataclass
class Parts:
    """The parts that compose independently of each other.

    `steps` counts the reports with a bounded loss, `mu_squared` adds up the Gaussian ones, `slacks` lists the
    probabilities of an infinite loss with their counts.
    """

    steps: dict[Step, int] = field(default_factory=dict)
    mu_squared: Decimal = Decimal(0)
    slacks: list[tuple[Fraction, int]] = field(default_factory=list)

    def add(self, step: Step, count: int) -> None:
        self.steps[step] = self.steps.get(step, 0) + count

    def add_symmetric(self, bound: Decimal, tau: Decimal, count: int) -> None:
        """Loss ±bound with probability τ; nothing if that is no loss at all."""
        if bound and tau:
            self.add(Symmetric(Fraction(bound), tau), count)

    def add_slack(self, probability: Fraction, count: int) -> None:
        if probability:
            self.slacks.append((probability, count))


def take_apart(charges: Charges) -> Parts:
    """The parts of `charges`. Raises `NotSupported` for a guarantee that says nothing of its loss distribution."""
    parts = Parts()
    for guarantee, count in charges:
        _add(parts, guarantee, count)
    return parts


def _add(parts: Parts, guarantee: Guarantee, count: int) -> None:
    match guarantee:
        case Pure():
            parts.add_symmetric(guarantee.bound, ONE, count)
        case SymmetricPair():
            parts.add_symmetric(guarantee.bound, guarantee.tau, count)
        case Memoised():  # the curve holds only while reports are tied to memoised values, the cap always
            parts.add_symmetric(guarantee.cap, ONE, count)
        case Approximate():
            parts.add_symmetric(guarantee.bound, ONE, count)
            parts.add_slack(Fraction(guarantee.slack), count)
        case Laplace():
            if guarantee.bound:
                parts.add(LaplaceNoise(Fraction(guarantee.bound)), count)
        case Gaussian():
            squared = UP.multiply(guarantee.mu, guarantee.mu)
            parts.mu_squared = UP.add(parts.mu_squared, UP.multiply(squared, count))
        case FinitePair():
            _add_finite(parts, guarantee, count)
        case _:
            raise NotSupported(
                f"rule exact cannot compose a guarantee of kind {guarantee.kind}: its loss distribution is not known"
            )


def _add_finite(parts: Parts, pair: FinitePair, count: int) -> None:
    """Outcomes with P = 0 say nothing about P; those with Q = 0 are an infinite loss."""
    infinite = sum((p for p, q in pair.outcomes if not q), Fraction(0))
    parts.add_slack(infinite, count)
    finite = tuple(sorted((p, q) for p, q in pair.outcomes if p and q))
    if any(p != q for p, q in finite):
        parts.add(Finite(finite), count)


def infinite_mass(slacks: list[tuple[Fraction, int]]) -> tuple[Decimal, Decimal]:
    """1 - ∏(1-δᵢ)^kᵢ, as a lower and an upper bound; both are near the sum where that is tiny."""
    if not slacks:
        return Decimal(0), Decimal(0)
    if any(probability >= 1 for probability, _ in slacks):
        return ONE, ONE
    exact_sum = sum((probability * count for probability, count in slacks), Fraction(0))
    total = _up(exact_sum)
    stay_up, stay_down = Decimal(0), Decimal(0)
    for probability, count in slacks:
        stay_up = UP.add(stay_up, UP.multiply(ln_up(_up(1 - probability)), count))
        stay_down = DOWN.add(stay_down, DOWN.multiply(_ln_down(_down(1 - probability)), count))
    low = max(DOWN.subtract(ONE, exp_up(stay_up)), _down(exact_sum - exact_sum * exact_sum / 2))
    return max(low, Decimal(0)), min(UP.subtract(ONE, exp_down(stay_down)), total)


def finite_targets(delta: Decimal, infinite: tuple[Decimal, Decimal]) -> tuple[Decimal, Decimal]:
    """What is left of δ for the finite part of the loss, (δ - a)/(1 - a), rounded down and up."""
    low, high = infinite
    left_low, left_high = DOWN.subtract(delta, high), UP.subtract(delta, low)
    smallest = DOWN.divide(left_low, UP.subtract(ONE, high)) if left_low > 0 else Decimal(0)
    largest = UP.divide(left_high, DOWN.subtract(ONE, low)) if left_high > 0 else Decimal(0)
    return smallest, largest


def largest_loss(steps: dict[Step, int]) -> tuple[Decimal, Decimal]:
    """The largest loss that all steps can have together, rounded down and up."""
    low = high = Decimal(0)
    for step, count in steps.items():
        if isinstance(step, Finite):
            ratio = max(p / q for p, q in step.outcomes)
            bottom, top = _ln_down(_down(ratio)), ln_up(_up(ratio))
        else:
            assert isinstance(step, Symmetric | LaplaceNoise)
            bottom, top = _down(step.bound), _up(step.bound)
        low = DOWN.add(low, DOWN.multiply(bottom, count))
        high = UP.add(high, UP.multiply(top, count))
    return max(low, Decimal(0)), max(high, Decimal(0))


def basic_epsilon(charges: Charges, delta: Decimal) -> Decimal | None:
    """Σε of the charges as they stand here, a memoised one as its cap, if their Σδ is within `delta`; else None."""
    epsilon = spent = Decimal(0)
    for guarantee, count in charges:
        loss = (guarantee.cap, Decimal(0)) if isinstance(guarantee, Memoised) else guarantee.loss()
        if loss is None:
            return None
        epsilon = UP.add(epsilon, UP.multiply(loss[0], count))
        spent = UP.add(spent, UP.multiply(loss[1], count))
    return epsilon if spent <= delta else None


def _ln_down(x: Decimal) -> Decimal:
    return DOWN.ln(x).next_minus(DOWN)


def _up(fraction: Fraction) -> Decimal:
    return UP.divide(Decimal(fraction.numerator), Decimal(fraction.denominator))


def _down(fraction: Fraction) -> Decimal:
    return DOWN.divide(Decimal(fraction.numerator), Decimal(fraction.denominator))
