"""Results in notebooks: HTML tables with a small picture of each interval, and DataFrames of pandas or Polars.

Every text is escaped, also the names of users and answers. A picture has the color of the text around it, so that it can be
read in dark mode, and says its numbers to those who cannot see it.
"""

from __future__ import annotations

import math
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_budget._dataframes import Tabular
from ldp_budget.errors import InvalidParameter, NotSupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Rows = Sequence[Mapping[str, Any]]

LIBRARIES = ("pandas", "polars")
MOST_ROWS = 50
"""Maximum number of rows that a table shows."""
_WIDTH, _HEIGHT = 160, 14
_ESTIMATES = ("estimate", "mean", "count", "share")


class TabularJson(Tabular, dict[str, Any]):
    """JSON of a result, which notebooks show as the rows of a table.

    Parameters:
        found: the JSON.
        caption: what the rows are.
        rows: the rows.
    """

    def __init__(self, found: Mapping[str, Any], caption: str, rows: Iterable[Mapping[str, Any]]) -> None:
        super().__init__(found)
        self._caption_text, self._rows = caption, [dict(row) for row in rows]

    @property
    def caption(self) -> str:
        return self._caption_text

    def to_rows(self) -> list[dict[str, Any]]:
        return self._rows


def frame_of(rows: Rows, library: str) -> Any:
    """Return rows as a DataFrame; a row without a column has a missing value there.

    Parameters:
        rows: the rows.
        library: `pandas` or `polars`.

    Raises:
        InvalidParameter: `library` is another name.
        NotSupported: the library is not installed.
    """
    if library not in LIBRARIES:
        raise InvalidParameter("library", " or ".join(LIBRARIES), repr(library))
    try:
        frames = import_module(library)
    except ImportError:
        raise NotSupported(f"{library} is not installed", hint=f"Install it: pip install {library}") from None
    columns = {name: [row.get(name) for row in rows] for name in _columns(rows)}
    return frames.DataFrame(columns, **({"strict": False} if library == "polars" else {}))


def html_table(caption: str, rows: Rows) -> str:
    """Return an HTML table of the first rows, with a picture of each interval.

    Parameters:
        caption: its caption.
        rows: the rows.
    """
    header, shown = _columns(rows), rows[:MOST_ROWS]
    pictures = list(_pictures(shown))
    seen = any(pictures)
    lines = [
        f"<caption>{_text(caption)}</caption>",
        _row("th", [*map(_text, header), *(["interval"] if seen else [])]),
    ]
    for row, picture in zip(shown, pictures, strict=True):
        lines.append(_row("td", [*(_text(row.get(name)) for name in header), *([picture] if seen else [])]))
    if len(rows) > len(shown):
        lines.append(f'<tr><td colspan="{len(header) + seen}">… ({len(rows)} rows)</td></tr>')
    return f'<table class="ldp-budget">{"".join(lines)}</table>'


def _columns(rows: Rows) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"


def _text(value: Any) -> str:
    """Return a value as escaped text for people; with `quote` it is safe in an attribute too."""
    return escape(_shown(value), quote=True)


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return "unbounded" if math.isinf(value) else f"{value:.6g}"
    return str(value)


# -- pictures ------------------------------------------------------------------------------------------------


class _Interval(NamedTuple):
    """An interval around an estimate, and the rows with which it shares a scale."""

    low: float
    estimate: float
    high: float
    scale: object


def _interval(number: int, row: Mapping[str, Any]) -> _Interval | None:
    """Return the interval of a row: of an estimate, of what is spent of a limit, or of a margin."""
    kind = next((name for name in _ESTIMATES if isinstance(row.get(name), float)), None)
    low, high = row.get("low"), row.get("high")
    if kind is not None and isinstance(low, float | int) and isinstance(high, float | int):
        return _Interval(low, row[kind], high, (kind, row.get("question"), row.get("figure")))
    if isinstance(row.get("spent"), float) and isinstance(row.get("capacity"), float):
        return _Interval(0.0, row["spent"], row["capacity"], number)
    if isinstance(row.get("margin"), float):
        return _Interval(0.0, row["margin"], row["margin"], (row.get("question"), "margin"))
    return None


def _pictures(rows: Rows) -> Iterator[str]:
    """Yield the picture of each row, empty if it has none. A scale holds zero and all finite ends of its rows."""
    found = [_interval(number, row) for number, row in enumerate(rows)]
    for each in found:
        if each is None or math.isnan(each.estimate):
            yield ""
            continue
        alike = (one for one in found if one is not None and one.scale == each.scale)
        ends = [0.0, *(end for one in alike for end in one[:3] if math.isfinite(end))]
        yield _picture(each, min(ends), max(ends))


def _picture(of: _Interval, start: float, end: float) -> str:
    def place(value: float) -> str:
        part = (min(max(value, start), end) - start) / ((end - start) or 1.0)
        return f"{4 + part * (_WIDTH - 8):.1f}"

    low, at, high, zero = map(place, (of.low, of.estimate, of.high, 0.0))
    said = f"{_shown(float(of.estimate))}, from {_shown(float(of.low))} to {_shown(float(of.high))}"
    middle = _HEIGHT // 2
    return (
        f'<svg role="img" aria-label="{said}" width="{_WIDTH}" height="{_HEIGHT}" fill="currentColor" stroke="currentColor">'
        f"<title>{said}</title>"
        f'<line x1="{zero}" x2="{zero}" y1="0" y2="{_HEIGHT}" stroke-opacity="0.3"></line>'
        f'<line x1="{low}" x2="{high}" y1="{middle}" y2="{middle}" stroke-width="2" stroke-opacity="0.6"></line>'
        f'<circle cx="{at}" cy="{middle}" r="3.5" stroke="none"></circle></svg>'
    )
