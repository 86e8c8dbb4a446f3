"""The law of one report: how likely each report is under each answer, and what follows from that.

A law has the pairs (P[o], Q[o]) of the outcomes o that tell two answers apart, in exact fractions of the integer
thresholds that the client draws with. From the pairs follow the largest likelihood ratio e^ε, the total variation, the
guarantee, and an unbiased estimator of how many users hold an answer.

The rules that derive a law are in another package, which this one finds by the entry-point group `ldp_budget.laws`.
"""

from __future__ import annotations

import functools
import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from .._later import imported
from ..errors import NotSupported
from ..guarantees import FinitePair, SymmetricPair, Unbounded
from ..guarantees.dominating_pairs import joined
from ..guarantees.fixed_point import decimal_up, exp_down, ln_up
from .channels import Comparison, Factor
from .client_program import OPERATORS

if TYPE_CHECKING:
    from types import ModuleType

    from ..guarantees import Guarantee
    from .client_program import Program

Pairs: TypeAlias = "list[tuple[Fraction, Fraction]]"

_MOST_PAIR = 400
"""The most outcomes of a pair that a guarantee lists."""
_SHORT = Context(prec=30, rounding=ROUND_CEILING)
_MOST_REPORTS = 10_000
_CLOSE = 1e-6
"""Losses this close to the largest are rounded up to it, because the thresholds of a client are rounded too."""


class Unknown(NotSupported):
    """The reason why no rule derives the law of a program. Such a program is not proved."""


class Worst(NamedTuple):
    """The report that tells two answers apart best.

    `pair`: the two answers. `report`: the bytes of a report in hexadecimal, or how it relates to the two answers, in
    words. `loss`: the logarithm of the likelihood ratio, rounded up; None if the second answer never gives the report.
    """

    pair: tuple[int, int]
    report: str
    loss: Decimal | None


