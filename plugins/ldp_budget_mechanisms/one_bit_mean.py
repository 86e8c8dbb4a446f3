"""1BitMean: one bit for a number in [0, m] (Ding, Kulkarni and Yekhanin 2017).

A number in [lower, upper] is that above lower, with m = upper - lower.

    P[b = 1] = 1/(e^ε+1) + (x/m)·(e^ε-1)/(e^ε+1),      mean = (m/n) Σ (b(e^ε+1) - 1)/(e^ε-1).

The draw is linear in the value's place on a public grid, in integers. So the loss between any two values is at most
that between 0 and m, and the estimate has no bias.

With rounding, a value x moves to a multiple of S: up to the next one if x + α reaches it, for a user's own α uniform
on [0, S) (α-point rounding, equation (4)). So the mean over α is x again. The bit of every multiple is drawn once,
and a report repeats it, flipped with probability G. For neighbors whose multiples are *equal in the same places*, for
every α (`are_neighbours`), t reports of one multiple together lose

    ε(t) = ln( (e^ε rᵗ + 1) / (e^ε + rᵗ) ),      r = (1-G)/G,

never more than ε. It is concave in t, so t reports lose at most t·ε(1) as well. For other neighbors neither holds
(for ε = 1, G = 0.2 four reports can lose 2.395, and 4·ε(1) = 2.278). The offset α is secret and decides which values
share a multiple: with S = 1 the values 0.2 and 0.3 share a cell for some α for which 0.2 and 0.9 do not. For any two
histories, each report is randomized response at ln r for any bits. So T reports lose at most T·ln r. Without a flip a
change is visible with certainty, and the loss is infinite.
"""

from __future__ import annotations

import functools
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees import (
    SAME_CHANGE_PATTERN,
    Guarantee,
    Memoised,
    Pure,
    SymmetricPair,
    Unbounded,
    are_equal_in_same_places,
)
from ldp_budget.guarantees.fixed_point import DOWN, UP, exp_down, exp_up, float_above, float_below, float_up, ln_up
from ldp_budget.sampling import ONE, threshold
from ldp_budget.sdk.channels import Comparison, Factor
from ldp_budget.sdk.numeric_mechanism import NumericMechanism
from ldp_budget.sdk.parameters import Real, flag, optional_real, real

from ._citations import CASE_STUDY
from ._rappor_loss import ones_shown
from .additive_noise import LARGEST_EPSILON, LEAST_EPSILON
from .randomized_response import count_ones

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.estimates import BitMeanEstimate, SumAggregate

    from ._interval_grid import CellGrid

_FINE = 2**30
"""Cells of the grid without rounding, and the most with it: even at the least ε a cell is worth many 2**-64."""

_NEIGHBOURS = "neighbours whose rounded values are equal in the same places"

_PARTS_BITS = 20
"""α is a multiple of S / 2**20, and so is every value before it is rounded."""

_CURVE_POINTS = 1000
_CURVE_UNIT = Decimal("1e-12")


class _End(Real):
    """An end of the range; `maximum` replaces an end that was not declared."""

    def __init__(self, help: str, otherwise: Callable[[Any], Decimal]) -> None:
        super().__init__(help, optional=True)
        self._otherwise = otherwise

    def __get__(self, instance: Any, owner: type) -> Any:
        value = super().__get__(instance, owner)
        return self._otherwise(instance) if value is None else value


