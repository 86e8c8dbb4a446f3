"""Rule `zcdp`: the ρ add up, and the sum is converted once to (ε, δ).

ρ-zCDP (Bun and Steinke 2016; its section 8 with a δ beside ρ) bounds the divergence of every order α by ρα, and so
any order gives a valid bound. Its derivative is ρ - ln(1/(δα))/(α-1)², which changes sign once: the best order is the
root of (α-1)²ρ = ln(1/(δα)), and only tightness depends on it.
"""

from __future__ import annotations

import math
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from ..guarantees.amounts import DELTA_DIGITS, DOWN, RHO_DIGITS, UP, Costs, from_units, to_capacity
from .conversion import conversion, converted, left_of_delta
from .rules import Filter, Total, added, largest_units, needs_delta

if TYPE_CHECKING:
    from .charges import Charges

_REFUSAL = "rule zcdp refuses a guarantee of kind {}: it has no rho of its own"


class ZCDP(Filter):
    """Σρ, then the optimal conversion at what the reports leave of δ > 0."""

    name = "zcdp"

    def total(self, charges: Charges, delta: Decimal) -> Total:
        left = left_of_delta(self.name, charges, delta)
        rho = added(charges, lambda guarantee: guarantee.concentrated(), _REFUSAL)
        return converted(epsilon_of_rho(rho, left), delta)

    def capacity(self, epsilon: Decimal, delta: Decimal, aside: Decimal = Decimal(0)) -> Costs:
        left = DOWN.subtract(delta, aside)
        needs_delta(self.name, left)
        set_aside = to_capacity(aside, DELTA_DIGITS) if aside else None
        return Costs(None, set_aside, _capacity(epsilon, left), None)


@lru_cache(maxsize=64)
def _capacity(epsilon: Decimal, delta: Decimal) -> int:
    return largest_units(lambda units: epsilon_of_rho(from_units(units, RHO_DIGITS), delta) <= epsilon)


def epsilon_of_rho(rho: Decimal, delta: Decimal) -> Decimal:
    """The ε at `delta` > 0 that ρ-zCDP implies, rounded up at the fortieth digit or so of each of its terms."""
    if not rho:
        return Decimal(0)
    excess = _best_excess(max(float(rho), 1e-300), min(float(DOWN.ln(delta).next_minus(DOWN)), -1e-290))
    divergence = UP.multiply(rho, UP.add(Decimal(1), excess))
    return max(UP.add(divergence, conversion(excess, delta)), Decimal(0))


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
