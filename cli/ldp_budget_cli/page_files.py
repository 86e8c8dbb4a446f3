"""Files of pages: HTML or Markdown that a command writes for people."""

from __future__ import annotations

import os

import click

ENDINGS = {"html": (".html", ".htm"), "markdown": (".md", ".markdown", ".txt")}
"""The endings of a page's file, by its kind."""


def check_page(out: str, overwrite: bool, kind: str = "html") -> None:
    """Raise a click error unless a page of this kind can be written there."""
    if os.path.exists(out) and not overwrite:
        raise click.ClickException(
            f"--out: {out} exists. Nothing was written. Name another file, or add --overwrite to replace it."
        )
    endings = ENDINGS[kind]
    if not out.lower().endswith(endings):
        raise click.UsageError(f"--out must end in {' or '.join(endings)}, because the page is {kind}: got {out}")


def write_page(out: str, page: str) -> None:
    """Write the page, readable by its owner only until the owner passes it on."""
    from ldp_budget.reports.tables import shown_place, written

    try:
        with written(out) as file:
            file.write(page.encode())
    except OSError as error:
        raise click.ClickException(f"--out: cannot write {shown_place(out)}: {error.strerror}.") from None
