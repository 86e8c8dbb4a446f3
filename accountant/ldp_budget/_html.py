"""Results as tables in notebooks: what comes of users and answers is text there, whatever it looks like."""

from __future__ import annotations

import math
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_ROWS = 50
"""How many rows a table shows."""


def html_table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]], total: int) -> str:
    """A table of `total` rows, of which the first few are shown; every cell is escaped."""
    shown = list(islice(rows, MOST_ROWS))
    lines = [f"<caption>{_text(caption)}</caption>", _row("th", header), *(_row("td", row) for row in shown)]
    if total > len(shown):
        lines.append(f'<tr><td colspan="{len(header)}">… ({total} rows)</td></tr>')
    return f'<table class="ldp-budget">{"".join(lines)}</table>'


def _row(tag: str, cells: Iterable[object]) -> str:
    return f"<tr>{''.join(f'<{tag}>{_text(cell)}</{tag}>' for cell in cells)}</tr>"


def _text(cell: object) -> str:
    # `quote`: nobody has to look at where it stands.
    return escape(shown_cell(cell), quote=True)


def shown_cell(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return "unbounded" if math.isinf(value) else f"{value:.6g}"
    return str(value)
