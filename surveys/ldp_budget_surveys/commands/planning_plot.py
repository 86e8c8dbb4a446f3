"""Chart of `plan --answers --plot`: the margin against the number of people, for three ε, with the chosen point."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ldp_budget_cli.output import counted
from ldp_budget_cli.plots.figure import BLUE, GREY, INK, ORANGE, heading, picture

if TYPE_CHECKING:
    from ..margin_planning import Sample

_POINTS = 60
_WIDEST = 8
"""People from an eighth of the plan's number to eight times as many."""


def plot_margins(row: dict[str, Any], answers: int, sample: Sample, path: str) -> None:
    """Draw the best margin of each ε in the plan's table."""
    from matplotlib.ticker import LogLocator

    from ..margin_planning import candidates

    chosen = row["respondents"]
    last = min(chosen * _WIDEST, sample.most_respondents)
    first = max(1, chosen // _WIDEST)
    people = sorted({round(first * (last / first) ** (step / (_POINTS - 1))) for step in range(_POINTS)})
    epsilons = sorted({each["epsilon"] for each in row["table"]})
    with picture(path, 4.2) as figure:
        axes = figure.subplots()
        for epsilon, color in zip(epsilons, (GREY, BLUE, INK), strict=False):
            exact = Decimal(str(epsilon))
            margins = [100 * candidates(exact, answers, each, sample)[0].margin for each in people]
            axes.plot(people, margins, color=color)
            axes.annotate(
                f"ε = {epsilon:g}", (people[-1], margins[-1]), (4, 0), textcoords="offset points", va="center"
            )
        axes.plot([chosen], [100 * row["margin"]], "o", color=ORANGE, markersize=8)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("people who answer")
        axes.set_ylabel("margin (95 %), in points")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
            axis.set_minor_formatter("")
        heading(
            figure,
            f"± {100 * row['margin']:.1f} points with {chosen:,} people at ε = {row['epsilon']:g}",
            f"a question with {counted(answers, 'answer')}, at the worst share; the best mechanism at each point",
        )
