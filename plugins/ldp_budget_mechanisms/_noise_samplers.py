"""Samplers for the staircase and the bounded Laplace mechanism: integer draws with exact odds.

Geometric counts are drawn by binary digits: the work grows with the logarithm of their mean.

Let N have P[N = k] in proportion to r^k, r = e^{-ε}. Its binary digits are independent: digit i is one with the odds
r^(2^i). The part above the first m digits is geometric again, with ratio r^(2^m). A digit is drawn by a
64-bit threshold, which makes its odds e^{-o_i} with o_i close to 2^i·ε. From k to k+1 the digits below some c turn
from one to zero and digit c from zero to one, so

    ln P[N = k] - ln P[N = k+1] = o_c - (o_0 + … + o_{c-1}).

Rounding each o_c down from ε + o_0 + … + o_{c-1} keeps that at most ε for every k, exactly.

`StaircaseSteps` draws staircase noise: periods by binary digits, steps by one comparison, all in whole cells.
`LaplaceTable` draws bounded Laplace reports from integer weights on a public grid.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.guarantees.fixed_point import DOWN, UP, exp_down, exp_up
from ldp_budget.sampling import ONE, threshold
from ldp_budget.sdk.channels import Comparison
from ldp_budget.sdk.client_program import falling, whole

from ._bounded_numeric import LARGE_LOSS, LaplaceWeights
from ._interval_grid import runs

if TYPE_CHECKING:
    from numpy.typing import NDArray


def digit_thresholds(epsilon: Decimal) -> list[int]:
    """Return the thresholds of the low digits, lowest first, and last the threshold for continuing above them."""
    thresholds = []
    target = epsilon
    while target < 1:
        odds = exp_up(target.copy_negate())
        digit = threshold(UP.divide(odds, DOWN.add(1, exp_down(target.copy_negate()))), up=True)
        thresholds.append(digit)
        target = DOWN.add(target, _log_odds_down(digit))
    thresholds.append(threshold(exp_up(target.copy_negate()), up=True))
    return thresholds


def _log_odds_down(digit: int) -> Decimal:
    """Return -ln of the odds of a one, rounded down."""
    return DOWN.ln(DOWN.divide(Decimal(ONE - digit), Decimal(digit))).next_minus(DOWN)


def probabilities(thresholds: list[int], most: int) -> list[Fraction]:
    """Return P[N = 0], P[N = 1], ... as drawn: `most` of them, or as many as the low digits can represent."""
    *digits, above = (Fraction(drawn, ONE) for drawn in thresholds)
    masses = [1 - above]
    for digit in reversed(digits):
        masses = [mass * odds for mass in masses[:most] for odds in (1 - digit, digit)]
    while len(masses) < most:
        masses += [mass * above for mass in masses[-(1 << len(digits)) :]]
    return masses[:most]


# -- staircase -------------------------------------------------------------------------------------------------------


_MOST_PERIODS = 64


class StaircaseSteps:
    """Staircase noise on a grid with `cells` cells for S, `reach` of them in the upper step, drawn by integers.

    The periods' probabilities fall by at most e^ε from one to the next. Within a period, a cell of the upper step is
    at
    most e^ε times as likely as one of the lower. Points at most `cells` apart see a report at most one step apart, or
    across a border of periods, where the two factors cancel. So the loss is at most ε.
    """

    def __init__(self, epsilon: Decimal, reach: int, cells: int) -> None:
        self.reach, self.cells = reach, cells
        self.gamma = reach / cells
        self.periods = digit_thresholds(epsilon)
        rest = UP.multiply(exp_up(epsilon.copy_negate()), Decimal(cells - reach))
        self.upper = threshold(DOWN.divide(Decimal(reach), UP.add(Decimal(reach), rest)), up=False)

    def compare(self, first: int, second: int) -> tuple[list[int], Comparison]:
        """Return the borders of runs of equally likely cells, and the probabilities of the runs.

        The runs extend until the digits of the periods repeat, at most `_MOST_PERIODS`. All cells beyond, on each
        side, are
        one outcome.
        """
        periods = probabilities(self.periods, min(2 ** len(self.periods) + 1, _MOST_PERIODS))
        borders = {
            point + side * (period * self.cells + place)
            for point in (first, second)
            for period in range(len(periods))
            for place in (0, self.reach)
            for side in (-1, 1)
        }
        # Within these, every cell is in a listed period of both points.
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
        """Return the probability of one cell for the input at `point`."""
        period, place = divmod(cell - point if cell >= point else point - 1 - cell, self.cells)
        upper = Fraction(self.upper, ONE)
        step = upper / self.reach if place < self.reach else (1 - upper) / (self.cells - self.reach)
        return periods[period] * step / 2

    def drawing(self) -> tuple[tuple[str, Any], ...]:
        """Return the same draw as steps of a program, from the point `value`."""
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


# -- bounded Laplace -------------------------------------------------------------------------------------------------


_RUNS = 32
# Ratios closer than this, in doubles, may represent integers in either order.
_CLOSE = 1e-15


class LaplaceTable:
    """Bounded Laplace on a grid of `cells` = G cells, for inputs at the points 0..G between them.

    A cell with d whole cells between it and the point has the weight w_d = ⌊S·q^d⌋, q = e^{-ε/G}. A report is drawn
    by one
    uniform integer below the total T_i of the point i. So its odds are exactly those of the weights.

    With q^d itself as w_d the loss is (1 - 1/G)ε, by the argument for the continuous case: for the cell at one end,
    the
    points at both. Each w_d is less than two below S·q^d, and so each T_i less than 2G. With w the last of the
    weights
    this adds at most 8/w to the loss, which must fit into the remaining ε/G.

    For a large ε the last weights would be too small for that. There no weight is less than a floor F. No total is
    more
    than twice another, so F = ⌈2S·e^{-ε}⌉ keeps every ratio below e^ε.
    """

    def __init__(self, epsilon: Decimal, cells: int) -> None:
        self.cells = cells
        self._weights = LaplaceWeights.of(epsilon, cells)
        weights = list(self._weights)
        totals = np.cumsum([0, *weights], dtype=np.int64)
        self.below: NDArray[np.int64] = totals
        """below[d]: the sum of the weights w_0, …, w_{d-1}."""
        assert self._holds(epsilon, weights), "the client would lose more than ε"

    def _holds(self, epsilon: Decimal, weights: list[int]) -> bool:
        """True if the loss is at most ε, computed with integers."""
        last = weights[-1]
        if epsilon < LARGE_LOSS:
            return last * Fraction(epsilon) >= 8 * self.cells
        centre = self.cells // 2
        largest = int(self.below[centre] + self.below[self.cells - centre])
        return weights[0] * largest <= Fraction(exp_down(epsilon)) * last * int(self.below[-1])

    def critical_points(self) -> list[int]:
        """Return the ends, their neighbors, and the center, whose total is the largest."""
        return [0, 1, self.cells // 2, self.cells - 1, self.cells]

    def compare(self, first: int, second: int) -> tuple[list[tuple[int, int]], Comparison]:
        """Return runs of cells: one each for the most and the least likely cell by `first` against `second`, and a few more.

        So the largest and the smallest ratio are exact, although the other runs do not have equal odds.
        """
        cells = np.arange(self.cells)
        weights = np.diff(self.below)

        def weights_of(point: int) -> NDArray[np.int64]:
            return weights[np.where(cells < point, point - 1 - cells, cells - point)]

        own, other = weights_of(first), weights_of(second)
        ratios = own.astype(np.longdouble) / other
        extremes = [_extreme(own, other, ratios, sign) for sign in (1, -1)]
        alone = [cell + after for cell in extremes for after in (0, 1)]
        parts = runs([*alone, first, second, *range(0, self.cells, self.cells // _RUNS)], self.cells)
        starts = [start for start, _ in parts]
        sides = []
        for side in (own, other):
            sums = np.add.reduceat(side, starts).tolist()
            sides.append([Fraction(mass, sum(sums)) for mass in sums])
        return parts, Comparison.rows(*sides)

    def drawing(self) -> tuple[tuple[tuple[str, Any], ...], dict[str, Any]]:
        """Return the same draw as steps of a program, from the point `value`, and the table of the totals."""
        right: list[Any] = ["at", "below", ["sub", self.cells, "value"]]
        place: list[Any] = ["where", "is_left", "drawn", ["sub", "drawn", "left"]]
        steps = (
            ("left", ["at", "below", "value"]),
            ("drawn", ["below", ["add", "left", right]]),
            ("is_left", ["lt", "drawn", "left"]),
            ("distance", ["sub", ["rank", "below", place], 1]),
            (
                "cell",
                ["where", "is_left", ["sub", ["sub", "value", 1], "distance"], ["add", "value", "distance"]],
            ),
        )
        fall = self._weights
        return steps, {"below": falling(str(fall.largest), str(fall.ratio), DOWN.prec, fall.floor, self.cells)}


def _extreme(own: NDArray[np.int64], other: NDArray[np.int64], ratios: NDArray[np.longdouble], sign: int) -> int:
    """Return the cell of the largest own/other if `sign` is 1, of the smallest if it is -1, by integers."""
    cells: list[int] = np.flatnonzero(sign * ratios >= (sign * ratios).max() * (1 - sign * _CLOSE)).tolist()
    return max(cells, key=lambda cell: sign * Fraction(int(own[cell]), int(other[cell])))
