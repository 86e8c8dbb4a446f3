"""The piecewise mechanism: a window of higher density that moves with the value (Wang et al., ICDE 2019, III-B).

**As it is published.** For a value t in [-1, 1], with s = e^(ε/2) and C = (s+1)/(s-1), a report is in [-C, C]. Its
density is e^ε·b inside the window [l, l + C-1], l = ((C+1)·t - (C-1))/2, and b outside. The window moves from one end
of [-C, C] to the other and is C-1 = 2/(s-1) long, what is outside C+1 = 2s/(s-1). So b = (s-1)/(2s(s+1)), and a
report is inside with probability s/(s+1). Its mean is t and its variance t²/(s-1) + (s+3)/(3(s-1)²).

**What a report says.** Of two values, a report in the one's window alone loses ε, one in the other's alone -ε, and
any report in both windows or in neither loses nothing. The windows of -1 and 1 do not meet, as C+1 > C-1. So for the
two ends the loss is ±ε with probability

    τ = (C-1)·(e^ε·b + b) = (e^ε+1)/(e^ε+s),

and for values whose windows overlap with less: the promise is a `SymmetricPair`, and no smaller one holds.

**As it is drawn.** A report is one of N = K + M cells of a public grid. A value is one of the points 0..M, and the
window of point i is the K cells from cell i on. A report is in the window with probability P, every cell of it as
likely, and else one of the M other cells, every one of them as likely. With κ = K/M the odds of a cell inside are
P/(κ(1-P)) to one outside; they are e^ε for P = κe^ε/(κe^ε+1), and then

    τ = P + κ(1-P) = κ(e^ε+1)/(κe^ε+1).

κ is e^(-ε/2) in the paper, and here as near to it as whole cells come. P is rounded down to a multiple of 2**-64: the
odds are then at most e^ε, and the total variation P - κ(1-P) at most that of the stated pair, which therefore
dominates.

**Unbiased, exactly.** With a and b the probabilities of a cell inside and outside, the mean cell is

    E[cell] = (a-b)·Σ(window) + b·Σ(all) = (a-b)(K·i + K(K-1)/2) + b·N(N-1)/2,

linear in i for all a, b and K. So `grid` stretches the cells in such a way that the mean report of point 0 is
`lower` and that of point M is `upper`. Only that a value is taken at the nearest of the points makes a difference, of
at most (upper - lower)/2²¹.
"""

from __future__ import annotations

import functools
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_budget import NumericMechanism
from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.guarantees import Guarantee, SymmetricPair
from ldp_budget.guarantees.fixed_point import DOWN, UP, exp_down, exp_up, float_below
from ldp_budget.sampling import ONE, threshold
from ldp_budget.sdk.channels import Comparison, Factor
from ldp_budget.sdk.parameters import real

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sampling import RandomSource
    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.estimates import SumAggregate

POINTS = 2**20
"""M: the steps from `lower` to `upper`, and the cells outside a window."""


class Moments(NamedTuple):
    """The moments of a report, in cells, as polynomials of the point i: E[cell], and E[cell²] - E[cell]²."""

    mean: tuple[Fraction, Fraction]
    variance: tuple[Fraction, Fraction, Fraction]


