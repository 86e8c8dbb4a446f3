"""Cells of a table of estimated counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .output import rounded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def count_header(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the header of a table of counts."""
    last = "unbiased" if rows and "raw_count" in rows[0] else "adjusted"
    return "answer", "count", "share", "low", "high", last


def count_cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of an answer in a table of counts."""
    parts = ("share", "share_low", "share_high", "adjusted_share")
    shares = (f"{rounded(100 * row[part], 1)} %" for part in parts if part in row)
    raw = (rounded(row["raw_count"], 0),) if "raw_count" in row else ()
    return row["answer"], rounded(row["count"], 0), *shares, *raw


def note_outside(rows: Iterable[Mapping[str, Any]], *parts: str) -> None:
    """Print what an estimate means that is outside of its interval, if one of them is; `parts` name it and the ends."""
    if any(not row[parts[1]] <= row[parts[0]] <= row[parts[2]] for row in rows):
        click.echo(
            "These estimates are unbiased: the noise moved one of them beyond what is possible. The interval holds possible "
            "values only"
        )
