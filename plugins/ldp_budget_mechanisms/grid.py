"""Grids: several items of one scale in one report at one ε. Yes/no questions that are randomized together are a grid too.

Of the items, s are drawn publicly. The report has a set of ω of the d answers to each of them, and is e^ε times as likely if at
least t of the sets hold the answer. ω = 1 and t = s is generalized randomized response over the d^s answers; s = 1 is subset
selection of a random item; d = 2 and s of all items is the mechanism of Duchi, Jordan and Wainwright (JASA 2018).
`ldp_budget_verify.law.asked_items` has the law. ε is about all items together, so also about each.

With h = ω/d and B(n, r) the chance that of n independent sets at least r hold the answer, an asked item has

    p = h(1 + (e^ε - 1)B(s - 1, t - 1))/(1 + (e^ε - 1)B(s, t)),    q = (ω - p)/(d - 1).

An item is estimated from the reports that ask it, which are a random part of all: `part` is their mechanism. Over all reports, one
that does not ask the item adds f₀ = 1/d, and the others are weighted by 1/share around f₀, as in `ticks`.

Products of these numbers are biased for two items of one report. The share of people with one answer here and another there comes
from r₂, r₁ and r₀, the chances that the sets hold both, if both, one or none of them are chosen: `contributions_together`.
"""

from __future__ import annotations

import functools
import math
from decimal import Decimal
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.guarantees.fixed_point import DOWN, UP, exp_down, float_below
from ldp_budget.sampling import ONE, threshold
from ldp_budget.sdk.domain import Categories
from ldp_budget.sdk.frequency_oracle import FrequencyMechanism
from ldp_budget.sdk.grid_answers import (
    MOST_ANSWERS,
    MOST_ASKED,
    MOST_ITEMS,
    GridAnswers,
    grid_program,
    hit_weights,
)
from ldp_budget.sdk.parameters import integer, optional_integer, real
from ldp_budget.sdk.report_law import rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.guarantees import Guarantee
    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.estimates import CountAggregate, CountEstimate, SupportLaw
    from ldp_budget.sdk.report_relations import Relation
    from ldp_budget.sdk.share_laws import Cumulants

    Floats = NDArray[np.float64]


class Design(NamedTuple):
    """`asked` items, a set of `size` answers to each, and `least` sets that hold the answer in the likelier reports."""

    asked: int
    size: int
    least: int


def chances(design: Design, answers: int, odds: float) -> tuple[float, float]:
    """Return p and q of an asked item; `odds` is e^ε."""
    asked, size, least = design
    held = size / answers

    def tail(count: int, some: int) -> float:
        return sum(comb(count, i) * held**i * (1 - held) ** (count - i) for i in range(max(0, some), count + 1))

    p = held * (1 + (odds - 1) * tail(asked - 1, least - 1)) / (1 + (odds - 1) * tail(asked, least))
    return p, (size - p) / (answers - 1)


def variance(design: Design, items: int, answers: int, odds: float) -> float:
    """Return the variance of a share of 1/d for one respondent, the choice of items and sampling included."""
    p, q = chances(design, answers, odds)
    rate = q + (p - q) / answers
    return items / design.asked * rate * (1 - rate) / (p - q) ** 2 if p > q else math.inf


