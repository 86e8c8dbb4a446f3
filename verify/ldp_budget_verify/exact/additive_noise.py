"""Exact checks of client programs that add a Laplace or normal deviate to a number.

A program sends the whole part of 2**k times a Laplace or normal deviate, plus the answer as a whole number from 0 to
`last`. The answer may as well be added before the whole part is taken. So a report is a function of the deviate plus
the answer in units of 2**-k. No two answers are easier to distinguish than by Laplace or Gaussian noise at the
distance last/2**k, a fraction. No density is needed. δ at a claimed ε is computed in decimals with as many digits as
its series loses.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from ldp_budget.guarantees import Gaussian, Laplace, Pure, SymmetricPair, Unbounded

from .dominance import HOLDS, UNPROVEN, VIOLATED, Finding

if TYPE_CHECKING:
    from ldp_budget.guarantees import Guarantee
    from ldp_budget.sdk.client_program import Program


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
