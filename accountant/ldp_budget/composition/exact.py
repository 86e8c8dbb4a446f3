"""Rule `exact`: the loss distributions themselves, composed. Not a filter.

The pairs that dominate each report dominate together (Zhu, Dong and Wang 2022, Theorem 10), provided that the
list of reports was fixed beforehand. Gaussians are added in closed form, as are steps with loss ±ε (their sum lies on
a lattice, so its law is found without discretisation); an (ε, δ) step is a loss that is infinite with probability
δ and otherwise ±ε (Kairouz, Oh and Viswanath 2015, Theorem 2; Murtagh and Vadhan 2016); the rest is put on a lattice
from above and from below.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from ..guarantees.amounts import DOWN, UP, exp_down, exp_up, float_above, float_below, float_up
from ..guarantees.gaussian import gaussian_log_delta
from ._curve import Curve
from ._lattice import TiltedLaw, TooFine, convolve, regrid, tilt
from ._parts import ONE, Parts, basic_epsilon, finite_targets, infinite_mass, largest_loss, take_apart
from ._saddle import Saddle, saddle_for_delta, saddle_for_epsilon
from .crossing import crossing
from .gdp import gaussian_epsilon, gaussian_log_delta_down, log_bounds, mu_bounds
from .rules import Rule, Total

if TYPE_CHECKING:
    from ._steps import Step
    from .charges import Charges


class Exact(Rule):
    """The best ε at δ for a list of reports that was fixed before the first one, between two certified bounds."""

    name = "exact"

    def total(self, charges: Charges, delta: Decimal) -> Total:
        parts = take_apart(charges)
        lower, upper = _epsilon(parts, delta)
        basic = basic_epsilon(charges, delta)
        # A Gaussian states the point it was calibrated to. One that its own curve contradicts is not believed.
        if basic is not None and float_up(basic) >= lower:
            upper = min(upper, float_up(basic))
        return Total(lower, upper, delta)


def exact_delta(charges: Charges, epsilon: float) -> tuple[float, float]:
    """The best δ at `epsilon` >= 0: a lower and an upper bound."""
    parts = take_apart(charges)
    finite = _finite_delta(parts, epsilon)
    low, high = (
        context.add(infinite, context.multiply(context.subtract(ONE, infinite), part))
        for context, infinite, part in zip((DOWN, UP), infinite_mass(parts.slacks), finite, strict=True)
    )
    return max(0.0, float_below(low)), min(1.0, float_above(high))


def _epsilon(parts: Parts, delta: Decimal) -> tuple[float, float]:
    infinite = infinite_mass(parts.slacks)
    smallest, largest = finite_targets(delta, infinite)
    least, most = _whole_loss(parts)
    lower, upper = _finite_epsilon(parts, smallest, largest) if largest else (least, most)
    if not smallest:
        upper = most if infinite[1] <= delta else math.inf
    if infinite[0] > delta:
        lower = math.inf
    return lower, min(upper, most) if infinite[1] <= delta else math.inf


def _whole_loss(parts: Parts) -> tuple[float, float]:
    """The largest loss there can be, which is ε at δ = 0."""
    if parts.mu_squared:
        return math.inf, math.inf
    low, high = largest_loss(parts.steps)
    return max(0.0, -float_up(-low)), float_up(high)


def _finite_epsilon(parts: Parts, smallest: Decimal, largest: Decimal) -> tuple[float, float]:
    """ε of the finite part of the loss where its δ lies between `smallest` and `largest` > 0."""
    _, high = log_bounds(largest)
    low = log_bounds(smallest)[0] if smallest else -math.inf
    if not parts.steps:
        return gaussian_epsilon(parts.mu_squared, low, high)
    mu_low, mu_high = mu_bounds(parts.mu_squared)
    saddle = saddle_for_delta(parts.steps, mu_high, high)
    try:
        below, above = _compose(parts.steps, saddle)
    except TooFine:
        return 0.0, math.inf
    lower_curve = Curve(below, saddle.theta, mu_low, upper=False)
    upper_curve = Curve(above, saddle.theta, mu_high, upper=True)
    lower, _ = crossing(lambda epsilon: lower_curve.log_delta(epsilon) - high, saddle.centre, 1 / saddle.theta)
    if not smallest:
        return lower, math.inf
    _, upper = crossing(lambda epsilon: upper_curve.log_delta(epsilon) - low, saddle.centre, 1 / saddle.theta)
    return lower, upper


def _finite_delta(parts: Parts, epsilon: float) -> tuple[Decimal, Decimal]:
    _, most = _whole_loss(parts)
    if epsilon >= most:
        return Decimal(0), Decimal(0)
    mu_low, mu_high = mu_bounds(parts.mu_squared)
    if not parts.steps:
        return _exp(gaussian_log_delta_down(epsilon, mu_low), gaussian_log_delta(epsilon, mu_high))
    saddle = saddle_for_epsilon(parts.steps, mu_high, epsilon)
    try:
        below, above = _compose(parts.steps, saddle)
    except TooFine:
        return Decimal(0), ONE
    lower = Curve(below, saddle.theta, mu_low, upper=False).log_delta(epsilon)
    return _exp(lower, Curve(above, saddle.theta, mu_high, upper=True).log_delta(epsilon))


def _exp(low: float, high: float) -> tuple[Decimal, Decimal]:
    smallest = Decimal(0) if math.isinf(low) else exp_down(Decimal(low))
    return smallest, min(ONE, exp_up(Decimal(high)))


def _compose(steps: dict[Step, int], saddle: Saddle) -> tuple[TiltedLaw, TiltedLaw]:
    """The law of the summed loss, from below and from above; the same where it lies on the lattice by itself."""
    if saddle.common is not None and all(step.exact for step in steps):
        exact = _on_common(steps, saddle.theta, saddle.common, upper=True)
        return exact, exact
    if saddle.common is not None:
        low, high = (_on_common(steps, saddle.theta, saddle.common, upper) for upper in (False, True))
    else:
        low, high = (_regridded(steps, saddle, upper) for upper in (False, True))
    return low, high


def _on_common(steps: dict[Step, int], theta: float, spacing: Fraction, upper: bool) -> TiltedLaw:
    return convolve([tilt(step.law(spacing, upper), theta, count) for step, count in steps.items()])


def _regridded(steps: dict[Step, int], saddle: Saddle, upper: bool) -> TiltedLaw:
    """Each kind of report composed with itself where that is best, then all of them on one lattice."""
    spacing = Fraction(2) ** math.floor(math.log2(saddle.finest))
    laws = []
    for step, count in steps.items():
        together = convolve([tilt(step.law(step.own_spacing(saddle.finest), upper), saddle.theta, count)])
        laws.append(regrid(together, spacing, saddle.theta, upper))
    return convolve(laws)
