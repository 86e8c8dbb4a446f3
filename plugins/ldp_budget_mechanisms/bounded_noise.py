"""Mechanisms for one number in [lower, upper] whose reports stay in that range: bounded Laplace and bounded staircase.

The bounded Laplace mechanism (Kim, Park and Lee, introduction) is Laplace noise of scale b, cut off so that the report
stays in [lower, upper], and renormalized:

    f(y | x) = exp(-|y - x| / b) / (b(2 - exp(-(x - lower)/b) - exp(-(upper - x)/b))),      b = (upper - lower) / ε.

f(y | x) grows in x up to y and falls from there. So of the ratios f(y | x) / f(y | x') the largest have x = y and x'
at an end. Of those, y at the other end is the worst, with equal norms. So the loss is exactly ε. The two ends are the
worst pair in every other respect too, see `_bounded_numeric`: the guarantee is their pair, and not ε alone.
(Holohan, Antonatos, Braghin and Mac Aonghusa 2018 calibrate it for a sensitivity below upper - lower.)

The client draws on a public grid of 2¹⁵ cells; see `LaplaceTable`.

The bounded staircase mechanism (Kim, Park and Lee, definition 5) is staircase noise, cut off so that the report stays
in [lower, upper], and renormalized. No distance in the range exceeds S = upper - lower, so only two steps appear: the
density is e^ε̂ within γS of the value and 1 elsewhere, over a norm that depends on the value. Theorem 6 gives the ε̂
for which the loss is ε. Its second row is printed as

    e^ε̂ = 2(1-γ)e^ε / (-γe^ε + √((γe^ε)² + 4γ(1-γ)e^ε)),      ½ <= γ < 1,

with which the loss is ε + ln(1/γ). The correct row is ½(γe^ε + √((γe^ε)² + 4(1-γ)e^ε)), and the rows join at γ = ½;
see `_bounded_staircase_profile`. For γ = 0 and γ = 1 every report is equally likely for every value. Only a small part
of a report has that loss, so the guarantee is a pair that dominates any two values, see the same module.
"""

from __future__ import annotations

import functools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ldp_budget.guarantees import Guarantee
from ldp_budget.guarantees.fixed_point import UP, exp_down, float_below
from ldp_budget.sdk.channels import Comparison
from ldp_budget.sdk.parameters import optional_real, real
from ldp_budget.sdk.report_law import rules

from ._bounded_numeric import BoundedMechanism, LaplaceWeights
from ._bounded_staircase_profile import WIDE, window_breakpoints, window_error, window_odds, window_pair
from ._citations import BOUNDED_STAIRCASE
from .additive_noise import LARGEST_EPSILON, LEAST_EPSILON, check_scale, loss_of, scale_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ldp_budget.sdk.report_law import Law

    from ._interval_grid import WindowChannel
    from ._noise_samplers import LaplaceTable


class BoundedLaplace(BoundedMechanism):
    """Laplace noise cut off at the ends of the range, calibrated to ε or with a given scale b."""

    name = "bounded-laplace"
    summary = "one number in [lower, upper] plus Laplace noise cut off at its ends; biased"
    source = (
        "Holohan, Antonatos, Braghin and Mac Aonghusa, The bounded Laplace mechanism in differential privacy (2018); "
        f"{BOUNDED_STAIRCASE}, introduction"
    )

    cells = 2**15

    epsilon = optional_real("privacy loss of one report", at_least=LEAST_EPSILON, at_most=LARGEST_EPSILON)
    scale = optional_real("scale b of the noise before it is cut off", above=0, derived=True)

    def check(self) -> None:
        super().check()
        check_scale(self.epsilon, self.scale, self._stretch)

    @functools.cached_property
    def _stretch(self) -> Decimal:
        return UP.subtract(self.upper, self.lower)

    @functools.cached_property
    def _scale(self) -> float:
        return scale_of(self.epsilon, self.scale, self._stretch)

    @functools.cached_property
    def _loss(self) -> Decimal:
        return loss_of(self.epsilon, self._scale, self._stretch)

    @functools.cached_property
    def table(self) -> LaplaceTable:
        """The table from which the client draws."""
        from ._noise_samplers import LaplaceTable

        return LaplaceTable(self._loss, self.cells)

    @property
    def parameters(self) -> dict[str, float]:
        return {"scale": self._scale}

    @functools.cached_property
    def guarantee(self) -> Guarantee:
        return LaplaceWeights.of(self._loss, self.cells).guarantee()

    def log_density(self, report: float, value: float) -> float:
        lower, upper = self._ends
        if not lower <= report <= upper:
            return -math.inf
        norm = -math.expm1(-(value - lower) / self._scale) - math.expm1(-(upper - value) / self._scale)
        return -abs(report - value) / self._scale - math.log(self._scale * norm)

    def error_within(self, share: float) -> tuple[float, float]:
        scale = self._scale / self.width
        left, right = share / scale, (1 - share) / scale
        norm = incomplete_gamma(0, left) + incomplete_gamma(0, right)
        bias = (incomplete_gamma(1, right) - incomplete_gamma(1, left)) / norm
        mse = (incomplete_gamma(2, right) + incomplete_gamma(2, left)) / norm
        return scale * bias, scale**2 * mse

    def breakpoints_within(self) -> Sequence[float]:
        # Near the ends the errors change within one scale: pieces that halve until they are no longer than that.
        halvings = max(1, math.ceil(math.log2(self.width / self._scale)))
        near = [2.0**-place for place in range(halvings, 0, -1)]
        return (0.0, *near, *(1 - share for share in reversed(near[:-1])), 1.0)

    def critical_points(self) -> list[int]:
        return self.table.critical_points()

    def compare(self, first: float, second: float) -> Comparison:
        return self.table.compare(*map(self._cell_grid.point, (first, second)))[1]

    def outcomes(self, reports: Any, first: float, second: float) -> Any:
        from ._interval_grid import number_runs

        parts, _ = self.table.compare(*map(self._cell_grid.point, (first, second)))
        return number_runs(self._cell_grid.cells_of(reports), parts)

    def drawing(self) -> tuple[tuple[tuple[str, Any], ...], dict[str, Any]]:
        return self.table.drawing()


