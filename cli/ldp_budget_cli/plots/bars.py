"""Bars that lie, each with its label at its left and its figure at its right, so that long labels read well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .canvas import BLUE, INK, ORANGE, PALE
from .labels import labels

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST = 30
"""So many bars can be read."""

# What stands beside a bar: each has a shape of its own.
_MARKS = ({"marker": "D", "color": ORANGE}, {"marker": "s", "color": INK, "markerfacecolor": "none"})


def height_for(names: Sequence[str], heading: float = 1.5) -> float:
    """How high a picture of bars is, in inches."""
    lines = max(name.count("\n") + 1 for name in labels(names))
    return heading + len(names) * (0.16 + 0.16 * lines)


def draw_bars(
    axes: Any,
    names: Sequence[str],
    values: Sequence[float],
    figures: Sequence[str],
    *,
    what: str = "",
    ends: Sequence[tuple[float, float]] = (),
    interval: str = "",
    marks: Sequence[tuple[str, Sequence[float]]] = (),
) -> None:
    """A bar for each name, the first one on top, with an interval where `ends` are given.

    `marks` are further values at each bar, by what they are called. A legend says which is which where there are any.
    """
    places = range(len(names))
    handles = [axes.barh(places, values, height=0.62, color=PALE, edgecolor=BLUE, linewidth=0.8, label=what)]
    if ends:
        # An interval may end at its estimate, where that is below 0.
        below = [max(0.0, value - low) for value, (low, _) in zip(values, ends, strict=True)]
        above = [max(0.0, high - value) for value, (_, high) in zip(values, ends, strict=True)]
        lines = {"ecolor": INK, "elinewidth": 1.3, "capsize": 3.5}
        handles.append(axes.errorbar(values, places, xerr=[below, above], fmt="none", label=interval, **lines))
    for (called, each), style in zip(marks, _MARKS, strict=False):
        handles += axes.plot(each, places, linestyle="none", markersize=5.5, label=called, **style)
    axes.set_yticks(places, labels(names))
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.4, -0.6)
    _set_width(axes, [*values, *(end for pair in ends for end in pair), *(each for _, row in marks for each in row)])
    axes.axvline(0, color=INK, linewidth=0.9)
    axes.grid(axis="x")
    for place, text in enumerate(figures):
        axes.annotate(
            text,
            (1, place),
            (54, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            ha="right",
            va="center_baseline",
            fontsize=9.5,
            annotation_clip=False,
        )
    if marks:  # above the bars, and never over one
        axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(handles), borderaxespad=0)


def _set_width(axes: Any, values: Sequence[float]) -> None:
    """From 0, or further left where something is, to the largest; with room for the caps of intervals."""
    low, high = min(0.0, *values), max(0.0, *values)
    room = 0.02 * (high - low) or 1.0
    axes.set_xlim(low - room, high + room)
