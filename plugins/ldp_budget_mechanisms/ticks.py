"""Tick all that apply: sets of options at one ε.

At most m of d options, m < d/2: sets of k items, more likely if they hold at least t of the user's own items. t = 1 is PrivSet
(Wang, Huang, Nie, Wang, Xu and Xu, INFOCOM 2018), k = 1 is padding-and-sampling with generalized randomized response (Wang,
Li and Jha, IEEE S&P 2018). From ε = 2 on, t > 1 has less variance. Any number of ticks: the bits of s options that are drawn
publicly, as generalized randomized response on the 2^s answers to them. `ldp_budget_verify.law.ticked_sets` has both laws.

With p and q the probabilities that a report holds an option with and without the tick, (1{held} - q)/(p - q) is unbiased for
the tick. If s of d options are asked, a report without the option adds f₀ = 0.3 instead, and one with it is weighted by d/s
around f₀. So the choice of options adds no variance at a share of 30 %, and the law stays linear in the share.

Products of these numbers are biased for two options of one report. The share of people who ticked both comes from
r₂, r₁ and r₀, see `_tick_design`.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.guarantees.fixed_point import DOWN, UP, exp_down, float_below
from ldp_budget.sampling import ONE, threshold
from ldp_budget.sdk.estimates import CountAggregate, CountEstimate, ShareCountLaw, SupportLaw
from ldp_budget.sdk.frequency_oracle import FrequencyMechanism
from ldp_budget.sdk.parameters import flag, integer, optional_integer, real
from ldp_budget.sdk.report_law import rules
from ldp_budget.sdk.share_laws import Cumulants
from ldp_budget.sdk.tick_sets import (
    MOST_ITEMS,
    MOST_OPTIONS,
    MOST_TICKS,
    TickSets,
    asked_program,
    hit_weights,
    set_program,
)

from ._tick_design import MOST_ASKED, Chances, Design, best_asked, best_set

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.guarantees import Guarantee
    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.report_relations import Relation

    from ._tick_pairs import PairLaw, Together

    Floats = NDArray[np.float64]


class Ticks(FrequencyMechanism):
    """Sets of at most `at_most` of `domain_size` options, or of any number of them."""

    name = "ticks"
    aliases = ("privset",)
    summary = "tick all that apply: a set of options, randomized as a whole at one ε"
    source = (
        "Wang, Huang, Nie, Wang, Xu and Xu, PrivSet, INFOCOM 2018; Wang, Li and Jha, IEEE S&P 2018; "
        "Duchi, Jordan and Wainwright, JASA 113, 2018"
    )
    examples = (
        {"epsilon": 1, "domain_size": 4, "at_most": 1},
        {"epsilon": 4, "domain_size": 10, "at_most": 3},
        {"epsilon": 2, "domain_size": 6},
    )

    epsilon = real("privacy loss of one report", above=0, at_most=10**6)
    domain_size = integer("number of options", at_least=2, at_most=MOST_OPTIONS)
    at_most = optional_integer("the most ticks of a user; any number if left out", at_least=1, at_most=MOST_OPTIONS)
    k = optional_integer(
        "items of a report, or options that are asked; if left out, the number of least variance",
        at_least=1,
        at_most=200,
    )
    threshold = optional_integer(
        "own items from which a report is the likelier one; if left out, the number of least variance",
        at_least=1,
        at_most=MOST_TICKS,
    )
    pairs = flag("choose the design for shares of people who ticked two options together")

    def check(self) -> None:
        d, m = self.domain_size, self._most
        if m > d:
            raise InvalidParameter("at_most", f"at most the number of options, {d}", m)
        if self._asks and self.threshold is not None:
            raise InvalidParameter(
                "threshold", f"left out unless at_most is below half of {d} options", self.threshold
            )
        if not self._asks and (m > MOST_TICKS or d + m > MOST_ITEMS):
            raise InvalidParameter("at_most", f"at most {MOST_TICKS}, or left out", m)
        most = min(d, MOST_ASKED) if self._asks else d
        if self.k is not None and not 1 + self.pairs <= self.k <= most:
            raise InvalidParameter("k", f"a whole number from {1 + self.pairs} to {most}", self.k)
        least = self.threshold
        if least is not None and least > min(m, self.k or m):
            raise InvalidParameter("threshold", f"at most the number of ticks, {m}, and of items in a report", least)
        _ = self.domain
        chances = self._exact
        if chances["p"] <= chances["q"]:
            raise InvalidParameter("epsilon", "large enough to be drawn with 64-bit probabilities", self.epsilon)

    # -- the design -------------------------------------------------------------------------------------

    @property
    def _most(self) -> int:
        """m, the most ticks."""
        return self.domain_size if self.at_most is None else self.at_most

    @property
    def _asks(self) -> bool:
        """True if the bits of some options are reported, and not a set of items."""
        return 2 * self._most >= self.domain_size

    @functools.cached_property
    def design(self) -> Design:
        """The size k and the threshold t of a set; or the number s of asked options, with the threshold 0."""
        odds = math.exp(min(float(self.epsilon), 300.0))
        given: dict[str, Any] = {"pairs": self.pairs, "size": self.k}
        if self._asks:
            return best_asked(self.domain_size, odds, **given)
        return best_set(self.domain_size, self._most, odds, least=self.threshold, **given)

    @property
    def domain(self) -> TickSets:
        d = self.domain_size
        return TickSets(d, self._most, d if self._asks else self._most)

    @functools.cached_property
    def drawn(self) -> int:
        """The probability of the likelier reports, in units of 2**-64, rounded down."""
        size, least = self.design
        if self._asks:
            others, likelier = Decimal(2**size - 1), Decimal(1)
        else:
            weights = hit_weights(self._most, self.domain_size, size)
            others, likelier = Decimal(sum(weights[:least])), Decimal(sum(weights[least:]))
            if not others or not likelier:
                raise InvalidParameter("k", "such that reports depend on the ticks", size)
        total = DOWN.add(DOWN.multiply(exp_down(self.epsilon), likelier), others)
        return threshold(DOWN.subtract(Decimal(1), UP.divide(others, total)), up=False)

    def client_program(self) -> Program:
        """Return the client program; reports are rows of `size` numbers: ascending items, or 2·option + bit."""
        size, least = self.design
        if self._asks:
            return asked_program(self.domain_size, size, self.drawn)
        return set_program(self.domain_size, self._most, size, least, self.drawn)

    @functools.cached_property
    def report_law(self) -> Any:
        """The law of a report, derived from the client program."""
        return (rules().AskedOptions if self._asks else rules().TickedSets)(self.client_program())

    @functools.cached_property
    def guarantee(self) -> Guarantee:
        found: Guarantee = self.report_law.guarantee(Decimal(self.epsilon))
        return found

    @functools.cached_property
    def _exact(self) -> dict[str, Fraction]:
        """p, q, r₂, r₁ and r₀ as they are drawn, given that the options are asked."""
        names = {"p": (1, 0), "q": (0, 1), "both": (2, 0), "one": (1, 1), "none": (0, 2)}
        return {name: self.report_law.chance(*counts) for name, counts in names.items()}

    @functools.cached_property
    def chances(self) -> Chances:
        """p, q, r₂, r₁ and r₀; and the shares of reports that say anything of one option, and of two."""
        s, d = self.design.size, self.domain_size
        shown = (s / d, s * (s - 1) / (d * (d - 1))) if self._asks else (1.0, float(s > 1))
        p, q, both, one, none = map(float, self._exact.values())
        return Chances(p, q, both, one, none, *shown, float(self._exact["p"] - self._exact["q"]))

    @property
    def parameters(self) -> dict[str, Any]:
        size, least = self.design
        if self._asks:
            return {"asked": size, "keep": float_below(Decimal(self.drawn) / ONE)}
        return {"k": size, "threshold": least, "likelier": float_below(Decimal(self.drawn) / ONE)}

    @property
    def design_words(self) -> str:
        """The design in a few words, such as up to 3 of 10 (k = 1, t = 1, ε = 2)."""
        size, least = self.design
        most = "any number" if self._most == self.domain_size else f"up to {self._most}"
        own = f"s = {size} asked" if self._asks else f"k = {size}, t = {least}"
        return f"{most} of {self.domain_size} ({own}, ε = {self.epsilon})"

    @property
    def notes(self) -> tuple[str, ...]:
        size, least = self.design
        if self._asks:
            what = f"each user is asked about {size} of the options, drawn at random"
        else:
            items = self.domain_size + self._most
            what = f"a report is a set of {size} of {items} items, likelier if it holds at least {least} of the user's own"
        return (f"{self.design_words}: {what}.",)

    @classmethod
    def for_answers(cls, epsilon: Any, domain_size: int) -> Self:
        """Raise `NotSupported`: an answer is a set of options, so this is no rival for single answers."""
        raise NotSupported(f"{cls.name} takes sets of options, and no single answers")

    @classmethod
    def for_ticks(cls, epsilon: Any, options: int, at_most: int | None, *, pairs: bool = False) -> Self:
        """Return the mechanism of a question *tick all that apply*.

        Parameters:
            epsilon: the ε of one report.
            options: the number of options.
            at_most: the most ticks; None for any number.
            pairs: True to choose the design for options that are ticked together.

        Raises:
            InvalidParameter: an argument is out of its range, or there are too many sets.
        """
        return cls.calibrate(epsilon=epsilon, domain_size=options, at_most=at_most, pairs=pairs)

    @classmethod
    def tick_designs(cls, epsilon: Any, options: int, at_most: int | None) -> list[Self]:
        """Return the designs to compare for at most so many ticks: sets of the best threshold, PrivSet, and joint signs.

        Parameters:
            epsilon: the ε of one report.
            options: the number of options.
            at_most: the most ticks; None for any number.

        Raises:
            InvalidParameter: an argument is out of its range, or there are too many sets.
        """
        best = cls.calibrate(epsilon=epsilon, domain_size=options, at_most=at_most)
        if best._asks:
            return [best]
        privset = cls.calibrate(epsilon=epsilon, domain_size=options, at_most=at_most, threshold=1)
        rivals = [privset] if privset.design != best.design else []
        try:
            return [best, *rivals, cls.calibrate(epsilon=epsilon, domain_size=options)]
        except InvalidParameter:  # too many sets of any number
            return [best, *rivals]

    def held(self, values: Any) -> NDArray[np.bool_]:
        return self.domain.ticked(values)

    def critical_inputs(self) -> Sequence[int]:
        """Return the empty set, a single tick, and the largest sets that share the fewest ticks."""
        domain = self.domain
        d, m = self.domain_size, self._most
        sets = [[], [0], list(range(m)), list(range(d - m, d))]
        return list(dict.fromkeys(domain.number_of(each) for each in sets))

    # -- the law of a contribution ----------------------------------------------------------------------

    @property
    def _worths(self) -> tuple[float, float, float]:
        """What a report without the option, one that shows no tick, and one that shows a tick add to a count."""
        return self.chances.worths

    @property
    def support_probabilities(self) -> list[tuple[Fraction, Fraction]]:
        if self.chances.shown < 1:
            raise NotSupported(f"a report of {self.name} does not say of every option if it supports it")
        return [(self._exact["p"], self._exact["q"])]

    @functools.cached_property
    def _law(self) -> SupportLaw:
        import numpy as np

        if self.chances.shown == 1:
            return SupportLaw.of(self.support_probabilities, 1)
        (zero, _, one, _), (_, least, most) = (each[:1] for each in self._moments), self._worths
        noise, gap = np.array([-least]) / (most - least), 1 / np.array([most - least])
        return SupportLaw(1, noise, gap, zero, one, one - zero)

    def total_variance(self) -> float:
        law = self._law
        return float(self.answers * law.at_zero[0] + max(0.0, self._most * law.slope[0]))

    @functools.cached_property
    def _moments(self) -> Cumulants:
        import numpy as np

        shown, values = self.chances.shown, np.array(self._worths)
        found = []
        for mean, p in ((0, self.chances.other), (1, self.chances.own)):
            chances = np.array([1 - shown, shown * (1 - p), shown * p])
            found += [float(chances @ (values - mean) ** power) for power in (2, 3)]
        return Cumulants(*(np.full(self.answers, each) for each in found))

    @property
    def contribution_law(self) -> Cumulants:
        return super().contribution_law if self.chances.shown == 1 else self._moments

    # -- server -----------------------------------------------------------------------------------------

    def check_reports(self, reports: Any) -> None:
        self._rows(reports)

    @functools.cached_property
    def _form(self) -> Relation:
        """The relation of reports to options, and to dummies."""
        from ldp_budget.sdk.report_relations import MarkedPlace, Membership

        if self._asks:
            return MarkedPlace(self.client_program(), self.domain_size)
        return Membership(self.client_program(), self.domain_size + self._most)

    def _rows(self, reports: Any) -> NDArray[Any]:
        import numpy as np

        rows = self._form.check(reports)
        places = rows.astype(np.int64) >> self._asks
        if (np.diff(places, axis=1) <= 0).any():
            raise NotSupported("each report must have its items in ascending order: got a report that does not")
        return rows

    def _shown(self, rows: NDArray[Any]) -> list[NDArray[np.bool_]]:
        """Return which reports hold, or show as ticked, each option, (n, d); and which ask it, where some do not."""
        each = self._form.of_each(rows)[:, : self.domain_size]
        return [each == 1, each < 2] if self._asks else [each > 0]

    def aggregate(self, reports: Any) -> CountAggregate:
        """Count the reports that hold each two options; where some are asked, also those that ask them: (1 or 2, d, d)."""
        import numpy as np

        rows = self._rows(reports)
        counts = np.zeros((1 + self._asks, self.domain_size, self.domain_size), np.int64)
        for start in range(0, len(rows), _BLOCK):
            for layer, each in zip(counts, self._shown(rows[start : start + _BLOCK]), strict=True):
                bits = each.astype(np.float64)  # exact, and multiplied by BLAS
                layer += np.rint(bits.T @ bits).astype(np.int64)
        return CountAggregate(self.fingerprint, len(rows), counts)

    def estimate(self, reports: Any, *, consistent: bool = False) -> CountEstimate:
        """Return unbiased estimates of the users who ticked each option, and of those who ticked two of them.

        Parameters:
            reports: as `aggregate` takes them; or an aggregate.
            consistent: True for counts from 0 to the number of reports, which are biased. Counts need not add up.

        Returns:
            A `TickEstimate`; a `ConsistentEstimate` if `consistent`.

        Raises:
            NotSupported: `reports` are not reports of this mechanism, or there are none.
            InvalidParameter: `consistent` is neither True nor False.
        """
        import numpy as np

        from ldp_budget.sdk.consistency import maybe_consistent

        total = self.total(reports)
        held = total.support[0].diagonal()
        law = self._law
        if self.chances.shown == 1:
            found = law.estimate(replace(total, support=held))
        else:
            missing, no, yes = self._worths
            asked = total.support[1].diagonal()
            counts = missing * (total.reports - asked) + no * (asked - held) + yes * held
            found = replace(law.with_errors(counts, total.reports), law=ShareCountLaw(self.contribution_law))
        parts = {**vars(found), "several": True}
        whole = np.full_like(total.support[0], total.reports)
        matrix = total.support[0], total.support[1] if self._asks else whole
        made = TickEstimate(**parts, matrix=matrix, sample=total.reports, chances=self.chances)
        return maybe_consistent(made, consistent)

    def contributions(self, reports: Any) -> Floats:
        import numpy as np

        held, *asked = self._shown(self._rows(reports))
        missing, no, yes = self._worths
        found: Floats = np.where(held, yes, np.where(asked[0], no, missing) if asked else no)
        return found

    def pair_contributions(self, reports: Any) -> Floats:
        """Return the contributions to single options, and to each two of them together, (n, d + d(d - 1)/2).

        Parameters:
            reports: the reports.

        Raises:
            NotSupported: these are not reports of this mechanism, or they say nothing of two options together.
        """
        from ._tick_pairs import pair_contributions

        _check_pairs(self.chances)
        singles, (held, *asked) = self.contributions(reports), self._shown(self._rows(reports))
        return pair_contributions(self.chances, singles, held, asked[0] if asked else None)

    @property
    def pair_law(self) -> PairLaw:
        """The law of `pair_contributions`."""
        from ldp_budget.sdk.share_laws import AnswerLaw

        from ._tick_pairs import PairLaw

        return PairLaw(AnswerLaw(self.contribution_law), self.chances)

    @property
    def pair_noise(self) -> tuple[Any, Any]:
        """(at_zero, slope) of the noise in `pair_contributions`."""
        from ._tick_pairs import pair_noise

        return pair_noise(self.chances, self.contribution_noise)


_BLOCK = 1 << 15


@dataclass(frozen=True, repr=False)
class TickEstimate(CountEstimate):
    """Estimated numbers of users who ticked each option.

    `matrix`: of each two options, the reports that hold both and those that say anything of both, each (d, d). `sample`: the
    number of reports. `chances`: their chances.
    """

    matrix: tuple[Any, ...] = field(default=(), kw_only=True)
    sample: int = field(default=0, kw_only=True)
    chances: Chances = field(default=Chances(1.0, 0.0, 1.0, 0.0, 0.0), kw_only=True)

    def pairs(self, first: int, second: int, level: float = 0.95) -> Together:
        """Return the share of users who ticked both of two options, with an interval.

        The interval holds every share that a test does not reject, as those of single options do.

        Parameters:
            first: an option.
            second: another option.
            level: the confidence level of the interval, above 0 and below 1.

        Raises:
            NotSupported: reports hold one option each, so they say nothing of two.
            InvalidParameter: these are no two different options, or `level` is not between 0 and 1.
        """
        from ._tick_pairs import together

        count = len(self.counts)
        if first == second or not all(type(each) is int and 0 <= each < count for each in (first, second)):
            raise InvalidParameter("second", f"two different options from 0 to {count - 1}", f"{first} and {second}")
        law = self.chances
        _check_pairs(law)
        shares = float(self.counts[first] / self.reports), float(self.counts[second] / self.reports)
        held, shown = (int(each[first, second]) for each in self.matrix)
        start, both, slope, asked = law.worths_together()
        share = start + (both * held + asked * shown) / self.sample + slope * sum(shares)
        return together(law, share, shares, self.sample / self.overlap, level)


def _check_pairs(chances: Chances) -> None:
    if not chances.bend:
        hint = "Declare pairs, which takes the reports of least error for two options."
        raise NotSupported("these reports say nothing of two options together", hint=hint)
