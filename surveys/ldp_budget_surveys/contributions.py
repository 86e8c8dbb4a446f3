"""The contributions file: one row a report, for R's survey, statsmodels, Stata and SPSS.

Each row has the report's public columns, and for each answer a number whose expectation is 1 if the respondent holds that
answer and else 0. A mean, a total or a linear model of these numbers is one of the true answers, and its standard error
holds the sampling and the noise. For nonlinear models, the raw columns have what the report says, with the chances p and q.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ldp_budget.errors import NotSupported

from .designs.questions import in_parts, questions_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ldp_budget.registry.collections import Collection

    from .designs.questions import AskedQuestion
    from .designs.survey_estimates import SurveyFiles

MOST_COLUMNS = 2_000
"""The most columns of contributions: Stata reads 2,048 variables."""
RAW = "raw."


class Column(NamedTuple):
    """A column of contributions: its name, its answer (None for a number), p and q of its reports, and the answer's range.

    A report says 1 with chance p if its respondent holds the answer, and with chance q if not; both are None where a report
    says more than 0 or 1.
    """

    column: str
    answer: str | None
    p: float | None
    q: float | None
    lower: float | None
    upper: float | None

    def raw(self, contributions: Any) -> Any:
        """Return the 0 or 1 that each report says. Raises `NotSupported` where a report says more."""
        assert self.p is not None
        assert self.q is not None
        said = self.q + (self.p - self.q) * contributions
        found = np.rint(said)
        if not np.allclose(said, found, atol=1e-6) or not np.isin(found, (0, 1)).all():
            raise NotSupported(f"reports say more of {self.column} than 0 or 1")
        return found


def columns_of(survey: Collection, public: Sequence[str]) -> list[tuple[AskedQuestion, list[Column]]]:
    """Return the questions of a survey with their columns: ANSWER, or QUESTION.ANSWER in a questionnaire.

    Parameters:
        survey: the collection.
        public: the public columns of its reports.

    Raises:
        NotSupported: an answer has no contribution of its own; there are too many answers; or two columns have one name.
    """
    found = []
    for each in questions_of(survey):
        if each.answers is None:
            ends = (None, None) if each.mechanism.domain is None else each.mechanism.domain.ends
            found.append((each, [Column(each.name, None, None, None, *ends)]))
        else:
            start = "" if each.place is None else f"{each.name}."
            chances = response_chances(each.mechanism, len(each.answers))
            rows = zip(each.answers, chances, strict=True)
            found.append((each, [Column(start + answer, answer, p, q, 0.0, 1.0) for answer, (p, q) in rows]))
    names = [each.column for _, columns in found for each in columns]
    if len(names) > MOST_COLUMNS:
        raise NotSupported(
            f"{survey.name} has {len(names)} answers, and a contributions file has at most {MOST_COLUMNS} columns of answers",
            hint=f"Programs for statistics read no more. Use ldp-budget estimate {survey.name}.",
        )
    counts = Counter([*public, *names, *(RAW + name for name in names)])
    if twice := [name for name, times in counts.items() if times > 1]:
        raise NotSupported(f"two columns would have the name {twice[0]!r}", hint="Rename the public column.")
    return found


def response_chances(mechanism: Any, answers: int) -> list[tuple[float, float] | tuple[None, None]]:
    """Return p and q of each answer: the chances that a report says 1 of it; None where a report says more than 0 or 1.

    Parameters:
        mechanism: a mechanism over categories.
        answers: their number.
    """
    try:
        pairs = mechanism.support_probabilities if mechanism.draws_per_report == 1 else []
    except (AttributeError, NotImplementedError, NotSupported):
        pairs = []
    if len(pairs) not in (1, answers):
        return [(None, None)] * answers
    return [(float(p), float(q)) for p, q in (pairs if len(pairs) == answers else list(pairs) * answers)]


def contribution_rows(
    source: SurveyFiles, asked: Sequence[tuple[AskedQuestion, list[Column]]], *, raw: bool
) -> Iterator[list[Any]]:
    """Yield a row for each report: its public values, its contributions, and with `raw` what it says of each answer.

    A contribution to a question that was not asked is None. Numbers are in the unit of the question.

    Parameters:
        source: the report files.
        asked: the questions, as `columns_of` returns them.
        raw: True for the columns of 0 and 1 of each answer that has them.

    Raises:
        ReportFileError: a file cannot be read, or the files have different public columns.
        NotSupported: the mechanism memoizes, and there are several files.
    """
    survey = source.survey
    if survey.mechanism.repeats and len(source.files) > 1:
        raise NotSupported(
            f"{survey.name} memoizes, so reports of the same users in several files are not independent",
            hint="Write a file for each report file.",
        )
    width, columns = sum(len(each) for _, each in asked), len(source.public())
    for reports, public in in_parts(source.blocks(), width):
        cells = np.full((len(reports), width), np.nan)
        said, first = [], 0
        for question, each in asked:
            here, own = question.of(survey, reports)
            if here.any():
                cells[here, first : first + len(each)] = question.mechanism.contributions(own)
            own_cells = cells[:, first : first + len(each)]
            said += [
                _said(column, own_cells[:, place])
                for place, column in enumerate(each)
                if raw and column.p is not None
            ]
            first += len(each)
        known = [public.combinations[code][:columns] for code in public.codes.tolist()]
        numbers = cells.astype(object)
        numbers[np.isnan(cells)] = None
        for values, line, bits in zip(
            known, numbers, zip(*said, strict=True) if said else [()] * len(known), strict=True
        ):
            yield [*values, *line, *bits]


def _said(column: Column, contributions: Any) -> list[int | None]:
    known = ~np.isnan(contributions)
    bits = np.full(len(contributions), None, object)
    bits[known] = column.raw(contributions[known]).astype(int)
    found: list[int | None] = bits.tolist()
    return found
