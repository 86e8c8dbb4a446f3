"""Costs under the Rényi and zCDP filters.

**Filters.** A *measure* is a quantity that a privacy filter adds up. `renyi:ALPHA` is the Rényi divergence at the
order α. `zcdp` is the ρ of a report without the δ that the report sets aside. Under either measure a report has two
amounts: the measure's own, and the δ set aside. Orders are from a published grid, so ledgers store an order as its
number: α - 1 is one of 25 round numbers times a power of ten.

The amounts follow from a guarantee by decimal arithmetic alone. So they are the same on every machine, and
verification can recompute their sums from the journal.

`memoised_costs` has the costs of reports that repeat memoised values.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from .fixed_point import DELTA_DIGITS, RHO_DIGITS, UP, Costs, canonical, decimal, to_cost

if TYPE_CHECKING:
    from .guarantees import Guarantee


# -- measures of the filters ---------------------------------------------------------------------------------

ZCDP = "zcdp"
RENYI = "renyi"

_TENTHS = (10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 25, 28, 30, 33, 36, 40, 45, 50, 55, 60, 65, 70, 75, 80, 90)
ORDERS = tuple(
    [UP.add(Decimal(1), Decimal(tenths).scaleb(power - 1, UP)) for power in range(-2, 7) for tenths in _TENTHS]
)
"""The orders that a rule may have, ascending, from 1.01 to 9000001. No version will insert an order in between."""


def measure_at(order: Decimal) -> str:
    """Return the name of the Rényi divergence at an order of the grid."""
    return f"{RENYI}:{canonical(order)}"


def order_of(measure: str) -> Decimal:
    """Return the order that `renyi:ALPHA` names. Raises ValueError, with near orders, if it is not on the grid."""
    _, _, text = measure.partition(":")
    try:
        order = decimal(text)
    except ValueError:
        raise ValueError(f"the order must be a number > 1, such as 3: got {text!r}") from None
    if order not in ORDERS:
        raise ValueError(f"the order must be one of the published grid, such as {_neighbours(order)}: got {text}")
    return order


def _neighbours(order: Decimal) -> str:
    nearest = sorted(ORDERS, key=lambda each: abs(Fraction(each) - Fraction(order)))[:2]
    return " or ".join(canonical(each) for each in sorted(nearest))


def nearest_order(excess: float) -> Decimal:
    """Return the order of the grid whose α - 1 has the ratio to `excess` that is nearest to 1."""
    if not excess:
        return ORDERS[0]
    return min(ORDERS, key=lambda each: abs(math.log(float(UP.subtract(each, Decimal(1))) / excess)))


@lru_cache(maxsize=4096)
def measured(guarantee: Guarantee, measure: str) -> Costs:
    """Return the costs of one report under a measure: its own amount in place of ρ, the δ set aside in place of δ.

    Both are in units, rounded up; None if unbounded. The other two amounts are zero, as no limit applies to them.
    """
    amount = guarantee.concentrated() if measure == ZCDP else guarantee.divergence(order_of(measure))
    return Costs(0, to_cost(guarantee.aside(), DELTA_DIGITS), to_cost(amount, RHO_DIGITS), 0)