class Grid(FrequencyMechanism):
    """Answers to `items` items, each one of `domain_size`; the counted cells are item·domain_size + answer."""

    name = "grid"
    summary = "several items of one scale, or yes/no questions, randomized as a whole at one ε"
    source = (
        "Duchi, Jordan and Wainwright, JASA 113, 2018; Ye and Barg, IEEE Transactions on Information Theory 64, 2018; "
        "Kairouz, Bonawitz and Ramage, ICML 2016"
    )
    examples = (
        {"epsilon": 1, "items": 3, "domain_size": 4},
        {"epsilon": 4, "items": 8, "domain_size": 5},
        {"epsilon": 2, "items": 4, "domain_size": 2},
    )

    epsilon = real("privacy loss of one report", above=0, at_most=10**6)
    items = integer("number of items", at_least=2, at_most=MOST_ITEMS)
    domain_size = integer("number of answers to each item", at_least=2, at_most=MOST_ANSWERS)
    asked = optional_integer(
        "items of a report; if left out, the number of least variance", at_least=1, at_most=MOST_ASKED
    )
    size = optional_integer(
        "answers in the set of each item; if left out, the number of least variance", at_least=1, at_most=MOST_ANSWERS
    )
    threshold = optional_integer(
        "sets that hold the answer in the likelier reports; if left out, the number of least variance",
        at_least=1,
        at_most=MOST_ASKED,
    )

    def check(self) -> None:
        _ = self.domain
        if self.asked is not None and self.asked > self.items:
            raise InvalidParameter("asked", f"at most the number of items, {self.items}", self.asked)
        if self.size is not None and self.size >= self.domain_size:
            raise InvalidParameter("size", f"below the number of answers, {self.domain_size}", self.size)
        if self.threshold is not None and self.threshold > (self.asked or self.items):
            raise InvalidParameter(
                "threshold", f"at most the asked items, {self.asked or self.items}", self.threshold
            )
        if self.chance["p"] <= self.chance["q"]:
            raise InvalidParameter("epsilon", "large enough to be drawn with 64-bit probabilities", self.epsilon)

    # -- the design -------------------------------------------------------------------------------------

    @functools.cached_property
    def design(self) -> Design:
        """The design of least variance at a share of 1/d, of those with the given numbers."""
        odds = math.exp(min(float(self.epsilon), 300.0))
        most = min(self.items, MOST_ASKED)
        found = [
            Design(s, w, t)
            for s in ((self.asked,) if self.asked else range(1, most + 1))
            for w in ((self.size,) if self.size else range(1, self.domain_size // 2 + 1))
            for t in ((self.threshold,) if self.threshold else range(1, s + 1))
            if t <= s
        ]
        return min(found, key=lambda each: (variance(each, self.items, self.domain_size, odds), each))

    @property
    def domain(self) -> Categories:
        return GridAnswers(self.items, self.domain_size)

    @property
    def answers(self) -> int:
        return self.items * self.domain_size

    @functools.cached_property
    def drawn(self) -> int:
        """The probability of the likelier reports, in units of 2**-64, rounded down."""
        asked, size, least = self.design
        weights = hit_weights(asked, self.domain_size, size)
        others, likelier = Decimal(sum(weights[:least])), Decimal(sum(weights[least:]))
        total = DOWN.add(DOWN.multiply(exp_down(self.epsilon), likelier), others)
        return threshold(DOWN.subtract(Decimal(1), UP.divide(others, total)), up=False)

    def client_program(self) -> Program:
        """Return the client program; reports are rows of cells, ascending."""
        return grid_program(self.items, self.domain_size, *self.design, self.drawn)

    @functools.cached_property
    def report_law(self) -> Any:
        """The law of a report, derived from the client program."""
        return rules().AskedItems(self.client_program())

    @functools.cached_property
    def guarantee(self) -> Guarantee:
        found: Guarantee = self.report_law.guarantee(Decimal(self.epsilon))
        return found

    @functools.cached_property
    def chance(self) -> dict[str, Fraction]:
        """p, q, r₂, r₁ and r₀ as they are drawn, given that the items are asked."""
        names = {"p": (1, 0), "q": (0, 1), "both": (2, 0), "one": (1, 1), "none": (0, 2)}
        return {name: self.report_law.chance(*counts) for name, counts in names.items()}

    @property
    def shown(self) -> float:
        """The share of reports that ask an item."""
        return self.design.asked / self.items

    @property
    def parameters(self) -> dict[str, Any]:
        asked, size, least = self.design
        likelier = float_below(Decimal(self.drawn) / ONE)
        return {"asked": asked, "size": size, "threshold": least, "likelier": likelier}

    @property
    def design_words(self) -> str:
        """The design in a few words."""
        asked, size, least = self.design
        own = f"sets of {size} answers, t = {least}, " if (size, least) != (1, asked) else ""
        return f"{asked} of {self.items} items, {own}ε = {self.epsilon} for them together"

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"{self.design_words}.",)

    @classmethod
    def for_answers(cls, epsilon: Any, domain_size: int) -> Self:
        """Raise `NotSupported`: an answer is one to several items, so this is no rival for single answers."""
        raise NotSupported(f"{cls.name} takes answers to several items, and no single answers")

    def held(self, values: Any) -> NDArray[np.bool_]:
        import numpy as np

        chosen = GridAnswers(self.items, self.domain_size).chosen(values)
        cells: NDArray[np.bool_] = chosen[:, :, np.newaxis] == np.arange(self.domain_size)
        return cells.reshape(len(chosen), self.answers)

    def critical_inputs(self) -> Sequence[int]:
        """Return the first answer to all items, another one to the first item, and another one to all."""
        d, items = self.domain_size, self.items
        return [0, 1, sum(d**place for place in range(items)), d**items - 1][: 3 if d == 2 else 4]

    # -- the law of a contribution ----------------------------------------------------------------------

    @functools.cached_property
    def _worths(self) -> tuple[float, float, float]:
        """What a report that does not ask the item, one without the cell, and one with it add to a count."""
        q, gap, base, shown = float(self.chance["q"]), float(self.chance["p"] - self.chance["q"]), 1.0, self.shown
        base = 0.0 if shown == 1 else 1 / self.domain_size
        return base, base + (-q / gap - base) / shown, base + ((1 - q) / gap - base) / shown

    @property
    def support_probabilities(self) -> list[tuple[Fraction, Fraction]]:
        if self.shown < 1:
            raise NotSupported(f"a report of {self.name} does not say of every item which answers it supports")
        return [(self.chance["p"], self.chance["q"])]

    @functools.cached_property
    def _law(self) -> SupportLaw:
        import numpy as np

        from ldp_budget.sdk.estimates import SupportLaw

        if self.shown == 1:
            return SupportLaw.of(self.support_probabilities, 1)
        (zero, _, one, _), (_, least, most) = (each[:1] for each in self._moments), self._worths
        noise, gap = np.array([-least]) / (most - least), 1 / np.array([most - least])
        return SupportLaw(1, noise, gap, zero, one, one - zero)

    @functools.cached_property
    def _moments(self) -> Cumulants:
        import numpy as np

        from ldp_budget.sdk.share_laws import Cumulants

        shown, values = self.shown, np.array(self._worths)
        found = []
        for mean, p in ((0, float(self.chance["q"])), (1, float(self.chance["p"]))):
            rates = np.array([1 - shown, shown * (1 - p), shown * p])
            found += [float(rates @ (values - mean) ** power) for power in (2, 3)]
        return Cumulants(*(np.full(self.answers, each) for each in found))

    @property
    def contribution_law(self) -> Cumulants:
        return super().contribution_law if self.shown == 1 else self._moments

    def total_variance(self) -> float:
        law = self._law
        return float(self.answers * law.at_zero[0] + self.items * law.slope[0])

    # -- server -----------------------------------------------------------------------------------------

    def check_reports(self, reports: Any) -> None:
        self.rows(reports)

    @functools.cached_property
    def _form(self) -> Relation:
        from ldp_budget.sdk.report_relations import Membership

        return Membership(self.client_program(), self.answers)

    def rows(self, reports: Any) -> NDArray[Any]:
        """Return reports as rows of cells: for each asked item, in order, so many cells as its set has answers.

        Raises `NotSupported` for anything that no client sends.
        """
        import numpy as np

        asked, size, _ = self.design
        rows = self._form.check(reports).astype(np.int64)
        items = (rows // self.domain_size).reshape(-1, asked, size)
        apart = (np.diff(items[:, :, 0], axis=1) > 0).all() and (items == items[:, :, :1]).all()
        if not apart or (np.diff(rows, axis=1) <= 0).any():
            what = f"{size} cells of each of {asked} items, in ascending order"
            raise NotSupported(f"each report must have {what}: got a report that has not")
        return rows

    def aggregate(self, reports: Any) -> CountAggregate:
        """Count the reports with each cell. Of those that ask an item, each has as many cells as its set has answers."""
        import numpy as np

        from ldp_budget.sdk.estimates import CountAggregate

        rows = self.rows(reports)
        return CountAggregate(
            self.fingerprint, len(rows), np.bincount(rows.reshape(-1), minlength=self.answers).astype(np.int64)
        )

    def estimate(self, reports: Any, *, consistent: bool = False) -> CountEstimate:
        import numpy as np

        from ldp_budget.sdk.consistency import maybe_consistent
        from ldp_budget.sdk.estimates import CountEstimate, ShareCountLaw

        total = self.total(reports)
        if self.shown == 1:
            found = self._law.estimate(total)
        else:
            missing, no, yes = self._worths
            per_item = total.support.reshape(self.items, self.domain_size).sum(axis=1) // self.design.size
            asked = np.repeat(per_item, self.domain_size)
            counts = missing * (total.reports - asked) + no * (asked - total.support) + yes * total.support
            found = self._law.with_errors(counts, total.reports)
        made = CountEstimate(**{**vars(found), "several": True, "law": found.law})
        if self.shown < 1:
            made = CountEstimate(**{**vars(made), "law": ShareCountLaw(self.contribution_law)})
        return maybe_consistent(made, consistent)

    def contributions(self, reports: Any) -> Floats:
        import numpy as np

        rows = self.rows(reports)
        held = np.zeros((len(rows), self.answers), np.bool_)
        held[np.arange(len(rows))[:, np.newaxis], rows] = True
        missing, no, yes = self._worths
        asked = np.repeat(held.reshape(-1, self.items, self.domain_size).any(axis=2), self.domain_size, axis=1)
        found: Floats = np.where(held, yes, np.where(asked, no, missing))
        return found

    # -- one item ---------------------------------------------------------------------------------------

    def part(self) -> GridItem:
        """Return the mechanism of an item, of which each report is one of a respondent who was asked it."""
        return GridItem(**self.declared)

    def total_of(self, total: CountAggregate, item: int) -> CountAggregate:
        """Return the aggregate of an item, of the reports that ask it, from that of the grid."""
        from ldp_budget.sdk.estimates import CountAggregate

        cells = total.support[item * self.domain_size : (item + 1) * self.domain_size]
        return CountAggregate(self.part().fingerprint, int(cells.sum()) // self.design.size, cells.copy())

    def part_of(self, reports: Any, item: int) -> tuple[NDArray[np.bool_], NDArray[Any]]:
        """Return which reports ask an item, (n,), and the sets of answers of those that do, (m, size)."""
        rows = self.rows(reports)
        own = rows // self.domain_size == item
        asks = own.any(axis=1)
        return asks, rows[own].reshape(-1, self.design.size) % self.domain_size

    def contributions_together(self, first: Any, second: Any) -> Floats:
        """Return unbiased contributions to the shares of two answers together, (n, d, d).

        Parameters:
            first: sets of answers to an item, as `part_of` returns them.
            second: those of the same reports to another item.
        """
        both, one, none = (float(self.chance[name]) for name in ("both", "one", "none"))
        part = self.part()
        held = part.holds(first)[:, :, None] & part.holds(second)[:, None, :]
        alone = part.contributions(first)[:, :, None] + part.contributions(second)[:, None, :]
        found: Floats = (held - none - (one - none) * alone) / (both - 2 * one + none)
        return found


class GridItem(Grid):
    """One asked item of a grid: a set of its answers, of which the chosen one is a member with probability p."""

    name = "grid-item"

    @property
    def domain(self) -> Categories:
        return Categories(self.domain_size)

    @property
    def answers(self) -> int:
        return self.domain_size

    @property
    def shown(self) -> float:
        return 1.0

    def client_program(self) -> Program:
        raise NotSupported("an item of a grid has no report of its own")

    @functools.cached_property
    def report_law(self) -> Any:
        return Grid(**self.declared).report_law

    def held(self, values: Any) -> NDArray[np.bool_]:
        return FrequencyMechanism.held(self, values)

    def total_variance(self) -> float:
        return self._law.total_variance(self.answers)

    def rows(self, reports: Any) -> NDArray[Any]:
        import numpy as np

        rows = np.asarray(reports)
        if rows.ndim != 2 or rows.shape[1] != self.design.size:
            raise NotSupported(f"sets of {self.design.size} answers are needed: got the shape {rows.shape}")
        return rows

    def holds(self, rows: Any) -> NDArray[np.bool_]:
        """Return which answers each set holds, (n, d)."""
        import numpy as np

        found = np.zeros((len(rows), self.answers), np.bool_)
        found[np.arange(len(rows))[:, np.newaxis], rows] = True
        return found

    def aggregate(self, reports: Any) -> CountAggregate:
        import numpy as np

        from ldp_budget.sdk.estimates import CountAggregate

        rows = self.rows(reports)
        counts = np.bincount(rows.reshape(-1), minlength=self.answers).astype(np.int64)
        return CountAggregate(self.fingerprint, len(rows), counts)

    def estimate(self, reports: Any, *, consistent: bool = False) -> CountEstimate:
        return FrequencyMechanism.estimate(self, reports, consistent=consistent)

    def contributions(self, reports: Any) -> Floats:
        q, gap = float(self.chance["q"]), float(self.chance["p"] - self.chance["q"])
        found: Floats = (self.holds(self.rows(reports)).astype(float) - q) / gap
        return found
