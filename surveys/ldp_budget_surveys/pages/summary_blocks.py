"""Parts of the page of a survey: texts, facts, tables and bars without markup, and numbers as they show them.

Privacy losses are rounded up, and the ends of intervals to the nearest, as `estimate` does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal


class Code(str):
    """A text to type or to compare, such as a command or a digest."""


class Marked(str):
    """A figure that stands out."""


class Contact(str):
    """A person or office to ask: an email address or a URL becomes a link."""


Cell = str


@dataclass(frozen=True)
class Note:
    """A paragraph; `warning` marks one that changes how the page must be read."""

    text: str
    warning: bool = False


@dataclass(frozen=True)
class Heading:
    """The title of a part of a section."""

    text: str


@dataclass(frozen=True)
class Facts:
    """Terms, each with its description."""

    rows: tuple[tuple[str, Cell], ...]


@dataclass(frozen=True)
class Grid:
    """A table of texts with a header; `answers` marks one that holds answers, which may be long words."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    answers: bool = False


@dataclass(frozen=True)
class Bar:
    """A value with its confidence interval, and the same as text: a cell for each column of the chart but the first."""

    label: str
    value: float
    low: float | None
    high: float | None
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Chart:
    """Bars on one axis from `least` to `most`, with the `marks` of the axis and their texts."""

    label: str
    columns: tuple[str, ...]
    bars: tuple[Bar, ...]
    least: float
    most: float
    marks: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class Meter:
    """The used part of a limit, from 0 to 1."""

    label: str
    used: float
    shown: str


@dataclass(frozen=True)
class Signatures:
    """Lines to fill in on paper: for each of the `signers`, a line with each of the `labels`."""

    signers: tuple[str, ...]
    labels: tuple[str, ...]


Block = Note | Heading | Facts | Grid | Chart | Meter | Signatures


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    name: str
    title: str
    blocks: tuple[Block, ...]


# -- numbers -------------------------------------------------------------------------------------------------


def whole(number: float) -> str:
    """Return a whole number with commas."""
    return f"{round(number):,}"


def percent(share: float, toward: str = "") -> str:
    """Return a share in percent with one decimal, rounded `up`, `down` or to the nearest."""
    tenths = 1000 * share
    if toward not in ("up", "down"):
        shown = f"{100 * share:.1f}"  # as `estimate` rounds
        return f"{'0.0' if shown == '-0.0' else shown} %"
    step = math.ceil(tenths - 1e-9) if toward == "up" else math.floor(tenths + 1e-9)
    return f"{step / 10:.1f} %"


def loss(epsilon: float | Decimal | None) -> str:
    """Return an ε with at most four digits, rounded up."""
    if epsilon is None or math.isinf(epsilon):
        return "unbounded"
    exact = Decimal(str(epsilon))
    if not exact:
        return "0"
    shown = exact.quantize(Decimal(1).scaleb(exact.adjusted() - 3), ROUND_CEILING).normalize()
    return f"{shown:f}" if abs(shown.adjusted()) < 6 else f"{shown:e}"


def certainty(epsilon: float) -> str:
    """Return how sure an observer of a report can be at most, of two answers that were equally likely before."""
    # 1 - 1/(1 + e^ε) in tenths of a percent, rounded up.
    tenths = min(1000, math.ceil(1000 / (1 + math.exp(-min(epsilon, 700))) * (1 + 1e-12)))
    return f"{tenths / 10:.1f} %" if tenths < 1000 else "almost 100 %"


def number(value: float, toward: str = ROUND_HALF_EVEN) -> str:
    """Return a number with four digits, or more in front of the point."""
    exact = Decimal(str(value))
    if not exact:
        return "0"
    return f"{exact.quantize(Decimal(1).scaleb(min(0, exact.adjusted() - 3)), toward).normalize():,f}"


def p_value(value: float) -> str:
    """Return a p-value with four decimals."""
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"
