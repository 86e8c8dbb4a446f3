"""One page of a survey for people who decide: self-contained HTML, or Markdown.

The HTML holds its styles and pictures, and requests nothing from any host. Every value is escaped.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, assert_never
from urllib.parse import urlsplit

from .summary_blocks import Bar, Chart, Code, Contact, Facts, Grid, Heading, Meter, Note
from .summary_text import key_figures, sections, warnings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .summary_blocks import Block, Section
    from .survey_summary import Summary

_EMAIL = re.compile(r"[^\s@<>\"']+@[^\s@<>\"']+\.[^\s@<>\"']+")


def html_page(summary: Summary) -> str:
    """Return the page as HTML."""
    subject = summary.subject
    figures = "".join(
        f"<div><dt>{escape(label)}</dt><dd class=number>{escape(number)}</dd><dd>{escape(remark)}</dd></div>"
        for label, number, remark in key_figures(summary)
    )
    return html_document(
        title=subject.title,
        asked_by=subject.organisation,
        purpose=subject.purpose,
        warnings="\n".join(f'<p class="note warning">{escape(said)}</p>' for said in warnings(summary)),
        figures=f'<dl class="figures">{figures}</dl>',
        sections=sections(summary),
    )


def html_document(
    *,
    title: str,
    asked_by: str,
    purpose: str,
    sections: Iterable[Section],
    warnings: str = "",
    figures: str = "",
    language: str = "en",
) -> str:
    """Return one HTML file that loads nothing. `warnings` and `figures` are HTML; all other texts are escaped here."""
    return _template().substitute(
        language=language,
        title=escape(title),
        asked_by=escape(asked_by),
        purpose=escape(purpose),
        warnings=warnings,
        figures=figures,
        sections="\n".join(map(_html_section, range(1, 1000), sections)),
    )


@cache
def _template() -> Template:
    return Template(Path(__file__).with_name("summary_page.html").read_text(encoding="utf-8"))


def _html_section(number: int, section: Section) -> str:
    blocks = "\n".join(map(_html_block, section.blocks))
    return (
        f'<section class="{section.name}" aria-labelledby="s{number}">\n<h2 id="s{number}">{escape(section.title)}</h2>'
        f"\n{blocks}\n</section>"
    )


def _html_block(block: Block) -> str:
    match block:
        case Note():
            return f'<p class="{"note warning" if block.warning else "note"}">{escape(block.text)}</p>'
        case Heading():
            return f"<h3>{escape(block.text)}</h3>"
        case Facts():
            rows = (f"<div><dt>{escape(term)}</dt><dd>{_html_cell(said)}</dd></div>" for term, said in block.rows)
            return f"<dl class=facts>{''.join(rows)}</dl>"
        case Grid():
            head = "".join(f'<th scope="col">{escape(each)}</th>' for each in block.header)
            body = "".join(f"<tr>{_html_cells(block.header, row)}</tr>" for row in block.rows)
            name = '"grid answers"' if block.answers else "grid"
            return f"<table class={name}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        case Meter():
            bar = f'<rect class="track" width="100%" height="14" rx="3"/><rect class="bar" width="{100 * block.used:.2f}%"'
            return (
                f"<figure class=meter><figcaption><span>{escape(block.label)}</span> <b>{escape(block.shown)}</b>"
                f'</figcaption><svg aria-hidden="true" height="14">{bar} height="14" rx="3"/></svg></figure>'
            )
        case Chart():
            return _html_chart(block)
        case _ as never:
            assert_never(never)


def _html_cell(text: str) -> str:
    shown = escape(text)
    if isinstance(text, Code):
        return f"<code>{shown}</code>"
    url = link(text) if isinstance(text, Contact) else None
    return shown if url is None else f'<a href="{escape(url)}">{shown}</a>'


def _html_cells(header: tuple[str, ...], row: tuple[str, ...]) -> str:
    """Return the cells of a row; a narrow screen shows each below the title of its column."""
    first, *rest = zip(header, row, strict=True)
    cells = (f'<td data-title="{escape(title)}">{_html_cell(text)}</td>' for title, text in rest)
    return f'<th scope="row">{_html_cell(first[1])}</th>{"".join(cells)}'


def link(contact: str) -> str | None:
    """Return the URL of a contact that is an email address or a web address; None for any other text."""
    if _EMAIL.fullmatch(contact):
        return f"mailto:{contact}"
    try:
        parts = urlsplit(contact)
    except ValueError:
        return None
    return contact if parts.scheme in ("http", "https") and parts.netloc and not re.search(r"\s", contact) else None


def _html_chart(chart: Chart) -> str:
    """Return bars as a table, so that screen readers get the numbers; each bar is an SVG that fills its cell."""
    name, *amounts = (escape(each) for each in chart.columns)
    heads = [
        f'<th scope="col" role="columnheader">{name}</th>',
        '<td role="columnheader"><span class=hidden>Picture</span></td>',
        *(f'<th scope="col" role="columnheader" class=amount>{each}</th>' for each in amounts),
    ]
    rows = "".join(_html_bar(chart, bar) for bar in chart.bars)
    ends = {0: "first", len(chart.marks) - 1: "last"}
    marks = "".join(
        f'<span class="{ends.get(at, "middle")}">{escape(text)}</span>' for at, (_, text) in enumerate(chart.marks)
    )
    axis = f'<tr class=axis aria-hidden="true"><td></td><td class=picture><div>{marks}</div></td></tr>'
    return (
        f'<table class=chart role="table"><caption class=hidden>{escape(chart.label)}</caption>'
        f'<thead role="rowgroup"><tr role="row">{"".join(heads)}</tr></thead>'
        f'<tbody role="rowgroup">{rows}{axis}</tbody></table>'
    )


def _html_bar(chart: Chart, bar: Bar) -> str:
    def place(value: float) -> float:
        width = chart.most - chart.least
        return 100 * min(1.0, max(0.0, (value - chart.least) / width)) if width else 0.0

    grid = "".join(
        f'<line class="mark" x1="{place(at):.2f}%" x2="{place(at):.2f}%" y2="26"/>' for at, _ in chart.marks
    )
    parts = [grid]
    if chart.least == 0 or bar.low is None:
        parts.append(f'<rect class="bar" y="5" width="{place(bar.value):.2f}%" height="16" rx="2"/>')
    if bar.low is not None and bar.high is not None:
        low, high = f"{place(bar.low):.2f}%", f"{place(bar.high):.2f}%"
        parts.append(f'<line class="interval" x1="{low}" x2="{high}" y1="13" y2="13"/>')
        parts += [f'<line class="interval" x1="{end}" x2="{end}" y1="8" y2="18"/>' for end in (low, high)]
    if chart.least != 0:
        parts.append(f'<circle class="bar" cx="{place(bar.value):.2f}%" cy="13" r="5"/>')
    amounts = [("share", bar.shown), ("range", bar.interval), ("count", bar.count)][: len(chart.columns) - 1]
    cells = "".join(f'<td role="cell" class="amount {name}">{escape(text)}</td>' for name, text in amounts)
    return (
        f'<tr role="row"><th scope="row" role="rowheader">{escape(bar.label)}</th>'
        f'<td role="cell" class=picture><svg aria-hidden="true" height="26">{"".join(parts)}</svg></td>{cells}</tr>'
    )


# -- Markdown ------------------------------------------------------------------------------------------------

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&])")


def markdown_page(summary: Summary) -> str:
    """Return the page as Markdown, without pictures."""
    subject = summary.subject
    lines = [f"# {_plain(subject.title)}", ""]
    lines += [text for said in (subject.organisation, subject.purpose) if said for text in (_plain(said), "")]
    lines += [text for said in warnings(summary) for text in (f"**{_plain(said)}**", "")]
    for section in sections(summary):
        lines += [f"## {_plain(section.title)}", ""]
        for block in section.blocks:
            lines += [*_markdown_block(block), ""]
    return "\n".join(lines)


def _markdown_block(block: Block) -> Iterator[str]:
    match block:
        case Note():
            yield f"**{_plain(block.text)}**" if block.warning else _plain(block.text)
        case Heading():
            yield f"### {_plain(block.text)}"
        case Facts():
            yield from (f"- **{_plain(term)}:** {_markdown_cell(said)}" for term, said in block.rows)
        case Grid():
            yield from _markdown_table(block.header, [tuple(map(_markdown_cell, row)) for row in block.rows])
        case Meter():
            yield f"{_plain(block.label)}: {_plain(block.shown)}"
        case Chart():
            cells = [(bar.label, bar.shown, bar.interval, bar.count)[: len(block.columns)] for bar in block.bars]
            yield from _markdown_table(block.columns, [tuple(map(_plain, row)) for row in cells])
        case _ as never:
            assert_never(never)


def _markdown_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(map(_plain, header))} |"
    yield f"|{' --- |' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _markdown_cell(text: str) -> str:
    if isinstance(text, Code):
        return f"`{text}`"
    url = link(text) if isinstance(text, Contact) else None
    return _plain(text) if url is None else f"[{_plain(text)}](<{url}>)"


def _plain(text: str) -> str:
    """Return a text in which Markdown sees no markup, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
