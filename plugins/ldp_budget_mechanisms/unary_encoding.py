"""Unary encoding: one bit for each possible answer, each bit randomized on its own (Wang, Blocki, Li and Jha 2017).

The answer v is the vector with a one at v and zeros elsewhere. A one stays one with probability p, a zero becomes
one with probability q. Two answers differ in two bits, so

    ε = ln( p(1-q) / ((1-p)q) ),

and the loss is ±ε with probability τ = p(1-q) + q(1-p) and nothing otherwise.
"""

from __future__ import annotations

import functools
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees import Guarantee, SymmetricPair
from ldp_budget.guarantees.fixed_point import DOWN, ONE, UP, exp_down, float_above, float_below, ln_up, threshold
from ldp_budget.sdk.frequency_oracle import MOST_ANSWERS, FrequencyMechanism
from ldp_budget.sdk.parameters import integer, real

from ._citations import UNARY_ENCODING

if TYPE_CHECKING:
    from ldp_budget.sdk.client_program import Program

# This many digits hold the product of any two bounds.
_WIDE_UP = Context(prec=100, rounding=ROUND_CEILING)


class _Unary(FrequencyMechanism):
    """The client and server of every unary encoding; subclasses define p and q."""

    domain_size = integer("number of possible answers", at_least=2, at_most=MOST_ANSWERS)

    def bounds(self) -> tuple[Decimal, Decimal]:
        """p rounded down and q rounded up: both make the loss smaller."""
        raise NotImplementedError

    @functools.cached_property
    def thresholds(self) -> tuple[int, int]:
        """p and q as the client draws them, in units of 2**-64."""
        p, q = self.bounds()
        keep, noise = threshold(p, up=False), threshold(q, up=True)
        if keep <= noise:
            raise InvalidParameter(*self._too_small())
        return keep, noise

    def _too_small(self) -> tuple[str, str, object]:
        return (
            "epsilon",
            "large enough to be drawn with 64-bit probabilities",
            self.declared["epsilon"],
        )

    def check(self) -> None:
        _ = self.thresholds

    @property
    def parameters(self) -> dict[str, float]:
        p, q = self.bounds()
        return {"p": float_below(p), "q": float_above(q)}

    @property
    def support_probabilities(self) -> list[tuple[Fraction, Fraction]]:
        keep, noise = self.thresholds
        return [(Fraction(keep, ONE), Fraction(noise, ONE))]

    def _tau(self) -> Decimal:
        """τ rounded up, of the stated p and q and of the drawn ones."""
        drawn = tuple(_WIDE_UP.divide(Decimal(drawn), Decimal(ONE)) for drawn in self.thresholds)
        return max(min(Decimal(1), UP.plus(_differing(*pair))) for pair in (self.bounds(), drawn))

    def utility(self, users: int | None = None) -> dict[str, Any]:
        result = super().utility(users)
        rivals = self._rivals()
        if rivals:
            result["smaller_total_variance"] = min(rivals, key=rivals.__getitem__)
        return result

    @property
    def notes(self) -> tuple[str, ...]:
        rivals = self._rivals()
        best = min(rivals, key=rivals.__getitem__, default=self.name)
        if best == self.name:
            return ()
        return (
            f"Summed over the {self.domain_size} answers, {best} has the smaller variance here: "
            f"{rivals[best]:.6g} against {rivals[self.name]:.6g} per user; oue minimises only the part "
            "that does not depend on the frequencies.",
        )

    def _rivals(self) -> dict[str, float]:
        """The total variance of each standard encoding at this loss and domain; empty for other encodings."""
        return {}

    def client_program(self) -> Program:
        """Return the client program; reports are packed bits: uint8 (n, ceil(d/8)), answer v in byte v // 8 at bit v % 8."""
        from ldp_budget.sdk.client_program import Program, answers, packed, whole

        keep, noise = map(whole, self.thresholds)
        steps: tuple[tuple[str, Any], ...] = (
            ("others", ["bits", noise, self.domain_size]),
            ("own", ["bit", keep]),
            ("row", ["put", "others", "value", "own"]),
        )
        return Program(answers(self.domain), steps, packed("row", self.domain_size))


def _differing(p: Decimal, q: Decimal) -> Decimal:
    """Return p(1-q) + q(1-p), rounded up; in decimals, as the exact fraction of a q of 1e-200000 takes seconds."""
    kept = _WIDE_UP.multiply(p, _WIDE_UP.subtract(Decimal(1), q))
    return _WIDE_UP.add(kept, _WIDE_UP.multiply(q, _WIDE_UP.subtract(Decimal(1), p)))


class UnaryEncoding(_Unary):
    """Unary encoding from any p and q, 0 < q < p < 1."""

    name = "unary-encoding"
    summary = "one bit per answer; a one stays with probability p, a zero turns with probability q"
    source = f"Wang, Blocki, Li, Jha, USENIX Security 2017, section 4.3; {UNARY_ENCODING}"

    p = real("probability that a one stays one", above=0, below=1)
    q = real("probability that a zero becomes one", above=0, below=1)

    def check(self) -> None:
        if self.p <= self.q:
            raise InvalidParameter("p", f"greater than q, {self.q}", self.p)
        super().check()

    def _too_small(self) -> tuple[str, str, object]:
        return "p", f"greater than q, {self.q}, by more than 2**-64", self.p

    def bounds(self) -> tuple[Decimal, Decimal]:
        return self.p, self.q

    @property
    def guarantee(self) -> Guarantee:
        p, q = Fraction(self.p), Fraction(self.q)
        odds = p * (1 - q) / ((1 - p) * q)
        epsilon = ln_up(UP.divide(Decimal(odds.numerator), Decimal(odds.denominator)))
        return SymmetricPair(epsilon, self._tau())


class _Standard(_Unary):
    """Base class of the encodings that are calibrated from ε."""

    epsilon = real("privacy loss of one report", above=0, at_most=10**6)

    @property
    def guarantee(self) -> Guarantee:
        return SymmetricPair(self.epsilon, self._tau())

    def _rivals(self) -> dict[str, float]:
        rivals = (SymmetricUnaryEncoding, OptimizedUnaryEncoding)
        return {
            rival.name: rival(epsilon=self.epsilon, domain_size=self.domain_size).total_variance() for rival in rivals
        }


class SymmetricUnaryEncoding(_Standard):
    """SUE, basic RAPPOR: p = e^{ε/2}/(e^{ε/2}+1), q = 1-p."""

    name = "sue"
    aliases = ("symmetric-unary-encoding",)
    summary = "unary encoding with p + q = 1; the better one for few answers or a large loss"
    source = f"Erlingsson, Pihur, Korolova, CCS 2014 (basic one-time RAPPOR); {UNARY_ENCODING}"

    def bounds(self) -> tuple[Decimal, Decimal]:
        half = DOWN.divide(self.epsilon, Decimal(2))
        q = UP.divide(Decimal(1), DOWN.add(exp_down(half), Decimal(1)))
        return DOWN.subtract(Decimal(1), q), q


class OptimizedUnaryEncoding(_Standard):
    """OUE: p = 1/2, q = 1/(e^ε+1), which minimizes the variance at frequency zero."""

    name = "oue"
    aliases = ("optimized-unary-encoding",)
    summary = "unary encoding with p = 1/2; the least variance for rare answers"
    source = f"Wang, Blocki, Li, Jha, USENIX Security 2017, section 4.3; {UNARY_ENCODING}"

    def bounds(self) -> tuple[Decimal, Decimal]:
        return Decimal("0.5"), UP.divide(Decimal(1), DOWN.add(exp_down(self.epsilon), Decimal(1)))
