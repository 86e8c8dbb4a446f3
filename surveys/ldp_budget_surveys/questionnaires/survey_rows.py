"""The rows of an estimate of a survey, as `estimate --json` and its table print them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ldp_budget.reports.estimation import estimate_row, made_consistent
from ldp_budget.sdk.estimates import CountEstimate

from .questionnaire_estimates import QuestionnaireEstimate
from .scales import in_report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldp_budget.sdk.estimates import Estimate

    from .survey_collection import SurveyCollection


def survey_row(
    collection: SurveyCollection, result: Estimate, *, level: float = 0.95, consistent: bool = False
) -> dict[str, Any]:
    """Return the object that `estimate --json` prints for a survey: `respondents`, and a key for each question.

    The object of a question is as for a collection of its own, with `asked`, the number of those who answered it, in
    place of `reports`. Counts are of all respondents, and errors include the choice of the asked ones. Without an
    answer it has `asked` alone.
    """
    assert isinstance(result, QuestionnaireEstimate)
    row: dict[str, Any] = {"respondents": result.reports}
    for name, own in result.questions.items():
        row[name] = {"asked": result.asked[name]}
        if own is not None:
            shown = made_consistent(own) if consistent and isinstance(own, CountEstimate) else own
            found = estimate_row(collection.question(name), shown, level=level)
            row[name] |= {key: value for key, value in found.items() if key != "reports"}
    return row


def as_reported(collection: SurveyCollection, row: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a survey with the figure that each scale reports: `top_box` or `nps` in place of answers or a mean."""
    reports = collection.survey.reports
    return row | {name: in_report(row[name], report) for name, report in reports.items() if name in row}


def survey_rows(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of `survey_row` for a table: one for each answer to each question, one for each mean."""
    for name, own in row.items():
        if isinstance(own, dict):
            shared = {"question": name, "asked": own["asked"]}
            for each in own.get("answers", [own]):
                yield {**shared, **{key: value for key, value in each.items() if not isinstance(value, list)}}
