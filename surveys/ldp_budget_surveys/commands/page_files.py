"""Files of pages: HTML, PDF or Markdown that a command writes for people."""

from __future__ import annotations

import os

import click

PDF = ".pdf"
ENDINGS = {
    "html": (".html", ".htm"),
    "html or pdf": (".html", ".htm", PDF),
    "markdown": (".md", ".markdown", ".txt"),
}
"""The endings of a page's file, by its kind."""
PAPERS = ("a4", "letter")
"""The sizes of printed pages."""


def check_page(out: str, overwrite: bool, kind: str = "html") -> None:
    """Raise a click error unless a page of this kind can be written there."""
    if os.path.exists(out) and not overwrite:
        raise click.ClickException(
            f"--out: {out} exists. Nothing was written. Name another file, or add --overwrite to replace it."
        )
    endings = ENDINGS[kind]
    if not out.lower().endswith(endings):
        raise click.UsageError(f"--out must end in {' or '.join(endings)}, because the page is {kind}: got {out}")
    if out.lower().endswith(PDF):
        from ..pages.pdf import check_installed

        check_installed()


def write_page(out: str, page: str) -> None:
    """Write the page, or a PDF file of it, readable by its owner only until the owner passes it on."""
    from ldp_budget.reports.places import shown_place, written

    content = page.encode()
    if out.lower().endswith(PDF):
        from ..pages.pdf import pdf

        content = pdf(page)
    try:
        with written(out) as file:
            file.write(content)
    except OSError as error:
        raise click.ClickException(f"--out: cannot write {shown_place(out)}: {error.strerror}.") from None
