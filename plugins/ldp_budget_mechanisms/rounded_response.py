"""Rounded response: a number rounded at random to one of K points, which generalized randomized response keeps or changes.

A value x in [lower, upper] between two neighbors of K equally spaced points is rounded to one of the two, such that its mean
is x. The point is kept with probability p = e^ε/(e^ε+K-1), and else is another one, uniformly, q each. With c the center and
x_j the point that is sent, c + (x_j - c)/(p - q) is unbiased. With h the distance of two points and a ≤ x ≤ b the neighbors, its
variance is

    [qΣ(x_k - c)² + (p - q)((x - c)² + (x - a)(b - x))]/(p - q)² - (x - c)².

In each cell that is concave in x. K = 2 is randomized response of the two ends. The K of the least variance at worst grows with ε:
3 at ε = 1.65, from where on it is below that of `hybrid`, 5 at ε = 4 (19 % below), 17 at ε = 8.

Rounding is public: it draws a number u that no answer changes, and x and u give the point. So two values are two points or one, and
the loss of a report is that of generalized randomized response over K points, ±ε with probability at most τ = (e^ε+1)/(e^ε+K-1).
"""

from __future__ import annotations

import functools
import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.guarantees import Guarantee
from ldp_budget.guarantees.fixed_point import float_below
from ldp_budget.sampling import ONE
from ldp_budget.sdk.channels import Comparison
from ldp_budget.sdk.numeric_mechanism import NumericMechanism
from ldp_budget.sdk.parameters import optional_integer, real

from ._substitution_loss import keep_threshold, one_draw

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.estimates import SumAggregate
    from ldp_budget.sdk.share_laws import Cumulants

    Ints = NDArray[np.int64]

_MOST_POINTS = 32
_PARTS = 2**20
"""The least number of parts of the range that a value is read to."""


