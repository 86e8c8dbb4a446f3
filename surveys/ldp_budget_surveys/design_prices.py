"""What the design of a survey costs beside another one: reports of scales, items of grids, and yes/no questions together.

Each price compares variances for one respondent, sampling included, at a share of a half or of 1/d, or at worst for a mean.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .planning.margins import Precision
from .questionnaires.scales import BELOW, IN_BOX, MEAN, NPS, REPORTS, SHARES, TOP_BOX, answers_of
from .questionnaires.survey_questions import GRID, SCALE, SurveyQuestion
from .questionnaires.surveys import JOINT, Survey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

_SAME = 1.05
"""Ratios of variances below this are no difference that a design is chosen for."""


def design_prices(survey: Survey) -> list[str]:
    """Return a sentence for each part of a survey whose design costs precision or protection beside another one.

    Parameters:
        survey: the survey.
    """
    questionnaire, found = survey.questionnaire(), []
    for said, asked in zip(survey.slots, questionnaire.questions, strict=True):
        epsilon = asked.mechanism.guarantee.epsilon
        if said.name == JOINT:
            found.append(_price_together(survey, said, float(epsilon)))
        elif said.kind == GRID and said.asked is not None:
            found += _price_of_items(said, asked.mechanism)
        elif said.kind == SCALE and said.report == SHARES and not said.optional:
            ratio = _noise(asked.mechanism) / _noise(_as(said, TOP_BOX).build(asked.mechanism.epsilon))  # type: ignore[attr-defined]
            if ratio > _SAME:
                found.append(
                    f'{said.name}: its shares have {ratio:.1f} times the noise variance of one top box (report = "top-box")'
                )
    return found


def _price_together(survey: Survey, said: SurveyQuestion, epsilon: float) -> str:
    names = ", ".join(part.name for part in said.parts)
    apart = replace(survey, joint=False)
    own, other = survey.yes_no_variance(), apart.yes_no_variance()
    alone = min(float(each) for each in apart.epsilons())
    what = f"{names}: randomized together, so ε = {epsilon:.4g} is about each of them, and not ε = {alone:.4g}"
    if other > own * _SAME:
        return f"{what}; by themselves (joint = false) they have {other / own:.1f} times the variance"
    better = f"{own / other:.1f} times less" if own > other * _SAME else "as much"
    return f"{what}; by themselves (joint = false) they have {better} variance"


def _price_of_items(said: SurveyQuestion, mechanism: Any) -> Iterator[str]:
    best = replace(said, asked=None).build(mechanism.epsilon)
    ratio = _of_item(mechanism) / _of_item(best)
    if ratio > _SAME:
        items = best.design.asked  # type: ignore[attr-defined]
        yield f"{said.name}: {mechanism.design.asked} items each have {ratio:.1f} times the variance of answer = {items}"


def _of_item(mechanism: Any) -> float:
    """Return the variance of the share 1/d of an item, the choice of items included."""
    part, share = mechanism.part(), 1 / mechanism.domain_size
    noise = (1 - share) * float(part._law.at_zero[0]) + share * float(part._law.at_one[0])
    return float((noise + share * (1 - share)) / mechanism.shown)


def _noise(mechanism: Any) -> float:
    return float(mechanism.share_errors(1)[0] ** 2)


def scale_reports(
    question: SurveyQuestion, epsilon: Decimal, respondents: int, part: tuple[int, int]
) -> dict[str, float]:
    """Return the margin of each report of a scale: points of the scale, shares, or parts of the net promoter score.

    Parameters:
        question: a scale.
        epsilon: its ε.
        respondents: the number of respondents.
        part: (k, m): each respondent answers k of m questions.
    """
    found = {}
    assert question.lower is not None
    assert question.upper is not None
    is_nps = question.lower == 0 and question.upper == 10
    for report in REPORTS if is_nps or question.report == NPS else (MEAN, SHARES, TOP_BOX):
        precision = Precision.of(_as(question, report).build(epsilon))
        found[report] = precision.margin(respondents, part) * (precision.width or 1.0)
    return found


def _as(question: SurveyQuestion, report: str) -> SurveyQuestion:
    """Return a scale with another report, without the answer of an optional question."""
    assert question.lower is not None
    assert question.upper is not None
    categories = {
        SHARES: answers_of(int(question.lower), int(question.upper)),
        TOP_BOX: (IN_BOX, BELOW),
        MEAN: None,
        NPS: None,
    }[report]
    return replace(question, report=report, categories=categories, optional=False, mechanism="auto")