def incomplete_gamma(power: int, end: float) -> float:
    """Return the integral of v^power·e^{-v} over [0, end], for power 0, 1 or 2, to full precision."""
    if end > 2:
        tail = (1.0, 1 + end, 2 + 2 * end + end**2)[power]
        return math.factorial(power) - tail * math.exp(-end)
    # e^{-end} times a series of positive terms, because the closed form cancels.
    term = total = end ** (power + 1) / (power + 1)
    factor = power + 1
    while term > 1e-17 * total:
        factor += 1
        term *= end / factor
        total += term
    return math.exp(-end) * total


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
        from ._bounded_staircase_profile import best_gamma

        return Decimal(best_gamma(float(self.epsilon), self.cells))

    @functools.cached_property
    def _epsilon_hat(self) -> float:
        return float_below(epsilon_hat(self.epsilon, self._gamma))

    @functools.cached_property
    def channel(self) -> WindowChannel:
        """The channel from which the client draws, verified again before the first draw."""
        from ._interval_grid import WindowChannel

        channel = WindowChannel.fit(self.epsilon, self._gamma, self.cells)
        assert channel.worst_odds() <= Fraction(exp_down(self.epsilon)), "the client would lose more than ε"
        return channel

    @property
    def parameters(self) -> dict[str, float]:
        return {"gamma": float(self._gamma), "epsilon_hat": self._epsilon_hat}

    @functools.cached_property
    def guarantee(self) -> Guarantee:
        return window_pair(self.epsilon, self._gamma, self._epsilon_hat, self.cells)

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self._own_notes(), *super().notes)

    def _own_notes(self) -> tuple[str, ...]:
        gamma = self._gamma
        if gamma in (0, 1):
            return (f"With gamma = {gamma} every report is equally likely for each value, so it says nothing.",)
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

    def log_density(self, report: float, value: float) -> float:
        lower, upper = self._ends
        if not lower <= report <= upper:
            return -math.inf
        gamma, width = self._window
        share = min(max(0.0, (value - lower) / width), 1.0)
        inside = min(gamma, share) + min(gamma, 1 - share)
        # Over e^ε̂, so that nothing overflows; for an empty window, of the outside alone.
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

    @functools.cached_property
    def _law(self) -> Law:
        law: Law = rules().Numbers(self.client_program())
        return law

    def compare(self, first: float, second: float) -> Comparison:
        return self._law.comparison(*map(self._cell_grid.point, (first, second)))

    def outcomes(self, reports: Any, first: float, second: float) -> Any:
        return self._law.outcomes(self._cell_grid.cells_of(reports), *map(self._cell_grid.point, (first, second)))

    def drawing(self) -> tuple[tuple[tuple[str, Any], ...], dict[str, Any]]:
        return self.channel.drawing(), {}


def epsilon_hat(epsilon: Decimal, gamma: Decimal) -> Decimal:
    """Return Theorem 6's ε̂ with the second row corrected, rounded down, for ε > 0 and γ in [0, 1]."""
    odds = window_odds(epsilon, gamma, min(WIDE.multiply(gamma, 2), Decimal(1)))
    # The odds are a lower bound by far more than the rounding of the logarithm.
    with localcontext(WIDE):
        return odds.ln()


def printed_epsilon_hat(epsilon: Decimal, gamma: Decimal) -> Decimal:
    """Return the second row of Theorem 6 as printed, ½ <= γ < 1. Unsafe; for comparison only."""
    with localcontext(WIDE):
        growth = epsilon.exp()
        root = ((gamma * growth) ** 2 + 4 * gamma * (1 - gamma) * growth).sqrt()
        # Numerator and denominator times (root + γe^ε), because their difference cancels.
        return ((root + gamma * growth) / (2 * gamma)).ln()
