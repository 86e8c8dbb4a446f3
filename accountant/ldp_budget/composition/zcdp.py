"""Rule `zcdp`: the ρ add up, and the sum is converted once to (ε, δ).

ρ-zCDP (Bun and Steinke 2016) implies (ε, δ)-DP for every α > 1 with

    ε(α) = ρα + ln((α-1)/α) - (ln δ + ln α)/(α-1)

(Canonne, Kamath and Steinke 2020, Proposition 12). Its derivative is ρ - ln(1/(δα))/(α-1)², which changes sign once,
so the best α is the root of (α-1)²ρ = ln(1/(δα)). Any α gives a valid bound; only tightness depends on the root.

A report with a δᵢ of its own is told apart with that probability, and has a ρ else (Bun and Steinke 2016, section 8):
the total's δ is that of the conversion, and Σδᵢ.
"""

from __future__ import annotations

import math
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from ..guarantees.amounts import (
    DELTA_DIGITS,
    DOWN,
    RHO_DIGITS,
    UP,
    Costs,
    float_above,
    float_below,
    from_units,
    ln_up,
    to_capacity,
)
from .renyi import left_of_delta
from .rules import Filter, Total, added, largest_units, needs_delta

if TYPE_CHECKING:
    from .charges import Charges

_REFUSAL = "rule zcdp refuses a guarantee of kind {}: it has no rho of its own"
# α is within some units of the last place of its best value, so ε is off by the square of that.
_LOOSENESS = 1e-12
_ONE = Decimal(1)
_SMALL = Decimal("1e-15")


class ZCDP(Filter):
    """Σρ, then the optimal conversion at what the reports leave of δ > 0."""

    name = "zcdp"

    def total(self, charges: Charges, delta: Decimal) -> Total:
        left = left_of_delta(self.name, charges, delta)
        rho = added(charges, lambda guarantee: guarantee.concentrated(), _REFUSAL)
        epsilon = epsilon_of_rho(rho, left)
        return Total(max(0.0, float_below(epsilon) * (1 - _LOOSENESS)), float_above(epsilon), delta)

    def capacity(self, epsilon: Decimal, delta: Decimal, aside: Decimal = Decimal(0)) -> Costs:
        left = DOWN.subtract(delta, aside)
        needs_delta(self.name, left)
        set_aside = to_capacity(aside, DELTA_DIGITS) if aside else None
        return Costs(None, set_aside, _capacity(epsilon, left), None)


@lru_cache(maxsize=64)
def _capacity(epsilon: Decimal, delta: Decimal) -> int:
    return largest_units(lambda units: epsilon_of_rho(from_units(units, RHO_DIGITS), delta) <= epsilon)


def epsilon_of_rho(rho: Decimal, delta: Decimal) -> Decimal:
    """The ε at `delta` > 0 that ρ-zCDP implies, rounded up at the fortieth digit or so of each of its terms.

    All terms are at the same α, which 1 + `excess` is exactly: what α is rounded to differs from term to term.
    """
    if not rho:
        return Decimal(0)
    log_delta = DOWN.ln(delta).next_minus(DOWN)
    excess = _best_excess(max(float(rho), 1e-300), min(float(log_delta), -1e-290))
    conversion = UP.divide(UP.minus(DOWN.add(log_delta, _log1p_down(excess))), excess)
    divergence = UP.multiply(rho, UP.add(_ONE, excess))
    epsilon = UP.add(divergence, UP.add(_log_of_rest_up(excess), conversion))
    return max(epsilon, Decimal(0))


def _log1p_down(x: Decimal) -> Decimal:
    """A lower bound of ln(1 + x) for x > 0, good to some twenty-five digits of itself."""
    if x < _SMALL:
        return DOWN.subtract(x, UP.divide(UP.multiply(x, x), Decimal(2)))
    return DOWN.ln(DOWN.add(_ONE, x)).next_minus(DOWN)


def _log_of_rest_up(x: Decimal) -> Decimal:
    """An upper bound of ln(x/(1 + x)) for x > 0, as good."""
    if x > _ONE:
        return UP.minus(_log1p_down(DOWN.divide(_ONE, x)))
    return ln_up(UP.divide(x, DOWN.add(_ONE, x)))


def _best_excess(rho: float, log_delta: float) -> Decimal:
    """α - 1 at the root of (α-1)²ρ = ln(1/(δα)), by bisection of ln(α-1), in which both sides are monotone."""
    high = math.sqrt(-log_delta / rho)
    low = high / 2
    while low * low * rho + math.log1p(low) > -log_delta:
        low /= 2
    for _ in range(60):
        middle = math.sqrt(low * high)
        if middle * middle * rho + math.log1p(middle) > -log_delta:
            high = middle
        else:
            low = middle
    return Decimal(high)
