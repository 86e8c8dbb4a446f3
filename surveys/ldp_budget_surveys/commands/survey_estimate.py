"""`ldp-budget estimate SURVEY`: one table for each question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ldp_budget.reports.estimation import (
    estimate_files,
    estimate_if_any,
    plain_rows,
)
from ldp_budget_cli.input_tables import write_rows_to
from ldp_budget_cli.output import JSON, LINES, counted, print_json, print_rows
from ldp_budget_cli.tables import print_row_table, print_table

from ..questionnaires.survey_questions import QUANTILE
from ..questionnaires.survey_rows import as_reported, survey_row, survey_rows
from .count_tables import count_cells, count_header, mean_cells, note_cap, note_outside, print_pairs
from .design_tables import quantile_rows
from .figure_files import save_estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..questionnaires.survey_collection import SurveyCollection


def estimate_survey(
    collection: SurveyCollection,
    files: Sequence[str],
    *,
    level: float,
    consistent: bool | None,
    mixed: bool,
    rounds: Sequence[str] | None,
    rows_to: str | None,
    form: str | None,
) -> None:
    """Estimate each question from report files, and print or write the result. `rounds`: the name of each file's round."""
    if consistent is None:
        consistent = form is None and rows_to is None

    def one(some: Sequence[str]) -> dict[str, Any]:
        charges: dict[str, int] = {}

        def on_mixed(charged: int, uncharged: int) -> None:
            charges.update(charged=charged, uncharged=uncharged)
            click.echo(
                f"Warning: {uncharged} of {counted(charged + uncharged, 'report')} were not charged to their users: "
                "the estimate is of a mix",
                err=True,
            )

        # A round without reports stays a round, without answers.
        estimate = estimate_files if rounds is None else estimate_if_any
        result = estimate(collection, some, on_mixed=on_mixed if mixed else None)
        if result is None:
            return {"respondents": 0, **{question.name: {"asked": 0} for question in collection.survey.shown}}
        return {**survey_row(collection, result, level=level, consistent=consistent), **charges}

    if rounds is None:
        found = [one(files)]
        printed = [as_reported(collection, each) for each in found]
        rows = list(survey_rows(printed[0]))
    else:
        found = [{"round": name, **one((path,))} for name, path in zip(rounds, files, strict=True)]
        printed = [as_reported(collection, each) for each in found]
        rows = [{"round": each["round"], **row} for each in printed for row in survey_rows(each)]
    if rows_to is not None:
        write_rows_to("rows-to", rows_to, _alike(list(plain_rows(rows))))
    save_estimate(printed[0] if rounds is None else {"rounds": printed}, level)
    if form == JSON:
        print_json(printed[0] if rounds is None else {"rounds": printed})
    elif form is not None:
        print_rows(rows if form == LINES else _alike(list(plain_rows(rows))), form)
    else:
        for each in found:
            _print(collection, each, level)


def check_options(given: Mapping[str, object]) -> None:
    """Raise a click error for an option of `estimate` that needs a collection of one question."""
    for option, value in given.items():
        if value:
            raise click.UsageError(f"--{option} is for a collection of one question. Leave it out of a survey.")


def _alike(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of counts and of means with the same columns."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


def _print(collection: SurveyCollection, row: Mapping[str, Any], level: float) -> None:
    if "round" in row:
        click.echo(f"Round {row['round']}")
    respondents = row["respondents"]
    click.echo(f"{counted(respondents, 'respondent')}; {100 * level:.12g} % confidence intervals")
    for question in collection.survey.shown:
        own = row[question.name]
        unit = f" ({question.shown_unit})" if question.shown_unit else ""
        asked = "all" if own["asked"] == respondents else f"{own['asked']} of {respondents}"
        click.echo(f"\n{question.name}{unit}{f': {question.text}' if question.text else ''} ({asked} answered)")
        if not own["asked"]:
            click.echo("No report answers this question")
        elif "answers" in own:
            cells = [count_cells(each, respondents) for each in own["answers"]]
            print_table(count_header(own["answers"], level)[: len(cells[0])], cells)
            if "pairs" in own:
                print_pairs(own["pairs"], level)
        elif question.kind == QUANTILE:
            print_row_table(quantile_rows(own))
        else:
            shown = mean_cells(own, level)
            print_row_table([{name: value for name, value in shown.items() if name not in ("asked", "reports")}])
            note_cap(own)
            note_outside([own], "mean", "low", "high")
