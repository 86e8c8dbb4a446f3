"""Rule `renyi`: the Rényi divergences of one order add up, and the sum is converted once to (ε, δ).

At an order α > 1 that was fixed beforehand the divergences of adaptively chosen mechanisms add up, also where it is
decided on the way when to stop (Feldman and Zrnic 2021, Theorem 3.1), and D_α ≤ D implies (ε, δ)-DP for

    ε = D + ln((α-1)/α) - (ln δ + ln α)/(α-1)

(Canonne, Kamath and Steinke 2020, Proposition 12). Without an order the rule says which one is the best for a list of
charges. That is what a limit should name: it cannot have several, of which it goes by the best.

A report that is told apart with probability δᵢ sets that aside: the total's δ is that of the conversion, and Σδᵢ.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

from ..errors import NotSupported
from ..guarantees.amounts import (
    DELTA_DIGITS,
    DOWN,
    RHO_DIGITS,
    UP,
    Costs,
    float_above,
    float_below,
    ln_up,
    to_capacity,
)
from ..guarantees.orders import ORDERS, RENYI, measure_at, nearest_order
from .rules import Filter, Total, added, needs_delta

if TYPE_CHECKING:
    from .charges import Charges

_REFUSAL = "rule renyi refuses a guarantee of kind {}: its Rényi divergences have no bound"
# Divergences and the conversion are good to some thirty digits; doubles keep fewer.
_LOOSENESS = 1e-12


class Renyi(Filter):
    """Σ of the divergences at one order, then the conversion at what the reports leave of δ > 0."""

    name = RENYI

    def __init__(self, order: Decimal | None = None) -> None:
        self.order = order

    @property
    def measure(self) -> str | None:
        return None if self.order is None else measure_at(self.order)

    def at(self, epsilon: Decimal, delta: Decimal) -> Renyi:
        """The rule with an order: its own, or one that suits a limit of (ε, δ) for any mechanisms."""
        return self if self.order is not None else Renyi(suited_order(epsilon, delta))

    def total(self, charges: Charges, delta: Decimal) -> Total:
        left = left_of_delta(self.name, charges, delta)
        if self.order is not None:
            epsilon, order = _epsilon(charges, left, self.order), self.order
        else:
            epsilon, order = _best(charges, left)
        epsilon = max(epsilon, Decimal(0))
        return Total(max(0.0, float_below(epsilon) * (1 - _LOOSENESS)), float_above(epsilon), delta, order)

    def capacity(self, epsilon: Decimal, delta: Decimal, aside: Decimal = Decimal(0)) -> Costs:
        order = self.at(epsilon, delta).order
        assert order is not None
        left = DOWN.subtract(delta, aside)
        needs_delta(self.name, left)
        most = DOWN.subtract(epsilon, conversion(order, left))
        return Costs(None, to_capacity(aside, DELTA_DIGITS), to_capacity(max(most, Decimal(0)), RHO_DIGITS), None)


def suited_order(epsilon: Decimal, delta: Decimal) -> Decimal:
    """The order of the grid next to 1 + √L/(√(ε+L) - √L), L = ln 1/δ, the best one where D_α grows as α does."""
    needs_delta(RENYI, delta)
    log = -float(DOWN.ln(delta))
    # √L(√(ε+L) + √L)/ε, in which nothing cancels.
    return nearest_order(math.sqrt(log) * (math.sqrt(float(epsilon) + log) + math.sqrt(log)) / float(epsilon))


def conversion(order: Decimal, delta: Decimal) -> Decimal:
    """What the conversion at an order adds to the divergence, rounded up; it may be below zero."""
    excess = DOWN.subtract(order, Decimal(1))
    logs = DOWN.add(DOWN.ln(delta).next_minus(DOWN), DOWN.ln(order).next_minus(DOWN))
    rate = UP.divide(UP.minus(logs), excess if logs < 0 else UP.subtract(order, Decimal(1)))
    return UP.add(ln_up(UP.divide(UP.subtract(order, Decimal(1)), order)), rate)


def left_of_delta(rule: str, charges: Charges, delta: Decimal) -> Decimal:
    """What the reports' own δ leave for the conversion. Raises `NotSupported` where that is nothing."""
    needs_delta(rule, delta)
    aside = added(charges, lambda guarantee: guarantee.aside(), f"rule {rule} refuses a guarantee of kind {{}}")
    left = DOWN.subtract(delta, aside)
    if left <= 0:
        raise NotSupported(
            f"rule {rule} needs more delta than the reports set aside themselves: they have {float_above(aside)}"
        )
    return left


def _epsilon(charges: Charges, delta: Decimal, order: Decimal) -> Decimal:
    """ε at an order, which may come out below zero."""
    divergence = added(charges, lambda guarantee: guarantee.divergence(order), _REFUSAL)
    return UP.add(divergence, conversion(order, delta))


def _best(charges: Charges, delta: Decimal) -> tuple[Decimal, Decimal]:
    """The least ε over the grid, and its order.

    (α-1)ε is convex in α, and so ε falls as far as its least value, and grows from there.
    """
    first, last = 0, len(ORDERS) - 1
    while first < last:
        middle = (first + last) // 2
        if _epsilon(charges, delta, ORDERS[middle]) <= _epsilon(charges, delta, ORDERS[middle + 1]):
            last = middle
        else:
            first = middle + 1
    return _epsilon(charges, delta, ORDERS[first]), ORDERS[first]
