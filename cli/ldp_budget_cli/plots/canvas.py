"""What every picture has in common: its size, its colours, its heading, and how it is written.

A picture is drawn the same whoever draws it: the settings are matplotlib's defaults and those below, whatever a
user's matplotlibrc says. Nothing in its file changes from run to run.
"""

from __future__ import annotations

import logging
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ldp_budget._files import replacing

from ..app import in_sandbox
from . import format_of, need_matplotlib
from .fonts import USUAL, families_for
from .labels import printable, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

# Okabe and Ito's, which people who cannot tell red from green can tell apart. No meaning is in a colour alone.
BLUE, PALE, ORANGE, INK, GREY = "#0072b2", "#9cc9e3", "#d55e00", "#1a1a1a", "#6b6b6b"

WIDTH = 8.0
"""Of a picture, in inches. Printed so wide, or shown 800 px wide, its letters are as large as those of a page."""

_STYLE: dict[Any, Any] = {
    "font.family": [USUAL],
    "font.sans-serif": [USUAL],
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    # As in the tables, so that what is copied is a number.
    "axes.unicode_minus": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "xtick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.color": GREY,
    "ytick.labelcolor": INK,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 9,
    # An answer may well have two signs of dollars.
    "text.parse_math": False,
    # The texts of an SVG stay texts, which can be found and read aloud.
    "svg.fonttype": "none",
    "svg.hashsalt": "ldp-budget",
}
# What would say when, and by which release, a picture was made.
_UNDATED = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


@contextmanager
def picture(path: str, height: float) -> Iterator[Any]:
    """A figure to draw on, `height` inches high. When the block ends it takes the place of the file, whole.

    Raises `click.ClickException` where that cannot be written.
    """
    need_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        yield figure
        texts = _texts(figure)
        families, missing = families_for("".join(each.get_text() for each in texts))
        for each in texts:
            each.set_fontfamily([*families, "sans-serif"])
        if missing and format_of(path) != "svg":
            _tell_of_boxes(path, missing)
        _write(figure, path)


def _write(figure: Any, path: str) -> None:
    kind = format_of(path)
    try:
        with _without_asides(), replacing(Path(path)) as file:
            figure.savefig(file, format=kind, dpi=150, metadata=_UNDATED[kind])
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}") from None


@contextmanager
def _without_asides() -> Iterator[None]:
    """Without a warning for each character that no font has, as those are told already, and each missing weight."""
    fonts = logging.getLogger("matplotlib.font_manager")
    level = fonts.level
    fonts.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            yield
    finally:
        fonts.setLevel(level)


def _texts(figure: Any) -> list[Any]:
    """All that a figure says."""
    from matplotlib.text import Text

    # Ticks say what they say once they are asked for.
    ticks = [each for axes in figure.axes for each in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    return [*figure.findobj(Text), *ticks]


def _tell_of_boxes(path: str, missing: str) -> None:
    some = missing if len(missing) <= 10 else f"{missing[:10]} …"
    click.echo(
        f"Note: no font that is installed here has {some}, so {path} shows boxes in their place; install one that "
        "does, such as Noto Sans CJK, or write an .svg, whose texts are shown in the fonts of its readers",
        err=True,
    )


def heading(figure: Any, title: str, *details: str) -> None:
    """A title, marked where the ledger is a sandbox, and below it in smaller letters what else has to be known."""
    from matplotlib.text import Annotation

    if in_sandbox():
        title = f"Sandbox: {title}"
    shown = wrapped(printable("; ".join(each for each in details if each)), 106) if any(details) else ""
    lines = wrapped(printable(title), 80)
    # Empty lines keep the room that the details take.
    room = "\n " * (len(shown.split("\n")) if shown else 0)
    top = figure.suptitle(lines + room, x=0.01, ha="left", fontsize=12, fontweight="bold", linespacing=1.3)
    if shown:
        below = Annotation(shown, (0, 0), xycoords=top, va="bottom", ha="left", fontsize=9.5, linespacing=1.45)
        figure.add_artist(below)


def logarithmic(axis: Any, ends: tuple[float, float]) -> None:
    """A logarithmic scale of the x or y `axis` whose ticks are plain numbers: 0.5, 1, 2."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    few = ends[1] <= 1000 * ends[0]
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,), numticks=12))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:.6g}"))
