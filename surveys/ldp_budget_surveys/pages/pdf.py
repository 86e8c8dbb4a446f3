"""PDF files of pages, made by WeasyPrint (extra `pdf`): it knows page margins, running titles and page numbers.

WeasyPrint is a Python package that uses the library Pango of the operating system. Weighed against it: Chromium makes the
same pages, but is a browser of 300 MB, and its Python package downloads it; fpdf2 and reportlab are not made for HTML with CSS,
so the page would be written twice.
"""

from __future__ import annotations

import logging
from typing import Any

from ldp_budget.errors import NotSupported

_HINT = (
    "Install it: pip install 'ldp-budget[pdf]', and Pango with the operating system (Debian: libpango-1.0-0 "
    "libpangoft2-1.0-0 libharfbuzz-subset0). Or write .html and print it from a browser."
)
_MOST_LETTERS = 20


def check_installed() -> None:
    """Raise `NotSupported` unless PDF files can be made here."""
    _weasyprint()


def _weasyprint() -> Any:
    try:
        import weasyprint
    except (ImportError, OSError) as error:  # OSError: Pango is missing
        what = "the package weasyprint" if isinstance(error, ImportError) else "the library Pango"
        raise NotSupported(f"a PDF file needs {what}", hint=_HINT) from None
    return weasyprint


class _Letters(logging.Handler):
    """Collects the warnings of WeasyPrint about letters that no installed font has."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.missing: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if "glyph" in str(record.msg) and record.args:
            self.missing[str(record.args[0])] = None  # type: ignore[index]


def pdf(page: str) -> bytes:
    """Return a PDF file of a page. Nothing is loaded, whatever the page names.

    Parameters:
        page: the page as HTML.

    Raises:
        NotSupported: WeasyPrint or Pango is not installed, or no installed font has a letter of the page.
    """
    weasyprint, letters = _weasyprint(), _Letters()
    from weasyprint.urls import URLFetcher

    log = logging.getLogger("weasyprint")
    log.addHandler(letters)
    try:
        document = weasyprint.HTML(string=page, url_fetcher=URLFetcher(allowed_protocols=()))
        made: bytes = document.write_pdf(pdf_tags=True)
    finally:
        log.removeHandler(letters)
    if letters.missing:
        listed = " ".join(list(letters.missing)[:_MOST_LETTERS])
        raise NotSupported(
            f"no installed font has these letters of the page: {listed}",
            hint="Install one (Debian, for Korean: fonts-noto-cjk), or write .html. Nothing was written.",
        )
    return made
