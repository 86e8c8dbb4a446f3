"""Base class of numeric mechanisms whose reports are most likely in a window that moves with the value.

A value is at one of the points 0..M of a public grid, M = 2²⁰. A report is one of M + K cells: with probability P one
of the K cells of the window, which begins at cell i for the point i, and otherwise one of the M other cells. Within
each the cells are equally likely. Let κ = K/M. The odds of a cell inside to one outside are P/(κ(1-P)), and e^ε for

    P = κe^ε/(κe^ε+1).

Two windows that do not meet have the total variation P - κ(1-P), so the loss is ±ε with probability

    τ = P + κ(1-P) = κ(e^ε+1)/(κe^ε+1),

and two windows that overlap have less. P is rounded down, so the drawn odds and the drawn variation are at most those
of the stated pair. K and M are whole numbers, and τ is that of this K.

The mean cell is linear in the point, whatever P and K are: with a and b the probabilities of a cell inside and outside,

    E[cell] = (a-b)(K·i + K(K-1)/2) + b·(M+K)(M+K-1)/2.

So the grid of the reports is stretched until the mean report of point 0 is `lower` and that of point M `upper`. Then
reports are unbiased, but for the rounding of a value to a point.

Source: Wang et al., ICDE 2019, section III-B (piecewise mechanism), and Li et al., SIGMOD 2020 (square wave). They
differ in κ alone.
"""

from __future__ import annotations

import functools
import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_budget.errors import NotSupported
from ldp_budget.guarantees.fixed_point import DOWN, UP, exp_down, exp_up
from ldp_budget.sampling import ONE, threshold
from ldp_budget.sdk.numeric_mechanism import NumericMechanism
from ldp_budget.sdk.parameters import real
from ldp_budget.sdk.report_law import rules

from .additive_noise import LARGEST_EPSILON, LEAST_EPSILON

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sdk.channels import Comparison
    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.estimates import SumAggregate
    from ldp_budget.sdk.report_law import Law

    from ._interval_grid import CellGrid

    Ints = NDArray[np.int64]
    Steps = tuple[tuple[str, Any], ...]

POINTS = 2**20
"""M, the steps from `lower` to `upper`, and the cells outside a window."""


class Moments(NamedTuple):
    """E[cell] and E[cell²] as polynomials of the point: their coefficients, the constant first."""

    mean: tuple[Fraction, Fraction]
    square: tuple[Fraction, Fraction, Fraction]


