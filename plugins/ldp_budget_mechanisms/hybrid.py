"""The hybrid mechanism: the piecewise mechanism or one of two numbers, for a small error where it is worst.

Source: Wang, Xiao, Yang, Zhao, Hui, Shin, Shin and Yu, ICDE 2019, section III-C. For a value t in [-1, 1], with
s = e^(ε/2), a report is that of the piecewise mechanism with probability α, and else one of the two numbers ±B,
B = (e^ε+1)/(e^ε-1), of Duchi, Jordan and Wainwright (2018). Both are unbiased, with the variances

    t²/(s-1) + (s+3)/(3(s-1)²)      and      B² - t².

For α = 1 - 1/s the terms in t² cancel, and the variance is the same for every value,

    (s+3)/(3s(s-1)) + B²/s.

That is less than B², the largest variance of the two numbers alone, if 3(s²+1)² > (s+3)(s+1)², which is ε > 0.61. For
a smaller ε, α = 0.

A report does not say which of the two made it. The loss of a mixture is at most the larger one, ε, and its total
variation at most the mean of the two. The window of `_moving_window` has κ = 1/s, and two numbers have τ = 1, so

    SymmetricPair(ε, τ),      τ = α(e^ε+1)/(e^ε+1/κ) + 1 - α.

The two numbers are two cells of the same grid, as far apart as makes their means rise like that of the window, to the
nearest cell. The probability of the upper one is linear in the point, in integers. So the mean cell of the mixture is
linear in the point too, and stretching the grid makes the reports unbiased, whatever was rounded.
"""

from __future__ import annotations

import functools
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ldp_budget.guarantees import Guarantee, SymmetricPair
from ldp_budget.guarantees.fixed_point import DOWN, UP, exp_down, float_below
from ldp_budget.sampling import ONE, threshold

from ._moving_window import POINTS, Moments, MovingWindow

if TYPE_CHECKING:
    from ._moving_window import Steps


class Hybrid(MovingWindow):
    """The hybrid of the piecewise mechanism and of two numbers, calibrated to ε."""

    name = "hybrid"
    summary = (
        "one number for an unbiased mean; for ε from 0.61 to 1.65 the least error at worst of the mechanisms here"
    )
    source = "Wang, Xiao, Yang, Zhao, Hui, Shin, Shin and Yu, ICDE 2019, section III-C"

    # -- calibration ------------------------------------------------------------------------------------

    @functools.cached_property
    def _root(self) -> Decimal:
        """s = e^(ε/2), rounded down."""
        return exp_down(DOWN.divide(self.epsilon, Decimal(2)))

    @functools.cached_property
    def window(self) -> int:
        return max(1, round(POINTS / Fraction(self._root)))

    @functools.cached_property
    def piecewise(self) -> int:
        """α in units of 2**-64, rounded down."""
        s = Fraction(self._root)
        return threshold(1 - 1 / s, up=False) if 3 * (s * s + 1) ** 2 > (s + 3) * (s + 1) ** 2 else 0

    @functools.cached_property
    def _upper_one(self) -> tuple[int, int]:
        """The threshold of the upper number for point 0, and its increase for each point, in units of 2**-64.

        Both are rounded to the safe side, so the odds of the ends are at most e^ε.
        """
        least = threshold(UP.divide(Decimal(1), DOWN.add(exp_down(self.epsilon), Decimal(1))), up=True)
        return least, (ONE - 2 * least) // POINTS

    @functools.cached_property
    def numbers(self) -> tuple[int, int]:
        """The cells of the lower and of the upper number."""
        gap = round(self.window_moments.mean[1] * ONE / self._upper_one[1])
        low = (self.cells - 1 - gap) // 2
        return low, low + gap

    @property
    def parameters(self) -> dict[str, float]:
        """α; how often a report is in its window, and how long that is; and the two numbers."""
        origin, step = self.grid()
        low, high = self.numbers
        return {
            "alpha": float_below(Decimal(self.piecewise) / ONE),
            "p": float_below(Decimal(self.keep) / ONE),
            "window": step * self.window,
            "lower_number": origin + low * step,
            "upper_number": origin + high * step,
        }

    @property
    def guarantee(self) -> Guarantee:
        alpha = Decimal(self.piecewise)
        mixed = UP.add(UP.multiply(alpha, self.tau), Decimal(ONE - self.piecewise))
        return SymmetricPair(self.epsilon, min(UP.divide(mixed, Decimal(ONE)), Decimal(1)))

    # -- errors -----------------------------------------------------------------------------------------

    @functools.cached_property
    def moments(self) -> Moments:
        alpha, (low, high), (least, growth) = Fraction(self.piecewise, ONE), self.numbers, self._upper_one
        (level, slope), (constant, linear, quadratic) = self.window_moments
        first, rise = Fraction(least, ONE), Fraction(growth, ONE)

        def mixed(windowed: Fraction, other: Fraction) -> Fraction:
            return alpha * windowed + (1 - alpha) * other

        gap, squares = high - low, high**2 - low**2
        return Moments(
            (mixed(level, low + gap * first), mixed(slope, gap * rise)),
            (mixed(constant, low**2 + squares * first), mixed(linear, squares * rise), alpha * quadratic),
        )

    # -- client -----------------------------------------------------------------------------------------

    def drawing(self, cell: str = "cell") -> Steps:
        from ldp_budget.sdk.client_program import whole

        (low, high), (least, growth) = self.numbers, map(whole, self._upper_one)
        upper: list[Any] = ["bit_at", ["add", least, ["mul", "value", growth]]]
        return (
            ("windowed", ["bit", whole(self.piecewise)]),
            *super().drawing("own"),
            ("upper", upper),
            (cell, ["where", "windowed", "own", ["where", "upper", high, low]]),
        )
