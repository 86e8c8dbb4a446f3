"""Privacy filters `zcdp`, `gdp` and `renyi`: amounts of the charges are added, and the sum is converted once.

**The conversion** of `zcdp` and `renyi`. D_α ≤ D at an order α > 1 implies (ε, δ)-DP for

    ε = D + ln((α-1)/α) - (ln δ + ln α)/(α-1)

(Canonne, Kamath and Steinke 2020, Proposition 12). A report with a δᵢ of its own may be distinguished with
that probability, and otherwise has a bounded divergence. So the δ of the conversion is the total's δ minus Σδᵢ.

**Rule `zcdp`** adds up ρ. ρ-zCDP (Bun and Steinke 2016; section 8 for a δ besides ρ) bounds the divergence of every
order α by ρα. So every order gives a valid bound. The bound's derivative in α is ρ - ln(1/(δα))/(α-1)², which
changes sign once: the best order is the root of (α-1)²ρ = ln(1/(δα)), and only tightness depends on it.

**Rule `gdp`** adds up μ². μ-Gaussian DP composes as Gaussians do, μ² = Σμᵢ² (Dong, Roth and Su 2022, Corollary
3.3), even for adaptively chosen mechanisms (Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2023). The δ of
μ-GDP at ε is that of the Gaussian mechanism (Balle and Wang 2018, Theorem 8).

**Rule `renyi`** adds up the Rényi divergences of one order. The divergences of adaptively chosen
mechanisms add up at an order α > 1 that was fixed beforehand. The decision to stop may be adaptive too (Feldman and
Zrnic 2021, Theorem 3.1). Without an order the rule reports the order that is best for a list of charges. A limit
should name that order: a limit cannot have several orders and use the best one.
"""

from __future__ import annotations

import math
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from ..errors import NotSupported
from ..guarantees.costs import ORDERS, RENYI, nearest_order
from ..guarantees.fixed_point import (
    DELTA_DIGITS,
    DOWN,
    MU_SQUARED_DIGITS,
    RHO_DIGITS,
    UP,
    Costs,
    float_above,
    float_below,
    float_up,
    from_units,
    ln_up,
    to_capacity,
)
from ..guarantees.gaussian_calibration import gaussian_log_delta
from .rules import Filter, Total, added, crossing, largest_units, needs_delta, nothing_aside

if TYPE_CHECKING:
    from .rules import Charges


# Divergences and the conversion are correct to about thirty digits; doubles, and roots found in doubles, to fewer.
_LOOSENESS = 1e-12
_ONE = Decimal(1)
_SMALL = Decimal("1e-15")


def conversion(excess: Decimal, delta: Decimal) -> Decimal:
    """The amount that the conversion adds to the divergence, rounded up. It may be below zero.

    Every term uses the same α, exactly 1 + `excess`: a rounded α would differ from term to term.
    """
    logs = DOWN.add(DOWN.ln(delta).next_minus(DOWN), _log1p_down(excess))
    return UP.add(_log_of_rest_up(excess), UP.divide(UP.minus(logs), excess))


def converted(epsilon: Decimal, delta: Decimal, order: Decimal | None = None) -> Total:
    """The total for an ε from a conversion, which may be below zero."""
    epsilon = max(epsilon, Decimal(0))
    return Total(max(0.0, float_below(epsilon) * (1 - _LOOSENESS)), float_above(epsilon), delta, order)


def left_of_delta(rule: str, charges: Charges, delta: Decimal) -> Decimal:
    """The δ that the reports' own δ leave for the conversion. Raises `NotSupported` if nothing is left."""
    needs_delta(rule, delta)
    aside = added(charges, lambda guarantee: guarantee.aside(), f"rule {rule} refuses a guarantee of kind {{}}")
    left = DOWN.subtract(delta, aside)
    if left <= 0:
        raise NotSupported(
            f"rule {rule} needs a delta above {float_above(aside)}, the sum of the reports' own deltas: got {delta}"
        )
    return left


def _log1p_down(x: Decimal) -> Decimal:
    """A lower bound of ln(1 + x) for x > 0, with a relative precision of about twenty-five digits."""
    if x < _SMALL:
        return DOWN.subtract(x, UP.divide(UP.multiply(x, x), Decimal(2)))
    return DOWN.ln(DOWN.add(_ONE, x)).next_minus(DOWN)


def _log_of_rest_up(x: Decimal) -> Decimal:
    """An upper bound of ln(x/(1 + x)) for x > 0, with the same precision."""
    if x > _ONE:
        return UP.minus(_log1p_down(DOWN.divide(_ONE, x)))
    return ln_up(UP.divide(x, DOWN.add(_ONE, x)))


