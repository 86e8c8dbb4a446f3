"""Questions of a survey, and the contributions of those who answered them.

A collection is one question that each respondent answers. A questionnaire has several; a report says which of them it
answers. Since the questions of a respondent are drawn at random, those who answered a question are a random part of the
sample, and are estimated from as a sample of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import NotSupported, UnknownName
from ldp_budget.sdk.domain import Categories, Interval
from ldp_budget.sdk.numeric_mechanism import NumericMechanism
from ldp_budget.sdk.share_laws import AnswerLaw, Cumulants, TableLaw

from .finite_population import Noise
from .moments import EXCLUSIVE, PRODUCTS, MomentsReader
from .quantiles import indicators
from .two_way import paired

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from ldp_budget.registry.collections import Collection
    from ldp_budget.reports.public_attributes import PublicAttributes
    from ldp_budget.sdk.share_laws import ShareLaw

    from .moments import Moments

    Blocks = Iterable[tuple[NDArray[Any], PublicAttributes]]

_BLOCK = 1 << 22
"""The most contributions that are in memory at a time."""


@dataclass(frozen=True)
class AskedQuestion:
    """A question of a survey: its name, its mechanism, the names of its answers, and its number in a questionnaire.

    `answers` is None where the answers are numbers, and `place` where each report is one of this question alone.
    """

    name: str
    mechanism: Any
    answers: tuple[str, ...] | None
    place: int | None = None
    item: int | None = None
    """Its number among the items of a grid, which are in one slot of a report."""
    pairs: bool = False
    """True if its contributions are those to single options and to each two of them."""

    @property
    def unit(self) -> tuple[float, float]:
        """(origin, scale): an answer is origin + scale·x, for the x whose moments are kept; (0, 1) for categories.

        Numbers are kept relative to the range, so that no digits are lost far from 0.
        """
        domain = self.mechanism.domain
        if not isinstance(domain, Interval):
            return 0.0, 1.0
        low, high = domain.ends
        return low, high - low

    @property
    def law(self) -> ShareLaw | None:
        """The law of a contribution, in its unit; None if the mechanism does not state it, or its numbers have no range."""
        if self.pairs:
            found: ShareLaw = self.mechanism.pair_law
            return found
        stated = None if self.mechanism.domain is None else getattr(self.mechanism, "contribution_law", None)
        if stated is None:
            return None
        scale = self.unit[1]
        powers = (scale**2, scale**3) * 2
        cumulants = Cumulants(*(part / power for part, power in zip(stated, powers, strict=True)))
        return AnswerLaw(cumulants, exact=self.answers is not None)

    @property
    def noise(self) -> Noise:
        """The variance that randomization gives to a contribution, in its unit.

        Raises `NotSupported` if the mechanism does not state it.
        """
        stated = getattr(self.mechanism, "pair_noise" if self.pairs else "contribution_noise", None)
        if stated is None:
            why = f"mechanism {self.mechanism.name} does not state the noise of its contributions"
            raise NotSupported(why, hint="Estimate without a population size, or define `contribution_noise`.")
        at_zero, slope = stated
        return Noise(at_zero / self.unit[1] ** 2, slope / self.unit[1] ** 2)

    @property
    def with_pairs(self) -> AskedQuestion:
        """The question as one of each option, and of each two options that are ticked together."""
        return replace(self, pairs=True)

    @property
    def width(self) -> int:
        """The number of contributions of a report."""
        if self.answers is None:
            return 1
        number = len(self.answers)
        return number * (number + 1) // 2 if self.pairs else number

    @property
    def asks_pairs(self) -> bool:
        """True if the question also asks which two options people tick together."""
        return getattr(self.mechanism, "pairs", False) is True

    @property
    def has_quantiles(self) -> bool:
        """True if the answers are numbers whose distribution the mechanism estimates."""
        own = getattr(type(self.mechanism), "report_bins", None)
        return self.answers is None and own is not None and own is not NumericMechanism.report_bins

    def contributions(self, reports: Any) -> Any:
        """Return the contributions of reports of this question, (n, d), in its unit."""
        if self.pairs:
            return self.mechanism.pair_contributions(reports)
        origin, scale = self.unit
        return (self.mechanism.contributions(reports) - origin) / scale

    def of(self, survey: Any, reports: Any) -> tuple[Any, Any]:
        """Return who answered the question, (n,), and the reports of those who did."""
        if self.place is None:
            return np.ones(len(reports), bool), reports
        asked, parts = survey.mechanism.unpack(reports)
        here = asked[:, self.place]
        if self.item is None:
            return here, parts[self.place]
        asks, own = survey.mechanism.questions[self.place].mechanism.part_of(parts[self.place], self.item)
        here[here] = asks
        return here, own


def table_law(first: AskedQuestion, second: AskedQuestion) -> TableLaw | None:
    """Return the law of `paired` contributions to two questions; None if that of one of them is unknown.

    Two items of a grid are randomized together, so that the law of their products is another one.
    """
    if first.place == second.place:
        return None
    one, two = first.law, second.law
    return TableLaw(one, two) if isinstance(one, AnswerLaw) and isinstance(two, AnswerLaw) else None


def questions_of(survey: Collection) -> tuple[AskedQuestion, ...]:
    """Return the questions of a collection, or of a questionnaire.

    Parameters:
        survey: the collection.

    Raises:
        NotSupported: the mechanism does not list its answers.
    """
    mechanism: Any = survey.mechanism
    if mechanism.components:
        return tuple(
            _question(each.name, each.mechanism, each.categories, each.place, each.item) for each in mechanism.views
        )
    return (_question(survey.name, mechanism, survey.categories, None),)


def question(survey: Collection, name: str) -> AskedQuestion:
    """Return the question of that name. Raises `UnknownName`."""
    questions = {each.name: each for each in questions_of(survey)}
    if name not in questions:
        raise UnknownName("question", name, tuple(questions))
    return questions[name]


def _question(
    name: str, mechanism: Any, categories: Sequence[str] | None, place: int | None, item: int | None = None
) -> AskedQuestion:
    domain = mechanism.domain
    if not isinstance(domain, Categories):
        return AskedQuestion(name, mechanism, None, place)
    if not domain.listed:
        raise NotSupported(f"{mechanism.name} does not list its answers, so it has no weighted estimates")
    answers = tuple(categories) if categories is not None else tuple(map(str, range(domain.size)))
    return AskedQuestion(name, mechanism, answers, place, item)


def read_moments(survey: Collection, asked: AskedQuestion, blocks: Blocks, products: str) -> Moments:
    """Return the moments of the contributions to a question.

    Parameters:
        survey: the collection of the reports.
        asked: one of its questions.
        blocks: reports with their public attributes, block by block.
        products: `SQUARES` or `PRODUCTS`.

    Raises:
        NotSupported: there are no reports, or they have no unbiased contributions.
        InvalidParameter: the blocks have different public columns.
    """
    reader = MomentsReader(asked.width, products)
    for here, reports, public in _answered(survey, asked, blocks):
        reader.add(asked.contributions(reports), public.take(here))
    return reader.read()


def read_bins(survey: Collection, asked: AskedQuestion, blocks: Blocks) -> Moments:
    """Return the moments of the bins of a numeric question, for `quantiles`. Raises as `read_moments`."""
    reader = None
    for here, reports, public in _answered(survey, asked, blocks):
        bins, number = asked.mechanism.report_bins(reports)
        reader = reader or MomentsReader(number, EXCLUSIVE)
        reader.add(indicators(bins, number), public.take(here))
    if reader is None:
        raise NotSupported("there are no reports to estimate from")
    return reader.read()


def read_table(survey: Collection, first: AskedQuestion, second: AskedQuestion, blocks: Blocks) -> Moments:
    """Return the moments of the contributions of both questions and of their products, as `paired` lists them.

    Parameters:
        survey: the questionnaire of the reports.
        first: a question with categories.
        second: another one.
        blocks: as for `read_moments`.

    Raises:
        NotSupported: no respondent answered both questions, or an answer is a number.
        InvalidParameter: there are too many cells, or the blocks have different public columns.
    """
    if first.answers is None or second.answers is None or first.place is None or first.name == second.name:
        raise NotSupported("a two-way table needs two different questions with categories, of one questionnaire")
    one, two = len(first.answers), len(second.answers)
    reader = MomentsReader(one + two + one * two, PRODUCTS)
    both = 0
    for reports, public in in_parts(blocks, one + two + one * two):
        mine, own = first.of(survey, reports)
        theirs, other = second.of(survey, reports)
        here = mine & theirs
        both += int(here.sum())
        if here.any():
            own, other = own[theirs[mine]], other[mine[theirs]]
            together = None
            if first.place == second.place:
                mechanism: Any = survey.mechanism
                grid = mechanism.questions[first.place].mechanism
                together = grid.contributions_together(own, other)
            z = paired(first.contributions(own), second.contributions(other), together)
            reader.add(z, public.take(here))
    if not both:
        raise NotSupported(
            f"no respondent answered both {first.name} and {second.name}",
            hint="Let each respondent answer at least 2 questions: answer = 2 in the survey file.",
        )
    return reader.read()


def _answered(
    survey: Collection, asked: AskedQuestion, blocks: Blocks
) -> Iterable[tuple[Any, Any, PublicAttributes]]:
    """Yield who answered a question, their reports, and the attributes of all, for parts of the blocks."""
    for reports, public in in_parts(blocks, asked.width):
        here, own = asked.of(survey, reports)
        if here.any():
            yield here, own, public


def in_parts(blocks: Blocks, width: int) -> Blocks:
    """Yield the blocks in parts whose contributions, `width` for each report, fit into memory."""
    rows = max(1, _BLOCK // width)
    for reports, public in blocks:
        for start in range(0, len(reports), rows):
            part = slice(start, start + rows)
            yield reports[part], public.take(part)
