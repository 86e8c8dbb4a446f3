"""Plans of surveys before anything is asked: margins of error, sample sizes, and detectable differences.

All figures are for the worst share, or the worst values, and for the chosen mechanisms.

- **Margin**: the error that 95 of 100 surveys stay below, bias included; see `margins`.
- **Detectable difference**: (z(0.975) + z(0.8))·√(V₁ + V₂), the smallest true difference that a two-sided test at the 5 %
  level finds with a power of 80 % (Cohen 1988, chapter 2). V₁ and V₂ are the variances of two groups, each of half of the
  respondents, or of two rounds of as many respondents. They are about a large population.
- **Design**: how many questions each respondent answers, and the ε of each question. The ε are those with the smallest
  largest margin, numbers in parts of their range, such that the k largest ε together stay within the survey's ε.

References:
    J. Cohen, Statistical Power Analysis for the Behavioral Sciences, 2nd edition (1988).
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import ROUND_DOWN, Context, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ldp_budget._validation import check_share
from ldp_budget.errors import InvalidParameter
from ldp_budget.sdk.domain import check_users

from .design_prices import scale_reports
from .notebook_tables import TabularJson
from .planning.margins import PlannedMargin, Precision, least_respondents
from .questionnaires.survey_questions import SCALE, WITHOUT_BINS, SurveyQuestion
from .questionnaires.surveys import ALL, Survey

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ldp_budget.sdk.mechanism import Mechanism

_MOST_DESIGNS = 10
_STEPS = 40
"""Number of ε at which the variance of a question is computed; between them it is interpolated."""
_WIDEST = Decimal(20)
"""The largest ratio of the survey's ε to the smallest ε of a question."""
_WORTH = 0.98
"""Unequal ε are recommended if the largest margin is below this part of that of equal ones: equal ones compose better."""


