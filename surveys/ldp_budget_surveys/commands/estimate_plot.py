"""Charts of `estimate --plot` and `estimate --by-round --plot`.

`estimate`: a bar for each answer, or a mean, with confidence intervals. `--by-round`: the same from round to round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ldp_budget_cli.output import counted, rounded
from ldp_budget_cli.plots.figure import (
    BLUE,
    INK,
    bias_told,
    every,
    heading,
    labels,
    left_out,
    mechanism_in_short,
    percent,
    picture,
)
from ldp_budget_cli.plots.mechanism import MOST, draw_bars, height_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ldp_budget.registry.collections import Collection


def plot_estimate(
    collection: Collection,
    result: Mapping[str, Any],
    path: str,
    *,
    level: float = 0.95,
    out_of: int | None = None,
    truth: Sequence[float] = (),
) -> None:
    """Draw the JSON of `estimate --json`.

    `out_of`: the number of answers from which the largest were selected. `truth`: the true share of each answer,
    drawn next to the estimate.
    """
    title = f"{collection.name}: {counted(result['reports'], 'report')}, {percent(level)} confidence intervals"
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
            _kind(result),
            left_out(len(shown), len(rows) if out_of is None else out_of),
        )


def _kind(result: Mapping[str, Any]) -> str:
    return "consistent shares: at least 0, together at most 100 %" if "consistent" in result else ""


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


MOST_LINES = 12
"""The most answers that are drawn; each has its own panel."""
_MOST_NAMES = 26
"""The most round names that fit below a panel as wide as the figure."""


def plot_rounds(
    collection: Collection,
    rounds: Sequence[Mapping[str, Any]],
    path: str,
    *,
    level: float = 0.95,
    out_of: int | None = None,
) -> None:
    """Draw the JSON of `estimate --by-round --json`. `out_of`: the number of answers before the selection."""
    names = [each["round"] for each in rounds]
    counts = [each["reports"] for each in rounds]
    size = f"{min(counts)} to {max(counts)}" if len(set(counts)) > 1 else f"{counts[0]}"
    reports = "report" if counts == [1] * len(counts) else "reports"
    title = f"{collection.name}: {counted(len(rounds), 'round')} of {size} {reports}, {percent(level)} confidence intervals"
    details = [mechanism_in_short(collection.mechanism), _kind(rounds[0])]
    if "answers" in rounds[0]:
        lines, others = _followed(rounds, out_of)
        _plot(path, names, lines, "share of users, %", title, [*details, others])
    else:
        line = [(each["mean"], each["low"], each["high"]) for each in rounds]
        what = f"estimated mean of the users' values, which are {collection.mechanism.domain}"
        _plot(path, names, {what: line}, "mean", title, [*details, bias_told(rounds[0])])


_Line = list[tuple[float, float, float]]
"""An estimate and the ends of its confidence interval, for each round."""


def _followed(rounds: Sequence[Mapping[str, Any]], out_of: int | None) -> tuple[dict[str, _Line], str]:
    """Return the shares of the drawn answers, in percent, and a text that names the omitted ones."""
    lines: dict[str, _Line] = {}
    for each in rounds:
        for row in each["answers"]:
            shares = tuple(100 * row[part] for part in ("share", "share_low", "share_high"))
            lines.setdefault(row["answer"], []).append(shares)
    total = len(lines) if out_of is None else out_of
    if len(lines) > MOST_LINES:
        largest = sorted(lines, key=lambda answer: -sum(share for share, _, _ in lines[answer]))[:MOST_LINES]
        lines = {answer: lines[answer] for answer in largest}
    return lines, left_out(len(lines), total)


def _plot(
    path: str, names: list[str], lines: dict[str, _Line], unit: str, title: str, details: Sequence[str]
) -> None:
    across = 1 if len(lines) <= 3 else 2
    down = -(-len(lines) // across)
    shown = every(len(names), _MOST_NAMES // across)
    ticks = labels([names[place] for place in shown], width=26, lines=1)
    # Upright if they do not fit next to each other.
    longest = max(map(len, ticks))
    upright = len(ticks) * (longest + 2) > 84 // across
    foot = longest * 0.068 if upright else 0.1
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
            if place + across < len(panels):  # uses the empty cell below, so that no other panel shrinks
                for label in axes.get_xticklabels():
                    label.set_in_layout(False)
        figure.supylabel(unit, fontsize=10)
        figure.supxlabel("round", fontsize=10)
        heading(figure, title, *details)


def _draw_line(axes: Any, line: _Line) -> None:
    """Draw the estimates of the rounds, joined, each with its confidence interval."""
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
