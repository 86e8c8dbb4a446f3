"""`ldp-budget estimate`: the server's side."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from .files import find_collection
from .output import json_option, nl_option, print_json, print_rows, print_table

if TYPE_CHECKING:
    from ldp_budget.authoring.estimates import CountEstimate, Estimate, MeanEstimate
    from ldp_budget.catalogue.collections import Collection


@click.command()
@click.argument("collection")
@click.argument("files", nargs=-1, required=True)
@click.option("--plot", metavar="PNG", help="Draw the estimate with its intervals.")
@click.option(
    "--adjust",
    type=click.Choice(["nonnegative", "simplex"]),
    help="Beside the unbiased counts, show counts >= 0, or ones that also add up.",
)
@json_option
@nl_option
@click.pass_context
def estimate(
    ctx: click.Context,
    collection: str,
    files: tuple[str, ...],
    plot: str | None,
    adjust: str | None,
    as_json: bool,
    nl: bool,
) -> None:
    """Estimate counts and shares, or a mean, from the report FILES of COLLECTION."""
    from ldp_budget.authoring.estimates import CountEstimate

    found = find_collection(ctx, collection)
    result = estimate_files(found, files)
    _warn_of_twins(files)
    if plot is not None:
        from .plots import plot_estimate

        plot_estimate(found, result, plot)
    row = to_json(found, result)
    if adjust is not None:
        _add_adjusted(result, row, adjust)
    if nl:
        print_rows(row.get("answers", [row]), as_json=True, nl=True)
    elif as_json:
        print_json(row)
    elif isinstance(result, CountEstimate):
        _print_counts(result, row["answers"])
    else:
        print_rows([row], as_json=False)


def estimate_files(collection: Collection, files: tuple[str, ...]) -> Estimate:
    """One estimate from all the files, read block by block."""
    from ldp_budget.collecting.reports import read_reports
    from ldp_budget.errors import ReportFileError

    mechanism = collection.mechanism
    total = None
    for path in files:
        for block in read_reports(path, collection):
            part = mechanism.aggregate(block)
            total = part if total is None else total.merge(part)
    if total is None:
        raise ReportFileError(", ".join(files), "there are no reports to estimate from")
    return mechanism.estimate(total)


def _warn_of_twins(files: tuple[str, ...]) -> None:
    """Say so where two of the files hold the same: reports that are counted twice look more certain than they are."""
    seen: dict[bytes, str] = {}
    for path in _same_size(files):
        with open(path, "rb") as file:
            content = hashlib.file_digest(file, "sha256").digest()
        if content in seen:
            click.echo(
                f"Warning: {seen[content]} and {path} hold the same; reports that are counted twice make the "
                "standard errors too small",
                err=True,
            )
        seen.setdefault(content, path)


def _same_size(files: tuple[str, ...]) -> list[str]:
    """The ordinary files among these that have the size of another."""
    sizes = {path: os.path.getsize(path) for path in files if os.path.isfile(path)}
    often = Counter(sizes[path] for path in files if path in sizes)
    return [path for path in files if path in sizes and often[sizes[path]] > 1]


def to_json(collection: Collection, result: Estimate) -> dict[str, Any]:
    """What `estimate --json` prints. `std_error`, `low` and `high` are those of the count; `share_…` of the share."""
    from ldp_budget.authoring.estimates import CountEstimate, MeanEstimate

    if isinstance(result, CountEstimate):
        return {"reports": result.reports, "answers": _count_rows(collection, result)}
    assert isinstance(result, MeanEstimate)
    return _mean_row(collection, result)


def _count_rows(collection: Collection, result: CountEstimate) -> list[dict[str, Any]]:
    n = result.reports
    low, high = result.interval()
    names = collection.answer_names(len(result.counts))
    return [
        {
            "answer": name,
            "count": count,
            "share": count / n,
            "std_error": error,
            "low": lowest,
            "high": highest,
            "share_std_error": error / n,
            "share_low": lowest / n,
            "share_high": highest / n,
        }
        for name, count, error, lowest, highest in zip(
            names,
            result.counts.tolist(),
            result.std_errors.tolist(),
            low.tolist(),
            high.tolist(),
            strict=True,
        )
    ]


def _mean_row(collection: Collection, result: MeanEstimate) -> dict[str, Any]:
    """The mean; of a mechanism whose reports are biased also by how much, which no interval shows."""
    low, high = result.interval()
    bias = collection.mechanism.utility().get("max_bias")
    row = {
        "reports": result.reports,
        "mean": result.mean,
        "std_error": result.std_error,
        "low": low,
        "high": high,
    }
    return row if bias is None else {**row, "max_bias": bias}


def _add_adjusted(result: Estimate, row: dict[str, Any], how: str) -> None:
    """Put the adjusted counts beside the unbiased ones, and say which they are."""
    from ldp_budget.authoring.estimates import CountEstimate, adjusted

    if not isinstance(result, CountEstimate):
        raise click.UsageError(f"--adjust: expected a collection of answers to count; found a mean with {how}")
    row["adjusted"] = how
    for answer, count in zip(row["answers"], adjusted(result, how).tolist(), strict=True):
        answer["adjusted_count"] = count
        answer["adjusted_share"] = count / result.reports


def _print_counts(result: CountEstimate, rows: list[dict[str, Any]]) -> None:
    click.echo(f"{result.reports} reports; 95 % intervals")
    if "adjusted_share" in rows[0]:
        click.echo("adjusted shares are for showing: they are not unbiased, and the intervals are not theirs")
    parts = ("share", "share_low", "share_high", "adjusted_share")
    table = [
        (
            row["answer"],
            f"{row['count']:.0f}",
            *(f"{100 * row[part]:.1f} %" for part in parts if part in row),
        )
        for row in rows
    ]
    header = ("answer", "count", "share", "low", "high", "adjusted")
    print_table(header[: len(table[0])], table)