class RoundedResponse(NumericMechanism):
    """Random rounding to K points, kept or changed."""

    name = "rounded-response"
    summary = (
        "one of K points next to the number, kept or changed; from ε = 1.65 on the least error at worst for a mean"
    )
    source = (
        "Kairouz, Oh and Viswanath, JMLR 17 (2016); Duchi, Jordan and Wainwright, JASA 113 (2018), for two points"
    )
    keeps_squares = True
    rounds = True
    """False if all values of users are points, see `on`."""
    examples = ({"epsilon": 1, "lower": 0, "upper": 1}, {"epsilon": 4, "lower": -3, "upper": 5})

    epsilon = real("privacy loss of one report", at_least="0.0001", at_most=20)
    lower = real("smallest value a user can have")
    upper = real("largest value a user can have")
    points = optional_integer(
        "points K; if left out, the number of the least variance at worst", at_least=2, at_most=_MOST_POINTS
    )

    def check(self) -> None:
        super().check()
        if self.keep * self.count <= ONE:
            expected = "a loss large enough to be drawn with 64-bit probabilities"
            raise InvalidParameter("epsilon", expected, self.epsilon)
        origin, step = self.grid()
        if any(round((origin + step * place - origin) / step) != place for place in range(self.count)):
            expected = f"so far above lower, {self.lower}, that {self.count} points differ as doubles"
            raise InvalidParameter("upper", expected, self.upper)

    # -- calibration ------------------------------------------------------------------------------------

    @functools.cached_property
    def count(self) -> int:
        """K, the points."""
        if self.points is not None:
            return self.points
        odds = math.exp(float(self.epsilon))
        return min(range(2, _MOST_POINTS + 1), key=lambda count: max(_variances(count, odds).values()))

    @functools.cached_property
    def keep(self) -> int:
        """p in units of 2**-64, rounded down."""
        return keep_threshold(self.epsilon, self.count)

    @functools.cached_property
    def drawn(self) -> tuple[Fraction, Fraction]:
        """(p, q), exactly as the client draws."""
        keep = Fraction(self.keep, ONE)
        return keep, (1 - keep) / (self.count - 1)

    @property
    def cell(self) -> int:
        """The parts of the range between two points."""
        return -(-_PARTS // (self.count - 1))

    @property
    def last(self) -> int:
        """The parts of the range."""
        return self.cell * (self.count - 1)

    @property
    def guarantee(self) -> Guarantee:
        return one_draw(self.epsilon, self.count)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"points": self.count, "keep": float_below(Decimal(self.keep) / ONE)}

    # -- errors -----------------------------------------------------------------------------------------

    @functools.cached_property
    def _range(self) -> tuple[Fraction, Fraction]:
        """The center, and half the width."""
        lower, upper = Fraction(self.lower), Fraction(self.upper)
        return (lower + upper) / 2, (upper - lower) / 2

    def grid(self) -> tuple[float, float]:
        (center, half), (p, q) = self._range, self.drawn
        return float(center - half / (p - q)), float(2 * half / (self.count - 1) / (p - q))

    def error_at(self, value: float) -> tuple[float, float]:
        """Return (bias, MSE) of one report; the bias of at most half a part of the range is not counted."""
        center, half = self._range
        p, q = self.drawn
        return 0.0, float(half**2 * _variance(self.count, (p, q), (Fraction(value) - center) / half))

    def breakpoints(self) -> Sequence[float]:
        """Return the points, and the values between them with the largest variance."""
        center, half = self._range
        odds = float(self.drawn[0] / self.drawn[1])
        inside = [float(center + half * Fraction(at)) for at in sorted(_variances(self.count, odds))]
        low, high = self.interval.ends
        return [low, *(min(max(value, low), high) for value in inside[1:-1]), high]

    def critical_inputs(self) -> Sequence[float]:
        """Return the ends and the center, the points next to the ends, and the value with the largest variance."""
        low, high = self.interval.ends
        points = self.breakpoints()
        worst = max(points, key=lambda value: self.error_at(value)[1])
        return sorted({low, (low + high) / 2, high, *points[:3], *points[-3:], worst})

    def mean_error(self, users: int) -> float:
        from ldp_budget.sdk.domain import check_users

        check_users(users)
        return math.sqrt(max(self.error_at(value)[1] for value in self.breakpoints()) / users)

    def utility(self, users: int | None = None) -> dict[str, Any]:
        found = super().utility(users)
        return found if users is None else {**found, "std_error": self.mean_error(users)}

    @property
    def report_width(self) -> float:
        return self.grid()[1] * (self.count - 1)

    def report_std(self, total: SumAggregate) -> float:
        """Return a bound of the root of the mean variance of the users' reports, from their mean and their mean square.

        The noise of changed points follows from the mean square of the rounded values. Rounding adds from 0 to h²/4: as much as
        this mean square, with one standard error, is above the square of the mean. At a large ε a few changes in many reports
        make most of the variance, and the reports may show none of them.
        """
        (p, q), half = self.drawn, (self.count - 1) / 2
        mean, square = total.total / total.reports - half, total.total_squares / total.reports
        square -= 2 * half * (mean + half) - half**2  # around the center, in points
        gap = float(p - q)
        changed = float(q) * _squares(self.count) * half**2
        spread = min(max((square - changed) / gap, 0.0), half**2)  # of the rounded values
        fourths = float(q) * sum((place - half) ** 4 for place in range(self.count))
        rounding = spread - (mean / gap) ** 2 + math.sqrt(fourths / total.reports)
        rounding = min(max(rounding, 0.0), 0.25) if self.rounds else 0.0
        errors = [self.error_at(value)[1] for value in (self.breakpoints() if self.rounds else self._points)]
        seen = ((changed + gap * spread) / gap**2 - spread + rounding) * float(
            Fraction(self.grid()[1]) * (p - q)
        ) ** 2
        return math.sqrt(min(max(seen, min(errors)), max(errors)))

    @property
    def _points(self) -> list[float]:
        low, high = self.interval.ends
        return [low + (high - low) * place / (self.count - 1) for place in range(self.count)]

    def on(self, values: Sequence[float]) -> RoundedResponse:
        """Return the mechanism of users whose values are some of these: if all are points, none is rounded.

        Parameters:
            values: the possible values.
        """
        import copy

        near = [min(abs(value - point) for point in self._points) for value in values]
        if max(near) > _CLOSE * float(self._range[1]):
            return self
        made = copy.copy(self)
        object.__setattr__(made, "rounds", False)
        return made

    @property
    def contribution_law(self) -> Cumulants:
        """The cumulants of `NumericMechanism`, with the third ones of the two ends."""
        import numpy as np

        (p, q), unit = self.drawn, Fraction(self.grid()[1])
        chances = [p, *[q] * (self.count - 1)]
        mean = sum((chance * j for j, chance in enumerate(chances)), Fraction(0))
        third = float(sum((chance * (j - mean) ** 3 for j, chance in enumerate(chances)), Fraction(0)) * unit**3)
        return super().contribution_law._replace(other_third=np.array([third]), held_third=np.array([-third]))

    # -- client and server ------------------------------------------------------------------------------

    def client_program(self) -> Program:
        """Return the client program; reports are numbers (n,): points of the public grid, also beyond lower and upper."""
        from ldp_budget.sdk.client_program import Program, float64, nearest, whole

        point: Any = ["ge", "moved", self.cell]
        for place in range(2, self.count):
            point = ["add", point, ["ge", "moved", place * self.cell]]
        steps: list[tuple[str, Any]] = [
            ("u", ["below", self.cell]),
            ("moved", ["add", "value", "u"]),
            ("point", point),
        ]
        if self.count == 2:
            steps += [("turned", ["bit", whole(ONE - self.keep)]), ("shown", ["xor", "point", "turned"])]
        else:
            steps += [
                ("kept", ["bit", whole(self.keep)]),
                ("other", ["below", self.count - 1]),
                ("shown", ["where", "kept", "point", ["add", "other", ["ge", "other", "point"]]]),
            ]
        low, high = self.interval.ends
        return Program(
            nearest(self.interval, self.last / (high - low), self.last), tuple(steps), float64("shown", *self.grid())
        )

    def points_of(self, reports: Any) -> Ints:
        """Return the points of reports. Raises `NotSupported` for anything that no client sends."""
        import numpy as np

        from ._interval_grid import read_floats

        rows = read_floats(reports, self.name)
        origin, step = self.grid()
        places = (rows - origin) / step
        points = np.rint(places)
        # Far from zero, doubles next to a point are no closer to it than _CLOSE.
        is_point = (np.abs(places - points) < _CLOSE) | (rows == origin + step * points)
        if not ((points >= 0) & (points < self.count) & is_point).all():  # also not a number
            raise NotSupported(f"reports of {self.name} must be its {self.count} points: got others")
        return points.astype(np.int64)

    def aggregate(self, reports: Any) -> SumAggregate:
        self.points_of(reports)
        return super().aggregate(reports)

    # -- verification -----------------------------------------------------------------------------------

    def _chances(self, value: float) -> list[Fraction]:
        from ldp_budget.sdk.interpreter import read

        part = Fraction(read(self.client_program(), value), self.cell)
        (p, q), low = self.drawn, min(int(part), self.count - 1)
        found = [q] * self.count
        found[low] += (p - q) * (1 - (part - low))
        if part > low:
            found[low + 1] += (p - q) * (part - low)
        return found

    def compare(self, first: float, second: float) -> Comparison:
        """Compare the points of two values."""
        return Comparison.rows(self._chances(first), self._chances(second))

    def outcomes(self, reports: Any, first: float, second: float) -> Ints:
        return self.points_of(reports)


