"""Numeric mechanisms whose reports stay in [lower, upper], and are therefore biased towards its centre."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from ldp_budget.authoring.fields import real
from ldp_budget.authoring.numeric import NumericMechanism
from ldp_budget.guarantees.amounts import UP

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.authoring.channels import Comparison
    from ldp_budget.authoring.estimates import BoundedMeanEstimate, SumAggregate
    from ldp_budget.authoring.programs import Program
    from ldp_budget.randomness import RandomSource, Stream

    from ._cells import CellGrid

    Runs = list[tuple[int, int]]

_LOOKED_AT = 64


class BoundedMechanism(NumericMechanism):
    """A mechanism on [0, 1], stretched to [lower, upper]. Subclasses say how it errs and draws there.

    The bias is largest at the two ends and points inwards. The mean of the reports is not an affine function of
    the value, so no factor puts it right: `estimate` gives the mean of the reports as it is, and its standard
    error measures their spread only. How far off it may be stands in `utility` and `notes`.
    """

    cells: ClassVar[int]
    """Cells of the public grid over [lower, upper]; a report is the middle of one."""

    keeps_squares = True
    biased = True

    # Here both are required.
    lower = real("smallest value a user can have")
    upper = real("largest value a user can have")

    def error_within(self, share: float) -> tuple[float, float]:
        """(bias, MSE) for the value `share` of [0, 1]."""
        raise NotImplementedError

    def breakpoints_within(self) -> Sequence[float]:
        """Ascending from 0 to 1, with `error_within` smooth between neighbours."""
        raise NotImplementedError

    def draw(self, stream: Stream, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """A cell for each user at the given points 0..cells; cell k lies between the points k and k+1."""
        raise NotImplementedError

    @property
    def width(self) -> float:
        """upper - lower."""
        return float(UP.subtract(self.upper, self.lower))

    def share(self, value: float) -> float:
        """Where in [0, 1] a value lies."""
        return min(max(0.0, (value - float(self.lower)) / self.width), 1.0)

    def error_at(self, value: float) -> tuple[float, float]:
        bias, mse = self.error_within(self.share(value))
        return self.width * bias, self.width**2 * mse

    def breakpoints(self) -> Sequence[float]:
        lower, width = float(self.lower), self.width
        return tuple(lower + width * share for share in self.breakpoints_within())

    def utility(self, users: int | None = None) -> dict[str, Any]:
        return {**super().utility(users), "max_bias": self._max_bias()}

    def _max_bias(self) -> float:
        return self.width * self.error_within(0.0)[0]

    @property
    def notes(self) -> tuple[str, ...]:
        lower, upper = self.interval.lower, self.interval.upper
        constant, own = self.width**2 / 12, self.mse_uniform_prior()
        biased = (
            f"Reports are pulled towards the centre, so an estimated mean is biased by up to "
            f"{self._max_bias():.4g}, however many reports there are.",
        )
        if own <= constant:
            return biased
        centre = float((lower + upper) / 2)
        return (
            *biased,
            f"The constant output {centre:.6g}, which says nothing about anybody, has a smaller MSE: for values "
            f"spread evenly over [{lower}, {upper}] {constant:.4g} against {own:.4g}.",
        )

    # -- what can be checked ----------------------------------------------------------------------------

    def critical_points(self) -> Iterable[int]:
        """Points of the grid among which those are that lie furthest apart in what they draw."""
        raise NotImplementedError

    def compare_points(self, first: int, second: int) -> tuple[Runs, Comparison]:
        """The runs of cells that are equally likely, and how likely they are, for two points of the grid."""
        raise NotImplementedError

    def critical_inputs(self) -> Sequence[float]:
        lower, width = Fraction(self.lower), Fraction(UP.subtract(self.upper, self.lower))
        points = sorted({point for point in self.critical_points() if 0 <= point <= self.cells})
        return [float(lower + width * point / self.cells) for point in points]

    def compare(self, first: float, second: float) -> Comparison:
        return self.compare_points(*map(self._cell_grid.point, (first, second)))[1]

    def outcomes(self, reports: Any, first: float, second: float) -> Any:
        from ._grid_channel import number_runs

        parts, _ = self.compare_points(*map(self._cell_grid.point, (first, second)))
        return number_runs(self._cell_grid.cells_of(reports), parts)

    # -- client and server ------------------------------------------------------------------------------

    @functools.cached_property
    def _cell_grid(self) -> CellGrid:
        from ._cells import CellGrid

        return CellGrid(self.interval, self.cells)

    def grid(self) -> tuple[float, float]:
        return self._cell_grid.middles

    def randomize(self, values: Any, *, rng: RandomSource = None, secrets: Any = None) -> NDArray[np.float64]:
        """Reports are numbers (n,), middles of cells of the public grid over [lower, upper]."""
        from ldp_budget.randomness import open_stream

        from ._cells import draw_cells

        return self._cell_grid.reports(draw_cells(self._cell_grid.points(values), open_stream(rng), self.draw))

    def drawing(self) -> tuple[tuple[tuple[str, Any], ...], dict[str, Any]]:
        """What `draw` does as steps of a program, the last of which is `cell`; and their tables."""
        raise NotImplementedError

    def client_program(self) -> Program:
        from ldp_budget.authoring.programs import Program, float64, nearest

        steps, tables = self.drawing()
        given = nearest(self.interval, self._cell_grid.per_unit, self.cells)
        return Program(given, steps, float64("cell", *self.grid()), tables)

    def aggregate(self, reports: Any) -> SumAggregate:
        return super().aggregate(self._cell_grid.inside(reports))

    def estimate(self, reports: Any) -> BoundedMeanEstimate:
        from ldp_budget.authoring.estimates import BoundedMeanEstimate

        plain, (lower, upper) = super().estimate(reports), self.interval.ends
        return BoundedMeanEstimate(
            plain.reports,
            plain.mean,
            plain.std_error,
            lower=lower,
            upper=upper,
            most_spread=self._most_spread,
        )

    @functools.cached_property
    def _most_spread(self) -> float:
        """The largest standard deviation of a report, over values where it bends and others between."""
        shares = {*self.breakpoints_within(), *(place / _LOOKED_AT for place in range(_LOOKED_AT + 1))}
        errors = [self.error_within(share) for share in shares]
        return self.width * math.sqrt(max(0.0, *(mse - bias**2 for bias, mse in errors)))

    def report_std(self, total: SumAggregate) -> float:
        """The standard deviation that the reports themselves show; of one alone, the largest there can be."""
        n = total.reports
        if n == 1:
            return self.width / 2
        spread = n * total.total_squares - total.total**2
        return float((spread / (n * (n - 1))) ** 0.5 * self.grid()[1])
