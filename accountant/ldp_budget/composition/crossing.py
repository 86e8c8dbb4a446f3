"""Where a decreasing function of ε crosses zero, as a bracket whose two ends were both evaluated."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_RELATIVE_WIDTH = 2e-14
_MAX_STEPS = 200  # a dozen are usual
_LARGEST = 1e300
_SMALLEST = 1e-12


def crossing(excess: Callable[[float], float], guess: float, step: float, width: float = 0.0) -> tuple[float, float]:
    """(low, high) with excess(low) > 0 >= excess(high), hardly apart; (0, 0) if it was found positive nowhere.

    `excess` is decreasing on ε >= 0, up to rounding; it crosses at some distance of the order of `step` from
    `guess`. The ends are about three times `width` apart, or three units of the last place where that is more. What
    is returned was evaluated, so its signs are certain even where rounding makes `excess` waver. Regula falsi,
    Illinois variant.
    """
    low = high = guess
    above = below = excess(guess)
    while above <= 0:
        if low == 0:
            return 0.0, 0.0
        high, below = low, above
        low, step = max(low / 16, guess - step), 2 * step
        if low < _SMALLEST * guess:
            low = 0.0
        above = excess(low)
    while below > 0:
        low, above = high, below
        high, step = guess + step, 2 * step
        if high > _LARGEST:
            return low, math.inf
        below = excess(high)
    side = 0
    for _ in range(_MAX_STEPS):
        finest = max(width, _RELATIVE_WIDTH * high)
        if high - low <= 3 * finest:
            break
        middle = _secant(low, above, high, below)
        # Just across the root instead of right at an end, so that the bracket closes from both sides.
        middle = min(max(middle, low + finest), high - finest)
        value = excess(middle)
        if value > 0:
            low, above, below = middle, value, below / 2 if side == 1 else below
            side = 1
        else:
            high, below, above = middle, value, above / 2 if side == -1 else above
            side = -1
    return low, high


def _secant(low: float, above: float, high: float, below: float) -> float:
    if math.isinf(above) or math.isinf(below) or above == below:
        return (low + high) / 2
    return high - below * (high - low) / (below - above)
