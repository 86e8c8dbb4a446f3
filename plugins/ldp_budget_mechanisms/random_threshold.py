"""Random thresholds: quantiles of a number, without bins. Each report answers "is it at most θ?" for a public random θ.

A value is rounded to the nearest of K + 1 public points c(0) = lower, …, c(K) = upper. The client draws a threshold t,
uniform among 0..K-1 and without the value. It shows t, and a bit: the true answer to "is it at most c(t)?" with probability
P and the other one otherwise, P/(1-P) <= e^ε. So a report loses ε, as randomized response does: t says nothing of the value.

On a linear scale the points are equally far apart, K = 2²⁰. On a logarithmic one, for incomes, their logarithms are, and
K = 512.

The point c(u) answers yes to t = u..K-1. So with w(t) = K·(c(t+1) - c(t))/(upper - lower) and q = 1 - P,

    upper - (upper - lower)·(w·bit - q)/(P - q)

has the mean c(u). The quantiles need no such weights, see `_monotone_quantiles`.

Source: randomized answers to thresholds, Liu, Hu, Kong and others, ICML 2023 and ICML 2024 (PMLR 202 and 235).
"""

from __future__ import annotations

import functools
import math
import operator
from bisect import bisect_right
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees import Guarantee, SymmetricPair
from ldp_budget.guarantees.fixed_point import DOWN, exp_down, float_below
from ldp_budget.sampling import ONE, threshold
from ldp_budget.sdk.channels import Comparison, Factor
from ldp_budget.sdk.numeric_mechanism import NumericMechanism
from ldp_budget.sdk.parameters import Text, choice, optional_real, real

from .additive_noise import LARGEST_EPSILON, LEAST_EPSILON

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.estimates import MeanEstimate, SumAggregate

    from ._binned_sum import BinnedSum
    from ._interval_grid import CellGrid
    from ._monotone_quantiles import QuantileEstimate

LINEAR, LOG = SCALES = ("linear", "log")
_LINEAR_POINTS, _LOG_POINTS = 2**20, 512
"""K on either scale."""
_LOG_CELLS = 2**30
"""The steps of the grid on which values are compared with the points of a logarithmic scale."""
_LARGEST_RATIO = 10**7
BINS = 256
"""The bins of thresholds in which answers are counted."""
_CAP_AT = "0.95"
_LISTED = "0.05,0.1,0.25,0.5,0.75,0.9,0.95"
_EXACT = Context(prec=60)


class _Probabilities(Text):
    """Probabilities of quantiles, ascending and joined by commas."""

    @property
    def expected(self) -> str:
        return "numbers above 0 and below 1, joined by commas, such as 0.5,0.9"

    def parse(self, value: Any) -> str:
        try:
            found = [Decimal(each.strip()) for each in super().parse(value).split(",")]
        except InvalidOperation:
            raise self.invalid(value) from None
        # Also as doubles, with which the quantiles are estimated.
        if not all(number.is_finite() and 0 < number < 1 and 0 < float(number) < 1 for number in found):
            raise self.invalid(value)
        return ",".join(str(number.normalize()) for number in sorted(set(found)))