def epsilon_of(rule: str, amount: Decimal, delta: Decimal) -> float:
    """The ε at δ that a sum of one rule's amounts implies, rounded up: of ε, ρ, μ², or divergences at the rule's order."""
    if rule == "basic" or not amount:
        return float_up(amount)
    if rule == GaussianDP.name:
        return gaussian_epsilon(amount, *log_bounds(delta))[1]
    if rule == ZCDP.name:
        return converted(epsilon_of_rho(amount, delta), delta).upper
    excess = _excess(Decimal(rule.partition(":")[2]))
    return converted(UP.add(amount, conversion(excess, delta)), delta).upper


# -- rule zcdp -------------------------------------------------------------------------------------------------

_REFUSAL = "rule zcdp refuses a guarantee of kind {}: it has no rho of its own"


class ZCDP(Filter):
    """Σρ, then the optimal conversion at the part of δ > 0 that the reports leave."""

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
    """The ε at `delta` > 0 that ρ-zCDP implies, rounded up at about the fortieth digit of each of its terms."""
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


# -- rule gdp --------------------------------------------------------------------------------------------------

_GDP_REFUSAL = (
    "rule gdp refuses a guarantee of kind {}: it has no mu of its own, for example because its delta is > 0"
)


class GaussianDP(Filter):
    """Σμ², then the exact ε of the Gaussian mechanism at the given δ > 0."""

    name = "gdp"

    def total(self, charges: Charges, delta: Decimal) -> Total:
        needs_delta(self.name, delta)
        mu_squared = added(charges, lambda guarantee: guarantee.amounts().mu_squared, _GDP_REFUSAL)
        return Total(*gaussian_epsilon(mu_squared, *log_bounds(delta)), delta)

    def capacity(self, epsilon: Decimal, delta: Decimal, aside: Decimal = Decimal(0)) -> Costs:
        nothing_aside(self.name, aside)
        needs_delta(self.name, delta)
        return Costs(None, None, None, _gdp_capacity(epsilon, delta))


@lru_cache(maxsize=64)
def _gdp_capacity(epsilon: Decimal, delta: Decimal) -> int:
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
    """A lower bound of ln δ, from the stated precision of the upper one."""
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


# -- rule renyi ------------------------------------------------------------------------------------------------

_RDP_REFUSAL = "rule renyi refuses a guarantee of kind {}: its Rényi divergences have no bound"


class Renyi(Filter):
    """Σ of the divergences at one order, then the conversion at the part of δ > 0 that the reports leave."""

    name = RENYI

    def __init__(self, order: Decimal | None = None) -> None:
        self.order = order

    def total(self, charges: Charges, delta: Decimal) -> Total:
        left = left_of_delta(self.name, charges, delta)
        if self.order is not None:
            epsilon, order = _epsilon(charges, left, self.order), self.order
        else:
            epsilon, order = _best(charges, left)
        return converted(epsilon, delta, order)

    def capacity(self, epsilon: Decimal, delta: Decimal, aside: Decimal = Decimal(0)) -> Costs:
        left = DOWN.subtract(delta, aside)
        needs_delta(self.name, left)
        order = self.order or suited_order(epsilon, left)
        most = max(DOWN.subtract(epsilon, conversion(_excess(order), left)), Decimal(0))
        return Costs(None, to_capacity(aside, DELTA_DIGITS), to_capacity(most, RHO_DIGITS), None)


def suited_order(epsilon: Decimal, delta: Decimal) -> Decimal:
    """The order of the grid next to 1 + √L/(√(ε+L) - √L), L = ln 1/δ; the best one if D_α is proportional to α."""
    needs_delta(RENYI, delta)
    log = -float(DOWN.ln(delta))
    # Equal to √L(√(ε+L) + √L)/ε, which has no cancellation.
    return nearest_order(math.sqrt(log) * (math.sqrt(float(epsilon) + log) + math.sqrt(log)) / float(epsilon))


def _excess(order: Decimal) -> Decimal:
    """α - 1, exactly, for an order of the grid."""
    return DOWN.subtract(order, Decimal(1))


def _epsilon(charges: Charges, delta: Decimal, order: Decimal) -> Decimal:
    """ε at an order. The result may be below zero."""
    divergence = added(charges, lambda guarantee: guarantee.divergence(order), _RDP_REFUSAL)
    return UP.add(divergence, conversion(_excess(order), delta))


def _best(charges: Charges, delta: Decimal) -> tuple[Decimal, Decimal]:
    """The least ε over the grid, and its order.

    (α-1)ε is convex in α. So ε decreases up to its least value and increases from there.
    """
    first, last = 0, len(ORDERS) - 1
    while first < last:
        middle = (first + last) // 2
        if _epsilon(charges, delta, ORDERS[middle]) <= _epsilon(charges, delta, ORDERS[middle + 1]):
            last = middle
        else:
            first = middle + 1
    return _epsilon(charges, delta, ORDERS[first]), ORDERS[first]
