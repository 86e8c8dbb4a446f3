"""What `estimate --plot` draws: a bar for each answer with its interval, or a mean with its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..output import counted, rounded
from .bars import MOST, draw_bars, height_for
from .canvas import BLUE, heading, picture
from .phrases import bias_told, left_out, mechanism_in_short, percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ldp_budget.catalogue.collections import Collection


def plot_estimate(
    collection: Collection,
    result: Mapping[str, Any],
    path: str,
    *,
    level: float = 0.95,
    out_of: int | None = None,
    truth: Sequence[float] = (),
) -> None:
    """Draw what `estimate --json` prints. `out_of`: of how many answers those in it are the largest.

    `truth`: the true share of each answer, to stand beside it.
    """
    title = f"{collection.name}: {counted(result['reports'], 'report')}, {percent(level)} intervals"
    if "answers" in result:
        _plot_counts(collection, title, result, path, level, out_of, truth)
    else:
        _plot_mean(collection, title, result, path)


def _plot_counts(
    collection: Collection,
    title: str,
    result: Mapping[str, Any],
    path: str,
    level: float,
    out_of: int | None,
    truth: Sequence[float],
) -> None:
    rows = result["answers"]
    chosen = list(range(len(rows)))
    if len(rows) > MOST:
        chosen = sorted(chosen, key=lambda place: -rows[place]["count"])[:MOST]
    shown = [rows[place] for place in chosen]
    names = [row["answer"] for row in shown]
    marks = []
    if truth:
        marks.append(("truth", [100 * truth[place] for place in chosen]))
    if "adjusted" in result:
        adjusted = [100 * row["adjusted_share"] for row in shown]
        marks.append((f"adjusted ({result['adjusted']}), for showing: not unbiased", adjusted))
    with picture(path, height_for(names)) as figure:
        axes = figure.add_subplot()
        draw_bars(
            axes,
            names,
            [100 * row["share"] for row in shown],
            [f"{rounded(100 * row['share'], 1)} %" for row in shown],
            ends=[(100 * row["share_low"], 100 * row["share_high"]) for row in shown],
            what="estimate",
            interval=f"{percent(level)} interval",
            marks=marks,
        )
        axes.set_xlabel("share of users, %")
        heading(
            figure,
            title,
            mechanism_in_short(collection.mechanism),
            left_out(len(shown), len(rows) if out_of is None else out_of),
        )


def _plot_mean(collection: Collection, title: str, result: Mapping[str, Any], path: str) -> None:
    mean, low, high = result["mean"], result["low"], result["high"]
    with picture(path, 2.2) as figure:
        axes = figure.add_subplot()
        axes.errorbar(
            [mean],
            [0],
            xerr=[[mean - low], [high - mean]],
            fmt="o",
            color=BLUE,
            markersize=8,
            capsize=7,
            elinewidth=2,
        )
        figures = f"{mean:.6g}  ({low:.6g} to {high:.6g})"
        axes.annotate(figures, (mean, 0), (0, 12), textcoords="offset points", ha="center", fontsize=10.5)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_ylim(-1, 1)
        axes.margins(x=0.25)
        axes.grid(axis="x")
        axes.set_xlabel(f"estimated mean of the users' values, which are {collection.mechanism.domain}")
        heading(figure, title, mechanism_in_short(collection.mechanism), bias_told(result))