class Piecewise(NumericMechanism):
    """A number in [lower, upper], most likely reported in a window around it; unbiased."""

    name = "piecewise"
    summary = "one number, most likely in a window around it; unbiased, reports are bounded"
    source = "Wang, Xiao, Yang, Zhao, Hui, Shin, Shin and Yu, ICDE 2019, section III-B"
    examples = ({"epsilon": 1, "lower": -1, "upper": 1}, {"epsilon": 4, "lower": 0, "upper": 100})

    keeps_squares = True

    epsilon = real("privacy loss of one report", at_least=1e-4, at_most=50)
    lower = real("smallest value a user can have")
    upper = real("largest value a user can have")

    # -- what is drawn ------------------------------------------------------------------------------------

    @functools.cached_property
    def window(self) -> int:
        """K, the cells of a window: e^(-ε/2)·M to the nearest, and at least one."""
        shrunk = exp_down(UP.divide(self.epsilon, Decimal(-2)))
        return max(1, round(Fraction(shrunk) * POINTS))

    @functools.cached_property
    def _keep(self) -> int:
        """P as the client draws it, in units of 2**-64, rounded down."""
        odds = Fraction(self.window, POINTS) * Fraction(exp_down(self.epsilon))
        return threshold(odds / (odds + 1), up=False)

    @functools.cached_property
    def drawn(self) -> tuple[Fraction, Fraction]:
        """(a, b): the probabilities of a cell inside the window and of one outside, exactly as they are drawn."""
        inside = Fraction(self._keep, ONE)
        return inside / self.window, (1 - inside) / POINTS

    def check(self) -> None:
        super().check()
        inside, outside = self.drawn
        if inside <= outside:
            raise InvalidParameter(
                "epsilon", "a loss large enough to be drawn with 64-bit probabilities", self.epsilon
            )

    # -- the promise --------------------------------------------------------------------------------------

    @property
    def guarantee(self) -> Guarantee:
        return SymmetricPair(self.epsilon, self._tau)

    @functools.cached_property
    def _tau(self) -> Decimal:
        """τ = (e^ε+1)/(e^ε+1/κ), rounded up. It grows with e^ε, so an upper bound of that bounds it."""
        odds = exp_up(self.epsilon)
        ratio = DOWN.divide(Decimal(POINTS), Decimal(self.window))
        return min(UP.divide(UP.add(odds, Decimal(1)), DOWN.add(odds, ratio)), Decimal(1))

    @property
    def parameters(self) -> dict[str, float]:
        """The probability of the window, its length, and the range of the reports."""
        origin, step = self.grid()
        return {
            "p": float_below(Decimal(self._keep) / ONE),
            "window": step * self.window,
            "lowest": origin,
            "highest": origin + step * (self.window + POINTS - 1),
        }

    # -- errors -------------------------------------------------------------------------------------------

    @functools.cached_property
    def moments(self) -> Moments:
        """Over a window from i on, Σ cell² = K·i² + K(K-1)·i + K(K-1)(2K-1)/6; over all cells as over one from 0."""
        (a, b), k, n = self.drawn, self.window, self.window + POINTS
        slope, level = (a - b) * k, (a - b) * k * (k - 1) / 2 + b * n * (n - 1) / 2
        whole = b * n * (n - 1) * (2 * n - 1) / 6
        squares = (a - b) * k * (k - 1) * (2 * k - 1) / 6 + whole, slope * (k - 1), slope
        mean_squared = level**2, 2 * slope * level, slope**2
        constant, linear, quadratic = (left - right for left, right in zip(squares, mean_squared, strict=True))
        return Moments((level, slope), (constant, linear, quadratic))

    @functools.cached_property
    def _stretched(self) -> tuple[Fraction, Fraction]:
        """(origin, step) of the grid: where the mean report of point 0 is `lower`, and that of point M `upper`."""
        level, slope = self.moments.mean
        step = (Fraction(self.upper) - Fraction(self.lower)) / (slope * POINTS)
        return Fraction(self.lower) - level * step, step

    def grid(self) -> tuple[float, float]:
        origin, step = self._stretched
        return float(origin), float(step)

    @functools.cached_property
    def _spread(self) -> tuple[float, float, float]:
        """(centre, α, β) with Var[report of x] = α(x - centre)² + β; it is symmetric about the centre."""
        (constant, linear, quadratic), (_, slope) = self.moments.variance, self.moments.mean
        _, step = self._stretched
        middle = Fraction(POINTS, 2)
        least = constant + linear * middle + quadratic * middle**2
        centre = (Fraction(self.lower) + Fraction(self.upper)) / 2
        # One point is slope·step of the range.
        return float(centre), float(quadratic / slope**2), float(least * step**2)

    def error_at(self, value: float) -> tuple[float, float]:
        """(bias, MSE) of one report: no bias, and the paper's variance but for the rounding to cells."""
        centre, alpha, beta = self._spread
        return 0.0, alpha * (value - centre) ** 2 + beta

    def report_std(self, total: SumAggregate) -> float:
        """For the users at hand, with any values: the root of their mean variance α·E(x - centre)² + β.

        A report y has E(y - centre)² = (1 + α)(x - centre)² + β, so the mean square of the reports tells that.
        """
        centre, alpha, beta = self._spread
        origin, step = self._stretched
        middle = (Fraction(centre) - origin) / step
        squares = total.total_squares - 2 * middle * total.total + middle**2 * total.reports
        square = float(squares * step**2 / total.reports)
        return float(((alpha * square + beta) / (1 + alpha)) ** 0.5)

    # -- client and server --------------------------------------------------------------------------------

    @functools.cached_property
    def _per_unit(self) -> float:
        """Points to one unit of the value."""
        return float(POINTS / (Fraction(self.upper) - Fraction(self.lower)))

    def points(self, values: Any) -> NDArray[np.int64]:
        """The points 0..M that the values are taken at. Raises `OutsideDomain`."""
        import numpy as np

        lower, _ = self.interval.ends
        # As `nearest` has it, double for double.
        points = np.rint((self.interval.check(values) - lower) * self._per_unit)
        return np.clip(points, 0, POINTS).astype(np.int64)

    def randomize(self, values: Any, *, rng: RandomSource = None, secrets: Any = None) -> NDArray[np.float64]:
        """Reports are numbers (n,) on the public grid, beyond lower and upper as well."""
        import numpy as np

        from ldp_budget.sampling import bernoulli, integers, open_stream

        first, stream = self.points(values), open_stream(rng)
        kept = bernoulli(stream, self._keep, len(first))
        # Both are drawn for each user, so that the time taken does not depend on what is kept.
        inside = first + integers(stream, self.window, len(first))
        outside = integers(stream, POINTS, len(first))
        outside += np.where(outside >= first, self.window, 0)
        origin, step = self.grid()
        reports: NDArray[np.float64] = origin + np.where(kept, inside, outside) * step
        return reports

    def client_program(self) -> Program:
        from ldp_budget.sdk.client_program import Program, float64, nearest, whole

        steps: tuple[tuple[str, Any], ...] = (
            ("kept", ["bit", whole(self._keep)]),
            ("near", ["below", self.window]),
            ("far", ["below", POINTS]),
            ("inside", ["add", "value", "near"]),
            ("outside", ["add", "far", ["where", ["ge", "far", "value"], self.window, 0]]),
            ("cell", ["where", "kept", "inside", "outside"]),
        )
        return Program(nearest(self.interval, self._per_unit, POINTS), steps, float64("cell", *self.grid()))

    def cells(self, reports: Any) -> NDArray[np.int64]:
        """The cells of reports. Raises `NotSupported` for anything that no client of this mechanism sends."""
        import numpy as np

        rows = np.asarray(reports)
        if rows.ndim != 1 or rows.dtype.kind != "f":
            raise NotSupported(f"reports of piecewise are floats of shape (n,): got {rows.dtype} {rows.shape}")
        origin, step = self.grid()
        steps = np.rint((rows - origin) / step)
        # Not a number is not >= 0 either.
        if not ((steps >= 0) & (steps < self.window + POINTS)).all():
            raise NotSupported("reports of piecewise are within its range: got others")
        return steps.astype(np.int64)

    def aggregate(self, reports: Any) -> SumAggregate:
        self.cells(reports)
        return super().aggregate(reports)

    # -- what can be checked ------------------------------------------------------------------------------

    def compare(self, first: float, second: float) -> Comparison:
        """A cell of the first window alone, of the second alone, of both, or of neither."""
        a, b = self.drawn
        start, other = map(int, self.points([first, second]))
        alone = min(abs(start - other), self.window)
        both, neither = self.window - alone, POINTS - alone
        return Comparison.of(
            Factor(((alone * a, alone * b), (alone * b, alone * a), (both * a,) * 2, (neither * b,) * 2))
        )

    def outcomes(self, reports: Any, first: float, second: float) -> NDArray[np.int64]:
        import numpy as np

        cells = self.cells(reports)
        own, theirs = ((cells >= start) & (cells < start + self.window) for start in self.points([first, second]))
        return np.select([own & ~theirs, theirs & ~own, own & theirs], [0, 1, 2], 3)
