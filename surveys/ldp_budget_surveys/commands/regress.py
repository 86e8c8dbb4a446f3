"""`ldp-budget regress`: a regression of a hidden answer, or on one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ldp_budget_cli.app import collection_names
from ldp_budget_cli.inputs import find_collection, mixed_option
from ldp_budget_cli.notes import print_note
from ldp_budget_cli.output import confidence_option, counted, json_option, level_option, print_json, rounded
from ldp_budget_cli.plots import plot_option
from ldp_budget_cli.tables import print_table

from .design_options import design_of, sample_options
from .estimate import warn_of_twins

if TYPE_CHECKING:
    from ..regression import Regression


@click.command()
@click.argument("collection", shell_complete=collection_names)
@click.argument("files", nargs=-1, required=True)
@click.argument("formula")
@click.option(
    "--model",
    type=click.Choice(["linear", "logistic", "multinomial"]),
    help="The model [default: logistic for two answers or one of several, multinomial for more, linear for a number]",
)
@sample_options
@confidence_option
@click.option("--independent", is_flag=True, help="Say that each file has other users.")
@mixed_option
@plot_option("the coefficients with their intervals")
@json_option
@click.pass_context
def regress(
    ctx: click.Context,
    collection: str,
    files: tuple[str, ...],
    formula: str,
    model: str | None,
    confidence: str,
    independent: bool,
    mixed: bool,
    plot: str | None,
    as_json: bool,
) -> None:
    """Regress an answer of COLLECTION on public columns: FORMULA as in R, "smoke ~ age + region".

    Coefficients are those of the true answers, and their errors hold noise, sampling, weights, strata and clusters. A
    hidden answer may also be a term: "income ~ smoke".

    \b
    Example:
      ldp-budget regress health may.reports "smoke ~ age + region" --strata region
    """
    from ..designs.survey_estimates import SurveyFiles
    from ..regression import regress

    level, survey = level_option(confidence), find_collection(ctx, collection)
    design = design_of(ctx, SurveyFiles(survey, files).public(), excluded=())
    found = regress(survey, files, formula, model=model, design=design, level=level, mixed=mixed)
    warn_of_twins(files, "reports that count twice make the standard errors too small")
    row = found.to_json()
    if plot is not None:
        from .coefficient_plot import plot_coefficients

        plot_coefficients(row, plot, level=level)
    if as_json:
        print_json(row)
    else:
        _print(found, row, level)
    _note(row, len(files), independent=independent)


def _print(found: Regression, row: dict[str, Any], level: float) -> None:
    only = next(iter(found.shares)) if len(found.shares) == 1 else ""
    what = f"of {found.outcome}" if found.outcome.endswith(only) else f"of {found.outcome} = {only}"
    scale = {"linear": "", "logistic": ", in logits", "multinomial": f", in logits against {found.reference}"}
    reports = counted(found.reports, "report")
    click.echo(
        f"{found.model} model {what}{scale[found.model]}; {reports}; {100 * level:.12g} % confidence intervals"
    )
    for answer, share in found.shares.items():
        click.echo(f"share of {answer} without a model: {100 * share:.1f} %")
    header = ("term", "coefficient", "std error", "low", "high", "p-value")
    cells = [
        (
            each["name"],
            _figure(each["estimate"], "infinite"),
            _figure(each["std_error"], "-"),
            _figure(each["low"], "-infinite"),
            _figure(each["high"], "infinite"),
            f"{each['p_value']:.4f}" if each["p_value"] >= _LEAST else f"<{_LEAST}",
        )
        for each in row["coefficients"]
    ]
    print_table(header, cells)


_LEAST = 0.0001


def _figure(value: float | None, without: str) -> str:
    return without if value is None else rounded(value, 4)


def _note(row: dict[str, Any], files: int, *, independent: bool) -> None:
    open_ended = [each["name"] for each in row["coefficients"] if each["low"] is None or each["high"] is None]
    if open_ended:
        print_note(
            f"Open intervals: {', '.join(open_ended)}. The reports are too few, or too noisy, to rule out any larger value "
            "on the open side. Leave terms out, or collect more"
        )
    if files > 1 and not independent:
        print_note(
            f"Note: errors are for {files} files of the same people. If each file has other people, add --independent"
        )
