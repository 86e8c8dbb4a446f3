"""What `compare --plot` draws: a bar for each mechanism, best first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..output import counted
from .bars import draw_bars, height_for
from .canvas import heading, picture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Rows = Sequence[Mapping[str, Any]]


def plot_comparison(
    rows: Rows,
    path: str,
    *,
    epsilon: str,
    domain_size: int | None,
    users: int | None,
    interval: tuple[str, str] | None,
) -> None:
    """Draw what `compare --json` prints: standard errors of a share, or the errors of a mean or of a report."""
    shares = [row for row in rows if row["kind"] == "frequency"]
    numbers = [row for row in rows if row["kind"] == "numeric"]
    kinds = [kind for kind in (shares, numbers) if kind]
    heights = [height_for(_names(kind), 0.85) for kind in kinds]
    asked = [f"ε = {epsilon}"]
    asked += [] if domain_size is None else [counted(domain_size, "answer")]
    asked += [] if interval is None else [f"values from {interval[0]} to {interval[1]}"]
    asked += [] if users is None else [counted(users, "user")]
    with picture(path, 0.7 + sum(heights)) as figure:
        panels = figure.subplots(len(kinds), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, kind in zip(panels, kinds, strict=True):
            (_draw_shares if kind is shares else _draw_numbers)(axes, kind)
        heading(figure, f"Predicted errors: {', '.join(asked)}", "the smaller the better")


def _names(rows: Rows) -> list[str]:
    """The mechanisms, each with what was chosen for it."""
    return [f"{row['mechanism']} ({row['setting']})" if row["setting"] else row["mechanism"] for row in rows]


def _draw_shares(axes: Any, rows: Rows) -> None:
    mean = [100 * row["mean_std_error"] for row in rows]
    draw_bars(
        axes,
        _names(rows),
        mean,
        [f"{each:.2f} %" for each in mean],
        what="mean over the answers",
        marks=[("of the answer where it is worst", [100 * row["worst_std_error"] for row in rows])],
    )
    axes.set_xlabel("standard error of a share, %")


def _draw_numbers(axes: Any, rows: Rows) -> None:
    name, what = ("mse_uniform_prior", "mean squared error of one report, values spread evenly")
    if "mean_error" in rows[0]:
        name, what = ("mean_error", "error of the estimated mean, at worst, in the unit of the values")
    errors = [row[name] for row in rows]
    draw_bars(axes, _names(rows), errors, [f"{each:.4g}" for each in errors])
    axes.set_xlabel(what)
