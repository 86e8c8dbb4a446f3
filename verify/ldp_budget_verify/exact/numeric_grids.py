"""Proofs for clients that send a number as a cell of a public grid: bounds over all values.

The bounds are derived from the program's steps. Inputs are the points 0..last between the cells. Where the corners of
regions cover every pair (`ldp_budget_verify.law.corners`), these are checked. Three kinds of steps have bounds of their
own:

- Staircase noise. The noise n of a point falls into periods of C cells: k = n, or -1-n on the left, is i·C + j. Its
  probability is P(i)·s(j)/2, where s is one number for j < R, and another beyond. P(i) is made of binary digits, so
  P(i) divided by P(i+1) depends on the number of ones at the end of i. Two points at most C apart see a report at k
  and k' at most C apart, so in one period, or in neighboring periods with j' ≤ j. This leaves a few ratios.
  For the variation, let f be the probability of k, and g(k) the smallest f up to k. A noise that falls to both
  sides, as g does, distinguishes two points d apart by the mass of its d middle cells, which grows with d. g is below
  f only in upper steps, where a period begins higher by a share η than the one before it ends. So they differ by at
  most ξ = η times the probability of an upper step after the first period. With W the mass of the middle cells, the
  variation is at most W + ξ.
- Weights w_d that fall with the distance d, cut off at the ends, from a table S·q^d in whole numbers. They are
  compared with S·q^d itself, which is the continuous report f(y | x) ~ q^|y-x| rounded to the cell. There the two
  ends are the worst pair at every λ: f(y | x)/f(y | x') falls in y for x < x'. So the best tests are y ≤ t, which
  distinguish x = 0 and x' = G best. Their ratio is q^-(G-1), and H(λ) ≤ (1 - √(λq^G))²/(1 - q^G).
- A window of `high` cells around the point, among `low` ones, cut off at the ends. For windows of a and b cells,
  those with the least in common are the worst, because moving a cell out of both increases the excess x - λy. Let
  N = low·C + (high - low)·a, and M the same of b. Then H(λ) = max(0, V, 1 - λ + λV'), with V' of the points swapped
  and 1/λ. V = a·high/N - λ·a·low/M if a + b ≤ C, else V = (C-b)(high/N - λ·low/M). The first grows with b, the second
  falls in a. On each remaining edge V is concave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import FinitePair, Pure, SymmetricPair, Unbounded
from ldp_budget.sampling import ONE
from ldp_budget.sdk.channels import Comparison
from ldp_budget.sdk.client_program import whole
from ldp_budget_verify.law.corners import Numbers

from .dominance import HOLDS, UNPROVEN, Finding, check, check_largest, corners, variation_of, worst

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldp_budget.guarantees import Guarantee
    from ldp_budget.sdk.client_program import Program

_WIDE = Context(prec=100, Emax=10**9, Emin=-(10**9))
_MOST_CELLS = 1 << 16
"""The most cells of a table of weights."""
_GIVEN_AWAY = Fraction(1, 10**60)
"""Far more than the rounding error of a power or a root of a hundred digits."""


@dataclass(frozen=True)
class Bound:
    """Bounds over all pairs of inputs: no ratio P/Q is above `ratio`, and no H(λ) above `excess`(λ), for λ ≥ 1."""

    ratio: Fraction
    excess: Callable[[Fraction], Fraction]

    def divergence(self, slope: Fraction) -> Fraction:
        """Return the bound of H(λ) for every λ > 0."""
        if slope < 1:
            return 1 - slope + slope * self.divergence(1 / slope)
        return Fraction(0) if slope >= self.ratio else self.excess(slope)


def check_grid(guarantee: Guarantee, program: Program) -> Finding | None:
    """Check the guarantee of a program that sends a cell; None if its steps are not of a supported kind."""
    if not isinstance(guarantee, Pure | SymmetricPair | FinitePair | Unbounded):
        return None
    found = _bound_of(program)
    if found is None:
        try:
            return check_corners(guarantee, program) if program.input["kind"] == "number" else None
        except NotSupported:
            return None
    if isinstance(guarantee, Unbounded) or _is_within(guarantee, found):
        return Finding(HOLDS)
    return Finding(UNPROVEN, "a bound of its law over all values leaves the promise open")


def check_corners(guarantee: Guarantee, program: Program) -> Finding | None:
    """Check all pairs of answers by those at the corners of their regions; None if these do not cover all pairs.

    Raises `NotSupported` if the law of the program is not derived.
    """
    law = Numbers(program)
    if program.memo or not law.every_pair:
        return None
    comparisons = [Comparison.rows(*zip(*pair, strict=True)) for pair in law.pairs()]
    return worst(
        [Finding(HOLDS), *(check(guarantee, side) for each in comparisons for side in (each, each.swapped()))]
    )


def _is_within(guarantee: Pure | SymmetricPair | FinitePair, bound: Bound) -> bool:
    if isinstance(guarantee, FinitePair):
        return all(bound.divergence(kink) <= most for kink, most in corners(guarantee) if kink)
    if check_largest(guarantee.bound, bound.ratio).verdict != HOLDS:
        return False
    # A pair with τ = 1 is the worst of all within ±ε.
    if isinstance(guarantee, Pure) or guarantee.tau == 1:
        return True
    return bound.divergence(Fraction(1)) <= variation_of(guarantee)[0]


def _bound_of(program: Program) -> Bound | None:
    given, sent = program.input, {part[1] for part in program.report["parts"]}
    if given["kind"] != "number" or program.memo or sent != {"cell"}:
        return None
    last, steps = int(given["last"]), dict[str, Any](program.steps)
    for read in (_staircase_of, _weights_of, _window_of):
        try:
            found = read(steps, dict(program.tables), last)
        except (ArithmeticError, IndexError, KeyError, TypeError, ValueError):
            continue  # another kind of program
        if found is None or found.drawing() != program.steps:
            continue
        return found.bound(program.table_values)
    return None


# -- staircase noise -------------------------------------------------------------------------------------------------


class _Staircase(NamedTuple):
    digits: tuple[int, ...]
    above: int
    upper: int
    reach: int
    cells: int
    last: int

    def drawing(self) -> tuple[tuple[str, Any], ...]:
        count: list[Any] = ["add", ["shl", "periods", len(self.digits)], ["join", "digits"]]
        reach, cells = self.reach, self.cells
        step: list[Any] = ["where", "is_upper", "upper", ["add", reach, "lower"]]
        return (
            ("periods", ["geometric", whole(self.above)]),
            ("digits", ["bits_each", ["list", *map(whole, self.digits)]]),
            ("upper", ["below", max(1, reach)]),
            ("lower", ["below", max(1, cells - reach)]),
            ("is_upper", ["bit", whole(self.upper)]),
            ("left", ["bit", whole(ONE // 2)]),
            ("distance", ["add", ["mul", count, cells], step]),
            ("cell", ["add", "value", ["where", "left", ["sub", -1, "distance"], "distance"]]),
        )

    def bound(self, tables: Any) -> Bound | None:
        steps = self._steps()
        if steps is None or not all(0 < t < ONE for t in (*self.digits, self.above)):
            return None
        if not 0 < self.last <= self.cells:
            return None
        falls = list(self._falls())
        crossings = [fall * later / earlier for fall in falls for earlier, later in self._across(steps)]
        within = steps[0] / steps[-1]
        ratio = max(each for found in (*falls, *crossings, within) for each in (found, 1 / found))
        variation = Fraction(1)
        if min(falls) >= 1 and within >= 1:
            rise = max([Fraction(0), *(1 / crossing - 1 for crossing in crossings)])
            later = (1 - self._first_period()) * Fraction(self.upper, ONE)
            variation = min(variation, self._middle(steps) + rise * later)
        return Bound(ratio, lambda slope: variation)

    def _steps(self) -> list[Fraction] | None:
        """Return the probability of a place in the upper and in the lower step; of one step if there is no other."""
        upper = Fraction(self.upper, ONE)
        if 0 < self.reach < self.cells and 0 < upper < 1:
            return [upper / self.reach, (1 - upper) / (self.cells - self.reach)]
        if (self.reach == 0 and upper == 0) or (self.reach == self.cells and upper == 1):
            return [Fraction(1, self.cells)]
        return None

    @staticmethod
    def _across(steps: list[Fraction]) -> Iterator[tuple[Fraction, Fraction]]:
        """Yield the steps of a place, and of an earlier or equal one in the next period, where they differ."""
        if len(steps) == 2:
            yield steps[0], steps[1]

    def _falls(self) -> Iterator[Fraction]:
        """Yield P(i)/P(i+1), by the number of ones at the end of i."""
        ones = Fraction(1)
        for digit in self.digits:
            yield Fraction(ONE - digit, digit) * ones
            ones *= Fraction(digit, ONE - digit)
        yield Fraction(ONE, self.above) * ones

    def _middle(self, steps: list[Fraction]) -> Fraction:
        """Return the mass of the `last` middle cells, or of one more; all of them are in the first period."""
        half = (self.last + 1) // 2
        inner = min(half, self.reach) if len(steps) == 2 else half
        return self._first_period() * (inner * steps[0] + (half - inner) * steps[-1])

    def _first_period(self) -> Fraction:
        """Return P(0)."""
        return prod((Fraction(ONE - t, ONE) for t in (*self.digits, self.above)), start=Fraction(1))


def _staircase_of(steps: dict[str, Any], tables: dict[str, Any], last: int) -> _Staircase | None:
    if tables:
        return None
    _, (_, *digits) = steps["digits"]
    _, (_, _, cells), (_, _, _, (_, reach, _)) = steps["distance"]
    above, upper = int(steps["periods"][1]), int(steps["is_upper"][1])
    return _Staircase(tuple(map(int, digits)), above, upper, int(reach), int(cells), last)


# -- weights that fall geometrically ---------------------------------------------------------------------------------


class _Weights(NamedTuple):
    first: Decimal
    ratio: Decimal
    digits: int
    floor: int
    cells: int

    def drawing(self) -> tuple[tuple[str, Any], ...]:
        right: list[Any] = ["at", "below", ["sub", self.cells, "value"]]
        place: list[Any] = ["where", "is_left", "drawn", ["sub", "drawn", "left"]]
        left: list[Any] = ["sub", ["sub", "value", 1], "distance"]
        return (
            ("left", ["at", "below", "value"]),
            ("drawn", ["below", ["add", "left", right]]),
            ("is_left", ["lt", "drawn", "left"]),
            ("distance", ["sub", ["rank", "below", place], 1]),
            ("cell", ["where", "is_left", left, ["add", "value", "distance"]]),
        )

    def bound(self, tables: Any) -> Bound | None:
        cells, floor = self.cells, self.floor
        totals: list[int] = tables["below"]
        first, ratio = Fraction(self.first), Fraction(self.ratio)
        # Rounding changes each product by less than this share; all of them together by less than one weight.
        rounded = first * cells * Fraction(10) ** (1 - self.digits)
        if not (2 <= cells <= _MOST_CELLS and 0 < ratio < 1 and floor >= 0 and rounded <= 1):
            return None
        decay = Fraction(_WIDE.power(self.ratio, cells))
        low, high = decay * (1 - _GIVEN_AWAY), decay * (1 + _GIVEN_AWAY)
        total = first * (1 - high) / (1 - ratio)
        least, most = total - 2 * cells, total + cells * floor
        last = totals[-1] - totals[-2]
        if least <= 0 or last < 1 or high >= 1:
            return None
        sums = [totals[point] + totals[cells - point] for point in range(cells + 1)]
        # w_0 is the largest weight and the last one the smallest. Without the floor, compare with S·q^d.
        odds = Fraction(totals[1] * max(sums), last * min(sums))
        if not floor and last > 2:
            odds = min(odds, ratio / low / (1 - Fraction(2, last)) ** 2)

        def excess(slope: Fraction) -> Fraction:
            inner = slope * least / most * low
            root = Fraction(_WIDE.sqrt(_WIDE.divide(inner.numerator, inner.denominator))) * (1 - _GIVEN_AWAY)
            ends = max(Fraction(0), 1 - root) ** 2 / (1 - high)
            return total / least * ends + cells * (floor / least + 2 * slope / most)

        return Bound(odds, excess)


def _weights_of(steps: dict[str, Any], tables: dict[str, Any], last: int) -> _Weights | None:
    table = tables.pop("below")
    if tables or table["count"] != last:
        return None
    return _Weights(Decimal(table["first"]), Decimal(table["ratio"]), table["digits"], int(table["floor"]), last)


# -- a window --------------------------------------------------------------------------------------------------------


class _Window(NamedTuple):
    reach: int
    high: int
    low: int
    cells: int

    def drawing(self) -> tuple[tuple[str, Any], ...]:
        # Written out here, and not taken from the mechanism: its program is compared with this one.
        reach, cells, high, low = self.reach, self.cells, whole(self.high), whole(self.low)
        return (
            ("first", ["max", ["sub", "value", reach], 0]),
            ("inside", ["sub", ["min", ["add", "value", reach], cells], "first"]),
            ("window", ["mul", high, "inside"]),
            ("drawn", ["below", ["add", "window", ["mul", low, ["sub", cells, "inside"]]]]),
            ("beside", ["div", ["sub", "drawn", "window"], low]),
            ("other", ["add", "beside", ["where", ["ge", "beside", "first"], "inside", 0]]),
            ("own", ["add", "first", ["div", "drawn", high]]),
            ("cell", ["where", ["lt", "drawn", "window"], "own", "other"]),
        )

    def bound(self, tables: Any) -> Bound | None:
        reach, cells, high, low = self.reach, self.cells, self.high, self.low
        if not (high >= low >= 1 and reach >= 0 and cells >= 1):
            return None
        if not 0 < reach < cells:  # every window is empty, or all of the range
            return Bound(Fraction(1), lambda slope: Fraction(0))
        narrowest, widest = self._total(reach), self._total(min(2 * reach, cells))
        parted = self._total(min(2 * reach, cells - 1))
        ratio = max(Fraction(high * parted, low * narrowest), Fraction(widest, narrowest))
        return Bound(ratio, self._excess)

    def _total(self, inside: int) -> int:
        return self.low * self.cells + (self.high - self.low) * inside

    def _excess(self, slope: Fraction) -> Fraction:
        return max(Fraction(0), self._largest(slope), 1 - slope + slope * self._largest(1 / slope))

    def _largest(self, slope: Fraction) -> Fraction:
        """Return V on the edges where it may be the largest."""
        reach, cells = self.reach, self.cells
        widest = min(2 * reach, cells)

        def apart(a: int, b: int) -> Fraction:
            lost = Fraction(self.high, self._total(a)) - slope * Fraction(self.low, self._total(b))
            return (a - max(0, a + b - cells)) * lost

        edges = (
            (lambda a: apart(a, widest), reach, min(widest, cells - widest)),
            (lambda a: apart(a, cells - a), max(reach, cells - widest), min(widest, cells - reach)),
            (lambda b: apart(reach, b), max(reach, cells - reach), widest),
        )
        return max((_highest(value, low, high) for value, low, high in edges if low <= high), default=Fraction(0))


def _window_of(steps: dict[str, Any], tables: dict[str, Any], last: int) -> _Window | None:
    if tables:
        return None
    _, (_, _, reach), _ = steps["first"]
    return _Window(int(reach), int(steps["window"][1]), int(steps["beside"][2]), last)


def _highest(value: Callable[[int], Fraction], low: int, high: int) -> Fraction:
    """Return the largest value of a concave function of the whole numbers from `low` to `high`."""
    while low < high:
        middle = (low + high) // 2
        if value(middle) < value(middle + 1):
            low = middle + 1
        else:
            high = middle
    return value(low)
