"""From a Rényi divergence to (ε, δ), as the rules `zcdp` and `renyi` do it.

D_α ≤ D at an order α > 1 implies (ε, δ)-DP for

    ε = D + ln((α-1)/α) - (ln δ + ln α)/(α-1)

(Canonne, Kamath and Steinke 2020, Proposition 12). A report with a δᵢ of its own is told apart with that probability,
and has a divergence else: the δ of the conversion is what the total's leaves beside Σδᵢ.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from ..errors import NotSupported
from ..guarantees.amounts import DOWN, UP, float_above, float_below, ln_up
from .rules import Total, added, needs_delta

if TYPE_CHECKING:
    from .charges import Charges

# Divergences and the conversion are good to some thirty digits; doubles, and a root that doubles found, keep fewer.
_LOOSENESS = 1e-12
_ONE = Decimal(1)
_SMALL = Decimal("1e-15")


def conversion(excess: Decimal, delta: Decimal) -> Decimal:
    """What the conversion adds to the divergence, rounded up; it may be below zero.

    All of it is at the same α, which 1 + `excess` is exactly: what α is rounded to would differ from term to term.
    """
    logs = DOWN.add(DOWN.ln(delta).next_minus(DOWN), _log1p_down(excess))
    return UP.add(_log_of_rest_up(excess), UP.divide(UP.minus(logs), excess))


def converted(epsilon: Decimal, delta: Decimal, order: Decimal | None = None) -> Total:
    """The total of an ε that a conversion gave, which may be below zero."""
    epsilon = max(epsilon, Decimal(0))
    return Total(max(0.0, float_below(epsilon) * (1 - _LOOSENESS)), float_above(epsilon), delta, order)


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
