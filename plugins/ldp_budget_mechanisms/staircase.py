"""The staircase mechanism for one number in [lower, upper] (Geng and Viswanath 2016).

With S = upper - lower, b = e^{-ε} and γ in [0, 1] the noise has the density, for x >= 0 and k = 0, 1, 2, …,

    a·b^k       on [kS, (k+γ)S)          a = (1-b) / (2S(γ + b(1-γ)))
    a·b^{k+1}   on [(k+γ)S, (k+1)S)

and the same at -x. A shift by at most S crosses at most one step, so the loss is ε for every γ. The noise is S
times a random sign times N + W: N is geometric with ratio b; W is uniform on [0, γ) with probability
γ/(γ + b(1-γ)), otherwise on [γ, 1). Its moments follow. The γ of least variance (their Theorem 7, with
b - 2b² + 2b⁴ - b⁵ written as b(1+b)(1-b)³) and that of least mean absolute error are

    γ = (∛(b(1+b)/2) - b) / (1-b)      and      γ = 1 / (1 + e^{ε/2}).

The client draws on a public grid of 2²⁰ cells for S, at least one of them in each step where 0 < γ < 1.
"""

from __future__ import annotations

import functools
import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees import Guarantee, SymmetricPair
from ldp_budget.guarantees.fixed_point import DOWN, UP, exp_down, exp_up
from ldp_budget.sdk.parameters import choice, optional_real, real

from ._bounded_staircase_profile import reach_of
from ._citations import BOUNDED_STAIRCASE
from .additive_noise import LARGEST_EPSILON, LEAST_EPSILON, AdditiveMechanism

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ldp_budget.sdk.channels import Comparison
    from ldp_budget.sdk.client_program import Program

    from ._interval_grid import CellGrid
    from ._noise_samplers import StaircaseSteps

_CELLS = 2**20
_FAR = 2**62
_HALF = Decimal("0.5")
# Sixty-four times the largest effect on the variation of rounding all thresholds to 2⁻⁶⁴.
_FINEST = UP.power(Decimal(2), -56)


