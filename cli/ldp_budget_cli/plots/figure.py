"""The common style of all plots: size, colors, heading, fonts, labels and file output.

A figure is the same for every user: the settings are matplotlib's defaults and those below, and a user's matplotlibrc
is ignored. Matplotlib's constrained layout places everything.

Fonts: matplotlib's own, DejaVu Sans, has no Chinese, Japanese or Korean characters. Matplotlib takes each character
from the first font of `FONTS` that is installed and has it. A character without any font is drawn as a box, with one
note. In an SVG the texts stay texts, so the viewer's fonts apply.
"""

from __future__ import annotations

import logging
import textwrap
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ldp_budget._files import replacing

from ..app import in_sandbox
from ..notes import print_note
from ..output import counted
from . import format_of, need_matplotlib

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ldp_budget.sdk.mechanism import Mechanism


FONTS = (
    "DejaVu Sans",
    "Noto Sans CJK KR",
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Noto Sans KR",
    "NanumGothic",
    "Malgun Gothic",
    "Apple SD Gothic Neo",
    "Hiragino Sans",
    "Yu Gothic",
    "PingFang SC",
    "Microsoft YaHei",
    "WenQuanYi Zen Hei",
    "Arial Unicode MS",
)
"""Font families, the usual one first."""

LABEL_WIDTH = 30
"""The number of characters in a line of a label."""
LINES = 3


def labels(texts: Iterable[str], width: int = LABEL_WIDTH, lines: int = LINES) -> list[str]:
    """Return labels of at most so many lines; labels that would look the same get their list position as a suffix."""
    # Less than the full width, because lines are broken between words.
    cut = [shortened(printable(text), width * max(1, lines - 1)) for text in texts]
    often = Counter(cut)
    unique = [f"{text} ({place})" if often[text] > 1 else text for place, text in enumerate(cut, 1)]
    return [textwrap.fill(text, width) if lines > 1 else text for text in unique]


def printable(text: str) -> str:
    """Return the text in one line, without characters that cannot be drawn or written."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split()) or "(empty)"


def shortened(text: str, most: int) -> str:
    """Return the text, or for a longer one its beginning and end: long labels often differ in their last words."""
    if len(text) <= most:
        return text
    end = most * 2 // 5
    return f"{text[: most - end - 1].rstrip()}…{text[-end:].lstrip()}"


def every(count: int, most: int) -> Sequence[int]:
    """Return the positions of at most `most` out of `count` labels, evenly spaced."""
    return range(0, count, -(-count // most)) if count else ()


# The palette of Okabe and Ito, which color-blind people can distinguish. Color alone never carries meaning.
BLUE, PALE, ORANGE, INK, GREY = "#0072b2", "#9cc9e3", "#d55e00", "#1a1a1a", "#6b6b6b"

WIDTH = 8.0
"""The width of a figure, in inches. Printed at this width, or 800 px wide, its letters have the size of page text."""

_STYLE: dict[Any, Any] = {
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    # As in the tables, so that a copied number is a number.
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
    # An answer may contain two dollar signs.
    "text.parse_math": False,
    # The texts of an SVG stay texts, which users can search and screen readers can read.
    "svg.fonttype": "none",
}


@contextmanager
def picture(path: str, height: float) -> Iterator[Any]:
    """Return a figure to draw on, `height` inches high. At the end of the block the file is replaced atomically.

    Raises `click.ClickException` if the file cannot be written.
    """
    need_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.font_manager import fontManager

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        installed = {entry.name for entry in fontManager.ttflist}
        matplotlib.rcParams.update({**_STYLE, "font.family": [name for name in FONTS if name in installed]})
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        yield figure
        with _missing_glyphs_told(path):
            _write(figure, path)


def _write(figure: Any, path: str) -> None:
    try:
        with replacing(Path(path)) as file:
            figure.savefig(file, format=format_of(path), dpi=150)
    except OSError as error:
        raise click.ClickException(f"--plot: cannot write {path}: {error.strerror}.") from None


@contextmanager
def _missing_glyphs_told(path: str) -> Iterator[None]:
    """Replace matplotlib's warning for each missing character by one note, and drop those about missing weights."""
    log = logging.getLogger("matplotlib.font_manager")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.filterwarnings("always", message="Glyph .* missing from")
            yield
    finally:
        log.setLevel(level)
    if format_of(path) != "svg" and any(str(each.message).startswith("Glyph") for each in caught):
        note = f"Note: {path} has boxes for characters that no installed font has. Install Noto Sans CJK, or write an"
        print_note(f"{note} .svg, whose texts are shown in the fonts of its readers.")


def heading(figure: Any, title: str, *details: str) -> None:
    """Draw a title, marked if the ledger is a sandbox, and details below it."""
    if in_sandbox():
        title = f"Sandbox: {title}"
    lines = [printable(title)]
    if any(details):
        lines.append(printable("; ".join(each for each in details if each)))
    text = "\n".join(textwrap.fill(line, 100) for line in lines)
    figure.suptitle(text, x=0.01, ha="left", fontsize=10.5)


def logarithmic(axis: Any, ends: tuple[float, float]) -> None:
    """Set a logarithmic scale of the x or y `axis` whose ticks are plain numbers: 0.5, 1, 2."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    few = ends[1] <= 1000 * ends[0]
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,), numticks=12))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:.6g}"))


def percent(level: float) -> str:
    """Return a level as `95 %`."""
    return f"{100 * level:.12g} %"


def mechanism_in_short(mechanism: Mechanism) -> str:
    """Return the mechanism's name and the loss of one report."""
    loss = mechanism.guarantee.describe()
    if loss["epsilon"] is None:
        return f"{mechanism.name}, ε unbounded"
    delta = f", δ = {loss['delta']:.6g}" if loss["delta"] else ""
    return f"{mechanism.name}, ε = {loss['epsilon']:.6g}{delta} each report"


def bias_told(row: Mapping[str, Any]) -> str:
    """Return the possible bias of an estimated mean, in addition to its error; empty if it is unbiased."""
    bias = row.get("max_bias")
    return "" if bias is None else f"biased by at most {bias:.4g}, which no interval shows"


def left_out(shown: int, total: int) -> str:
    """Return which answers a plot omits; empty if there are none."""
    if shown == total:
        return ""
    which = "the largest" if shown == 1 else f"the {shown} largest, largest first,"
    return f"{which} of {counted(total, 'answer')}; {total - shown} left out"
