"""Geometric counts by binary digits: the work grows with the logarithm of their mean.

Let N have P[N = k] in proportion to r^k, r = e^{-ε}. Its binary digits are independent: digit i is one with the odds
r^(2^i), and what is left above the first m digits is geometric again with ratio r^(2^m). A digit is drawn by a
64-bit threshold, which makes its odds e^{-o_i} with o_i close to 2^i·ε. From k to k+1 the digits below some c turn
from one to zero and digit c from zero to one, so

    ln P[N = k] - ln P[N = k+1] = o_c - (o_0 + … + o_{c-1}).

Rounding each o_c down from ε + o_0 + … + o_{c-1} keeps that at most ε for every k, exactly.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from ldp_budget.guarantees.amounts import DOWN, UP, exp_down, exp_up
from ldp_budget.randomness import ONE, bernoulli, geometric, threshold

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldp_budget.randomness import Stream


def digit_thresholds(epsilon: Decimal) -> list[int]:
    """The thresholds of the low digits, lowest first, and last the one of going on above them."""
    thresholds = []
    target = epsilon
    while target < 1:
        odds = exp_up(target.copy_negate())
        digit = threshold(UP.divide(odds, DOWN.add(1, exp_down(target.copy_negate()))), up=True)
        thresholds.append(digit)
        target = DOWN.add(target, _log_odds_down(digit))
    thresholds.append(threshold(exp_up(target.copy_negate()), up=True))
    return thresholds


def _log_odds_down(digit: int) -> Decimal:
    """-ln of the odds of a one, rounded down."""
    return DOWN.ln(DOWN.divide(Decimal(ONE - digit), Decimal(digit))).next_minus(DOWN)


def probabilities(thresholds: list[int], most: int) -> list[Fraction]:
    """P[N = 0], P[N = 1], ... as they are drawn: `most` of them, or as many as have a place in the low digits."""
    *digits, above = (Fraction(drawn, ONE) for drawn in thresholds)
    masses = [1 - above]
    for digit in reversed(digits):
        masses = [mass * odds for mass in masses[:most] for odds in (1 - digit, digit)]
    while len(masses) < most:
        masses += [mass * above for mass in masses[-(1 << len(digits)) :]]
    return masses[:most]


def geometric_by_digits(stream: Stream, thresholds: list[int], size: int) -> NDArray[np.int64]:
    """Draw ``size`` counts with the thresholds of `digit_thresholds`."""
    *digits, above = thresholds
    counts = geometric(stream, above, size) << len(digits)
    for place, digit in enumerate(digits):
        counts += bernoulli(stream, digit, size).astype(np.int64) << place
    return counts