class OneBitMean(NumericMechanism):
    """One bit whose probability is linear in the value; with rounding, a memoised one."""

    name = "one-bit-mean"
    summary = "one bit for a number in [lower, upper], for estimating a mean; with rounding, memoized"
    source = (
        f"Ding, Kulkarni and Yekhanin, Collecting Telemetry Data Privately, NIPS 2017; {CASE_STUDY}, section 3.3.1"
    )

    epsilon = real(
        "privacy loss of one report, or of one memoized bit", at_least=LEAST_EPSILON, at_most=LARGEST_EPSILON
    )
    lower = _End("smallest value a user can have", lambda mechanism: Decimal(0))
    upper = _End("largest value a user can have", lambda mechanism: mechanism.maximum)
    maximum = optional_real("in place of lower = 0 and upper", at_least=1e-100, at_most=1e100)
    rounding = optional_real("memoize a bit for each multiple of this above lower, and round values to them", above=0)
    flip = real("probability that a report turns the memoized bit over", at_least=0, below=0.5, default=0)
    any_inputs = flag("promise memoized reports for any two inputs, also ones that repeat in other places")

    @classmethod
    def for_range(cls, epsilon: Any, lower: Any, upper: Any) -> Self:
        """Return a mechanism with fresh bits."""
        if NumericMechanism.fields["lower"].parse(lower) == 0:
            return cls.calibrate(epsilon=epsilon, maximum=upper)
        return cls.calibrate(epsilon=epsilon, lower=lower, upper=upper)

    def check(self) -> None:
        self._check_ends()
        super().check()
        if 2 * self._flip >= ONE:
            raise InvalidParameter("flip", "a number that differs from 1/2 by more than 2**-64", self.flip)
        if self.rounding is None:
            if self.flip:
                raise InvalidParameter(
                    "flip", "0 without rounding, because only memoized bits are flipped", self.flip
                )
            return
        steps = self._width / Fraction(self.rounding)
        if steps.denominator != 1 or steps > _FINE:
            width = "upper - lower" if self.maximum is None else "maximum"
            expected = f"{width} = {UP.subtract(self.interval.upper, self.interval.lower)} divided by a whole number"
            raise InvalidParameter("rounding", f"{expected} from 1 to {_FINE}", self.rounding)

    def _check_ends(self) -> None:
        """Raise `InvalidParameter` unless there is a `maximum`, or both `lower` and `upper`."""
        declared = self.__dict__["_values"]
        ends = [name for name in ("lower", "upper") if name in declared]
        if self.maximum is not None and ends:
            raise InvalidParameter("maximum", f"left out if {ends[0]} is given", self.maximum)
        if self.maximum is None and not ends:
            raise InvalidParameter("maximum", self.fields["maximum"].expected, hint="Or give lower and upper.")
        if len(ends) == 1:
            missing = "upper" if ends == ["lower"] else "lower"
            raise InvalidParameter(missing, "a finite number", hint="Give both lower and upper.")

    @functools.cached_property
    def _width(self) -> Fraction:
        """upper - lower, exactly."""
        return Fraction(self.interval.upper) - Fraction(self.interval.lower)

    # -- drawing ----------------------------------------------------------------------------------------

    @functools.cached_property
    def cells(self) -> int:
        """The number of equal steps from `lower` to `upper`."""
        return _FINE if self.rounding is None else int(self._width / Fraction(self.rounding))

    @functools.cached_property
    def _least(self) -> Decimal:
        """1/(e^ε+1), the probability of a one for the value `lower`, rounded up."""
        return UP.divide(Decimal(1), DOWN.add(exp_down(self.epsilon), Decimal(1)))

    @functools.cached_property
    def thresholds(self) -> tuple[int, int]:
        """The threshold of a one for the value `lower`, and the increase for every cell, in units of 2**-64.

        Both are rounded to the safe side, so the odds of the ends are at most e^ε; in between they are smaller.
        """
        least = threshold(self._least, up=True)
        return least, (ONE - 2 * least) // self.cells

    @functools.cached_property
    def _flip(self) -> int:
        """G in units of 2**-64."""
        return threshold(self.flip, up=True)

    @functools.cached_property
    def ends(self) -> tuple[Fraction, Fraction]:
        """The probability that a report is 1 for the values `lower` and `upper`, exactly as it is drawn."""
        least, growth = self.thresholds
        flip = Fraction(self._flip, ONE)
        low, high = (flip + (1 - 2 * flip) * Fraction(t, ONE) for t in (least, least + growth * self.cells))
        return low, high

    @property
    def parameters(self) -> dict[str, float]:
        """p and q: the probabilities of a one for the values `upper` and `lower`, before the flip."""
        most = DOWN.subtract(Decimal(1), self._least)
        return {"p": float_below(most), "q": float_above(self._least), "flip": float(self.flip)}

    # -- privacy loss -----------------------------------------------------------------------------------

    @property
    def guarantee(self) -> Guarantee:
        if self.rounding is None:
            return SymmetricPair(self.epsilon, Decimal(1))
        if not self.any_inputs:
            return Memoised(self._curve, self.epsilon, self.cells + 1, SAME_CHANGE_PATTERN)
        return Pure(self._flip_loss) if self.flip else Unbounded()

    @functools.cached_property
    def _curve(self) -> tuple[Decimal, ...]:
        """ε(1), ε(2), … until it is ε; cut off if it takes too long, and charged ε from there on."""
        if not self.flip:
            return (self.epsilon,)
        points: list[Decimal] = []
        while len(points) < _CURVE_POINTS and self.epsilon not in points[-1:]:
            loss = repeated_loss(self.epsilon, self.flip, len(points) + 1)
            points.append(min(loss.quantize(_CURVE_UNIT, rounding=ROUND_CEILING, context=UP), self.epsilon))
        return tuple(points)

    @property
    def _flip_loss(self) -> Decimal:
        """ln r = ln((1-G)/G), rounded up: the loss of a report if the memoised bits are known."""
        return ln_up(_flip_odds(self.flip))

    @property
    def notes(self) -> tuple[str, ...]:
        if self.rounding is None:
            return ()
        if not self.flip:
            return (
                "Without a flip, two reports that differ show for certain that the value changed: the loss is "
                f"bounded for {_NEIGHBOURS}, and unbounded for others.",
            )
        one, each = float_up(self._curve[0]), float_up(self._flip_loss)
        return (
            f"One report loses {one:.6g}, and reports of one memoized bit together never more than {self.epsilon}, "
            f"for {_NEIGHBOURS}.",
            f"For any two inputs {one:.6g} a report is no bound; T reports lose at most T·ln((1-G)/G), "
            f"which is {each:.6g} a report.",
        )

    def are_neighbours(self, first: Sequence[float], second: Sequence[float]) -> bool:
        """Return True if two histories of values have cells that are equal in the same places, for every offset α.

        The offset decides which values share a cell, so it also decides which steps are changes.

        Parameters:
            first: a history, of numbers as `randomize` takes them.
            second: another one.

        Raises:
            InvalidParameter: a number is out of range.
        """
        parts = 1 << _PARTS_BITS
        points = [self._cell_grid(parts).points(list(history)).tolist() for history in (first, second)]
        # With growing α a value moves into the next cell once, when its place within the cell plus α makes a whole
        # cell.
        offsets = {0, *(-point % parts for history in points for point in history)}
        return all(
            are_equal_in_same_places(*([(point + offset) >> _PARTS_BITS for point in history] for history in points))
            for offset in offsets
        )

    # -- verification -----------------------------------------------------------------------------------

    def critical_inputs(self) -> Sequence[float]:
        """Return the ends, which are furthest apart because the odds are linear, and a cell close to the middle."""
        lower, upper = self.interval.ends
        middle = Fraction(self.interval.lower) + self._width / self.cells * (self.cells // 2)
        return lower, float(middle), upper

    def compare(self, first: float, second: float) -> Comparison:
        """Compare two values; with rounding, two multiples of it, which no α moves."""
        low, high = self.ends
        return Comparison.of(Factor.bit(self._shown(first), self._shown(second), (1 - high, low)))

    def compare_repeated(self, first: float, second: float, reports: int | None) -> Comparison:
        """Compare the number of ones among the reports; for endless reports, the memoised bit itself."""
        if self.rounding is None:
            return super().compare_repeated(first, second, reports)
        ones = self._drawn_one(first), self._drawn_one(second)
        if reports is None:
            return Comparison.of(Factor.bit(*ones))
        flip = Fraction(self._flip, ONE)
        return Comparison.of(Factor.of(*(ones_shown(one, 1 - flip, flip, reports) for one in ones)))

    def outcomes(self, reports: Any, first: float, second: float) -> Any:
        return reports

    def _drawn_one(self, value: float) -> Fraction:
        """Return the probability that the bit of `value` is one, as it is drawn."""
        least, growth = self.thresholds
        return Fraction(least + self._cell_grid().point(value) * growth, ONE)

    def _shown(self, value: float) -> Fraction:
        """Return the probability that a report of `value` is one."""
        flip = Fraction(self._flip, ONE)
        return flip + (1 - 2 * flip) * self._drawn_one(value)

    # -- errors -----------------------------------------------------------------------------------------

    def grid(self) -> tuple[float, float]:
        """Return the contribution of a 0, and the further one of a 1, to an estimate of the mean."""
        low, high = self.ends
        step = self._width / (high - low)
        return float(Fraction(self.interval.lower) - low * step), float(step)

    def error_at(self, value: float) -> tuple[float, float]:
        low, high = self.ends
        share, gap = (value - self.interval.ends[0]) / float(self._width), float(high - low)
        # A no is also computed from its own end: at a large ε nothing is left of 1 less the odds of a yes.
        yes, no = float(low) + gap * share, float(1 - high) + gap * (1 - share)
        return 0.0, self.grid()[1] ** 2 * yes * no

    def report_std(self, total: SumAggregate) -> float:
        """Return the standard deviation of one report of a random user; for the given users, an upper bound.

        One bit from each user cannot show how far apart their values are. If all values are the same, it is exact.
        """
        low, high = self.ends
        yes = min(max(total.total / total.reports, float(low)), float(high))
        no = min(max((total.reports - total.total) / total.reports, float(1 - high)), float(1 - low))
        return self.grid()[1] * float((yes * no) ** 0.5)

    def estimate(self, reports: Any) -> BitMeanEstimate:
        from ldp_budget.sdk.estimates import BitMeanEstimate

        total = self.total(reports)
        plain = super().estimate(total)
        least, most = map(float, self.ends)
        lower, upper = self.interval.ends
        bits = {"ones": total.total, "least": least, "most": most, "lower": lower, "upper": upper}
        return BitMeanEstimate(plain.reports, plain.mean, plain.std_error, ends=(lower, upper), **bits)

    # -- client and server ------------------------------------------------------------------------------

    def client_program(self) -> Program:
        """Return the client program; reports are bits, uint8 (n,).

        With rounding they need `secrets`; only the flip is drawn from `rng`.
        """
        from ldp_budget.sdk.client_program import Program, nearest, uint, whole

        least, growth = map(whole, self.thresholds)
        parts = 1 if self.rounding is None else 1 << _PARTS_BITS
        given = nearest(self.interval, self._cell_grid(parts).per_unit, self.cells * parts)
        if self.rounding is None:
            fresh: list[Any] = ["bit_at", ["add", least, ["mul", "value", growth]]]
            return Program(given, (("report", fresh),), uint("report", 1))
        one: list[Any] = ["add", least, ["mul", "cell", growth]]
        steps: tuple[tuple[str, Any], ...] = (
            ("alpha", ["kept_top", "alpha", 0, _PARTS_BITS]),
            ("cell", ["shr", ["add", "value", "alpha"], _PARTS_BITS]),
            ("kept", ["kept_bits", "bit", "cell", one, 1]),
            ("flip", ["bit", whole(self._flip)]),
            ("report", ["xor", ["at", "kept", 0], "flip"]),
        )
        return Program(given, steps, uint("report", 1), memo="cell")

    @property
    def repeats(self) -> bool:
        return self.rounding is not None

    def _cell_grid(self, parts: int = 1) -> CellGrid:
        """Return the public grid, or one with that many parts of each cell."""
        from ._interval_grid import CellGrid

        return CellGrid(self.interval, self.cells * parts)

    def contributions(self, reports: Any) -> NDArray[np.float64]:
        origin, step = self.grid()
        return origin + step * super().contributions(reports)

    def aggregate(self, reports: Any) -> SumAggregate:
        from ldp_budget.sdk.estimates import SumAggregate

        return SumAggregate(self.fingerprint, *count_ones(reports))


def _flip_odds(flip: Decimal) -> Decimal:
    """Return (1-G)/G, rounded up."""
    return UP.divide(UP.subtract(Decimal(1), flip), flip)


def repeated_loss(epsilon: Decimal, flip: Decimal, reports: int) -> Decimal:
    """Return ε(t) for t = `reports` reports of one memoized bit, 0 < flip < 1/2; rounded up.

    The t reports that distinguish two values best are all the same: t ones have, from the two ends, the odds
    (p(1-G)ᵗ + qGᵗ) : (q(1-G)ᵗ + pGᵗ). That grows with e^ε and with rᵗ, so upper bounds of these bound it.
    """
    odds, power = exp_up(epsilon), UP.power(_flip_odds(flip), reports).next_plus(UP)
    above, below = UP.add(UP.multiply(odds, power), Decimal(1)), DOWN.add(odds, power)
    return ln_up(UP.divide(above, below))
