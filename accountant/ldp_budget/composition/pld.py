"""Rule `exact`: composition of the privacy loss distributions themselves. It is not a filter.

The pairs that dominate each report dominate together (Zhu, Dong and Wang 2022, Theorem 10), provided that the list
of reports was fixed beforehand. Gaussians are added in closed form. An (ε, δ) step is a loss that is infinite with
probability δ and otherwise ±ε (Kairouz, Oh and Viswanath 2015, Theorem 2; Murtagh and Vadhan 2016). Losses ±ε whose
sum is on a lattice of not too many points get their distribution from the lattice (`_pld_fft`). For any other list
the transform of the sum, known in closed form, is inverted (`_laplace_inversion`). No loss is discretized.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

from ..guarantees.fixed_point import DOWN, UP, exp_down, exp_up, float_above, float_below, float_down, float_up
from ..guarantees.gaussian_calibration import gaussian_log_delta
from ._pld_fft import Curve, TooFine, common_spacing, convolve, symmetric_law, tilt
from ._saddlepoint import (
    BEST,
    DECAYING,
    LEAST,
    LESS_STEEP,
    Saddle,
    Tilt,
    saddle_for_delta,
    saddle_for_epsilon,
    saddle_for_rest,
)
from .filters import gaussian_epsilon, gaussian_log_delta_down, log_bounds, mu_bounds
from .laplace_inversion import Inversion, invert
from .loss_distribution import (
    ONE,
    Cumulants,
    Decomposition,
    Symmetric,
    basic_epsilon,
    finite_targets,
    infinite_mass,
    largest_loss,
    take_apart,
)
from .rules import Rule, Total, crossing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .rules import Charges


_MOST_ON_LATTICE = 10**7  # with more reports the rounding of a power costs more precision than the inversion
_LOOSE = 1e-4  # bounds with a larger relative distance are improved with further tilts
# Losses with a total below this have no transform in doubles. The same holds next to a Gaussian, for a total below
# this share of its μ. Such losses add at most their total to ε, as pure ε does, and at most their total to δ.
_TINY = 1e-100
_SMALL_SHARE = 1e-12
_NEAR_ONE = Decimal("0.9")  # for a larger δ the search uses 1 - δ


class Exact(Rule):
    """The best ε at δ for a list of reports that was fixed before the first one, between two certified bounds."""

    name = "exact"

    def total(self, charges: Charges, delta: Decimal) -> Total:
        parts = take_apart(charges)
        lower, upper = _epsilon(parts, delta)
        basic = basic_epsilon(charges, delta)
        # A Gaussian states the point it was calibrated to. A point that contradicts its own profile is ignored.
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


def _epsilon(parts: Decomposition, delta: Decimal) -> tuple[float, float]:
    infinite = infinite_mass(parts.slacks)
    smallest, largest = finite_targets(delta, infinite)
    least, most = _whole_loss(parts)
    lower, upper = _finite_epsilon(parts, smallest, largest) if largest else (least, most)
    if not smallest:
        upper = most if infinite[1] <= delta else math.inf
    if infinite[0] > delta:
        lower = math.inf
    return lower, min(upper, most) if infinite[1] <= delta else math.inf


def _whole_loss(parts: Decomposition) -> tuple[float, float]:
    """The largest possible loss, which is ε at δ = 0."""
    if parts.mu_squared:
        return math.inf, math.inf
    low, high = largest_loss(parts.steps)
    return max(0.0, float_down(low)), float_up(high)


def _finite_epsilon(parts: Decomposition, smallest: Decimal, largest: Decimal) -> tuple[float, float]:
    """ε of the finite part of the loss if its δ is between `smallest` and `largest` > 0."""
    mu_squared, low = parts.mu_squared, log_bounds(smallest)[0] if smallest else -math.inf
    if _hardly_any(parts):
        _, most = largest_loss(parts.steps)
        lower, upper = gaussian_epsilon(mu_squared, low, log_bounds(largest)[1])
        if most and (mu_squared or most > smallest):
            upper = float_up(UP.add(Decimal(upper), most))
        return lower, upper if smallest else math.inf
    search = _search_rest if largest > _NEAR_ONE else _search
    lower, upper = search(Cumulants(parts.steps), mu_bounds(mu_squared), smallest, largest)
    return lower, upper if smallest else math.inf


def _search(terms: Cumulants, mu: tuple[float, float], smallest: Decimal, largest: Decimal) -> tuple[float, float]:
    """An ε at which δ is larger than `largest`, and one at which it is at most `smallest`."""
    low, high = log_bounds(smallest)[0] if smallest else 0.0, log_bounds(largest)[1]
    lower, upper = 0.0, math.inf
    for saddle, curve in _curves(terms, mu, lambda tilt: saddle_for_delta(terms, mu[1], high, tilt)):
        below, above = _between(curve, saddle, low, high)
        lower, upper = max(lower, below), min(upper, above)
        if upper <= lower * (1 + _LOOSE):
            break
    return lower, upper


def _between(curve: Curve | Inversion, saddle: Saddle, low: float, high: float) -> tuple[float, float]:
    step = 1 / saddle.theta, curve.resolution
    lower, _ = crossing(lambda epsilon: curve.lower(epsilon) - high, max(0.0, saddle.centre - curve.shift), *step)
    _, upper = crossing(lambda epsilon: curve.upper(epsilon) - low, saddle.centre, *step)
    return lower, upper


def _hardly_any(parts: Decomposition) -> bool:
    """True if all losses together are negligible on both sides: a loss far below zero would lower δ."""
    most = math.fsum(step.widest * count for step, count in parts.steps.items())
    return most < _TINY or most < _SMALL_SHARE * mu_bounds(parts.mu_squared)[0]


def _search_rest(
    terms: Cumulants, mu: tuple[float, float], smallest: Decimal, largest: Decimal
) -> tuple[float, float]:
    """The same by 1 - δ, for a δ near one."""
    low, high = log_bounds(DOWN.subtract(ONE, largest))[0], log_bounds(UP.subtract(ONE, smallest))[1]
    saddle, curve = next(_curves(terms, mu, lambda _: saddle_for_rest(terms, mu[1], high)))
    step = -1 / saddle.theta, curve.resolution
    lower, _ = crossing(lambda epsilon: low - curve.upper(epsilon), max(0.0, saddle.centre - curve.shift), *step)
    _, upper = crossing(lambda epsilon: high - curve.lower(epsilon), saddle.centre, *step)
    return lower, upper


def _finite_delta(parts: Decomposition, epsilon: float) -> tuple[Decimal, Decimal]:
    if epsilon >= _whole_loss(parts)[1]:
        return Decimal(0), Decimal(0)
    mu = mu_bounds(parts.mu_squared)
    if _hardly_any(parts):
        _, most = largest_loss(parts.steps)
        log_high = gaussian_log_delta(epsilon, mu[1]) if mu[1] else -math.inf
        low, high = _exp(gaussian_log_delta_down(epsilon, mu[0]), log_high)
        high = UP.add(high, most)
        less = float_below(DOWN.subtract(Decimal(epsilon), most))
        if less >= 0 and mu[1]:
            # The whole loss is at most `most` above the Gaussian one, so its δ at ε is no more than that at `less`.
            high = min(high, _exp(-math.inf, gaussian_log_delta(less, mu[1]))[1])
        return low, min(ONE, high)
    terms = Cumulants(parts.steps)
    saddle, curve = next(_curves(terms, mu, lambda tilt: saddle_for_epsilon(terms, mu[1], epsilon, tilt)))
    low, high = _exp(curve.lower(epsilon), curve.upper(epsilon))
    return (low, high) if saddle.theta > 0 else (DOWN.subtract(ONE, high), UP.subtract(ONE, low))


def _exp(low: float, high: float) -> tuple[Decimal, Decimal]:
    smallest = Decimal(0) if math.isinf(low) else exp_down(Decimal(low))
    return smallest, Decimal(0) if high == -math.inf else min(ONE, exp_up(Decimal(min(high, 0.0))))


def _curves(
    terms: Cumulants, mu: tuple[float, float], saddle_with: Callable[[Tilt], Saddle]
) -> Iterator[tuple[Saddle, Curve | Inversion]]:
    """Yield ln δ(ε), or ln(1 - δ(ε)), of `terms` and of Gaussian reports with a μ between the two of `mu`.

    One curve for each tilt to try. On a lattice that is only the best tilt, which suffices.
    """
    found = _on_lattice(terms, mu, saddle_with)
    if found is not None:
        yield found
        return
    for each in (DECAYING, LESS_STEEP, LEAST):
        saddle = saddle_with(each)
        yield saddle, invert(terms, mu, saddle)


def _on_lattice(
    terms: Cumulants, mu: tuple[float, float], saddle_with: Callable[[Tilt], Saddle]
) -> tuple[Saddle, Curve] | None:
    steps = {step: count for step, count in terms.steps.items() if isinstance(step, Symmetric)}
    if len(steps) < len(terms.steps) or sum(steps.values()) > _MOST_ON_LATTICE:
        return None
    saddle, spacing = saddle_with(BEST), common_spacing([step.bound for step in steps])
    try:
        laws = [tilt(symmetric_law(step, spacing), saddle.theta, count) for step, count in steps.items()]
        return saddle, Curve(convolve(laws), saddle.theta, mu)
    except TooFine:
        return None
