"""Probabilities as the client draws them: whole numbers of 2**-64, rounded to whichever side is safe.

A calibration needs no more than this, so nothing here loads numpy.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

ONE = 1 << 64
"""The threshold of probability 1."""


def threshold(probability: Decimal | Fraction, *, up: bool) -> int:
    """Return ``probability * 2**64`` rounded to an integer, up or down; an exact product stays as it is.

    Parameters:
        probability: in [0, 1].
        up: the direction: whichever makes the true loss of the mechanism at most the declared one.

    Raises:
        TypeError: ``probability`` is a float, which would hide a rounding that nobody chose.
        ValueError: ``probability`` is outside [0, 1] or not a number.
    """
    if isinstance(probability, float):
        raise TypeError(f"probability must be a Decimal or a Fraction, not the float {probability!r}")
    finite = not isinstance(probability, Decimal) or probability.is_finite()
    if not (finite and 0 <= probability <= 1):
        raise ValueError(f"probability must be in [0, 1], got {probability!r}")
    scaled = Fraction(probability) * ONE
    return math.ceil(scaled) if up else math.floor(scaled)
