"""Exact checks of client programs that take a number: additive noise, and laws for ranges of answers.

Additive noise: a program sends the whole part of 2**k times a Laplace or normal deviate, plus the answer as a whole
number from 0 to `last`. The answer may as well be added before the whole part is taken. So a report is a function of
the deviate plus the answer in units of 2**-k. No two answers are easier to distinguish than by Laplace or Gaussian
noise at the distance last/2**k, a fraction. No density is needed. δ at a claimed ε is computed in decimals with as
many digits as its series loses.

Ranges: the law of a client program is computed for a whole range of answers at once. A number that depends on the
answer is then a `Range`, from its lowest to its highest value. A comparison that holds only for a part of the range
raises `Undecided`, and the range is halved. In the end every answer is in some range, so a bound over the ranges is a
bound over all answers. A step that is monotone in the answer needs few ranges, for any number of answers. An answer
that is treated differently from its neighbors ends in a range of its own.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import Gaussian, Laplace, Pure, SymmetricPair, Unbounded
from ldp_budget.sdk.law.all_outcomes import law_of_numerators

from .dominance import HOLDS, UNPROVEN, VIOLATED, Finding

if TYPE_CHECKING:
    from ldp_budget.guarantees import Guarantee
    from ldp_budget.sdk.client_program import Program


# -- additive noise --------------------------------------------------------------------------------------------------


_DIGITS = 60
_SHORT = Context(prec=_DIGITS, rounding=ROUND_CEILING, Emax=10**9, Emin=-(10**9))
_ABOVE = Decimal(f"1.{'0' * 44}1")
_FURTHEST = 60
"""The most standard deviations up to which a normal tail is computed."""


def check_noise(guarantee: Guarantee, program: Program) -> Finding | None:
    """Check that the noise that a program adds keeps the guarantee; None for other programs."""
    found = _distance(program)
    if found is None:
        return None
    kind, distance = found
    if isinstance(guarantee, Unbounded):
        return Finding(HOLDS)
    if kind == "laplace":
        return _check_laplace(guarantee, distance)
    return _check_normal(guarantee, distance)


def _distance(program: Program) -> tuple[str, Fraction] | None:
    """Return the kind of noise, and the largest distance of answers in units of it."""
    if program.input["kind"] != "number" or program.memo or len(program.steps) != 2 or program.tables:
        return None
    (noise, drawn), (sent, added) = program.steps
    if not isinstance(drawn, list) or drawn[0] not in ("laplace", "normal") or not isinstance(drawn[1], int):
        return None
    if added not in (["add", "value", noise], ["add", noise, "value"]):
        return None
    if {part[1] for part in program.report["parts"]} != {sent}:
        return None
    return drawn[0], Fraction(int(program.input["last"]), 1 << drawn[1])


def _check_laplace(guarantee: Guarantee, distance: Fraction) -> Finding | None:
    pure = isinstance(guarantee, Pure) or (isinstance(guarantee, SymmetricPair) and guarantee.tau == 1)
    if not pure and not isinstance(guarantee, Laplace):
        return None
    assert isinstance(guarantee, Pure | SymmetricPair | Laplace)
    if distance <= Fraction(guarantee.bound):
        return Finding(HOLDS)
    return Finding(VIOLATED, f"the loss is {float(distance):.12g}, above the claim ε = {guarantee.bound}")


def _check_normal(guarantee: Guarantee, distance: Fraction) -> Finding | None:
    if not isinstance(guarantee, Gaussian):
        return None
    if distance > Fraction(guarantee.mu):
        return Finding(VIOLATED, f"μ is {float(distance):.12g}, above the claim μ = {guarantee.mu}")
    if guarantee.bound is None or guarantee.slack is None or not distance:
        return Finding(HOLDS)
    delta = delta_at(guarantee.bound, distance)
    claim = f"δ = {guarantee.slack} at ε = {guarantee.bound}"
    if delta is None:
        return Finding(UNPROVEN, f"of the claim {claim} the tail is too far out to be worked out")
    if delta <= guarantee.slack:
        return Finding(HOLDS)
    return Finding(UNPROVEN, f"the noise before it is cut to whole numbers has {delta:.12g}, above the claim {claim}")


def delta_at(epsilon: Decimal, mu: Fraction) -> Decimal | None:
    """Return δ = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ), rounded up; None if ε/μ is too large.

    The relative rounding error is less than 1e-40. Source: Balle and Wang 2018, Theorem 8.
    """
    if Fraction(epsilon) / mu + mu / 2 > _FURTHEST:
        return None
    # The series of Φ has terms up to e^(x²/2), δ may be as small as e^(-x²/2), and its two terms may nearly agree.
    context = Context(prec=2 * _DIGITS + int(_FURTHEST**2 / 2.3), Emax=10**9, Emin=-(10**9))
    size = context.divide(Decimal(mu.numerator), Decimal(mu.denominator))
    ratio, half = context.divide(epsilon, size), context.divide(size, Decimal(2))
    first = _normal_cdf(context, context.subtract(half, ratio))
    second = _normal_cdf(context, context.minus(context.add(half, ratio)))
    delta = context.subtract(first, context.multiply(context.exp(epsilon), second))
    return _SHORT.multiply(max(delta, Decimal(0)), _ABOVE)


def _normal_cdf(context: Context, x: Decimal) -> Decimal:
    """Return Φ(x) = 1/2 + φ(x) Σ x^(2k+1)/(1·3·…·(2k+1)), to nearly all digits of the context.

    All terms have one sign.
    """
    square = context.multiply(x, x)
    term = total = x
    odd = 1
    least = Decimal(1).scaleb(-context.prec)
    # Once 2k+1 > 2x², a term is less than half of the one before, and so is the rest of the series.
    while odd <= 2 * square or abs(term) > least:
        odd += 2
        term = context.divide(context.multiply(term, square), Decimal(odd))
        total = context.add(total, term)
    density = context.divide(
        context.exp(context.divide(square, Decimal(-2))), context.sqrt(context.multiply(2, _pi(context)))
    )
    return context.add(Decimal("0.5"), context.multiply(density, total))


def _pi(context: Context) -> Decimal:
    """Return π = 16 arctan(1/5) - 4 arctan(1/239) (Machin)."""

    def arctan_of_inverse(number: int) -> Decimal:
        power = total = context.divide(Decimal(1), Decimal(number))
        odd, sign, least = 1, 1, Decimal(1).scaleb(-context.prec - 2)
        while power > least:
            odd, sign = odd + 2, -sign
            power = context.divide(power, Decimal(number * number))
            total = context.add(total, context.divide(power, Decimal(sign * odd)))
        return total

    return context.subtract(context.multiply(16, arctan_of_inverse(5)), context.multiply(4, arctan_of_inverse(239)))


# -- ranges of answers -----------------------------------------------------------------------------------------------


MOST_RANGES = 2048
"""The most ranges that are tried, halves included."""


class Undecided(Exception):  # noqa: N818 - a reason to halve, no error
    """A condition holds only for a part of a range."""


class Range:
    """An unknown whole number between two bounds, both included."""

    __slots__ = ("high", "low")

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def __repr__(self) -> str:
        return f"<Range from {self.low} to {self.high}>"

    def __format__(self, how: str) -> str:
        raise Undecided  # a hash depends on the digits

    __str__ = __bool__ = __index__ = __hash__ = lambda self: _undecided()

    # -- arithmetic: the four corners, as each operation is monotone in either number ------------------------

    def __add__(self, other: Any) -> Range:
        low, high = _ends(other)
        return Range(self.low + low, self.high + high)

    __radd__ = __add__

    def __neg__(self) -> Range:
        return Range(-self.high, -self.low)

    def __sub__(self, other: Any) -> Range:
        low, high = _ends(other)
        return Range(self.low - high, self.high - low)

    def __rsub__(self, other: Any) -> Range:
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> Range:
        corners = [own * its for own in (self.low, self.high) for its in _ends(other)]
        return Range(min(corners), max(corners))

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> Range:
        if not isinstance(other, int) or other <= 0:
            raise Undecided
        return Range(self.low // other, self.high // other)

    def __rshift__(self, other: int) -> Range:
        if not isinstance(other, int) or other < 0:
            raise Undecided
        return Range(self.low >> other, self.high >> other)

    # -- comparisons: of the whole range, or undecided -------------------------------------------------------

    def __lt__(self, other: Any) -> bool:
        low, high = _ends(other)
        return _decided(self.high < low, self.low >= high)

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __gt__(self, other: Any) -> bool:
        low, high = _ends(other)
        return _decided(self.low > high, self.high <= low)

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __eq__(self, other: object) -> bool:
        low, high = _ends(other)
        return _decided(self.low == self.high == low == high, self.high < low or self.low > high)

    def __ne__(self, other: object) -> bool:
        return not self == other


def _undecided() -> Any:
    raise Undecided


def _ends(number: Any) -> tuple[int, int]:
    if isinstance(number, Range):
        return number.low, number.high
    if not isinstance(number, int):
        raise Undecided
    return number, number


def _decided(holds: bool, fails: bool) -> bool:
    if holds == fails:
        raise Undecided
    return holds


class Piece(NamedTuple):
    """The answers from `first` to `last`, with bounds of the probability of each of their reports."""

    first: int
    last: int
    law: dict[bytes, tuple[Fraction, Fraction]]

    @property
    def exact(self) -> bool:
        """True if all of these answers have one law."""
        return all(low == high for low, high in self.law.values())


def pieces_of(program: Program, answers: int, most: int) -> list[Piece]:
    """Return the laws of the answers 0..answers-1, range by range, with at most `most` runs of the program.

    Raises `NotSupported` if that is not enough, or the draws have infinitely many outcomes.
    """
    waiting, found, tried, left = [(0, answers - 1)], list[Piece](), 0, most
    while waiting:
        first, last = waiting.pop()
        tried += 1
        if tried > MOST_RANGES:
            raise NotSupported(f"the answers fall into more than {MOST_RANGES} ranges")
        try:
            piece = _piece(program, first, last, left)
        except (Undecided, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            if first == last:
                raise
            middle = (first + last) // 2
            waiting += [(middle + 1, last), (first, middle)]
            continue
        left -= len(piece.law)
        found.append(piece)
    return found


def _piece(program: Program, first: int, last: int, most: int) -> Piece:
    value: Any = first if first == last else Range(first, last)
    sums = law_of_numerators(program, [value], most)
    law = {}
    for row, parts in sums.items():
        ends = [(_ends(numerator), denominator) for denominator, numerator in parts.items()]
        low, high = (sum((Fraction(end[side], b) for end, b in ends), Fraction(0)) for side in (0, 1))
        law[row] = low, high
    return Piece(first, last, law)
