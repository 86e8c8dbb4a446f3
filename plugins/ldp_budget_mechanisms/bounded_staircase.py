"""The bounded staircase mechanism for one number in [lower, upper] (Kim, Park and Lee, definition 5).

The staircase noise, cut off so that the report stays in [lower, upper], and renormalised. No distance in there
exceeds S = upper - lower, so two steps are all that is seen: the density is e^ε̂ within γS of the value and 1
elsewhere, over a norm that depends on the value. Theorem 6 gives the ε̂ for which the loss is ε. Its second row is
printed as

    e^ε̂ = 2(1-γ)e^ε / (-γe^ε + √((γe^ε)² + 4γ(1-γ)e^ε)),      ½ <= γ < 1,

with which the loss is ε + ln(1/γ). Right is ½(γe^ε + √((γe^ε)² + 4(1-γ)e^ε)), and the rows join at γ = ½; see
`_window`. For γ = 0 and γ = 1 every report is equally likely whatever the value. Little of a report has that loss;
what is stated is a pair that dominates any two values, see `_window_curve`.
"""

from __future__ import annotations

import functools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ldp_budget.authoring.fields import optional_real, real
from ldp_budget.guarantees import Guarantee
from ldp_budget.guarantees.amounts import exp_down, float_below

from ._bounded import BoundedMechanism
from ._scale import LARGEST_EPSILON, LEAST_EPSILON
from ._sources import BOUNDED_STAIRCASE
from ._window import WIDE, window_breakpoints, window_error, window_odds
from ._window_curve import window_pair

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.authoring.channels import Comparison
    from ldp_budget.randomness import Stream

    from ._bounded import Runs
    from ._window_channel import WindowChannel


class BoundedStaircase(BoundedMechanism):
    """A window of higher density around the value, calibrated to ε."""

    name = "bounded-staircase"
    summary = "one number in [lower, upper], likelier within a window around the value; biased"
    source = f"{BOUNDED_STAIRCASE}, definition 5 and Theorem 6 with its second row corrected"

    cells = 2**20

    epsilon = real("privacy loss of one report", at_least=LEAST_EPSILON, at_most=LARGEST_EPSILON)
    gamma = optional_real(
        "half the window's width over upper - lower [the best for evenly spread values]", at_least=0, at_most=1
    )

    @functools.cached_property
    def _gamma(self) -> Decimal:
        if self.gamma is not None:
            return self.gamma
        from ._best_gamma import best_gamma

        return Decimal(best_gamma(float(self.epsilon), self.cells))

    @functools.cached_property
    def _epsilon_hat(self) -> float:
        return float_below(epsilon_hat(self.epsilon, self._gamma))

    @functools.cached_property
    def channel(self) -> WindowChannel:
        """What the client draws from, checked once more before anything is drawn."""
        from ._window_channel import WindowChannel

        channel = WindowChannel.fit(self.epsilon, self._gamma, self.cells)
        assert channel.worst_odds() <= Fraction(exp_down(self.epsilon)), "the client would lose more than ε"
        return channel

    @property
    def parameters(self) -> dict[str, float]:
        return {"gamma": float(self._gamma), "epsilon_hat": self._epsilon_hat}

    @property
    def guarantee(self) -> Guarantee:
        return self._pair

    @functools.cached_property
    def _pair(self) -> Guarantee:
        return window_pair(self.epsilon, self._gamma, self._epsilon_hat, self.cells)

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self._own_notes(), *super().notes)

    def _own_notes(self) -> tuple[str, ...]:
        gamma = self._gamma
        if gamma in (0, 1):
            return (f"With gamma = {gamma} every report is equally likely whatever the value: it says nothing.",)
        if gamma < Decimal("0.5"):
            return ()
        true_loss = float(self.epsilon) - math.log(gamma)
        return (
            f"The second row of Theorem 6 is unsafe as printed: its epsilon_hat = "
            f"{printed_epsilon_hat(self.epsilon, gamma):.6g} would lose ε + ln(1/γ) = {true_loss:.6g}, not "
            f"{self.epsilon}; the corrected row gives {self._epsilon_hat:.6g}.",
        )

    @functools.cached_property
    def _window(self) -> tuple[float, float]:
        """γ, and upper - lower."""
        return float(self._gamma), self.width

    @functools.cached_property
    def _ends(self) -> tuple[float, float]:
        return self.interval.ends

    def density(self, report: float, value: float) -> float:
        return math.exp(self.log_density(report, value))

    def log_density(self, report: float, value: float) -> float:
        lower, upper = self._ends
        if not lower <= report <= upper:
            return -math.inf
        gamma, width = self._window
        share = min(max(0.0, (value - lower) / width), 1.0)
        inside = min(gamma, share) + min(gamma, 1 - share)
        # Over e^ε̂, so that nothing overflows; and where the window is empty, of what is outside alone.
        norm = math.log(inside + math.exp(-self._epsilon_hat) * (1 - inside)) if inside else -self._epsilon_hat
        level = 0.0 if abs(report - value) < gamma * width else -self._epsilon_hat
        return level - norm - math.log(width)

    def report_breakpoints(self, value: float) -> Sequence[float]:
        lower, upper = self.interval.ends
        reach = float(self._gamma) * self.width
        return lower, max(lower, value - reach), min(upper, value + reach), upper

    def error_within(self, share: float) -> tuple[float, float]:
        channel = self.channel
        return window_error(channel.reach / channel.cells, channel.high / channel.low, share)

    def breakpoints_within(self) -> Sequence[float]:
        return window_breakpoints(self.channel.reach / self.channel.cells)

    def critical_points(self) -> list[int]:
        return self.channel.critical_points()

    def compare_points(self, first: int, second: int) -> tuple[Runs, Comparison]:
        return self.channel.compare(first, second)

    def draw(self, stream: Stream, points: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.channel.draw(stream, points)

    def drawing(self) -> tuple[tuple[tuple[str, Any], ...], dict[str, Any]]:
        return self.channel.drawing(), {}


def epsilon_hat(epsilon: Decimal, gamma: Decimal) -> Decimal:
    """Theorem 6's ε̂ with the second row corrected, rounded down, for ε > 0 and γ in [0, 1]."""
    odds = window_odds(epsilon, gamma, min(WIDE.multiply(gamma, 2), Decimal(1)))
    # The odds are a lower bound by far more than the logarithm is rounded.
    with localcontext(WIDE):
        return odds.ln()


def printed_epsilon_hat(epsilon: Decimal, gamma: Decimal) -> Decimal:
    """The second row of Theorem 6 as it is printed, ½ <= γ < 1. Unsafe; for comparison only."""
    with localcontext(WIDE):
        growth = epsilon.exp()
        root = ((gamma * growth) ** 2 + 4 * gamma * (1 - gamma) * growth).sqrt()
        # Numerator and denominator times (root + γe^ε), as their difference cancels.
        return ((root + gamma * growth) / (2 * gamma)).ln()
