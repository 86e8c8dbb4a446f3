"""The γ of the bounded staircase mechanism that serves values spread evenly over the range.

The MSE for such values has one minimum in γ, at 1/3 for a small ε and close to e^{-ε/3} for a large one, and it is
flat there. Of the γ that come within one part in 10,000 of it, in the MSE and in what is gained over a uniform
output, the widest is taken: its largest MSE, that at the ends of the range, is smaller, which pays off for values
heaped up at the ends, as clipped ones are.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

from ldp_budget.authoring.quadrature import average

from ._window import WIDE, window_error, window_odds

if TYPE_CHECKING:
    from collections.abc import Callable

_AS_GOOD = 1e-4
_UNIFORM_OUTPUT = 1 / 6
_PRECISION = 1e-6
# The best window is far narrower than any cell from here on, and e^ε still a double.
_LARGE_EPSILON = 100.0


def best_gamma(epsilon: float, cells: int) -> float:
    """The chosen γ, between that of one cell and ½."""
    narrowest, widest = math.log(1 / cells), math.log(0.5)

    def mse(log_gamma: float) -> float:
        return uniform_mse(min(epsilon, _LARGE_EPSILON), math.exp(log_gamma))

    best = _minimum(mse, narrowest, widest)
    least = mse(best)
    limit = least + _AS_GOOD * min(least, _UNIFORM_OUTPUT - least)
    return math.exp(_last_at_most(mse, limit, best, widest))


def uniform_mse(epsilon: float, gamma: float) -> float:
    """The MSE on [0, 1] for values spread evenly over it."""
    exact = Decimal(gamma)
    odds = float(window_odds(Decimal(epsilon), exact, min(WIDE.multiply(exact, 2), Decimal(1))))
    # The two halves of the range are mirror images.
    breakpoints = (0.0, min(gamma, 1 - gamma), 0.5)
    return average(lambda value: window_error(gamma, odds, value)[1], breakpoints)


def _minimum(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one minimum in [low, high] is least, by golden sections (Kiefer 1953)."""
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > _PRECISION:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
    return (low + high) / 2


def _last_at_most(function: Callable[[float], float], limit: float, low: float, high: float) -> float:
    """Where a function that increases from `low` to `high` reaches `limit`; `high` if it does not."""
    while high - low > _PRECISION:
        middle = (low + high) / 2
        if function(middle) <= limit:
            low = middle
        else:
            high = middle
    return low
