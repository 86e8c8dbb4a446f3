"""`ldp-budget survey import` and `export`: forms of other tools."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation

import click

from ldp_budget_cli.inputs import find_collection
from ldp_budget_cli.notes import print_note

from .named_surveys import survey_of


def _above_zero(ctx: click.Context, parameter: click.Parameter, value: str) -> Decimal:
    try:
        number = Decimal(value)
    except InvalidOperation:
        number = Decimal(0)
    if not (number.is_finite() and number > 0):
        raise click.BadParameter(f"{value!r} is not a number above 0.")
    return number


@click.command("import")
@click.argument("file", metavar="FORM.xlsx", type=click.Path(dir_okay=False))
@click.option(
    "--epsilon", required=True, metavar="E", callback=_above_zero, help="The ε of one person's answers, all together."
)
def import_(file: str, epsilon: Decimal) -> None:
    """Print a survey file (TOML) with the questions of an XLSForm, as ODK, Kobo and SurveyCTO use it.

    Standard error names what is not asked and why: questions that depend on an answer, texts, places, repeats. The
    answers are the names of the choices; labels become translations. Needs the extra xlsform.

    \b
    Example:
      ldp-budget survey import health.xlsx --epsilon 2 > health.toml
    """
    from ..form_files.xlsform import read_xlsform

    text, notes = read_xlsform(file, epsilon)
    click.echo(text, nl=False)
    for note in notes:
        click.echo(note, err=True)
    print_note("Next: save the text as FILE.toml, then ldp-budget survey plan FILE.toml --respondents N")


@click.command("export")
@click.argument("name")
@click.option("--surveyjs", is_flag=True, required=True, help="Print the JSON of a form of SurveyJS.")
@click.pass_context
def export(ctx: click.Context, name: str, surveyjs: bool) -> None:
    """Print the survey NAME as a form of another tool: SurveyJS, whose answers `ldp-budget/surveyjs` turns into one report.

    \b
    Example:
      ldp-budget survey export health --surveyjs > form.json
    """
    from ..form_files.surveyjs import surveyjs_form

    click.echo(json.dumps(surveyjs_form(survey_of(find_collection(ctx, name))), indent=2, ensure_ascii=False))