class RandomThreshold(NumericMechanism):
    """One answer to "is it at most θ?" for a random public θ: quantiles, and an unbiased mean."""

    name = "random-threshold"
    aliases = ("threshold",)
    summary = "quantiles of a number in [lower, upper], without bins: is it at most a random threshold?"
    source = "Liu and others, ICML 2023 (PMLR 202); Liu, Hu and Kong, ICML 2024 (PMLR 235)"

    keeps_squares = True

    epsilon = real("privacy loss of one report", at_least=LEAST_EPSILON, at_most=LARGEST_EPSILON)
    lower = real("smallest value a user can have")
    upper = real("largest value a user can have")
    scale = choice("the distances of thresholds: equal, or of equal logarithms", *SCALES, default=LINEAR)
    quantiles = _Probabilities("the probabilities of the quantiles that are estimated", default=_LISTED)

    cap_at = optional_real(
        "estimate the mean with values above this quantile, such as 0.95, counted as the quantile", above=0, below=1
    )

    @classmethod
    def for_capped_mean(cls, epsilon: Any, lower: Any, upper: Any, *, scale: str) -> Self:
        """Return the mechanism of a question for the mean of values that are capped at their 95 % quantile.

        Parameters:
            epsilon: the ε of one report.
            lower: the smallest value a user can have.
            upper: the largest value a user can have.
            scale: `linear` or `log`.

        Raises:
            InvalidParameter: an argument is out of its range.
        """
        return cls.calibrate(epsilon=epsilon, lower=lower, upper=upper, scale=scale, cap_at=_CAP_AT)

    @classmethod
    def for_quantiles(cls, epsilon: Any, lower: Any, upper: Any, *, scale: str, quantiles: Iterable[Any]) -> Self:
        """Return the mechanism of a question for quantiles.

        Parameters:
            epsilon: the ε of one report.
            lower: the smallest value a user can have.
            upper: the largest value a user can have.
            scale: `linear` or `log`.
            quantiles: their probabilities, above 0 and below 1.

        Raises:
            InvalidParameter: an argument is out of its range.
        """
        listed = ",".join(map(str, quantiles))
        return cls.calibrate(epsilon=epsilon, lower=lower, upper=upper, scale=scale, quantiles=listed)

    def check(self) -> None:
        super().check()
        if self.scale == LOG and self.lower <= 0:
            raise InvalidParameter("lower", "above 0 on a logarithmic scale", self.lower)
        if self.scale == LOG and self.upper > self.lower * _LARGEST_RATIO:
            expected = f"at most {_LARGEST_RATIO:,} times lower, {self.lower}, on a logarithmic scale"
            raise InvalidParameter("upper", expected, self.upper)

    # -- points -----------------------------------------------------------------------------------------

    @property
    def thresholds(self) -> int:
        """K, the number of thresholds."""
        return _LINEAR_POINTS if self.scale == LINEAR else _LOG_POINTS

    @property
    def cells(self) -> int:
        """The number of steps of the grid of the values."""
        return _LINEAR_POINTS if self.scale == LINEAR else _LOG_CELLS

    @functools.cached_property
    def _points(self) -> tuple[int, ...]:
        """c(0), …, c(K) of a logarithmic scale, in steps of the grid."""
        lower, upper = Decimal(self.lower), Decimal(self.upper)
        log = _EXACT.divide(_EXACT.ln(_EXACT.divide(upper, lower)), Decimal(_LOG_POINTS))
        unit = _EXACT.divide(Decimal(_LOG_CELLS), _EXACT.subtract(upper, lower))
        grown = (_EXACT.exp(_EXACT.multiply(log, Decimal(place))) for place in range(_LOG_POINTS + 1))
        return tuple(
            round(_EXACT.multiply(_EXACT.multiply(lower, _EXACT.subtract(each, Decimal(1))), unit)) for each in grown
        )

    @functools.cached_property
    def _turns(self) -> tuple[int, ...]:
        """The least value that is rounded to each of c(1), …, c(K), in steps of the grid."""
        return tuple(-(-(low + high) // 2) for low, high in pairwise(self._points))

    @property
    def _longest(self) -> int:
        """The longest distance of two points, in steps of the grid."""
        return 1 if self.scale == LINEAR else max(high - low for low, high in pairwise(self._points))

    def _place(self, value: float) -> int:
        """Return u, the place of the nearest point."""
        point = self._value_grid.point(value)
        return point if self.scale == LINEAR else bisect_right(self._turns, point)

    @functools.cached_property
    def edges(self) -> tuple[float, ...]:
        """The ends of the bins of thresholds, in the unit of the values; BINS + 1 numbers."""
        lower, width = Fraction(self.lower), Fraction(self.upper) - Fraction(self.lower)
        places = range(0, self.thresholds + 1, self.thresholds // BINS)
        steps = places if self.scale == LINEAR else (self._points[place] for place in places)
        return tuple(float(lower + width * Fraction(step, self.cells)) for step in steps)

    # -- privacy loss -----------------------------------------------------------------------------------

    @functools.cached_property
    def keep(self) -> int:
        """P in units of 2**-64, rounded down."""
        odds = Fraction(exp_down(self.epsilon))
        return threshold(odds / (odds + 1), up=False)

    @property
    def parameters(self) -> dict[str, float]:
        """The probability of the true answer."""
        return {"p": float_below(DOWN.divide(Decimal(self.keep), Decimal(ONE)))}

    @property
    def guarantee(self) -> Guarantee:
        return SymmetricPair(self.epsilon, Decimal(1))

    def critical_inputs(self) -> Sequence[float]:
        """Return the ends, which every threshold tells apart, and the middle of the scale."""
        lower, upper = self.interval.ends
        return lower, self.edges[BINS // 2], upper

    def compare(self, first: float, second: float) -> Comparison:
        """Compare two values: the two answers to a threshold between them, and all else together."""
        between = Fraction(abs(self._place(second) - self._place(first)), self.thresholds)
        own, other = between * Fraction(self.keep, ONE), between * (1 - Fraction(self.keep, ONE))
        return Comparison.of(Factor(((own, other), (other, own), (1 - between, 1 - between))))

    def outcomes(self, reports: Any, first: float, second: float) -> Any:
        import numpy as np

        drawn, bits = self._parts(reports)
        here, there = self._place(first), self._place(second)
        is_between = (drawn >= min(here, there)) & (drawn < max(here, there))
        # To a threshold between the two, the smaller value answers yes.
        return np.where(is_between, bits if here > there else 1 - bits, 2)

    # -- errors -----------------------------------------------------------------------------------------

    def grid(self) -> tuple[float, float]:
        """Return (origin, step): a report with the bit b and the threshold t counts as b·(c(t+1) - c(t)) steps."""
        keep = Fraction(self.keep, ONE)
        width, gap = Fraction(self.upper) - Fraction(self.lower), 2 * keep - 1
        step = width * self.thresholds / (gap * self.cells)
        return float(Fraction(self.upper) + width * (1 - keep) / gap), float(-step)

    def error_at(self, value: float) -> tuple[float, float]:
        """Return (bias, MSE) of one report; the bias of at most half a distance of the points is not counted."""
        keep, place, step = self.keep / ONE, self._place(value), self.grid()[1]
        if self.scale == LINEAR:
            shown = 1 - keep + (2 * keep - 1) * (1 - place / self.thresholds)
            return 0.0, shown * (1 - shown) * step**2
        lengths = [high - low for low, high in pairwise(self._points)]
        chances = [1 - keep] * place + [keep] * (self.thresholds - place)
        mean = math.fsum(map(operator.mul, chances, lengths)) / self.thresholds
        square = math.fsum(chance * length**2 for chance, length in zip(chances, lengths, strict=True))
        return 0.0, max(square / self.thresholds - mean**2, 0.0) * step**2

    def planned_margin(self, reports: float, assumed: Sequence[tuple[float, float]] = ()) -> float:
        """Return the margin of a plan: the widest of the quantiles, or that of the capped mean.

        Parameters:
            reports: the number of reports.
            assumed: points of the distribution of the values: values, ascending, each with the share of people at most at it;
                empty for values that are uniform on the scale.
        """
        from ._threshold_plans import capped_margin, quantile_margin, shares_at_edges

        shares, keep = shares_at_edges(self.edges, assumed), self.keep / ONE
        if self.cap_at is not None:
            return capped_margin(keep, self.edges, shares, float(self.cap_at), reports)
        return max(
            quantile_margin(keep, self.edges, shares, float(each), reports) for each in self.quantiles.split(",")
        )

    def breakpoints(self) -> Sequence[float]:
        return self.edges[:: BINS // 32]

    @property
    def report_width(self) -> float:
        return abs(self.grid()[1]) * self._longest

    def report_std(self, total: SumAggregate) -> float:
        """Return the standard deviation of the reports, which the spread of the users' values makes larger."""
        mean = Fraction(total.total, total.reports)
        variance = Fraction(total.total_squares, total.reports) - mean**2
        return abs(self.grid()[1]) * math.sqrt(max(variance, Fraction(0)))

    # -- client and server ------------------------------------------------------------------------------

    @functools.cached_property
    def _value_grid(self) -> CellGrid:
        from ._interval_grid import CellGrid

        return CellGrid(self.interval, self.cells)

    def client_program(self) -> Program:
        """Return the client program; reports are the whole numbers t + K·bit, uint32 or uint16 (n,)."""
        from ldp_budget.sdk.client_program import Program, nearest, uint, whole

        given = nearest(self.interval, self._value_grid.per_unit, self.cells)
        places: list[tuple[str, Any]] = []
        if self.scale == LOG:
            places = [("place", ["rank", ["list", *self._turns], "value"])]
        steps: tuple[tuple[str, Any], ...] = (
            *places,
            ("drawn", ["below", self.thresholds]),
            ("yes", ["ge", "drawn", places[0][0] if places else "value"]),
            ("lie", ["bit", whole(ONE - self.keep)]),
            ("report", ["add", "drawn", ["where", ["xor", "yes", "lie"], self.thresholds, 0]]),
        )
        return Program(given, steps, uint("report", 2 * self.thresholds - 1))

    def _parts(self, reports: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (t, bit) of reports. Raises `NotSupported` for anything that no client sends."""
        import numpy as np

        from ._sketch_reports import read_numbers

        numbers = read_numbers(reports, self.name, 2 * self.thresholds).astype(np.int64)
        return numbers % self.thresholds, numbers // self.thresholds

    def contributions(self, reports: Any) -> NDArray[np.float64]:
        import numpy as np

        drawn, bits = self._parts(reports)
        origin, step = self.grid()
        lengths = 1 if self.scale == LINEAR else np.diff(self._points)[drawn]
        numbers: NDArray[np.float64] = (origin + step * (bits * lengths)).astype(np.float64)
        return numbers[:, np.newaxis]

    def aggregate(self, reports: Any) -> BinnedSum:
        import numpy as np

        from ._binned_sum import BinnedSum

        bins, number = self.report_bins(reports)
        total = BinnedSum.of(self.fingerprint, self.contributions(reports)[:, 0], self.grid(), squares=True)
        total.bins = np.bincount(bins, minlength=number)
        return total

    def report_bins(self, reports: Any) -> tuple[NDArray[np.int64], int]:
        """Return 2·bin + bit of each report, the bins being those of the thresholds; and how many of these there are."""
        drawn, bits = self._parts(reports)
        return 2 * (drawn * BINS // self.thresholds) + bits, 2 * BINS

    def estimate(self, reports: Any) -> QuantileEstimate:
        total = self.total(reports)
        return self._quantiles(super().estimate(total), total.bins, None)

    def distribution(self, shares: Any, covariance: Any, mean: MeanEstimate) -> QuantileEstimate:
        return self._quantiles(mean, shares * mean.reports, covariance)

    def _quantiles(self, mean: MeanEstimate, counts: Any, covariance: Any) -> QuantileEstimate:
        from ._binned_sum import extended
        from ._monotone_quantiles import QuantileEstimate

        return extended(
            mean,
            QuantileEstimate,
            counts=counts,
            keep=self.keep / ONE,
            edges=self.edges,
            covariance=covariance,
            listed=tuple(map(float, self.quantiles.split(","))),
            cap_at=None if self.cap_at is None else float(self.cap_at),
        )
