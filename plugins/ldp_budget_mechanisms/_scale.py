"""The scale of Laplace noise and the loss it stands for, b = S/ε, each from the other on the safe side.

S is the largest distance between two values. One of ε and b is declared.
"""

from __future__ import annotations

from decimal import Decimal

from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees.amounts import UP, float_above

LEAST_EPSILON = Decimal("1e-8")
LARGEST_EPSILON = Decimal(1000)
"""Numeric mechanisms take any ε between these two. The noise outside would leave the whole numbers of a double, or
be narrower than a cell of the public grid."""


def check_scale(epsilon: Decimal | None, scale: Decimal | None, stretch: Decimal) -> None:
    """Raise `InvalidParameter` unless exactly one is declared and the loss is in range."""
    if scale is None:
        if epsilon is None:
            raise InvalidParameter("epsilon", f"a number >= {LEAST_EPSILON} and <= {LARGEST_EPSILON}")
        return
    if epsilon is not None:
        raise InvalidParameter("scale", "no epsilon beside it", scale)
    least, largest = UP.divide(stretch, LARGEST_EPSILON), UP.divide(stretch, LEAST_EPSILON)
    if not least <= scale <= largest:
        raise InvalidParameter("scale", f"a number from {least:.6g} to {largest:.6g}", scale)


def scale_of(epsilon: Decimal | None, scale: Decimal | None, stretch: Decimal) -> float:
    """b as the double that the client uses; rounded up where it comes from ε."""
    if scale is not None:
        return float(scale)
    assert epsilon is not None
    return float_above(UP.divide(stretch, epsilon))


def loss_of(epsilon: Decimal | None, scale: float, stretch: Decimal) -> Decimal:
    """The ε that was declared, or that of the scale, rounded up."""
    return epsilon if epsilon is not None else UP.divide(stretch, Decimal(scale))
