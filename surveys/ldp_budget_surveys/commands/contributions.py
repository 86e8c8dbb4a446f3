"""`ldp-budget contributions`: a table for R, Stata, SPSS and statsmodels, one row a report."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from ldp_budget_cli.app import collection_names
from ldp_budget_cli.input_tables import writing_rows
from ldp_budget_cli.inputs import find_collection, mixed_option
from ldp_budget_cli.notes import print_note
from ldp_budget_cli.output import cell, counted, json_option, marked, print_json
from ldp_budget_cli.table_kinds import CSV, named_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..contributions import Column

_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?", re.ASCII)


@click.command()
@click.argument("collection", shell_complete=collection_names)
@click.argument("files", nargs=-1, required=True)
@click.option("--out", required=True, metavar="FILE", help="Write the table to FILE: CSV, or .parquet, .arrow.")
@click.option(
    "--raw", is_flag=True, help="Also write what each report says of each answer, 0 or 1: columns raw.ANSWER."
)
@mixed_option
@json_option
@click.pass_context
def contributions(
    ctx: click.Context, collection: str, files: tuple[str, ...], out: str, raw: bool, mixed: bool, as_json: bool
) -> None:
    """Write a row for each report of FILES: its public columns, and its unbiased contribution to each answer.

    A contribution may be below 0 or above 1: only means of many are shares. R's survey, statsmodels, Stata and SPSS
    read the table. A question that was not asked has an empty cell.

    \b
    Example:
      ldp-budget contributions mood mood.reports --out mood.csv
    """
    from ..contributions import RAW, columns_of, contribution_rows
    from ..designs.survey_estimates import SurveyFiles

    source = SurveyFiles(find_collection(ctx, collection), files, mixed=mixed)
    public = source.public()
    asked = columns_of(source.survey, public)
    columns = [each for _, some in asked for each in some]
    bits = [each for each in columns if each.p is not None]
    if raw and not bits:
        raise click.UsageError(
            f"--raw: a report of {collection} says more of an answer than 0 or 1. Leave --raw out."
        )
    text = _text if named_kind(out) == CSV else str
    types: dict[str, type] = {text(name): str for name in public} | {text(each.column): float for each in columns}
    types |= {RAW + each.column: int for each in bits if raw} | dict.fromkeys(marked({}), bool)
    extra, reports = list(marked({}).values()), 0
    with writing_rows("out", out, types) as note:
        for row in contribution_rows(source, asked, raw=raw):
            note([*map(text, row[: len(public)]), *row[len(public) :], *extra])
            reports += 1
    found = {"reports": reports, "columns": [each._asdict() | {"column": text(each.column)} for each in columns]}
    if as_json:
        print_json(found)
    else:
        click.echo(f"{counted(reports, 'report')} written to {out}")
    _note(columns, raw, len(files))


def _note(columns: Sequence[Column], raw: bool, files: int) -> None:
    if any(each.answer is not None for each in columns):
        print_note(
            "Values lie below 0 and above 1. Do not clip or round them: only as they are have they the right mean"
        )
    for each in columns:
        if each.answer is None and each.lower is not None:
            print_note(
                f"{each.column}: in the unit of the question, asked from {each.lower:.12g} to {each.upper:.12g}"
            )
    for p, q in dict.fromkeys((each.p, each.q) for each in columns if raw and each.answer is not None):
        chances = "none for some answers: a report says more than 0 or 1" if p is None else f"p = {p!r}, q = {q!r}"
        print_note(f"Raw columns: {chances}")
    if files > 1:
        print_note("Note: rows of several files are independent only if each file has other people")


def _text(value: str) -> str:
    """Return a text for a CSV file: one that a spreadsheet would run gets an apostrophe before it; a number stays."""
    return value if _NUMBER.fullmatch(value) else cell(value)
