"""Rule `renyi`: the Rényi divergences of one order add up, and the sum is converted once to (ε, δ).

At an order α > 1 that was fixed beforehand the divergences of adaptively chosen mechanisms add up, also where it is
decided on the way when to stop (Feldman and Zrnic 2021, Theorem 3.1). Without an order the rule says which one is the
best for a list of charges. That is what a limit should name: it cannot have several, of which it goes by the best.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

from ..guarantees.amounts import DELTA_DIGITS, DOWN, RHO_DIGITS, UP, Costs, to_capacity
from ..guarantees.orders import ORDERS, RENYI, nearest_order
from .conversion import conversion, converted, left_of_delta
from .rules import Filter, Total, added, needs_delta

if TYPE_CHECKING:
    from .charges import Charges

_REFUSAL = "rule renyi refuses a guarantee of kind {}: its Rényi divergences have no bound"


class Renyi(Filter):
    """Σ of the divergences at one order, then the conversion at what the reports leave of δ > 0."""

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
    """The order of the grid next to 1 + √L/(√(ε+L) - √L), L = ln 1/δ, the best one where D_α grows as α does."""
    needs_delta(RENYI, delta)
    log = -float(DOWN.ln(delta))
    # √L(√(ε+L) + √L)/ε, in which nothing cancels.
    return nearest_order(math.sqrt(log) * (math.sqrt(float(epsilon) + log) + math.sqrt(log)) / float(epsilon))


def _excess(order: Decimal) -> Decimal:
    """α - 1, exactly, for an order of the grid."""
    return DOWN.subtract(order, Decimal(1))


def _epsilon(charges: Charges, delta: Decimal, order: Decimal) -> Decimal:
    """ε at an order, which may come out below zero."""
    divergence = added(charges, lambda guarantee: guarantee.divergence(order), _REFUSAL)
    return UP.add(divergence, conversion(_excess(order), delta))


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
