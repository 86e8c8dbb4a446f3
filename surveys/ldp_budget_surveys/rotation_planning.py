"""Plans of a panel that is asked every period: rotation, splitting ε, and memoization, at the same ε of a person.

N members, w periods, a share f with S = f(1 - f), V(ε) the variance that one report at ε adds, c the share of members whose
answer changes from one period to the next. About the population:

    level    rotation w·(V(ε) + S)/N    splitting (V(ε/w) + S)/N       memoization (V(ε) + S)/N, one error in all periods
    change   rotation 2w·(V(ε) + S)/N   splitting (2V(ε/w) + c)/N      memoization c·(2V(ε) + 1)/N

Memoization repeats one randomized answer while the answer stays. It reveals when an answer changes, and costs another ε
for each new answer.

Source: Ren, Shi, Yu, Yang, Zhao and Xu, LDP-IDS, SIGMOD 2022.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ldp_budget._validation import check_whole
from ldp_budget.errors import InvalidParameter

from .planning.margins import MOST_RESPONDENTS, PlannedMargin, Precision, Z
from .questionnaires.surveys import Survey, equal_part
from .survey_planning import precision_at

if TYPE_CHECKING:
    from decimal import Decimal

    from .questionnaires.survey_questions import SurveyQuestion

SHARE = 0.1
"""The share at which designs are compared: at rarer answers the noise decides."""
CHANGED = 0.05
"""The share of members whose answer changes from one period to the next."""
_MOST_ANSWERS = 64


def compare_rotation(survey: Survey, panel: int) -> dict[str, Any]:
    """Return the designs of a panel for each question of a survey, as `plan --survey --panel --json` prints them.

    Parameters:
        survey: the survey; its `rotate`, or else its rounds, are the periods.
        panel: the number of members.

    Raises:
        InvalidParameter: `panel` is out of range, or the survey has a single round and no rotation.
    """
    periods = survey.rotate or survey.rounds
    if periods < 2:
        raise InvalidParameter(
            "panel", "for a survey with rotate, or with rounds", "one round", hint="Add rotate = 12."
        )
    check_whole("panel", panel, periods, MOST_RESPONDENTS)
    part = survey.ask, len(survey.slots)
    questions = [
        _compared(question, epsilon, periods, panel, part)
        for question, epsilon in zip(survey.slots, survey.epsilons(), strict=True)
    ]
    gains = [each["split_to_rotate"] for each in questions]
    return {
        "survey": survey.name,
        "panel": panel,
        "periods": periods,
        "every": survey.every if survey.rotate else "round",
        "epsilon": str(survey.epsilon),
        "share": SHARE,
        "recommended": "rotate" if min(gains) >= 1 else "split" if max(gains) < 1 else None,
        "questions": questions,
    }


def _compared(
    question: SurveyQuestion, epsilon: Decimal, periods: int, panel: int, part: tuple[int, int]
) -> dict[str, Any]:
    """Return the rows of a question, whose reports cost ε; and how often each member should answer."""
    each, divided = precision_at(question, epsilon), precision_at(question, equal_part(epsilon, periods))
    asked, all_asked = each.asked_of(max(1, panel // periods), part), each.asked_of(panel, part)
    rotate, split, memo = _level(each, asked), _level(divided, all_asked), _level(each, all_asked)
    noise = split - SHARE * (1 - SHARE) / all_asked
    changes = {
        "rotate": 2 * rotate,
        "split": 2 * noise + CHANGED / all_asked,
        "memoize": CHANGED * (2 * memo + (1 - 2 * SHARE * (1 - SHARE)) / all_asked),
    }
    levels = {"rotate": rotate, "split": split, "memoize": memo}
    unit = 1.0 if each.width is None else each.width
    return {
        "name": question.name,
        "range": each.width,
        **{
            design: {
                "epsilon": str(equal_part(epsilon, periods) if design == "split" else epsilon),
                "asked": panel // periods if design == "rotate" else panel,
                "margin": Z * math.sqrt(level) * unit,
                "change_margin": Z * math.sqrt(changes[design]) * unit,
            }
            for design, level in levels.items()
        },
        "split_to_rotate": split / rotate,
        "best_answers": _best_answers(question, epsilon, periods, panel, part),
    }


def _level(precision: Precision, asked: int) -> float:
    """Return the variance of the level of a period about the population, in parts of the range of a number."""
    if isinstance(precision, PlannedMargin):
        return precision.worst(asked, 1.0).variance
    return precision.variance_at(SHARE, asked) + SHARE * (1 - SHARE) / asked


def _best_answers(question: SurveyQuestion, epsilon: Decimal, periods: int, panel: int, part: tuple[int, int]) -> int:
    """Return in how many periods each member answers, at equal parts of ε, so that a period's level varies least."""

    def variance(answers: int) -> float:
        precision = precision_at(question, equal_part(epsilon, answers))
        return _level(precision, precision.asked_of(max(1, panel * answers // periods), part))

    best, lowest = 1, variance(1)
    for answers in range(2, min(periods, _MOST_ANSWERS) + 1):
        found = variance(answers)
        if found > lowest:
            break  # it falls, and then rises
        best, lowest = answers, found
    return best
