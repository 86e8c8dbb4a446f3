"""One page of a survey for people who decide: self-contained HTML that prints well, or Markdown.

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

from .summary_blocks import Bar, Chart, Code, Contact, Facts, Grid, Heading, Marked, Meter, Note, Signatures
from .summary_text import key_figures, sections, warnings
from .translations import texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .summary_blocks import Block, Section
    from .survey_summary import Summary
    from .translations import Texts

_EMAIL = re.compile(r"[^\s@<>\"']+@[^\s@<>\"']+\.[^\s@<>\"']+")


def html_page(summary: Summary, language: str = "en", paper: str = "") -> str:
    """Return the page as HTML.

    Parameters:
        summary: the facts.
        language: the language of the page.
        paper: the size of printed pages, a4 or letter; empty for that of the printer.

    Raises:
        InvalidParameter: the page has no texts in this language.
    """
    subject, say = summary.subject, texts(language)
    figures = "".join(
        f"<div><dt>{escape(label)}</dt><dd class=number>{escape(number)}</dd><dd>{escape(remark)}</dd></div>"
        for label, number, remark in key_figures(say, summary)
    )
    return html_document(
        title=subject.title,
        asked_by=subject.organisation,
        purpose=subject.purpose,
        warnings="\n".join(f'<p class="note warning">{escape(said)}</p>' for said in warnings(say, summary)),
        figures=f'<dl class="figures">{figures}</dl>',
        sections=sections(say, summary),
        language=language,
        made=say.date(summary.made_at),
        paper=paper,
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
    made: str = "",
    paper: str = "",
) -> str:
    """Return one HTML file that loads nothing. `warnings` and `figures` are HTML; all other texts are escaped here.

    Each printed page has the title, the date `made`, and its number.
    """
    say = texts(language)
    numbers = "counter(page)", "counter(pages)"
    parts = re.split(r"\{page\}|\{pages\}", say.said["print.page"])
    return _template().substitute(
        language=language,
        title=escape(title),
        asked_by=escape(asked_by),
        purpose=escape(purpose),
        warnings=warnings,
        figures=figures,
        sections="\n".join(_html_section(say, *each) for each in enumerate(sections, 1)),
        size=f"size: {paper};" if paper else "",
        printed_title=_css_text(title if len(title) <= _MOST_TITLE else f"{title[:_MOST_TITLE]}…"),
        printed_date=_css_text(made),
        printed_page=" ".join(
            f"{_css_text(text)} {number}" for text, number in zip(parts, (*numbers, ""), strict=True)
        ),
    )


_MOST_TITLE = 80
"""The most characters of a title at the top of each printed page."""


def _css_text(text: str) -> str:
    """Return a text as a CSS string: all that is neither a letter nor a digit is escaped."""
    return '"' + "".join(each if each.isalnum() else f"\\{ord(each):x} " for each in text) + '"'


@cache
def _template() -> Template:
    return Template(Path(__file__).with_name("summary_page.html").read_text(encoding="utf-8"))


def _html_section(say: Texts, number: int, section: Section) -> str:
    blocks = "\n".join(
        _html_block(say, each, leads=_leads(section.blocks[at + 1 : at + 3]))
        for at, each in enumerate(section.blocks)
    )
    return (
        f'<section class="{section.name}" aria-labelledby="s{number}">\n<h2 id="s{number}">{escape(section.title)}</h2>'
        f"\n{blocks}\n</section>"
    )


def _leads(after: tuple[Block, ...]) -> bool:
    """Return True if a table or a chart comes next, at most one note later: what leads to it is on the same page."""
    first, second = (*after, None, None)[:2]
    return isinstance(first, Grid | Chart | Facts) or (isinstance(first, Note) and isinstance(second, Grid | Chart))


def _html_block(say: Texts, block: Block, *, leads: bool) -> str:
    """Return a block as HTML; one that `leads` stays on a page with the block after it."""
    match block:
        case Note():
            names = ("note", *(["warning"] if block.warning else []), *(["lead"] if leads else []))
            return f'<p class="{" ".join(names)}">{escape(block.text)}</p>'
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
            track = _shape("rect", "track", width="100%", height=14, rx=3)
            bar = _shape("rect", "bar", width=f"{100 * block.used:.2f}%", height=14, rx=3)
            return (
                f"<figure class=meter><figcaption><span>{escape(block.label)}</span> <b>{escape(block.shown)}</b>"
                f'</figcaption><svg aria-hidden="true" height="14">{track}{bar}</svg></figure>'
            )
        case Chart():
            return _html_chart(say, block)
        case Signatures():
            lines = "".join(f"<p>{escape(label)}</p>" for label in block.labels)
            signers = "".join(f"<div><p>{escape(signer)}</p>{lines}</div>" for signer in block.signers)
            return f"<div class=signatures>{signers}</div>"
        case _ as never:
            assert_never(never)


def _html_cell(text: str) -> str:
    shown = escape(text)
    if isinstance(text, Code):
        return f"<code>{shown}</code>"
    if isinstance(text, Marked):
        return f"<strong>{shown}</strong>"
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


def _html_chart(say: Texts, chart: Chart) -> str:
    """Return bars as a table, so that screen readers get the numbers; each bar is an SVG that fills its cell."""
    name, *amounts = (escape(each) for each in chart.columns)
    heads = [
        f'<th scope="col" role="columnheader">{name}</th>',
        f'<td role="columnheader"><span class=hidden>{escape(say("column.picture"))}</span></td>',
        *(f'<th scope="col" role="columnheader" class=amount>{each}</th>' for each in amounts),
    ]
    rows = "".join(_html_bar(chart, bar) for bar in chart.bars)
    marks = "".join(
        f'<span style="left:{place:.2f}%;transform:translateX(-{place:.2f}%)">{escape(text)}</span>'
        for place, text in ((_place(chart, at), text) for at, text in chart.marks)
    )
    axis = f'<tr class=axis aria-hidden="true"><td></td><td class=picture><div>{marks}</div></td></tr>'
    return (
        f'<table class=chart role="table"><caption class=hidden>{escape(chart.label)}</caption>'
        f'<thead role="rowgroup"><tr role="row">{"".join(heads)}</tr></thead>'
        f'<tbody role="rowgroup">{rows}{axis}</tbody></table>'
    )


def _place(chart: Chart, value: float) -> float:
    """Return where a value is on the axis, in percent."""
    width = chart.most - chart.least
    return 100 * min(1.0, max(0.0, (value - chart.least) / width)) if width else 0.0


_AMOUNTS = ("share", "margin", "range", "count")
_PAINT = {
    "bar": 'fill="#2b7f8c"',
    "track": 'fill="#dfe3e6"',
    "mark": 'stroke="#dfe3e6"',
    "halo": 'stroke="#ffffff" stroke-width="5"',
    "interval": 'stroke="#14333a" stroke-width="2"',
}
"""The colors of shapes where the style sheet of the page does not reach them: in a PDF file of WeasyPrint."""


def _shape(tag: str, name: str, **attributes: object) -> str:
    """Return a shape of a picture; `name` is its class."""
    listed = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f'<{tag} class="{name}" {_PAINT[name]}{listed}/>'


def _html_bar(chart: Chart, bar: Bar) -> str:
    marks = [f"{_place(chart, at):.2f}%" for at, _ in chart.marks]
    parts = [_shape("line", "mark", x1=at, x2=at, y1=0, y2=26) for at in marks]
    at = f"{_place(chart, bar.value):.2f}%"
    if chart.least == 0 or bar.low is None:
        parts.append(_shape("rect", "bar", y=5, width=at, height=16, rx=2))
    else:
        parts.append(_shape("circle", "bar", cx=at, cy=13, r=5))
    if bar.low is not None and bar.high is not None:
        low, high = f"{_place(chart, bar.low):.2f}%", f"{_place(chart, bar.high):.2f}%"
        ends = ((low, high, 13, 13), (low, low, 8, 18), (high, high, 8, 18))
        # A line in the color of the paper below the dark one keeps it legible on the bar.
        parts += [
            _shape("line", name, x1=x1, x2=x2, y1=y1, y2=y2)
            for name in ("halo", "interval")
            for x1, x2, y1, y2 in ends
        ]
    cells = "".join(
        f'<td role="cell" class="amount {name}" data-title="{escape(title)}">{escape(text)}</td>'
        for name, title, text in zip(_AMOUNTS, chart.columns[1:], bar.cells, strict=False)
    )
    return (
        f'<tr role="row"><th scope="row" role="rowheader">{escape(bar.label)}</th>'
        f'<td role="cell" class=picture><svg aria-hidden="true" height="26">{"".join(parts)}</svg></td>{cells}</tr>'
    )


# -- Markdown ------------------------------------------------------------------------------------------------

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&])")


def markdown_page(summary: Summary, language: str = "en") -> str:
    """Return the page as Markdown, without pictures. Raises `InvalidParameter`: there are no texts in this language."""
    subject, say = summary.subject, texts(language)
    lines = [f"# {_plain(subject.title)}", ""]
    lines += [text for said in (subject.organisation, subject.purpose) if said for text in (_plain(said), "")]
    lines += [text for said in warnings(say, summary) for text in (f"**{_plain(said)}**", "")]
    for section in sections(say, summary):
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
            cells = [tuple(map(_plain, (bar.label, *bar.cells))) for bar in block.bars]
            yield from _markdown_table(block.columns, cells)
        case Signatures():
            pass  # lines to fill in are for paper
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
    if isinstance(text, Marked):
        return f"**{_plain(text)}**"
    url = link(text) if isinstance(text, Contact) else None
    return _plain(text) if url is None else f"[{_plain(text)}](<{url}>)"


def _plain(text: str) -> str:
    """Return a text in which Markdown sees no markup, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
