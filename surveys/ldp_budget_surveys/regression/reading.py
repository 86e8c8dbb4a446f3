"""The respondents of a regression, read from report files: those who answered all questions of the formula."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import InvalidParameter, NotSupported

from ..designs.moments import moments_of_counts
from ..designs.questions import in_parts
from ..designs.survey_estimates import weightless, weights_for
from .channels import report_likelihood, set_likelihood
from .formulas import number_column
from .sample import Sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..designs.questions import AskedQuestion
    from ..designs.survey_estimates import DesignOptions, SurveyFiles
    from .sample import Floats, Ints


@dataclass(frozen=True)
class Respondents:
    """Rows of respondents with the same public attributes and the same reports.

    Parameters:
        columns: the public columns.
        cells: the combinations of their values.
        people: the number of respondents of each.
        cell: the combination of each row, (K,).
        contributions: for each question the contributions of each row, (K, d).
        likelihood: the chance of the report to the first question under each of its answers, (K, d); empty if not requested.
        sample: the rows.
    """

    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    people: Ints
    cell: Ints
    contributions: dict[str, Floats]
    likelihood: Floats
    sample: Sample

    def numbers(self, column: str) -> Floats:
        """Return a public column of numbers, (K,). Raises `InvalidParameter` for another one."""
        place = self.columns.index(column)
        found = number_column(column, [cell[place] for cell in self.cells])
        if found is None:
            raise InvalidParameter("formula", f"numbers in {column}, the outcome", "texts")
        return found[self.cell]

    def mean(self, values: Floats) -> Floats:
        """Return the weighted mean of values of each row, (K, …)."""
        total = self.sample.total
        found: Floats = total @ values / total.sum()
        return found


def read_respondents(
    source: SurveyFiles, questions: Sequence[AskedQuestion], design: DesignOptions, *, likely: bool
) -> Respondents:
    """Return the respondents who answered all these questions.

    Parameters:
        source: the report files.
        questions: questions of their collection.
        design: weights, strata and clusters.
        likely: True for the likelihood of the first question.

    Raises:
        ReportFileError: a file cannot be read, or the files have different public columns.
        InvalidParameter: an option names no public column, or weights do not fit the reports.
        NotSupported: there are no such respondents, or a mechanism lacks what is requested.
    """
    everyone, public = source.respondents(), source.public()
    if not everyone.reports:
        raise NotSupported("there are no reports to estimate from")
    if unweighted := weightless(everyone, design):
        source = replace(source, left_out=unweighted)
    numbers: dict[tuple[str, ...], int] = {}
    found: list[Any] = []
    widths = [1 if each.answers is None else len(each.answers) for each in questions]
    for reports, attributes in in_parts(source.blocks(), 2 * sum(widths)):
        masks, parts = zip(*(each.of(source.survey, reports) for each in questions), strict=True)
        here = np.logical_and.reduce(masks)
        own = [part[here[mask]] for mask, part in zip(masks, parts, strict=True)]
        if here.any():
            values = [each.mechanism.contributions(some) for each, some in zip(questions, own, strict=True)]
            chances = report_likelihood if questions[0].item is None else set_likelihood
            values += [chances(questions[0].mechanism, own[0])] if likely else []
            codes = np.array(
                [numbers.setdefault(each[: len(public)], len(numbers)) for each in attributes.combinations]
            )
            found.append(_counted(np.column_stack((np.ones(here.sum()), codes[attributes.codes[here]], *values))))
    if not found:
        raise NotSupported("no respondent answered all questions of the formula")
    rows = _counted(np.concatenate(found))
    counts, whole = rows[:, 0], rows[:, 2:]
    used, cell = np.unique(rows[:, 1].astype(np.int64), return_inverse=True)
    cells = tuple(list(numbers)[code] for code in used.tolist())
    people = np.bincount(cell, counts, len(cells)).astype(np.int64)
    moments = moments_of_counts(dict(zip(cells, people.tolist(), strict=True)), public)  # sorted by combination
    order = {each: place for place, each in enumerate(moments.cells)}
    place = np.array([order[each] for each in cells])[cell]
    clusters = None if design.clusters is None else moments.codes((design.clusters,), "clusters")[0][place]
    sample = Sample.of(
        counts,
        weights_for(moments, design, rounds=False).values[place],
        moments.codes(design.strata, "strata")[0][place],
        clusters,
        repeats=1 if design.independent else len(source.files),
    )
    ends = np.cumsum([0, *widths])
    contributions = {
        each.name: whole[:, start:end] for each, start, end in zip(questions, ends, ends[1:], strict=False)
    }
    return Respondents(public, cells, people, cell, contributions, whole[:, ends[-1] :], sample)


def _counted(rows: Floats) -> Floats:
    """Return the distinct rows, with the sum of their first columns as the first column."""
    distinct, place = np.unique(rows[:, 1:], axis=0, return_inverse=True)
    return np.column_stack((np.bincount(place.reshape(-1), rows[:, 0], len(distinct)), distinct))