class Law:
    """The law of one report of a program. Each rule defines a subclass."""

    rule: ClassVar[str] = ""
    """The name of the rule that derived the law."""

    every_pair: bool = False
    """True if `pairs` covers every two answers; False if the law covers only the answers that were compared."""

    tight: bool = True
    """True if two answers have exactly the law of `pairs`; False if it is a bound, which some program may not reach."""

    alike: bool = False
    """True if every permutation of the answers, or of the cells of a public map, is one of the reports."""

    public_map: bool = False
    """True if the answer enters through a public map."""

    shown: frozenset[str] = frozenset()
    """The steps without the answer that every report shows."""

    def pairs(self) -> list[Pairs]:
        """Return (P, Q) of the outcomes, for each two answers that have to be compared; the other order follows.

        Returns:
            A list of lists of pairs of fractions.
        """
        raise NotImplementedError

    @functools.cached_property
    def merged(self) -> list[dict[Fraction | None, tuple[Fraction, Fraction]]]:
        """For each two answers, (P, Q) of all outcomes of one ratio P/Q together; the ratio is None where Q is zero."""
        found = []
        for pair in self.pairs():
            sums: dict[Fraction | None, tuple[Fraction, Fraction]] = {}
            for p, q in pair:
                if p or q:
                    ratio = p / q if q else None
                    a, b = sums.get(ratio, (Fraction(0), Fraction(0)))
                    sums[ratio] = a + p, b + q
            found.append(sums)
        return found

    @functools.cached_property
    def ratio(self) -> Fraction | None:
        """e^ε, exactly as it is drawn; None if a report that one answer gives is impossible for another."""
        ratios = {ratio for sums in self.merged for ratio in sums}
        if None in ratios or 0 in ratios:
            return None
        return max((max(ratio, 1 / ratio) for ratio in ratios if ratio is not None), default=Fraction(1))

    @functools.cached_property
    def variation(self) -> Fraction:
        """The largest total variation distance between the reports of two answers."""
        each = (sum((max(p - q, Fraction(0)) for p, q in sums.values()), Fraction(0)) for sums in self.merged)
        return max(each, default=Fraction(0))

    def worst(self) -> Worst:
        """Return the two answers and the report that show the largest loss.

        Returns:
            The answers, the report and its loss.
        """
        raise NotImplementedError

    def guarantee(self, stated: Decimal | None = None) -> Guarantee:
        """Return the guarantee of one report, rounded up.

        Parameters:
            stated: an ε that the mechanism was calibrated to. A loss just below it is rounded up to it.

        Raises:
            ValueError: the report loses more than `stated`.
            Unknown: the law does not cover every pair of answers.
        """
        if not self.every_pair:
            raise Unknown(f"the law by {self.rule} covers only the answers that were compared, not all of them")
        ratio = self.ratio
        if stated is not None and (ratio is None or ratio > Fraction(exp_down(stated))):
            if not self.tight:
                raise Unknown(f"by {self.rule}, the bound of the loss is larger than the stated ε: {stated}")
            loses = "without a bound" if ratio is None else f"up to {ln_up(decimal_up(ratio)):.12g}"
            raise ValueError(f"a report of the client program loses {loses}, more than the stated ε: {stated}")
        if ratio is None:
            return Unbounded()
        losses = {ratio for sums in self.merged for ratio in sums if ratio is not None}
        most = _log(ratio)
        sizes = [abs(_log(each)) for each in losses] if len(losses) <= _MOST_PAIR else []
        if sizes and all(size <= most * _CLOSE or size >= most * (1 - _CLOSE) for size in sizes):
            return self._symmetric(ratio, stated)
        if any(len(sums) > _MOST_PAIR for sums in self.merged):
            return self._symmetric(ratio, stated)
        found = [FinitePair(tuple(sums.values())) for sums in self.merged]
        return joined(*found, *(FinitePair(tuple((q, p) for p, q in each.outcomes)) for each in found))

    def _symmetric(self, ratio: Fraction, stated: Decimal | None) -> SymmetricPair:
        """Return losses ±ε with probability τ = v(e^ε + 1)/(e^ε - 1), v the variation.

        H(λ) of any pair with losses within ±ε is convex, at most v at λ = 1 and zero at e^ε. The chords between
        these points are the curve of the symmetric pair, so it dominates.
        """
        epsilon = ln_up(decimal_up(ratio)) if ratio > 1 else Decimal(0)
        if stated is not None and stated - epsilon <= stated * Decimal("1e-9"):
            epsilon, ratio = stated, Fraction(exp_down(stated))
        if ratio == 1:
            return SymmetricPair(Decimal(0), Decimal(0))
        tau = self.variation * (ratio + 1) / (ratio - 1)
        return SymmetricPair(epsilon, min(_SHORT.plus(decimal_up(tau)), Decimal(1)))

    # -- two answers -------------------------------------------------------------------------------------------------

    def comparison(self, first: int, second: int) -> Comparison:
        """Return the reports of two answers, as far as they differ.

        Parameters:
            first: an answer.
            second: another answer.

        Raises:
            NotSupported: the law does not list these two answers.
        """
        if not self.every_pair or len(found := self.pairs()) != 1:
            raise NotSupported(f"the law by {self.rule} has no single pair for the answers {first} and {second}")
        return Comparison.of(Factor(tuple(found[0])))

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        """Return the outcome of `comparison` that each report has, as whole numbers, shape (n,).

        Parameters:
            reports: as the client sends them; the first axis is the users.
            first: an answer.
            second: another answer.

        Raises:
            NotSupported: reports of this form are not numbered, or these are no reports of the program.
        """
        raise NotSupported(f"reports are not numbered: the law is by {self.rule}")

    # -- one answer --------------------------------------------------------------------------------------------------

    def marginal(self) -> tuple[dict[Any, Fraction], dict[Any, Fraction]]:
        """Return the law of a report's relation to an answer: for users who hold the answer, and for all others.

        Raises:
            NotSupported: reports have no relation to single answers.
        """
        raise NotSupported(f"reports have no relation to single answers: the law is by {self.rule}")

    # -- reports of one kept draw ------------------------------------------------------------------------------------

    program: Program
    """The program of the law."""

    def curve(self, reports: int | None) -> Fraction:
        """Return e^ε of that many reports of one kept draw; None means any number of them.

        Parameters:
            reports: how many reports, or None.

        Raises:
            Unknown: the program keeps no draw, or no rule derives the curve; a report may rule an answer out.
        """
        if reports is not None and not 1 <= reports <= _MOST_REPORTS:
            raise Unknown(f"a curve is derived for 1 to {_MOST_REPORTS:,} reports, not for {reports}")
        if not self.program.memo:
            raise Unknown("the program keeps no draw")
        if not self.every_pair or self.ratio is None:
            raise Unknown("the law of one report does not cover every pair, or has no bound")
        draws = (x[0] for _, x in self.program.steps if isinstance(x, list))
        if not any(OPERATORS[op].kind == "draw" for op in draws):
            return self.ratio  # every report equals the first
        return self._curve(reports)

    def _curve(self, reports: int | None) -> Fraction:
        raise Unknown(f"no rule derives the curve of a law by {self.rule}")


RULES = "ldp_budget.laws"
"""The entry-point group of the module that derives laws: it has `law_of(program)`, and two of the rules by
name: `AllOutcomes(program)`, the list of every outcome, and `Numbers(program)`, for reports that are runs of numbers.
"""


@functools.cache
def rules() -> ModuleType:
    """Return the module that derives laws.

    Raises:
        NotSupported: it is not installed.
    """
    from importlib.metadata import entry_points

    for entry in entry_points(group=RULES):
        return imported(entry.module)
    raise NotSupported("no package derives the laws of client programs", hint="Install ldp-budget again.")


def law_of(program: Program) -> Law:
    """Return the law of one report of a program, derived by the installed rules.

    Parameters:
        program: the client program.

    Raises:
        Unknown: no rule derives the law; the message has the reason of each rule.
        NotSupported: no rules are installed.
    """
    law: Law = rules().law_of(program)
    return law


def _log(ratio: Fraction) -> float:
    """Return the logarithm of a ratio, which may be beyond the doubles."""
    return (
        math.log(ratio)
        if ratio < 2**1000 and ratio * 2**1000 > 1
        else math.log(ratio.numerator) - math.log(ratio.denominator)
    )


def loss_of(p: Fraction, q: Fraction) -> Decimal | None:
    """Return ln(p/q), rounded up; None where q is zero."""
    if not q:
        return None
    return ln_up(decimal_up(p / q)) if p > q else -ln_up(decimal_up(q / p)) if p < q else Decimal(0)