class MovingWindow(NumericMechanism):
    """A mechanism on a public grid with a window. Subclasses define `window`; they may mix in other reports."""

    keeps_squares = True

    epsilon = real("privacy loss of one report", at_least=LEAST_EPSILON, at_most=LARGEST_EPSILON)
    lower = real("smallest value a user can have")
    upper = real("largest value a user can have")

    # -- calibration ------------------------------------------------------------------------------------

    @property
    def window(self) -> int:
        """K, the number of cells of a window, at least 1 and at most M."""
        raise NotImplementedError

    @functools.cached_property
    def keep(self) -> int:
        """P in units of 2**-64, rounded down."""
        odds = Fraction(self.window, POINTS) * Fraction(exp_down(self.epsilon))
        return threshold(odds / (odds + 1), up=False)

    @functools.cached_property
    def drawn(self) -> tuple[Fraction, Fraction]:
        """(a, b), the probabilities of a cell inside and of one outside, exactly as the client draws."""
        inside = Fraction(self.keep, ONE)
        return inside / self.window, (1 - inside) / POINTS

    @functools.cached_property
    def tau(self) -> Decimal:
        """τ = (e^ε+1)/(e^ε+1/κ), rounded up. It grows with e^ε, so an upper bound of that bounds it."""
        odds, rest = exp_up(self.epsilon), DOWN.divide(Decimal(POINTS), Decimal(self.window))
        return min(UP.divide(UP.add(odds, Decimal(1)), DOWN.add(odds, rest)), Decimal(1))

    @property
    def cells(self) -> int:
        """M + K, the number of cells of the grid."""
        return self.window + POINTS

    # -- errors -----------------------------------------------------------------------------------------

    @property
    def moments(self) -> Moments:
        """The moments of a report, exactly as it is drawn."""
        return self.window_moments

    @functools.cached_property
    def window_moments(self) -> Moments:
        """The moments of a report of the window alone."""
        (a, b), k, n = self.drawn, self.window, self.cells
        slope, level = (a - b) * k, (a - b) * k * (k - 1) / 2 + b * n * (n - 1) / 2
        constant = (a - b) * k * (k - 1) * (2 * k - 1) / 6 + b * n * (n - 1) * (2 * n - 1) / 6
        return Moments((level, slope), (constant, slope * (k - 1), slope))

    @functools.cached_property
    def _variance(self) -> tuple[Fraction, Fraction, Fraction]:
        """Var[cell] as a polynomial of the point."""
        (level, slope), (constant, linear, quadratic) = self.moments
        return constant - level**2, linear - 2 * level * slope, quadratic - slope**2

    @functools.cached_property
    def _stretched(self) -> tuple[Fraction, Fraction]:
        """(origin, step) with which the mean report of point 0 is `lower`, and that of point M `upper`."""
        level, slope = self.moments.mean
        step = (Fraction(self.upper) - Fraction(self.lower)) / (slope * POINTS)
        return Fraction(self.lower) - level * step, step

    def grid(self) -> tuple[float, float]:
        origin, step = self._stretched
        return float(origin), float(step)

    def error_at(self, value: float) -> tuple[float, float]:
        """Return (bias, MSE) of one report; the bias of at most half a step of the values is not counted."""
        lower, upper = Fraction(self.lower), Fraction(self.upper)
        point = (Fraction(value) - lower) / (upper - lower) * POINTS
        return 0.0, float(self._at(point, point**2) * self._stretched[1] ** 2)

    def _at(self, mean: Fraction, square: Fraction) -> Fraction:
        """Return the mean variance of the cells of users, given the means of their points and of their squares."""
        constant, linear, quadratic = self._variance
        return constant + linear * mean + quadratic * square

    @property
    def report_width(self) -> float:
        return self.grid()[1] * self.cells

    def report_std(self, total: SumAggregate) -> float:
        """Return the root of the mean variance of the reports of the users at hand.

        The mean square of the cells shows that of the users' points. Where the variance is concave in the point, the
        variance at the mean point is an upper bound, and exact if all values are equal.
        """
        (level, slope), (constant, linear, quadratic) = self.moments
        mean = min(max((Fraction(total.total, total.reports) - level) / slope, Fraction(0)), Fraction(POINTS))
        square = mean**2
        if self._variance[2] > 0:
            found = (Fraction(total.total_squares, total.reports) - constant - linear * mean) / quadratic
            square = min(max(square, found), POINTS * mean)
        return math.sqrt(self._at(mean, square) * self._stretched[1] ** 2)

    # -- client and server ------------------------------------------------------------------------------

    @functools.cached_property
    def _value_grid(self) -> CellGrid:
        """The public grid of the values."""
        from ._interval_grid import CellGrid

        return CellGrid(self.interval, POINTS)

    def drawing(self, cell: str = "cell") -> Steps:
        """Return the same draw as steps of a program, from the point `value`; the last step has the name `cell`."""
        from ldp_budget.sdk.client_program import whole

        return (
            ("kept", ["bit", whole(self.keep)]),
            ("near", ["below", self.window]),
            ("far", ["below", POINTS]),
            ("inside", ["add", "value", "near"]),
            ("outside", ["add", "far", ["where", ["ge", "far", "value"], self.window, 0]]),
            (cell, ["where", "kept", "inside", "outside"]),
        )

    def client_program(self) -> Program:
        """Return the client program; reports are numbers (n,) on the public grid, also beyond lower and upper."""
        from ldp_budget.sdk.client_program import Program, float64, nearest

        given = nearest(self.interval, self._value_grid.per_unit, POINTS)
        return Program(given, self.drawing(), float64("cell", *self.grid()))

    def cells_of(self, reports: Any) -> Ints:
        """Return the cells of reports. Raises `NotSupported` for anything that no client sends."""
        import numpy as np

        from ._interval_grid import read_floats

        rows = read_floats(reports, self.name)
        origin, step = self.grid()
        cells = np.rint((rows - origin) / step)
        if not ((cells >= 0) & (cells < self.cells)).all():  # also not a number
            most = origin + (self.cells - 1) * step
            raise NotSupported(f"reports of {self.name} must be from {origin:.6g} to {most:.6g}: got others")
        return cells.astype(np.int64)

    def aggregate(self, reports: Any) -> SumAggregate:
        self.cells_of(reports)
        return super().aggregate(reports)

    # -- verification -----------------------------------------------------------------------------------

    @functools.cached_property
    def _law(self) -> Law:
        law: Law = rules().Numbers(self.client_program())
        return law

    def compare(self, first: float, second: float) -> Comparison:
        """Compare two values: the runs of cells on which both laws are constant."""
        return self._law.comparison(*map(self._value_grid.point, (first, second)))

    def outcomes(self, reports: Any, first: float, second: float) -> Ints:
        numbered: Ints = self._law.outcomes(self.cells_of(reports), *map(self._value_grid.point, (first, second)))
        return numbered
