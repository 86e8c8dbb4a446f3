"""The common style of all plots: size, colors, heading, fonts, labels and file output.

A figure is the same for every user: the settings are matplotlib's defaults and those below, and a user's matplotlibrc
is ignored. The file does not change from run to run.

Fonts: matplotlib's own, DejaVu Sans, has no Chinese, Japanese or Korean characters. If a text has characters that it
lacks, installed fonts with those characters are added after it, and matplotlib takes each character from the first
font that has it. A character without any font is drawn as a box, with one warning. In an SVG the texts stay texts, so
the viewer's fonts apply.

Labels are cut and broken by their drawn width, and stay distinct.
"""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import combining, east_asian_width

import click

from ldp_budget._files import replacing

from ..app import in_sandbox
from ..output import counted
from . import format_of, need_matplotlib

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ldp_budget.sdk.mechanism import Mechanism


USUAL = "DejaVu Sans"

# Text fonts, tried before the others. A family belongs to one of these if its name begins with it.
_PREFERRED = (
    "Noto Sans CJK",
    "Noto Sans",
    "Source Han Sans",
    "Nanum",
    "Malgun Gothic",
    "Apple SD Gothic Neo",
    "Hiragino Sans",
    "Yu Gothic",
    "PingFang",
    "Microsoft YaHei",
    "WenQuanYi",
    "Arial Unicode MS",
)
# It has a box glyph for every character there is.
_BOXES = "Last Resort"


def families_for(text: str) -> tuple[list[str], str]:
    """Return the font families for a text, the usual one first, and its characters that no installed font has."""
    missing = {each for each in text if not each.isspace()} - _characters(_usual_file())
    families = [USUAL]
    for name, path in _installed() if missing else ():
        found = missing & _characters(path)
        if found:
            families.append(name)
            missing -= found
        if not missing:
            break
    return families, "".join(sorted(missing))


def _usual_file() -> str:
    from matplotlib.font_manager import findfont

    return str(findfont(USUAL))


def _installed() -> Iterator[tuple[str, str]]:
    """Yield the other families with a file of each, text fonts first."""
    from matplotlib.font_manager import fontManager

    files: dict[str, Any] = {}
    for entry in fontManager.ttflist:
        upright = entry.style == "normal" and str(entry.weight) in ("400", "normal", "regular")
        if upright and entry.name != USUAL and not entry.name.startswith(_BOXES):
            files.setdefault(entry.name, entry.fname)

    def rank(name: str) -> tuple[int, str]:
        places = [place for place, family in enumerate(_PREFERRED) if name.startswith(family)]
        return min(places, default=len(_PREFERRED)), name

    for name in sorted(files, key=rank):
        yield name, files[name]


def _characters(path: str) -> set[str]:
    """Return the characters that a font has; none if the font cannot be read."""
    from matplotlib.font_manager import get_font

    try:
        return {chr(code) for code in get_font(path).get_charmap()}
    except (OSError, RuntimeError):
        return set()


LABEL_WIDTH = 30
"""The number of columns in a line of a label; a Chinese, Japanese or Korean character takes two."""
LINES = 3


def columns(text: str) -> int:
    """Return the drawn width of a text."""
    return sum(_width(each) for each in text)


def _width(character: str) -> int:
    if combining(character):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def labels(texts: Iterable[str], width: int = LABEL_WIDTH, lines: int = LINES) -> list[str]:
    """Return labels of at most so many lines; labels that would look the same get their list position as a suffix."""
    plain = [printable(text) for text in texts]
    # Less than the full width, because lines are broken between words.
    cut = [shortened(text, width * lines if lines == 1 else width * (lines - 1)) for text in plain]
    often = Counter(cut)
    unique = [f"{text} ({place})" if often[text] > 1 else text for place, text in enumerate(cut, 1)]
    return [wrapped(text, width) if lines > 1 else text for text in unique]


def printable(text: str) -> str:
    """Return the text in one line, without characters that cannot be drawn or written."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split()) or "(empty)"


def shortened(text: str, most: int) -> str:
    """Return the text, or for a wider one its beginning and end: long labels often differ in their last words."""
    if columns(text) <= most:
        return text
    end = _whole_words(_fitting(text[::-1], most * 2 // 5))[::-1]
    return f"{_whole_words(_fitting(text, most - columns(end) - 1))}…{end}"


def _whole_words(part: str) -> str:
    """Remove a partial word at the end, unless it is most of the text."""
    words, space, _ = part.rpartition(" ")
    return words if space and 2 * len(words) > len(part) else part.rstrip()


def wrapped(text: str, width: int) -> str:
    """Break a text into lines of at most so many columns, between words if possible."""
    lines: list[str] = []
    for word in text.split():
        if lines and columns(lines[-1]) + 1 + columns(word) <= width:
            lines[-1] += f" {word}"
            continue
        while columns(word) > width:
            part = _fitting(word, width)
            lines.append(part)
            word = word[len(part) :]
        lines.append(word)
    return "\n".join(lines)


def _fitting(text: str, most: int) -> str:
    """Return the longest beginning that fits."""
    used = 0
    for place, character in enumerate(text):
        used += _width(character)
        if used > most:
            return text[:place]
    return text


def every(count: int, most: int) -> Sequence[int]:
    """Return the positions of at most `most` out of `count` labels, evenly spaced."""
    return range(0, count, -(-count // most)) if count else ()


# The palette of Okabe and Ito, which color-blind people can distinguish. Color alone never carries meaning.
BLUE, PALE, ORANGE, INK, GREY = "#0072b2", "#9cc9e3", "#d55e00", "#1a1a1a", "#6b6b6b"

WIDTH = 8.0
"""The width of a figure, in inches. Printed at this width, or 800 px wide, its letters have the size of page text."""

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
    "svg.hashsalt": "ldp-budget",
}
# Metadata that would give the time and the release of the plot.
_UNDATED = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


@contextmanager
def picture(path: str, height: float) -> Iterator[Any]:
    """Return a figure to draw on, `height` inches high. At the end of the block the file is replaced atomically.

    Raises `click.ClickException` if the file cannot be written.
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
    """Suppress warnings for each missing glyph, which were reported already, and for each missing weight."""
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
    """Return all texts of a figure."""
    from matplotlib.text import Text

    # Tick labels are computed only on request.
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
    """Draw a title, marked if the ledger is a sandbox, and details below it in smaller letters."""
    from matplotlib.text import Annotation

    if in_sandbox():
        title = f"Sandbox: {title}"
    shown = wrapped(printable("; ".join(each for each in details if each)), 106) if any(details) else ""
    lines = wrapped(printable(title), 80)
    # Empty lines reserve the room for the details.
    room = "\n " * (len(shown.split("\n")) if shown else 0)
    top = figure.suptitle(lines + room, x=0.01, ha="left", fontsize=12, fontweight="bold", linespacing=1.3)
    if shown:
        below = Annotation(shown, (0, 0), xycoords=top, va="bottom", ha="left", fontsize=9.5, linespacing=1.45)
        figure.add_artist(below)


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
