"""Numeric mechanisms: the base class of every mechanism that reports one number in [lower, upper].

Reports are on a public grid, origin + k·step for whole k. So sums of reports are sums of whole numbers, and
aggregates merge exactly, in any order.

The module also integrates smooth functions, piece by piece, by the Gauss-Legendre rule with twelve points. The rule
is exact for polynomials up to degree 23. It is accurate to the last digits for a function that is analytic well
beyond its piece. So the caller states the breakpoints of the function, and no tolerance has to be chosen.
"""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

from .._validation import shown
from ..errors import InvalidParameter, NotSupported
from ..guarantees.fixed_point import UP
from .domain import Interval, check_users
from .mechanism import Mechanism
from .parameters import optional_real

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from .estimates import MeanEstimate, SumAggregate
    from .share_laws import Cumulants


# Wide limits, within which every intermediate result still fits into a double.
_LEAST_WIDTH, _LARGEST_WIDTH = Decimal("1e-100"), Decimal("1e100")


class NumericMechanism(Mechanism):
    """A mechanism for one number. Subclasses define `grid`, `error_at`, `report_std` and `randomize`.

    Parameters:
        declared: the fields, by name.

    Raises:
        InvalidParameter: as for `Mechanism`.
    """

    keeps_squares: ClassVar[bool] = False
    """True if aggregates keep the sum of the squared steps too, for reports of at most 2**26 steps."""

    biased: ClassVar[bool] = False
    """True if an estimated mean has the bias that `error_at` states; False if it is unbiased."""

    lower = optional_real("smallest value a user can have")
    upper = optional_real("largest value a user can have")

    @classmethod
    def for_range(cls, epsilon: Any, lower: Any, upper: Any) -> Self:
        """Return the mechanism that is ranked against others at `epsilon` on [lower, upper].

        By default it is calibrated to these. Override the method where more must be chosen, or the fields have other
        names.

        Parameters:
            epsilon: the ε of one report.
            lower: the smallest value a user can have.
            upper: the largest value a user can have.

        Raises:
            InvalidParameter: an argument is out of its range.
            NotSupported: no mechanism of this class fits.
        """
        return cls._for_ranking(epsilon=epsilon, lower=lower, upper=upper)

    def check(self) -> None:
        if self.lower is None and self.upper is None:
            return
        for name, bound in (("lower", self.lower), ("upper", self.upper)):
            if bound is None:
                raise InvalidParameter(name, "a finite number", hint="Give both lower and upper.")
        lower, upper = self.interval.lower, self.interval.upper
        if lower >= upper:
            raise InvalidParameter("upper", f"greater than lower, {lower}", upper)
        if not _LEAST_WIDTH <= UP.subtract(upper, lower) <= _LARGEST_WIDTH:
            raise InvalidParameter(
                "upper", f"a number from {_LEAST_WIDTH} to {_LARGEST_WIDTH} above lower, {lower}", upper
            )
        if float(lower) == float(upper):
            raise InvalidParameter("upper", f"a number that as a double differs from lower, {lower}", upper)

    @property
    def domain(self) -> Interval | None:
        """[lower, upper]; None where only a sensitivity was declared."""
        return None if self.lower is None or self.upper is None else Interval(self.lower, self.upper)

    @property
    def interval(self) -> Interval:
        """The domain, for code that requires one. Raises `NotSupported` where only a sensitivity was declared."""
        if self.domain is None:
            raise NotSupported(f"{self.name} has only a sensitivity, and this needs lower and upper")
        return self.domain

    def grid(self) -> tuple[float, float]:
        """Return the public grid of the reports: (origin, step), in the unit of the values. Subclasses define it.

        Raises:
            NotSupported: only a sensitivity was declared.
        """
        raise NotImplementedError

    def error_at(self, value: float) -> tuple[float, float]:
        """Return (bias, MSE) of one report of a user. Subclasses define it.

        Parameters:
            value: the user's value, a number of the domain.

        Raises:
            NotSupported: only a sensitivity was declared.
        """
        raise NotImplementedError

    def density(self, report: float, value: float) -> float:
        """Return the density of the reports of a user, before rounding to the grid.

        Parameters:
            report: the report at which to evaluate the density.
            value: the user's value, a number of the domain.

        Raises:
            NotSupported: the mechanism has no density.
        """
        raise NotSupported(f"{self.name} has no density")

    def log_density(self, report: float, value: float) -> float:
        """Return the natural logarithm of `density`; -inf where it is 0.

        Also override it where the density may be below 1e-300, the range of a double: there `density` is 0.

        Parameters:
            report: the report at which to evaluate the density.
            value: the user's value, a number of the domain.

        Raises:
            NotSupported: the mechanism has no density.
        """
        density = self.density(report, value)
        return math.log(density) if density > 0 else -math.inf

    def report_breakpoints(self, value: float) -> Sequence[float]:
        """Return the breakpoints of a value's density. Between those of two values, their privacy loss is monotone.

        A mechanism that has a `density` states with them where it bends or jumps.

        Parameters:
            value: a number of the domain.

        Raises:
            NotSupported: only a sensitivity was declared.
        """
        lower, upper = self.interval.ends
        return lower, value, upper

    @property
    def report_period(self) -> float | None:
        """The period with which the densities of all values repeat, up to a constant factor; None without a period.

        They repeat beyond the last breakpoints on either side, and for one period before them. None also means that
        there are no breakpoints further out.
        """
        return None

    def breakpoints(self) -> Sequence[float]:
        """Return the values, ascending from lower to upper, between which `error_at` is smooth.

        Raises:
            NotSupported: only a sensitivity was declared.
        """
        return self.interval.ends

    def critical_inputs(self) -> Sequence[float]:
        """Return the ends and the center of the domain, and the breakpoints of the error.

        Raises:
            NotSupported: only a sensitivity was declared.
        """
        lower, upper = self.interval.ends
        return sorted({lower, (lower + upper) / 2, upper, *self.breakpoints()})

    def mse_uniform_prior(self) -> float:
        """Return the MSE of one report, averaged over values uniform on [lower, upper].

        Raises:
            NotSupported: only a sensitivity was declared.
        """

        return average(lambda value: self.error_at(value)[1], self.breakpoints())

    def prior_error(self, prior: tuple[Any, Any]) -> tuple[float, float]:
        """Return (bias, MSE) of one report, averaged over a prior distribution of the users' values.

        Parameters:
            prior: (points, weights), two arrays of shape (k,); the points in [lower, upper], the weights
                non-negative. They need not sum to one.

        Raises:
            OutsideDomain: a point is not in the domain.
            InvalidParameter: `prior` is not such a pair, or a weight is negative.
            NotSupported: only a sensitivity was declared.
        """
        from ._inputs import as_weights

        if not isinstance(prior, tuple | list) or len(prior) != 2:
            raise InvalidParameter("prior", "a pair of arrays: points and weights", shown(prior))
        points = self.interval.check(prior[0])
        weights = as_weights(prior[1], len(points))
        bias, mse = weights @ [self.error_at(point) for point in points.tolist()] / weights.sum()
        return float(bias), float(mse)

    def utility(self, users: int | None = None) -> dict[str, Any]:
        errors = {name: self.error_at(value) for name, value in self._landmarks()}
        result: dict[str, Any] = {
            "mse": {name: mse for name, (_, mse) in errors.items()},
            "bias": {name: bias for name, (bias, _) in errors.items()},
        }
        if self.domain is not None:
            result["mse_uniform_prior"] = self.mse_uniform_prior()
            result["constant_output"] = self._constant_output(UP.subtract(self.domain.upper, self.domain.lower))
        if users is not None:
            check_users(users)
            worst = max(mse - bias**2 for bias, mse in errors.values())
            result["std_error"] = (worst / users) ** 0.5
        return result

    @staticmethod
    def _constant_output(width: Decimal) -> dict[str, Any]:
        """Return the errors of always reporting the center, as a baseline for the mechanism's own errors."""
        edge = float(width) ** 2 / 4
        return {"mse": {"lower": edge, "centre": 0.0, "upper": edge}, "mse_uniform_prior": edge / 3}

    def mean_error(self, users: int) -> float:
        """Return the root mean squared error of the mean estimated for `users` users who all have one value.

        At a value v it is √(bias(v)² + (MSE(v) - bias(v)²)/users), with the bias and MSE of one report. The result is
        the largest over lower, center and upper.

        Parameters:
            users: the number of users who report.

        Raises:
            InvalidParameter: `users` is not a whole number >= 1.
        """
        check_users(users)
        errors = [self.error_at(value) for value in self.landmarks()]
        return max(math.sqrt(bias**2 + (mse - bias**2) / users) for bias, mse in errors)

    def landmarks(self) -> tuple[float, float, float]:
        """Return the lower end, the center and the upper end of the domain; of [0, 1] where only a sensitivity is known."""
        lower, center, upper = (value for _, value in self._landmarks())
        return lower, center, upper

    def _landmarks(self) -> Iterator[tuple[str, float]]:
        """Return the edges and the center of the domain; of [0, S] where only a sensitivity is known."""
        low, high = (0.0, 1.0) if self.domain is None else self.domain.ends
        yield from (("lower", low), ("centre", (low + high) / 2), ("upper", high))

    def read_values(self, texts: Sequence[str]) -> NDArray[np.float64]:
        return self.interval.read(texts)

    def aggregate(self, reports: Any) -> SumAggregate:
        from .estimates import SumAggregate

        return SumAggregate.of(self.fingerprint, reports, self.grid(), squares=self.keeps_squares)

    def estimate(self, reports: Any) -> MeanEstimate:
        from .estimates import MeanEstimate

        total = self.total(reports)
        origin, step = self.grid()
        mean = origin + total.total / total.reports * step
        # With squares, the spread was estimated from the reports; a single report shows no spread.
        freedom = total.reports - 1 if self.keeps_squares and total.reports > 1 else None
        error, ends, bounds = self.report_std(total) / total.reports**0.5, None, None
        if self.domain is not None and not self.biased:
            ends = self.domain.ends
            if self.report_width is not None:
                bounds = float(self.contribution_noise[0][0] ** 0.5), self.report_width
        return MeanEstimate(total.reports, mean, error, freedom=freedom, ends=ends, bounds=bounds)

    @property
    def report_width(self) -> float | None:
        """The width of the range of the reports; None if it is unknown or infinite."""
        return None

    def contributions(self, reports: Any) -> NDArray[np.float64]:
        """Return the reports as numbers, shape (n, 1): each is unbiased for its user's value.

        Parameters:
            reports: as `aggregate` takes them.

        Raises:
            NotSupported: `reports` are not reports of this mechanism, or they are biased.
        """
        import numpy as np

        if self.biased:
            raise NotSupported(
                f"reports of {self.name} are biased, so no report has an unbiased contribution",
                hint="Collect with laplace, staircase, hybrid or square-wave.",
            )
        self.aggregate(reports)
        return np.asarray(reports, dtype=np.float64)[:, np.newaxis]

    @property
    def contribution_noise(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(most, 0), each (1,): the largest variance of a report around its user's value, over the critical inputs."""
        import numpy as np

        errors = (self.error_at(value) for value in self.critical_inputs())
        return np.array([max(mse - bias**2 for bias, mse in errors)]), np.zeros(1)

    @property
    def contribution_law(self) -> Cumulants:
        """The variance and the third cumulant of a report of a user at the lower and at the upper end, each (1,).

        Whatever the values, the reports vary at most as if their users held the two ends: the variances are raised where a
        value between them has more noise than that. By default the third cumulants are 0, as for symmetric noise.
        """
        import numpy as np

        from .share_laws import Cumulants

        low, high = self.interval.ends
        noise = {
            value: mse - bias**2
            for value in (low, high, *self.critical_inputs())
            for bias, mse in (self.error_at(value),)
        }
        excess = 0.0
        for value, variance in noise.items():
            share = (value - low) / (high - low)
            between = (1 - share) * noise[low] + share * noise[high] + (value - low) * (high - value)
            excess = max(excess, variance - between)
        return Cumulants(np.array([noise[low] + excess]), np.zeros(1), np.array([noise[high] + excess]), np.zeros(1))

    def report_bins(self, reports: Any) -> tuple[NDArray[np.int64], int]:
        """Return the bin of each report, (n,), and the number of bins in which `distribution` needs the reports.

        Parameters:
            reports: as `aggregate` takes them.

        Raises:
            NotSupported: `reports` are not reports of this mechanism, or it estimates no distribution.
        """
        raise NotSupported(
            f"{self.name} estimates no distribution, so it has no quantiles", hint="Collect with square-wave."
        )

    def distribution(self, shares: Any, covariance: Any, mean: MeanEstimate) -> MeanEstimate:
        """Return `mean` with the distribution of the values, from weighted shares of reports.

        Parameters:
            shares: the share of the reports in each bin, (bins,).
            covariance: the covariance of these shares, (bins, bins).
            mean: the estimated mean, with its degrees of freedom.

        Raises:
            NotSupported: the mechanism estimates no distribution.
        """
        raise NotSupported(f"{self.name} estimates no distribution")

    def report_std(self, total: SumAggregate) -> float:
        """Return the standard deviation of one report around its user's value. Subclasses define it.

        Parameters:
            total: the aggregate of the reports, for a mechanism whose noise depends on the values.
        """
        raise NotImplementedError


# -- Gauss-Legendre integration --------------------------------------------------------------------------------------


_RIGHT = (
    (0.1252334085114689, 0.2491470458134027),
    (0.3678314989981802, 0.2334925365383546),
    (0.5873179542866175, 0.20316742672306573),
    (0.7699026741943047, 0.16007832854334642),
    (0.9041172563704748, 0.10693932599531907),
    (0.9815606342467192, 0.04717533638651141),
)
_RULE = [*((-node, weight) for node, weight in reversed(_RIGHT)), *_RIGHT]
"""(node, weight) on [-1, 1].

Written out, so that a parameter chosen by an integral, such as a γ, is the same on every machine, and charging does
not need numpy.
"""


def average(function: Callable[[float], float], breakpoints: Sequence[float]) -> float:
    """Return the mean of `function` over [first, last] of the ascending `breakpoints`, smooth between neighbors.

    If the first and the last breakpoint are equal, return the value there.
    """
    if breakpoints[0] == breakpoints[-1]:
        return function(breakpoints[0])
    pieces = [weighted_nodes(low, high) for low, high in pairwise(breakpoints)]
    total = math.fsum(weight for piece in pieces for _, weight in piece)
    # In units of a power of two, which is exact: over a range of 1e100 the integral may overflow a double.
    unit = math.ldexp(1.0, -math.frexp(total)[1])
    integral = math.fsum(weight * unit * function(node) for piece in pieces for node, weight in piece)
    return integral / (total * unit)


def weighted_nodes(low: float, high: float) -> list[tuple[float, float]]:
    """Return (node, weight) of the rule on [low, high]: the integral there is about Σ weight·f(node)."""
    middle, half = (low + high) / 2, (high - low) / 2
    return [(middle + half * node, half * weight) for node, weight in _RULE]
