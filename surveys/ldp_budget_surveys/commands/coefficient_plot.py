"""Chart of `regress --plot`: the coefficients with their intervals; an open interval ends in an arrow."""

from __future__ import annotations

from typing import Any

from ldp_budget_cli.output import counted
from ldp_budget_cli.plots.figure import BLUE, GREY, heading, labels, percent, picture


def plot_coefficients(row: dict[str, Any], path: str, *, level: float) -> None:
    """Draw the coefficients of a regression, the constant left out where there are others.

    Parameters:
        row: the JSON of `regress`.
        path: the file.
        level: the confidence level of the intervals.
    """
    every = row["coefficients"]
    shown = [each for each in every if each.get("term", each["name"]) != "Intercept"] or every
    known = [each[name] for each in shown for name in ("estimate", "low", "high") if each[name] is not None]
    left, right = min([0.0, *known]), max([0.0, *known])
    room = 0.08 * (right - left or 1.0)
    left, right = left - room, right + room
    with picture(path, 1.3 + 0.32 * len(shown)) as figure:
        axes = figure.subplots()
        axes.axvline(0, color=GREY, linewidth=1)
        for place, each in enumerate(shown):
            low, high = (
                left if each["low"] is None else each["low"],
                right if each["high"] is None else each["high"],
            )
            axes.plot([low, high], [place, place], color=BLUE)
            for end, at, mark in (("low", left, "<"), ("high", right, ">")):
                if each[end] is None:
                    axes.plot([at], [place], mark, color=BLUE)
            if each["estimate"] is not None:
                axes.plot([each["estimate"]], [place], "o", color=BLUE)
        axes.set_yticks(range(len(shown)), labels([each["name"] for each in shown]))
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.set_xlim(left, right)
        axes.set_xlabel("coefficient" if row["model"] == "linear" else "coefficient, in logits")
        arrows = "an arrow: no end" if any(each["low"] is None or each["high"] is None for each in shown) else ""
        heading(
            figure, row["formula"], f"{row['model']} model", counted(row["reports"], "report"), percent(level), arrows
        )
