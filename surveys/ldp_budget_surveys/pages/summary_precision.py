"""Precision of the results of a survey: margins, open answers that are as precise, and margins before the first answer.

The margin of a result is the distance from the unbiased estimate to the farther end of its 95 % confidence interval.

A result is as precise as N open answers, given without noise by a simple random sample of a large population, if both
have the same variance. With f the shares and V their variances about the population:

    N = Σ f·(1 - f) / Σ V

V = (m/z)², with m the margin and z the 0.975 quantile of a normal variable. Where the interval is about the n people who
answered, f·(1 - f)/n is added: the chance of who they are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ldp_budget.errors import LdpBudgetError
from ldp_budget.reports.estimation import margin_of_interval, mean_margin, share_margin

from ..planning.margins import Precision, Z
from .summary_blocks import Block, Grid, Note

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .survey_summary import Question, Subject
    from .translations import Texts

    Row = Mapping[str, Any]

PLANNED = 1000
"""The number of answers of which a plan says the margins, if it is not known how many people are invited."""
GROUPS = (1, 2, 4, 10)
"""The numbers of equal groups of which a plan says the margins."""


def with_margins(answers: Sequence[Row], reports: float) -> list[dict[str, Any]]:
    """Return the rows of answers, each with the margin of its share.

    Parameters:
        answers: rows as those of `estimate --json`.
        reports: the number to which counts add up, for rows with a `raw_count`.
    """
    return [{**each, "margin": share_margin(each, reports)} for each in answers]


def open_answers(row: Row, *, weighted: bool) -> int | None:
    """Return how many open answers are as precise, rounded down; None if the spread of the answers is not known.

    Parameters:
        row: the row of a question, of a group, or of a two-way table with `cells`, as in `estimate --json`.
        weighted: True if the intervals are about the population, and False if they are about those who answered.
    """
    people = row.get("reports", row.get("respondents", 0))
    if "answers" in row:
        parts = [
            (_spread(each["share"]), max(each["margin"] / Z, each["share_std_error"]))
            for each in with_margins(row["answers"], people)
        ]
    elif "cells" in row:
        parts = [
            (
                _spread(each["share"]),
                max(margin_of_interval(each["share"], each["low"], each["high"]) / Z, each["std_error"]),
            )
            for each in row["cells"]
        ]
    elif "bins" in row:
        middles = [((each["low"] + each["high"]) / 2, each["share"]) for each in row["bins"]]
        mean = sum(at * share for at, share in middles)
        spread = sum(share * (at - mean) ** 2 for at, share in middles)
        parts = [(spread, max(mean_margin(row) / Z, row["std_error"]))]
    else:
        return None
    spread, noise = sum(each for each, _ in parts), sum(error**2 for _, error in parts)
    variance = noise if weighted else noise + spread / max(1, people)
    return math.floor(spread / variance) if variance > 0 else None


def _spread(share: float) -> float:
    share = min(1.0, max(0.0, share))
    return share * (1 - share)


# -- before the first answer -----------------------------------------------------------------------------------------


def expected_margins(say: Texts, question: Question, subject: Subject, invited: int | None) -> Iterator[Block]:
    """Yield the margins of a question and its groups about a large population, at the worst answers."""
    mechanism = question.collection.mechanism
    if hasattr(mechanism, "planned_margin"):  # it depends on the distribution
        return
    try:
        precision = Precision.of(mechanism)
    except LdpBudgetError:  # answers that are not listed
        return
    people = invited or PLANNED
    asked = max(1, people * subject.asked // len(subject.questions))
    header, cells = [say("column.among")], [say("column.margin") + (f" ({question.unit})" if question.unit else "")]
    for groups in GROUPS:
        if answers := asked // groups:
            found = min(1.0, precision.worst(answers, 1.0).margin)
            number = f"± {say.margin(found * precision.width)}" if precision.width is not None else None
            cells.append(number or say("margin.points", margin=say.points(found)))
            name = "plan.everyone" if groups == 1 else "plan.group"
            header.append(say(name, groups=groups, answers=say.whole(answers)))
    yield Note(say("plan.invited" if invited else "plan.margins", people=say.whole(people)))
    yield Grid(tuple(header), (tuple(cells),))