def respondents_needed(precisions: Sequence[Precision], part: tuple[int, int], margin: float) -> int | None:
    """Return the least number of respondents for which every margin is at most `margin`; None if none is enough.

    Parameters:
        precisions: those of the questions.
        part: (k, m): each respondent answers k of m questions.
        margin: a share, or for numbers a part of the range; above 0 and below 1.

    Raises:
        InvalidParameter: `margin` is not between 0 and 1.
    """
    check_share("margin", margin)
    least = -(-part[1] // part[0])

    def enough(respondents: int) -> bool:
        return all(each.margin(respondents, part) <= margin for each in precisions)

    return least_respondents(enough, least)


# -- one question ----------------------------------------------------------------------------------------------------


def plan_collection(mechanism: Mechanism, respondents: int | None = None, margin: float | None = None) -> TabularJson:
    """Return the figures for a collection of one question, as `plan --collection --json` prints them.

    Parameters:
        mechanism: the mechanism of the collection.
        respondents: the number of respondents; None for the number that gives `margin`.
        margin: the largest margin of error.

    Raises:
        InvalidParameter: neither or both are given, or one is out of range.
    """
    precision = Precision.of(mechanism)
    respondents = _respondents(respondents, margin, lambda wanted: respondents_needed([precision], (1, 1), wanted))
    row: dict[str, Any] = {"mechanism": mechanism.name, "epsilon": mechanism.guarantee.epsilon}
    row |= {"assumed": False} if isinstance(precision, PlannedMargin) else {}
    found = {"respondents": respondents, **row, **({} if respondents is None else precision.row(respondents, (1, 1)))}
    return TabularJson(found, _CAPTION, [] if respondents is None else [found])


_CAPTION = "Margins at 95 % for these respondents, at the worst answers"


def _respondents(respondents: int | None, margin: float | None, needed: Any) -> int | None:
    if (respondents is None) == (margin is None):
        raise InvalidParameter("respondents", "given if and only if margin is not", respondents)
    if respondents is not None:
        check_users(respondents)
        return respondents
    found: int | None = needed(margin)
    return found


# -- surveys ---------------------------------------------------------------------------------------------------------


def plan_survey(
    survey: Survey, respondents: int | None = None, margin: float | None = None, total_epsilon: Decimal | None = None
) -> TabularJson:
    """Return the designs of a survey with their margins, as `plan --survey --json` prints them.

    Parameters:
        survey: the survey. Its `answer` and the ε of its questions are not used.
        respondents: the number of respondents; None to find for each design the number that gives `margin`.
        margin: the largest margin of error, a share or a part of a number's range.
        total_epsilon: the ε of all rounds of one person together; None for the survey's ε in each round.

    Raises:
        InvalidParameter: neither or both of `respondents` and `margin` are given, or an argument is out of range.
        InvalidParameter: a question has no mechanism.
    """
    if total_epsilon is not None:
        if total_epsilon <= 0:
            raise InvalidParameter("total_epsilon", "a number above 0", str(total_epsilon))
        per_round = _down(total_epsilon / survey.rounds_each)
        survey = replace(survey, epsilon=per_round)
    survey = replace(survey, questions=survey.slots, joint=False)
    count = len(survey.questions)
    designs = [_design(survey, ask, respondents, margin) for ask in _asks(count)]
    feasible = [each for each in designs if each["respondents"] is not None]
    key = "largest_margin" if margin is None else "respondents"
    best = min(feasible, key=lambda each: each[key]) if feasible else None
    split = designs[-1]
    for each in designs:
        if each["respondents"] is not None and split["respondents"] is not None:
            ratio = (split["largest_margin"] / each["largest_margin"]) ** 2
            each["efficiency"] = ratio if margin is None else split["respondents"] / each["respondents"]
    found = {
        "survey": survey.name,
        "epsilon": str(survey.epsilon),
        "rounds": survey.rounds,
        "rounds_each": survey.rounds_each,
        "total_epsilon": str(survey.epsilon * survey.rounds_each),
        "designs": designs,
        "recommended": None if best is None else best["answer"],
    }
    return TabularJson(found, f"{survey.name}. {_CAPTION}", _question_rows(designs, found["recommended"]))


def _question_rows(designs: Sequence[dict[str, Any]], recommended: Any) -> Iterator[dict[str, Any]]:
    """Yield a row for each question of each design."""
    for design in designs:
        for each in design.get("questions", ()):
            yield {
                "answers of each": str(design["answer"]),
                "question": each["name"],
                "mechanism": each["mechanism"],
                "epsilon": float(each["epsilon"]),
                "respondents": each["asked"],
                "range": each["range"],
                "margin": each["margin"],
                "population_margin": each["population_margin"],
                "recommended": "yes" if design["answer"] == recommended else "no",
            }


def _asks(count: int) -> list[int]:
    """Return the numbers of asked questions to compare; the last one is all."""
    if count <= _MOST_DESIGNS:
        return list(range(1, count + 1))
    return sorted({*(1, 2, 3, 4, 5), *(count * part // 4 for part in (1, 2, 3)), count})


def _design(survey: Survey, ask: int, respondents: int | None, margin: float | None) -> dict[str, Any]:
    """Return the best design in which each respondent answers `ask` questions."""
    part = (ask, len(survey.questions))
    plain = replace(
        survey, answer=ask, questions=tuple(replace(question, epsilon=None) for question in survey.questions)
    )
    equal = plain.epsilons()
    kinds = [question.mechanism.name for question in plain.questionnaire().questions]
    fixed = [replace(each, mechanism=kind) for each, kind in zip(survey.questions, kinds, strict=True)]
    precisions = [precision_at(each, epsilon) for each, epsilon in zip(fixed, equal, strict=True)]
    respondents = _respondents(respondents, margin, lambda wanted: respondents_needed(precisions, part, wanted))
    row: dict[str, Any] = {"answer": ALL if ask == part[1] else ask, "respondents": respondents}
    if respondents is None:
        return {**row, "questions": []}
    epsilons = equal
    if margin is None and ask > 1:
        better = _unequal(fixed, survey.epsilon, respondents, part)
        own = [precision_at(each, epsilon) for each, epsilon in zip(fixed, better, strict=True)]
        if _largest(own, respondents, part) < _WORTH * _largest(precisions, respondents, part):
            epsilons, precisions = better, own
    return {
        **row,
        "largest_margin": _largest(precisions, respondents, part),
        "equal": epsilons == equal,
        "questions": [
            {
                "name": question.name,
                "mechanism": question.mechanism,
                "epsilon": str(epsilon),
                **precision.row(respondents, part),
                **({"assumed": bool(question.assumed)} if question.kind in WITHOUT_BINS else {}),
                **(
                    {"reports": scale_reports(question, epsilon, respondents, part)} if question.kind == SCALE else {}
                ),
            }
            for question, epsilon, precision in zip(fixed, epsilons, precisions, strict=True)
        ],
    }


def _largest(precisions: Sequence[Precision], respondents: int, part: tuple[int, int]) -> float:
    return max(each.margin(respondents, part) for each in precisions)


def _unequal(
    questions: Sequence[SurveyQuestion], epsilon: Decimal, respondents: int, part: tuple[int, int]
) -> list[Decimal]:
    """Return the ε with the smallest largest margin, of which the k largest are at most `epsilon` together.

    For a margin M each question needs an ε of at least ε_j(M), which falls in M. So the smallest M is found by bisection.
    """
    grid = [_down(epsilon / _WIDEST ** (Decimal(step) / (_STEPS - 1))) for step in reversed(range(_STEPS))]
    margins = [[precision_at(each, at).margin(respondents, part) for at in grid] for each in questions]

    def needed(wanted: float) -> list[float]:
        return [_crossing([float(at) for at in grid], own, wanted) for own in margins]

    def fits(wanted: float) -> bool:
        return sum(sorted(needed(wanted), reverse=True)[: part[0]]) <= float(epsilon)

    low, high = max(own[-1] for own in margins), max(own[0] for own in margins)
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return [_down(Decimal(at)) for at in needed(high)]


def _crossing(grid: Sequence[float], margins: Sequence[float], wanted: float) -> float:
    """Return the smallest ε with that margin, interpolated in logarithms; the smallest of the grid if that is enough."""
    for place, margin in enumerate(margins):
        if margin <= wanted:
            if place == 0:
                return grid[0]
            before = margins[place - 1]
            share = math.log(before / wanted) / math.log(before / margin) if before > margin else 1.0
            return float(grid[place - 1] * (grid[place] / grid[place - 1]) ** share)
    return math.inf


@lru_cache(maxsize=4096)
def _precision_of(question: SurveyQuestion, epsilon: Decimal) -> Precision:
    assumed = tuple((float(value), float(share)) for value, share in question.assumed)
    return Precision.of(question.build(epsilon), assumed)


def precision_at(question: SurveyQuestion, epsilon: Decimal) -> Precision:
    """Return the precision of a question at an ε. Raises `InvalidParameter` if it has no mechanism.

    Parameters:
        question: the question.
        epsilon: the ε of its report.
    """
    try:
        return _precision_of(replace(question, text="", languages={}), epsilon)
    except InvalidParameter as error:
        raise InvalidParameter(
            f"mechanism of question {question.name}", error.expected, error.found, hint=error.hint
        ) from None


def _down(epsilon: Decimal) -> Decimal:
    """Return an ε of four digits, rounded down."""
    return Context(prec=4, rounding=ROUND_DOWN).plus(epsilon).normalize()
