"""Base class of numeric mechanisms whose reports stay in [lower, upper], and the privacy of bounded Laplace.

Such reports are biased toward the center of the range.

`LaplaceWeights` computes how well any two inputs of the bounded Laplace mechanism can be distinguished, as stated and
as drawn. On [0, 1] with b = 1/ε, the ratio f(y | x) / f(y | x') of two inputs x < x' falls in y. So the best test of x
against x' at any odds λ accepts the reports up to some t. Reports of a smaller value are smaller. So, with F their
distribution functions,

    H(λ) = max over t of F(t | x) - λF(t | x')
        <= max over t of F(t | 0) - λF(t | 1) = (1 - √(λe^{-ε}))² / (1 - e^{-ε}),

with equality at the two ends. They are the worst pair at every λ in [e^{-ε}, e^ε], and the mirrored pair is alike.
H falls in λ and grows with ε.

What is drawn is a table of integer weights on G cells, see `LaplaceTable`. With S·q^d, q = e^{-ε/G}, as weights it
would be the continuous report rounded to a cell, which reveals no more. A weight is above S·q^d - 2, and at most the
larger of S·q^d + 1 and a floor F. So with T = S(1-q^G)/(1-q), the least of the totals of S·q^d,

    P̃ <= P·T/(T-2G) + (F+1)/(T-2G),      Q̃ >= Q·T/(T+G(F+1)) - 2/(T+G(F+1)),

for every cell, and, summed over the cells,

    H̃(λ) <= ρ·H(λσ) + G(F+1+2λ)/(T-2G),      ρ = T/(T-2G),   σ = (T-2G)/(T+G(F+1)).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ldp_budget.guarantees import Pure
from ldp_budget.guarantees.fixed_point import DOWN, UP, exp_down, exp_up
from ldp_budget.sdk.numeric_mechanism import NumericMechanism
from ldp_budget.sdk.parameters import real

from ._bounded_staircase_profile import largest_odds, pair_of_curve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ldp_budget.guarantees import Guarantee
    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.estimates import BoundedMeanEstimate, SumAggregate

    from ._interval_grid import CellGrid


_LOOKED_AT = 64


class BoundedMechanism(NumericMechanism):
    """A mechanism on [0, 1], scaled to [lower, upper]. Subclasses define its error and its draws there.

    The bias is largest at the two ends and points inwards. The mean of the reports is not an affine function of the
    value, so no factor corrects it. `estimate` returns the mean of the reports unchanged, and its standard error
    measures
    only their spread. `utility` and `notes` state the largest bias.
    """

    cells: ClassVar[int]
    """The number of cells of the public grid over [lower, upper]; a report is the middle of a cell."""

    keeps_squares = True
    biased = True

    # Here both are required.
    lower = real("smallest value a user can have")
    upper = real("largest value a user can have")

    def error_within(self, share: float) -> tuple[float, float]:
        """Return (bias, MSE) for the value `share` of [0, 1]."""
        raise NotImplementedError

    def breakpoints_within(self) -> Sequence[float]:
        """Return points ascending from 0 to 1, with `error_within` smooth between neighbors."""
        raise NotImplementedError

    @property
    def width(self) -> float:
        """upper - lower."""
        return float(UP.subtract(self.upper, self.lower))

    @functools.cached_property
    def _ends(self) -> tuple[float, float]:
        return self.interval.ends

    def density(self, report: float, value: float) -> float:
        return math.exp(self.log_density(report, value))

    def share(self, value: float) -> float:
        """Return the position of a value in [0, 1]."""
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
            f"The constant output {centre:.6g}, which says nothing about a user, has a smaller MSE: for values "
            f"spread evenly over [{lower}, {upper}] {constant:.4g} against {own:.4g}.",
        )

    # -- verification -----------------------------------------------------------------------------------

    def critical_points(self) -> Iterable[int]:
        """Return points of the grid that include the two whose reports differ the most."""
        raise NotImplementedError

    def critical_inputs(self) -> Sequence[float]:
        lower, width = Fraction(self.lower), Fraction(UP.subtract(self.upper, self.lower))
        points = sorted({point for point in self.critical_points() if 0 <= point <= self.cells})
        return [float(lower + width * point / self.cells) for point in points]

    # -- client and server ------------------------------------------------------------------------------

    @functools.cached_property
    def _cell_grid(self) -> CellGrid:
        from ._interval_grid import CellGrid

        return CellGrid(self.interval, self.cells)

    def grid(self) -> tuple[float, float]:
        return self._cell_grid.middles

    def drawing(self) -> tuple[tuple[tuple[str, Any], ...], dict[str, Any]]:
        """Return `draw` as steps of a program, the last of which is `cell`; and their tables."""
        raise NotImplementedError

    def client_program(self) -> Program:
        """Return the client program; reports are numbers (n,), middles of cells of the public grid over [lower, upper]."""
        from ldp_budget.sdk.client_program import Program, float64, nearest

        steps, tables = self.drawing()
        given = nearest(self.interval, self._cell_grid.per_unit, self.cells)
        return Program(given, steps, float64("cell", *self.grid()), tables)

    def aggregate(self, reports: Any) -> SumAggregate:
        return super().aggregate(self._cell_grid.inside(reports))

    def estimate(self, reports: Any) -> BoundedMeanEstimate:
        from ldp_budget.sdk.estimates import BoundedMeanEstimate

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
        """Return the largest standard deviation of a report, over the breakpoints and values between them."""
        shares = {*self.breakpoints_within(), *(place / _LOOKED_AT for place in range(_LOOKED_AT + 1))}
        errors = [self.error_within(share) for share in shares]
        return self.width * math.sqrt(max(0.0, *(mse - bias**2 for bias, mse in errors)))

    def report_std(self, total: SumAggregate) -> float:
        """Return the standard deviation of the reports; for a single report, the largest possible one."""
        n = total.reports
        if n == 1:
            return self.width / 2
        spread = n * total.total_squares - total.total**2
        return float((spread / (n * (n - 1))) ** 0.5 * self.grid()[1])


LARGE_LOSS = 16
"""For an ε from here on, a tail of constant weight, far less than one part in 10,000 of all, may replace the rest."""


@dataclass(frozen=True)
class LaplaceWeights:
    """The weights S·q^d of the cells 0..cells-1 away from a point, rounded down to integers, at least F."""

    epsilon: Decimal
    cells: int
    ratio: Decimal
    largest: Decimal
    floor: int

    @classmethod
    def of(cls, epsilon: Decimal, cells: int) -> Self:
        """Return weights as large as totals below 2**63 allow."""
        ratio = DOWN.exp(DOWN.divide(epsilon.copy_negate(), Decimal(cells)))
        mass = min(Decimal(cells), DOWN.divide(2, DOWN.subtract(1, ratio)))
        largest = DOWN.divide(Decimal(2**62), mass)
        floor = math.ceil(UP.divide(UP.multiply(largest, 2), exp_down(epsilon))) if epsilon >= LARGE_LOSS else 0
        return cls(epsilon, cells, ratio, largest, floor)

    def __iter__(self) -> Iterator[int]:
        weight = self.largest
        for _ in range(self.cells):
            yield max(int(weight), self.floor)
            weight = DOWN.multiply(weight, self.ratio)

    # -- privacy loss -----------------------------------------------------------------------------------

    @cached_property
    def _decay(self) -> tuple[Decimal, Decimal]:
        """e^-ε, rounded down and up."""
        return exp_down(self.epsilon.copy_negate()), exp_up(self.epsilon.copy_negate())

    @cached_property
    def _total(self) -> Decimal:
        """T, rounded down. `ratio` may be off by some units of the last of forty digits."""
        rest = UP.subtract(1, self.ratio.next_minus(DOWN).next_minus(DOWN))
        return DOWN.divide(DOWN.multiply(self.largest, DOWN.subtract(1, self._decay[1])), rest)

    def _holds(self) -> bool:
        """True if no ratio of two drawn odds exceeds `largest_odds`."""
        if self.epsilon < LARGE_LOSS:
            # The loss is at most (1 - 1/G)ε + 8/w with w the last of the weights, see `LaplaceTable`.
            last = DOWN.subtract(DOWN.multiply(self.largest, self._decay[0]), 2)
            spare = DOWN.subtract(DOWN.divide(self.epsilon, self.cells), Decimal("1e-29"))
            return DOWN.multiply(last, spare) >= 8
        # No weight is above S, and the largest total is that of the center: 2T/(1 + e^{-ε/2}), plus what was raised.
        half = exp_down(DOWN.divide(self.epsilon, -2))
        most = UP.add(UP.divide(2, DOWN.add(1, half)), UP.divide(self._raised, self._total))
        least = DOWN.subtract(1, UP.divide(2 * self.cells, self._total))
        return UP.multiply(self.largest, most) <= DOWN.multiply(
            DOWN.multiply(largest_odds(self.epsilon), self.floor), least
        )

    @property
    def _raised(self) -> int:
        """The most by which all weights of a point together exceed S·q^d."""
        return self.cells * (self.floor + 1)

    def _bound(self, slope: Decimal) -> Decimal:
        """Return H(λ) of any two inputs, as stated or as drawn, rounded up."""
        least = DOWN.subtract(self._total, 2 * self.cells)
        narrowed = DOWN.divide(least, UP.add(self._total, self._raised))
        stretched = UP.divide(UP.add(least, 2 * self.cells), least)
        added = UP.divide(UP.add(self._raised, UP.multiply(2 * self.cells, slope)), least)
        return UP.add(UP.multiply(stretched, self._stated(DOWN.multiply(slope, narrowed))), added)

    def _stated(self, slope: Decimal) -> Decimal:
        """Return (1 - √(λe^-ε))²/(1 - e^-ε), rounded up."""
        root = DOWN.sqrt(DOWN.multiply(slope, self._decay[0])).next_minus(DOWN)
        missed = max(UP.subtract(1, root), Decimal(0))
        return UP.divide(UP.multiply(missed, missed), DOWN.subtract(1, self._decay[1]))

    def guarantee(self) -> Guarantee:
        """Return the pair of the two ends, as stated and as drawn; `Pure` if the last digits of that are uncertain."""
        return pair_of_curve(self.epsilon, self._bound) if self._holds() else Pure(self.epsilon)
