"""Files of pages: HTML or Markdown that a command writes for people."""

from __future__ import annotations

import os

import click

ENDINGS = {"html": (".html", ".htm"), "markdown": (".md", ".markdown", ".txt")}
"""The endings of a page's file, by its kind."""


PDF = ".pdf"
PAPERS = ("a4", "letter")
"""The sizes of printed pages. The first one is the default of PDF files."""


def check_page(out: str, overwrite: bool, kind: str = "html", *, pdf: bool = False) -> None:
    """Raise a click error unless a page of this kind, or with `pdf` a PDF file of it, can be written there."""
    if os.path.exists(out) and not overwrite:
        raise click.ClickException(
            f"--out: {out} exists. Nothing was written. Name another file, or add --overwrite to replace it."
        )
    endings = (*ENDINGS[kind], *((PDF,) if pdf else ()))
    if not out.lower().endswith(endings):
        raise click.UsageError(f"--out must end in {' or '.join(endings)}, because the page is {kind}: got {out}")
    if is_pdf(out):
        from ldp_budget_surveys.pages.pdf import check_installed

        check_installed()


def is_pdf(out: str) -> bool:
    return out.lower().endswith(PDF)


def write_page(out: str, page: str | bytes) -> None:
    """Write the page, readable by its owner only until the owner passes it on."""
    from ldp_budget.reports.tables import shown_place, written

    try:
        with written(out) as file:
            file.write(page.encode() if isinstance(page, str) else page)
    except OSError as error:
        raise click.ClickException(f"--out: cannot write {shown_place(out)}: {error.strerror}.") from None
