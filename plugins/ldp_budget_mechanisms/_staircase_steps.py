"""What the staircase mechanism draws from: periods by binary digits, steps by one comparison, all in whole cells."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.authoring.channels import Comparison
from ldp_budget.authoring.programs import whole
from ldp_budget.guarantees.amounts import DOWN, UP, exp_up
from ldp_budget.randomness import ONE, bernoulli, integers, threshold

from ._geometric import digit_thresholds, geometric_by_digits, probabilities

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldp_budget.randomness import Stream

_MOST_PERIODS = 64


class StaircaseSteps:
    """Staircase noise on a grid with `cells` cells for S, `reach` of them in the upper step, drawn by integers.

    The periods' probabilities fall by at most e^ε from one to the next, and within a period a cell of the upper
    step is at most e^ε times as likely as one of the lower. Points at most `cells` apart see a report one step
    apart at most, or across a border of periods, where the two factors offset each other. So the loss is at most ε.
    """

    def __init__(self, epsilon: Decimal, reach: int, cells: int) -> None:
        self.reach, self.cells = reach, cells
        self.gamma = reach / cells
        self.periods = digit_thresholds(epsilon)
        rest = UP.multiply(exp_up(epsilon.copy_negate()), Decimal(cells - reach))
        self.upper = threshold(DOWN.divide(Decimal(reach), UP.add(Decimal(reach), rest)), up=False)

    def compare(self, first: int, second: int) -> tuple[list[int], Comparison]:
        """The borders of runs of equally likely cells, and the odds of what they part.

        They reach out until the digits of the periods repeat, at most `_MOST_PERIODS`. What lies beyond on each side
        is one outcome.
        """
        periods = probabilities(self.periods, min(2 ** len(self.periods) + 1, _MOST_PERIODS))
        borders = {
            point + side * (period * self.cells + place)
            for point in (first, second)
            for period in range(len(periods))
            for place in (0, self.reach)
            for side in (-1, 1)
        }
        # Within these, every cell lies in a listed period of both points.
        far = (len(periods) - 1) * self.cells
        low, high = max(first, second) - far, min(first, second) + far
        starts = sorted(border for border in {*borders, low, high} if low <= border <= high)
        sides = []
        for point in (first, second):
            inside = [(end - start) * self._cell(periods, point, start) for start, end in pairwise(starts)]
            left = Fraction(1, 2) - sum(mass for mass, start in zip(inside, starts, strict=False) if start < point)
            sides.append([left, *inside, 1 - left - sum(inside)])
        return starts, Comparison.rows(*sides)

    def _cell(self, periods: list[Fraction], point: int, cell: int) -> Fraction:
        """How likely one cell is for the input at `point`."""
        period, place = divmod(cell - point if cell >= point else point - 1 - cell, self.cells)
        upper = Fraction(self.upper, ONE)
        step = upper / self.reach if place < self.reach else (1 - upper) / (self.cells - self.reach)
        return periods[period] * step / 2

    def draw(self, stream: Stream, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cells of reports for users at the given points; cell k lies between the points k and k+1."""
        n = len(points)
        distance = geometric_by_digits(stream, self.periods, n) * self.cells
        # Both places are drawn for everybody; where a step has no cell, its place is never used.
        in_upper = integers(stream, max(1, self.reach), n)
        in_lower = self.reach + integers(stream, max(1, self.cells - self.reach), n)
        distance += np.where(bernoulli(stream, self.upper, n), in_upper, in_lower)
        left = bernoulli(stream, ONE // 2, n)
        return points + np.where(left, ~distance, distance)

    def drawing(self) -> tuple[tuple[str, Any], ...]:
        """The same as steps of a program, from the point `value`."""
        *digits, above = map(whole, self.periods)
        count: list[Any] = ["add", ["shl", "periods", len(digits)], ["join", "digits"]]
        step: list[Any] = ["where", "is_upper", "upper", ["add", self.reach, "lower"]]
        return (
            ("periods", ["geometric", above]),
            ("digits", ["bits_each", ["list", *digits]]),
            ("upper", ["below", max(1, self.reach)]),
            ("lower", ["below", max(1, self.cells - self.reach)]),
            ("is_upper", ["bit", whole(self.upper)]),
            ("left", ["bit", whole(ONE // 2)]),
            ("distance", ["add", ["mul", count, self.cells], step]),
            ("cell", ["add", "value", ["where", "left", ["sub", -1, "distance"], "distance"]]),
        )