class Staircase(AdditiveMechanism):
    """Staircase noise calibrated to ε."""

    name = "staircase"
    summary = "one number plus staircase noise; unbiased, less noise than laplace for a large loss"
    source = f"Geng and Viswanath, IEEE Trans. Inf. Theory 62(2), 2016; {BOUNDED_STAIRCASE}, definition 4"

    epsilon = real("privacy loss of one report", at_least=LEAST_EPSILON, at_most=LARGEST_EPSILON)
    gamma = optional_real("share of the upper step in each interval of length S", at_least=0, at_most=1)
    objective = choice(
        "what the default gamma makes least",
        "least-variance",
        "least-absolute-error",
        default="least-variance",
    )

    def check(self) -> None:
        super().check()
        if self.gamma is not None and self.objective != "least-variance":
            raise InvalidParameter("gamma", f"left out with objective {self.objective}", self.gamma)

    @functools.cached_property
    def _gamma(self) -> float:
        if self.gamma is not None:
            return float(self.gamma)
        if self.objective == "least-variance":
            return least_variance_gamma(float(self.epsilon))
        return 1 / (1 + math.exp(float(self.epsilon) / 2))

    @functools.cached_property
    def _steps(self) -> StaircaseSteps:
        from ._noise_samplers import StaircaseSteps

        return StaircaseSteps(self.epsilon, reach_of(Decimal(self._gamma), _CELLS), _CELLS)

    @property
    def parameters(self) -> dict[str, float]:
        """γ, and the intervals: the two widths of a step, and the factor from one interval to the next."""
        width, decay = float(self.stretch), math.exp(-float(self.epsilon))
        gamma = self._gamma
        return {"gamma": gamma, "upper_step": gamma * width, "lower_step": (1 - gamma) * width, "decay": decay}

    @property
    def guarantee(self) -> Guarantee:
        return SymmetricPair(self.epsilon, self._tau)

    @functools.cached_property
    def _tau(self) -> Decimal:
        """The τ with which ±ε dominates any two values, rounded up: their total variation divided by tanh(ε/2).

        Within ±ε no pair of the same variation reveals more. The noise falls to both sides, so the two ends vary the
        most, by
        the probability of noise below S/2: a·S·(min(γ, ½) + b·max(½-γ, 0)), by density and by cells.
        """
        exact = Decimal(self._gamma)
        cells = UP.divide(Decimal(reach_of(exact, _CELLS)), _CELLS)
        # The digits of the periods, each drawn to 2⁻⁶⁴, are off by twice as much from one to the next until they end.
        drawn = UP.add(UP.divide(_FINEST, self.epsilon), _FINEST)
        low, high = exp_down(self.epsilon.copy_negate()), exp_up(self.epsilon.copy_negate())
        mirror = UP.divide(UP.add(1, high), DOWN.subtract(1, high))
        tau = max(self._tau_of(gamma, low, high) for gamma in (exact, cells))
        return min(Decimal(1), UP.add(tau, UP.multiply(drawn, mirror)))

    @staticmethod
    def _tau_of(gamma: Decimal, low: Decimal, high: Decimal) -> Decimal:
        """Return (1+b)(min(γ, ½) + b·max(½-γ, 0))/(γ + b(1-γ)) for b = e^-ε between `low` and `high`."""
        inner = UP.add(min(gamma, _HALF), UP.multiply(high, max(UP.subtract(_HALF, gamma), Decimal(0))))
        outer = DOWN.add(gamma, DOWN.multiply(low, DOWN.subtract(1, gamma)))
        return UP.divide(UP.multiply(UP.add(1, high), inner), outer)

    @property
    def variance(self) -> float:
        return float(self.stretch) ** 2 * noise_moments(float(self.epsilon), self._steps.gamma)[1]

    def utility(self, users: int | None = None) -> dict[str, Any]:
        mean_absolute = noise_moments(float(self.epsilon), self._steps.gamma)[0]
        return {**super().utility(users), "mean_absolute_error": float(self.stretch) * mean_absolute}

    def log_density(self, report: float, value: float) -> float:
        epsilon, width, highest = self._shape
        interval, place = divmod(abs(report - value) / width, 1)
        return highest - epsilon * (interval if place < self._gamma else interval + 1)

    @functools.cached_property
    def _shape(self) -> tuple[float, float, float]:
        """ε, S and ln a."""
        epsilon, gamma, width = float(self.epsilon), self._gamma, float(self.stretch)
        # At gamma = 0 the share of the lower step alone is left, which may underflow.
        share = math.log(gamma + math.exp(-epsilon) * (1 - gamma)) if gamma else -epsilon
        return epsilon, width, math.log(-math.expm1(-epsilon)) - share - math.log(2 * width)

    # -- verification -----------------------------------------------------------------------------------

    def report_breakpoints(self, value: float) -> Sequence[float]:
        """Return the borders of the steps of the first intervals; those further out repeat them."""
        width = float(self.stretch)
        distances = sorted({width * (k + place) for k in range(4) for place in (0.0, self._gamma)})
        return [value + side * distance for distance in distances for side in (-1, 1)]

    @property
    def report_period(self) -> float:
        """Return the period: every interval has the density of the one before times e^-ε."""
        return float(self.stretch)

    def critical_inputs(self) -> Sequence[float]:
        """Return the ends, and points one step's width and half the range from the lower one."""
        lower, width = Fraction(self.interval.lower), Fraction(self.stretch)
        points = sorted({0, 1, self._steps.reach, _CELLS - self._steps.reach, _CELLS // 2, _CELLS})
        return [float(lower + width * point / _CELLS) for point in points]

    def compare(self, first: float, second: float) -> Comparison:
        return self._steps.compare(*map(self._cell_grid.point, (first, second)))[1]

    def outcomes(self, reports: Any, first: float, second: float) -> Any:
        from ._interval_grid import number_runs

        starts, _ = self._steps.compare(*map(self._cell_grid.point, (first, second)))
        return number_runs(self._cell_grid.cells_of(reports), [(start, start) for start in (-_FAR, *starts)])

    # -- client and server ------------------------------------------------------------------------------

    @functools.cached_property
    def _cell_grid(self) -> CellGrid:
        from ._interval_grid import CellGrid

        return CellGrid(self.interval, _CELLS)

    def grid(self) -> tuple[float, float]:
        return self._cell_grid.middles

    def client_program(self) -> Program:
        """Return the client program; reports are numbers (n,), cell middles of the public grid, also outside [lower, upper]."""
        from ldp_budget.sdk.client_program import Program, float64, nearest

        given = nearest(self.interval, self._cell_grid.per_unit, _CELLS)
        return Program(given, self._steps.drawing(), float64("cell", *self.grid()))


def least_variance_gamma(epsilon: float) -> float:
    """Return the γ of least variance, written so that nothing cancels for a small ε."""
    decay = math.expm1(-epsilon)
    shrunk = math.log1p(decay / 2)
    # With x = ln ∛(b(1+b)/2) - ln b, γ = b(e^x - 1)/(1-b); b·e^x is taken together, as b alone may underflow.
    return math.exp((shrunk - epsilon) / 3) * math.expm1(-(2 * epsilon + shrunk) / 3) / decay


def noise_moments(epsilon: float, gamma: float) -> tuple[float, float]:
    """Return (E|X|, E X²) of staircase noise X for S = 1, from N + W."""
    b, rest = math.exp(-epsilon), -math.expm1(-epsilon)
    # At γ = 0 only the lower step remains, also if b underflows.
    lower = b * (1 - gamma) / (gamma + b * (1 - gamma)) if gamma else 1.0
    first = ((1 - lower) * gamma + lower * (1 + gamma)) / 2
    second = ((1 - lower) * gamma**2 + lower * (1 + gamma + gamma**2)) / 3
    mean = b / rest
    return mean + first, mean * (1 + b) / rest + 2 * mean * first + second
