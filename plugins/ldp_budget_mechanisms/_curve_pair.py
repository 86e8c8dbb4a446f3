"""The pair of a mechanism on a continuum, from bounds of how well any two of its inputs can be told apart.

A mechanism knows a bound of H(λ) = sup over x, x' of Σ max(P_x - λP_x', 0) for any λ from 1 to e^ε, where it is 0.
The `FinitePair` here has that bound at `_KINKS` values of λ, and its chords between them, which lie above H.
"""

from __future__ import annotations

from decimal import ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING

from ldp_budget.guarantees import Guarantee, Pure
from ldp_budget.guarantees.amounts import DOWN, exp_down, float_up
from ldp_budget.guarantees.pairs import pair_below

if TYPE_CHECKING:
    from collections.abc import Callable

_KINKS = 12
"""Evenly spread over the loss. At ε = 1, 365 reports cost 0.3 % more with them than with a hundred."""

LARGEST_LISTED = Decimal(32)
"""With a larger ε, of which next to nothing is spared, no pair is listed, and ε alone is stated."""

_ROUND = Context(prec=8, rounding=ROUND_FLOOR)
# As much is given away of e^ε, so that the logarithm of what is left rounds up to ε and not beyond.
_GIVEN_AWAY = Decimal("1e-30")


def largest_odds(epsilon: Decimal) -> Decimal:
    """The largest likelihood ratio of the pair: e^ε, but for what is too little to be seen in ε."""
    return DOWN.multiply(exp_down(epsilon), DOWN.subtract(1, _GIVEN_AWAY))


def pair_of_curve(epsilon: Decimal, bound: Callable[[Decimal], Decimal]) -> Guarantee:
    """The pair with the loss `epsilon` and a divergence of at least `bound(λ)`, rounded up, for 1 <= λ < e^ε.

    That no ratio exceeds `largest_odds(epsilon)` is for the caller to make sure. `Pure` where ε is above
    `LARGEST_LISTED`, or has more digits than a pair can have.
    """
    if epsilon > LARGEST_LISTED:
        return Pure(epsilon)
    top = largest_odds(epsilon)
    slopes = {_slope(DOWN.multiply(epsilon, DOWN.divide(place, _KINKS))) for place in range(_KINKS)}
    pair = pair_below([*((slope, min(Decimal(1), bound(slope))) for slope in sorted(slopes)), (top, Decimal(0))])
    return pair if pair.loss()[0] <= epsilon and float_up(pair.loss()[0]) == float_up(epsilon) else Pure(epsilon)


def _slope(loss: Decimal) -> Decimal:
    """About e^loss, with few digits above 1."""
    return DOWN.add(1, _ROUND.plus(DOWN.subtract(exp_down(loss), 1))) if loss else Decimal(1)