_CLOSE = 1e-6


def _squares(count: int) -> float:
    """Return the sum of the squares of `count` equally spaced points of [-1, 1]."""
    return count * (count + 1) / (3 * (count - 1))


def _variance(count: int, drawn: tuple[Any, Any], at: Any) -> Any:
    """Return the variance of a report on [-1, 1]; `at` may be a fraction."""
    (p, q), cells = drawn, count - 1
    low = min(int((at + 1) * cells / 2), cells - 1)
    between = (2 * Fraction(low + side, cells) - 1 for side in (0, 1))
    return _spread(p - q, q * Fraction(count * (count + 1), 3 * cells), at, *between)


def _spread(gap: Any, changed: Any, at: Any, below: Any, above: Any) -> Any:
    """Return the variance at a number between two points; `changed` is q times the sum of the squares of all points."""
    return (changed + gap * (at * at + (at - below) * (above - at))) / gap**2 - at * at


def _variances(count: int, odds: float) -> dict[float, float]:
    """Return the variance of a report at each point of [-1, 1], and where it is largest between two."""
    keep, other = odds / (odds + count - 1), 1 / (odds + count - 1)
    gap, cells = keep - other, count - 1
    ends = [2 * k / cells - 1 for k in range(count)]
    peaks = [min(max((a + b) / 2 / gap, a), b) for a, b in pairwise(ends)]
    total = _squares(count)
    found = {}
    for place, at in [*((min(k, cells - 1), end) for k, end in enumerate(ends)), *enumerate(peaks)]:
        found[at] = _spread(gap, other * total, at, ends[place], ends[place + 1])
    return found
