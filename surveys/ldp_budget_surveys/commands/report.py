"""`ldp-budget report`: one page about a survey, for a manager or an ethics board."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from ldp_budget.reports.estimation import (
    check_countable,
    chosen_rows,
    counts_answers,
    estimate_if_any,
    estimate_row,
    made_consistent,
)
from ldp_budget_cli.app import collection_names, open_ledger
from ldp_budget_cli.inputs import find_collection
from ldp_budget_cli.notes import print_note
from ldp_budget_cli.number_types import WholeRange
from ldp_budget_cli.output import counted, json_option, print_json
from ldp_budget_cli.progress import progress, reading_reports

from ..questionnaires.survey_collection import SurveyCollection
from ..questionnaires.survey_rows import survey_row
from .design_options import design_options, is_designed, source_and_design, typed_design
from .estimate import answers_to_count, top_option, twins
from .page_files import PAPERS, check_page, write_page
from .survey_estimate import check_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ldp_budget.registry.collections import Collection

    from ..pages.survey_summary import Summary, Weighting


@click.command()
@click.argument("name", shell_complete=collection_names)
@click.argument("files", nargs=-1)
@click.option(
    "--out", metavar="FILE", help="The file to write: .html or .pdf; with --markdown .md [default: standard output]"
)
@click.option("--overwrite", is_flag=True, help="Replace the file at --out.")
@click.option("--markdown", is_flag=True, help="Write Markdown, without pictures.")
@click.option("--paper", type=click.Choice(PAPERS), help="The size of printed pages [default: a4 in a PDF file]")
@click.option(
    "--language", default="en", show_default=True, metavar="TAG", help="The language of the page: en, ko or de."
)
@click.option("--invited", type=WholeRange(min=0), metavar="N", help="How many people were invited.")
@click.option(
    "--refused",
    type=WholeRange(min=0),
    metavar="N",
    help="How many people the budget refused [default: what the ledger knows of, for all surveys]",
)
@click.option("--organisation", default="", metavar="TEXT", help="Who asks.")
@click.option("--candidates", metavar="FILE|A,B,C", help="Show only these answers. Sketches need it.")
@click.option("--top", metavar="K", help="Show only the K answers with the largest counts [default: all]")
@click.option("--independent", is_flag=True, help="Say that each file has other users.")
@click.option("--mixed", is_flag=True, help="Allow a mix of charged and uncharged reports.")
@design_options
@click.option(
    "--verify/--no-verify",
    default=None,
    help="Verify the ledger, or not [default: unless it was verified within the last hour]",
)
@json_option
@click.pass_context
def report(
    ctx: click.Context,
    name: str,
    files: tuple[str, ...],
    out: str | None,
    overwrite: bool,
    markdown: bool,
    paper: str | None,
    language: str,
    invited: int | None,
    refused: int | None,
    organisation: str,
    candidates: str | None,
    top: str | None,
    independent: bool,
    mixed: bool,
    verify: bool | None,
    as_json: bool,
) -> None:
    """Write one page about the survey NAME from its report FILES: results, budget, and who guarantees what.

    The page is one file that loads nothing. Without FILES it shows the plan, with the margins to expect. A PDF file
    needs the extra pdf.

    \b
    Example:
      ldp-budget report mood mood.reports --invited 500 --out mood.html
      ldp-budget report mood mood.reports --language de --out mood.pdf
    """
    from ..pages.summary_page import html_page, markdown_page
    from ..pages.survey_summary import Subject, public_columns, summarize
    from ..pages.translations import texts

    if out is None and not markdown:
        raise click.UsageError(
            "--out is missing: the HTML or PDF file to write. Add --out FILE.html, --out FILE.pdf or --markdown."
        )
    if as_json and out is None:
        raise click.UsageError("--json needs --out: standard output has the page otherwise. Add --out FILE.")
    if out is not None:
        check_page(out, overwrite, "markdown" if markdown else "html or pdf")
    texts(language)  # raises for a language without texts
    collection = find_collection(ctx, name)
    weighting = None
    if is_designed(ctx):
        row, weighting, uncharged = _weighted(ctx, collection, files, mixed=mixed)
    else:
        row, uncharged = _row(collection, files, candidates, top_option(top), independent=independent, mixed=mixed)
    ledger = None if os.path.isfile(name) else open_ledger(ctx)
    with progress("reading the ledger") as on_progress:
        summary = summarize(
            Subject.of_collection(collection, row, organisation=organisation, language=language),
            datetime.now(UTC) if ledger is None else ledger.now(),
            files=[os.path.basename(file) or file for file in files],
            invited=invited,
            refused=refused,
            uncharged=uncharged,
            ledger=ledger,
            verify=verify,
            on_progress=on_progress,
            public=public_columns(files, collection),
            twins=[(os.path.basename(first), os.path.basename(second)) for first, second in twins(files)],
            weighting=weighting,
        )
    _check_invited(invited, summary)
    page = markdown_page(summary, language) if markdown else html_page(summary, language, paper or "")
    for first, second in summary.twins:
        click.echo(
            f"Warning: {first} and {second} have the same content; reports that count twice make the margins too small",
            err=True,
        )
    if out is None:
        click.echo(page)
    else:
        write_page(out, page)
        print_note(f"Page about {counted(summary.answered, 'answer')} written to {out}")
    if as_json:
        verified = None if summary.ledger is None else summary.ledger.ok
        print_json({"collection": collection.name, "answered": summary.answered, "page": out, "verified": verified})
    if summary.ledger is not None and summary.ledger.ok is False:
        problems = counted(len(summary.ledger.problems), "problem")
        click.echo(
            f"Warning: the ledger failed its check: {problems}. Do not rely on this report. To list the problems, run: "
            "ldp-budget ledger verify",
            err=True,
        )
        sys.exit(1)


def _check_invited(invited: int | None, summary: Summary) -> None:
    """Raise a click error if more people answered than were invited."""
    from ..pages.summary_text import people_who_answered

    people = people_who_answered(summary)
    # Without a ledger, the reports of several files may be of the same people.
    known = len(summary.files) == 1 or (summary.charges is not None and summary.charges.accounts > 0)
    if invited is not None and known and invited < people:
        raise click.UsageError(
            f"--invited must be at least the number of those who answered: {people}. Got {invited}. Nothing was written."
        )


def _row(
    collection: Collection,
    files: Sequence[str],
    candidates: str | None,
    most: int | None,
    *,
    independent: bool,
    mixed: bool,
) -> tuple[dict[str, Any] | None, int]:
    """Return the object of `estimate --json`, with consistent counts of the chosen answers; None without a report.

    The second value is the number of reports that were not charged to their users.
    """
    if not files:
        return None, 0
    charges = {"charged": 0, "uncharged": 0}

    def on_charges(charged: int, uncharged: int) -> None:
        charges.update(charged=charged, uncharged=uncharged)

    if collection.mechanism.components:
        check_options({"candidates": candidates, "top": most})
        names = None
    else:
        names = None if candidates is None else answers_to_count(collection, candidates)
        check_countable(collection, names, most)
    with reading_reports() as on_reports:
        result = estimate_if_any(
            collection,
            files,
            names,
            most=most,
            independent=independent,
            on_mixed=(lambda charged, uncharged: None) if mixed else None,
            on_charges=on_charges,
            on_reports=on_reports,
        )
    if result is None:
        return None, 0
    if isinstance(collection, SurveyCollection):
        return survey_row(collection, result, consistent=True), charges["uncharged"]
    if counts_answers(collection):
        result = made_consistent(result)
    row = estimate_row(collection, result, names=names)
    if "answers" in row:
        row["answers"] = chosen_rows(row["answers"], names, most)
    return row, charges["uncharged"]


def _weighted(
    ctx: click.Context, collection: Collection, files: Sequence[str], *, mixed: bool
) -> tuple[dict[str, Any] | None, Weighting | None, int]:
    """Return the object of `estimate --json` with the given design, how it is weighted, and the number of uncharged.

    Without a report, the first two are None. A page has room for groups and a table; `estimate` prints one of them at a time.
    """
    from ..designs.survey_estimates import estimate_survey
    from ..pages.survey_summary import Weighting

    source, design = source_and_design(ctx, collection, files, mixed=mixed)
    if not source.respondents().reports:
        return None, None, 0
    row = estimate_survey(source, replace(design, table=None))
    table = None if design.table is None else estimate_survey(source, replace(design, by=None))
    weights = design.weights or ""
    weighting = Weighting(
        weights if isinstance(weights, str) else tuple(column for column in weights[0] if column != "weight"),
        () if design.totals is None else tuple(dict.fromkeys(each["variable"] for each in design.totals)),
        design.strata,
        design.clusters,
        design.by,
        row["weighted"],
        row["kish_design_effect"],
        row.get("population"),
        table,
        typed_design(ctx, without="table"),
        typed_design(ctx, without="by"),
    )
    return row, weighting, source.charges[False]
