"""Rule `gdp`: the μ² add up, and the sum is converted once to (ε, δ).

μ-Gaussian DP composes as Gaussians do, μ² = Σμᵢ² (Dong, Roth and Su 2022, Corollary 3.3), also when mechanisms are
chosen adaptively (Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2023). The δ of μ-GDP at ε is that of
the Gaussian mechanism (Balle and Wang 2018, Theorem 8).
"""

from __future__ import annotations

import math
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from ..guarantees.amounts import DOWN, MU_SQUARED_DIGITS, UP, Costs, float_above, float_below, from_units
from ..guarantees.gaussian import gaussian_log_delta
from .crossing import crossing
from .rules import Filter, Total, added, largest_units, needs_delta, nothing_aside

if TYPE_CHECKING:
    from .charges import Charges

_REFUSAL = "rule gdp refuses a guarantee of kind {}: it has no mu of its own, for example because its delta is > 0"


class GaussianDP(Filter):
    """Σμ², then the exact ε of the Gaussian mechanism at the given δ > 0."""

    name = "gdp"

    def total(self, charges: Charges, delta: Decimal) -> Total:
        needs_delta(self.name, delta)
        mu_squared = added(charges, lambda guarantee: guarantee.amounts().mu_squared, _REFUSAL)
        return Total(*gaussian_epsilon(mu_squared, *log_bounds(delta)), delta)

    def capacity(self, epsilon: Decimal, delta: Decimal, aside: Decimal = Decimal(0)) -> Costs:
        nothing_aside(self.name, aside)
        needs_delta(self.name, delta)
        return Costs(None, None, None, _capacity(epsilon, delta))


@lru_cache(maxsize=64)
def _capacity(epsilon: Decimal, delta: Decimal) -> int:
    log_delta = log_bounds(delta)

    def holds(units: int) -> bool:
        _, upper = gaussian_epsilon(from_units(units, MU_SQUARED_DIGITS), *log_delta)
        return Decimal(upper) <= epsilon

    return largest_units(holds)


def log_bounds(delta: Decimal) -> tuple[float, float]:
    """ln δ for δ > 0 as a lower and an upper double."""
    return float_below(DOWN.ln(delta).next_minus(DOWN)), float_above(UP.ln(delta).next_plus(UP))


def mu_bounds(mu_squared: Decimal) -> tuple[float, float]:
    """μ from μ², as a lower and an upper double."""
    if not mu_squared:
        return 0.0, 0.0
    mu = UP.sqrt(mu_squared)
    return max(0.0, float_below(DOWN.sqrt(mu_squared).next_minus(DOWN))), float_above(mu.next_plus(UP))


def gaussian_log_delta_down(epsilon: float, mu: float) -> float:
    """A lower bound of ln δ, from the stated accuracy of the upper one."""
    if not mu:
        return -math.inf
    value = gaussian_log_delta(epsilon, mu * (1 - 1e-14))
    return value - 4e-13 * (1 - value)


def gaussian_epsilon(mu_squared: Decimal, log_delta_down: float, log_delta_up: float) -> tuple[float, float]:
    """The ε of μ-GDP at δ between e^log_delta_down and e^log_delta_up: a lower and an upper bound."""
    if not mu_squared:
        return 0.0, 0.0
    low, high = mu_bounds(mu_squared)
    guess = high * (high / 2 + math.sqrt(-2 * log_delta_down)) + 1e-300
    _, upper = crossing(lambda epsilon: gaussian_log_delta(epsilon, high) - log_delta_down, guess, high)
    lower, _ = crossing(lambda epsilon: gaussian_log_delta_down(epsilon, low) - log_delta_up, guess, high)
    return lower, upper
