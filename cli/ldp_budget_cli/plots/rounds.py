"""What `estimate --by-round --plot` draws: how each answer, or a mean, went from round to round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..output import counted
from .canvas import BLUE, INK, heading, picture
from .labels import columns, every, labels
from .phrases import bias_told, left_out, mechanism_in_short, percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ldp_budget.catalogue.collections import Collection

MOST = 12
"""So many answers can be followed; each has a panel of its own."""
_MOST_NAMES = 26
"""So many rounds can be named below one panel that is as wide as the picture."""


def plot_rounds(
    collection: Collection,
    rounds: Sequence[Mapping[str, Any]],
    path: str,
    *,
    level: float = 0.95,
    out_of: int | None = None,
) -> None:
    """Draw what `estimate --by-round --json` prints. `out_of`: of how many answers those in it are the largest."""
    names = [each["round"] for each in rounds]
    counts = [each["reports"] for each in rounds]
    size = f"{min(counts)} to {max(counts)}" if len(set(counts)) > 1 else f"{counts[0]}"
    reports = "report" if counts == [1] * len(counts) else "reports"
    title = f"{collection.name}: {counted(len(rounds), 'round')} of {size} {reports}, {percent(level)} intervals"
    details = [mechanism_in_short(collection.mechanism)]
    if "answers" in rounds[0]:
        lines, others = _followed(rounds, out_of)
        _plot(path, names, lines, "share of users, %", title, [*details, others])
    else:
        line = [(each["mean"], each["low"], each["high"]) for each in rounds]
        what = f"estimated mean of the users' values, which are {collection.mechanism.domain}"
        _plot(path, names, {what: line}, "mean", title, [*details, bias_told(rounds[0])])


_Line = list[tuple[float, float, float]]
"""An estimate and the ends of its interval, for each round."""


def _followed(rounds: Sequence[Mapping[str, Any]], out_of: int | None) -> tuple[dict[str, _Line], str]:
    """The shares of the answers that are drawn, in percent, and which ones are not."""
    lines: dict[str, _Line] = {}
    for each in rounds:
        for row in each["answers"]:
            shares = tuple(100 * row[part] for part in ("share", "share_low", "share_high"))
            lines.setdefault(row["answer"], []).append(shares)
    total = len(lines) if out_of is None else out_of
    if len(lines) > MOST:
        largest = sorted(lines, key=lambda answer: -sum(share for share, _, _ in lines[answer]))[:MOST]
        lines = {answer: lines[answer] for answer in largest}
    return lines, left_out(len(lines), total)


def _plot(
    path: str, names: list[str], lines: dict[str, _Line], unit: str, title: str, details: Sequence[str]
) -> None:
    across = 1 if len(lines) <= 3 else 2
    down = -(-len(lines) // across)
    shown = every(len(names), _MOST_NAMES // across)
    ticks = labels([names[place] for place in shown], width=26, lines=1)
    # Upright where they do not fit beside each other.
    upright = len(ticks) * (max(map(columns, ticks)) + 2) > 84 // across
    foot = max(map(columns, ticks)) * 0.068 if upright else 0.1
    with picture(path, 1.1 + foot + down * (1.45 if across == 2 else 2.0)) as figure:
        panels = list(figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat)
        for axes, name, line in zip(panels, labels(lines, 80 // across, 2), lines.values(), strict=False):
            _draw_line(axes, line)
            axes.set_title(name)
        for place, axes in enumerate(panels):
            if place >= len(lines):
                axes.set_visible(False)
                continue
            _finish(axes)
            _name_rounds(axes, len(names), shown, ticks, upright)
            axes.tick_params(labelbottom=place + across >= len(lines))
            if place + across < len(panels):  # into the empty place below, where no other panel has to make room
                for label in axes.get_xticklabels():
                    label.set_in_layout(False)
        figure.supylabel(unit, fontsize=10)
        figure.supxlabel("round", fontsize=10)
        heading(figure, title, *details)


def _draw_line(axes: Any, line: _Line) -> None:
    """The estimates of the rounds, joined, each with its interval."""
    values = [value for value, _, _ in line]
    below = [max(0.0, value - low) for value, low, _ in line]
    above = [max(0.0, high - value) for value, _, high in line]
    crowded = len(line) > 40
    axes.errorbar(
        range(len(line)),
        values,
        yerr=[below, above],
        color=BLUE,
        ecolor=INK,
        marker="o",
        markersize=2.5 if crowded else 5,
        linewidth=1.3,
        elinewidth=0.7 if crowded else 1.2,
        capsize=0 if crowded else 3,
    )


def _finish(axes: Any) -> None:
    low, high = axes.get_ylim()
    if low <= 0 <= high:
        axes.axhline(0, color=INK, linewidth=0.9)
    axes.grid(axis="y")


def _name_rounds(axes: Any, rounds: int, shown: Sequence[int], ticks: list[str], upright: bool) -> None:
    axes.set_xlim(-0.5, rounds - 0.5)
    axes.set_xticks(shown, ticks, fontsize=9, rotation=90 if upright else 0)
