"""Cells of tables of estimates: each with its margin first, and its standard error second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ldp_budget.reports.estimation import margin_of_interval, mean_margin, share_margin
from ldp_budget_cli.output import rounded
from ldp_budget_cli.tables import KEPT, print_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def margin_header(level: float) -> str:
    """Return the name of the column of margins."""
    return f"margin ({100 * level:.12g}{KEPT}%)"


def points(margin: float) -> str:
    """Return a margin of a share in percentage points; none is above 100."""
    return f"±{KEPT}{rounded(100 * min(1.0, margin), 1)}{KEPT}pp"


def three_digits(value: float) -> str:
    return f"{float(f'{value:.3g}'):.6g}"


def count_header(rows: list[dict[str, Any]], level: float) -> tuple[str, ...]:
    """Return the header of a table of counts."""
    last = "unbiased" if rows and "raw_count" in rows[0] else "adjusted"
    return "answer", "count", "share", margin_header(level), "low", "high", last


def count_cells(row: dict[str, Any], reports: float) -> tuple[str, ...]:
    """Return the cells of an answer in a table of counts; `reports` is the number to which counts add up."""
    parts = ("share_low", "share_high", "adjusted_share")
    shares = (f"{rounded(100 * row[part], 1)} %" for part in parts if part in row)
    raw = (rounded(row["raw_count"], 0),) if "raw_count" in row else ()
    first = row["answer"], rounded(row["count"], 0), f"{rounded(100 * row['share'], 1)} %"
    return *first, points(share_margin(row, reports)), *shares, *raw


def print_pairs(rows: list[dict[str, Any]], level: float) -> None:
    """Print the shares of people who gave two answers together."""
    margins = [margin_of_interval(row["share"], row["low"], row["high"]) for row in rows]
    click.echo("\nTicked together")
    print_table(
        ("answers", "share", margin_header(level), "low", "high"),
        [
            (
                " and ".join(row["answers"]),
                f"{rounded(100 * row['share'], 1)} %",
                points(margin),
                *(f"{rounded(100 * row[part], 1)} %" for part in ("low", "high")),
            )
            for row, margin in zip(rows, margins, strict=True)
        ],
    )


def mean_cells(row: Mapping[str, Any], level: float) -> dict[str, Any]:
    """Return the row of a mean with its margin in front of the standard error, without lists and objects."""
    plain = {name: value for name, value in row.items() if not isinstance(value, dict | list)}
    shown: dict[str, Any] = {}
    for name, value in plain.items():
        if name == "std_error":
            shown[margin_header(level)] = f"±{KEPT}{three_digits(mean_margin(row))}"
        shown[name] = value
    return shown


def note_cap(row: Mapping[str, Any]) -> None:
    """Print at which value numbers were capped, if they were."""
    if "cap" in row:
        cap = three_digits(row["cap"])
        click.echo(
            f"Values above {cap}, the 95 % quantile, count as {cap}. The interval is for the mean with this cap"
        )


def note_outside(rows: Iterable[Mapping[str, Any]], *parts: str) -> None:
    """Print what an estimate means that is outside of its interval, if one of them is; `parts` name it and the ends."""
    if any(not row[parts[1]] <= row[parts[0]] <= row[parts[2]] for row in rows):
        click.echo(
            "These estimates are unbiased: the noise moved one of them beyond what is possible. The interval holds possible "
            "values only"
        )
