"""Plots of `compare --plot` and `calibrate --plot`, and the horizontal bars that several plots use.

`compare` draws a bar for each mechanism, best first. `calibrate` draws the error against ε, and for a numeric
mechanism the densities of its reports. Bars have their label on the left and their figure on the right, so that long
labels are readable.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from ..output import counted
from .figure import BLUE, GREY, INK, ORANGE, PALE, heading, labels, logarithmic, mechanism_in_short, picture

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ldp_budget.sdk.mechanism import Mechanism
    from ldp_budget.sdk.numeric_mechanism import NumericMechanism

    Rows = Sequence[Mapping[str, Any]]
    Curve = list[tuple[float, float]]

MOST = 30
"""The most bars that are readable."""

# Marks at a bar, each with its own shape.
_MARKS = ({"marker": "D", "color": ORANGE}, {"marker": "s", "color": INK, "markerfacecolor": "none"})


def height_for(names: Sequence[str], heading: float = 1.5) -> float:
    """Return the height of a bar plot, in inches."""
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
    """Draw a bar for each name, the first one on top, with an interval if `ends` are given.

    `marks` are further values at each bar, by their names in the legend. A legend appears if there are any.
    """
    places = range(len(names))
    handles = [axes.barh(places, values, height=0.62, color=PALE, edgecolor=BLUE, linewidth=0.8, label=what)]
    if ends:
        # An interval may end at its estimate, if the estimate is below 0.
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
    """Set the x range from 0, or the least value, to the largest; with room for the caps of intervals."""
    low, high = min(0.0, *values), max(0.0, *values)
    room = 0.02 * (high - low) or 1.0
    axes.set_xlim(low - room, high + room)


def plot_comparison(
    rows: Rows,
    path: str,
    *,
    epsilon: str,
    domain_size: int | None,
    users: int | None,
    interval: tuple[str, str] | None,
) -> None:
    """Draw the JSON of `compare --json`: standard errors of a share, or the errors of a mean or of a report."""
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
    """Return the mechanisms, each with its chosen parameters."""
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


_LEAST, _MOST, _STEPS = 0.2, 10.0, 34
"""The range of ε, unless the mechanism's own ε is outside it."""


def plot_mechanism(mechanism: Mechanism, path: str, users: int | None = None) -> None:
    """Draw the error against ε, for `users` users if given, and the densities if there are any."""
    what, error = _measure(mechanism, users)
    curve = _curve(mechanism, error)
    drawn = _densities(mechanism)
    among = "" if users is None else f", {counted(users, 'user')}"
    with picture(path, 6.6 if drawn else 4.0) as figure:
        panels = figure.subplots(2 if drawn else 1, 1, squeeze=False)[:, 0]
        _draw_error(panels[0], mechanism, error, curve, what)
        if drawn:
            _draw_densities(panels[1], drawn)
        heading(figure, f"{mechanism_in_short(mechanism)}{among}", _settings(mechanism))


def _settings(mechanism: Mechanism) -> str:
    """Return the declared parameters besides ε and δ, which the guarantee describes better."""
    declared = {name: value for name, value in mechanism.declared.items() if name not in ("epsilon", "delta")}
    short = {name: value for name, value in declared.items() if value is not False and len(str(value)) <= 40}
    return ", ".join(f"{name} = {value}" for name, value in short.items())


# -- error against ε -----------------------------------------------------------------------------------------


def _measure(mechanism: Mechanism, users: int | None) -> tuple[str, Callable[[Mechanism], float]]:
    """Return the name of the predicted error, and a function that gives it for the mechanism at another ε."""
    utility = mechanism.utility(users)
    numeric = "mse" in utility
    if "std_error" in utility:
        what = "standard error of the mean" if numeric else "standard error of a share, %"
        return what, lambda each: each.utility(users)["std_error"] * (1 if numeric else 100)
    if "mse_uniform_prior" in utility:
        return "mean squared error of one report,\nvalues spread evenly", lambda each: _figure(
            each, "mse_uniform_prior"
        )
    if numeric:
        return "mean squared error of one report,\nat worst", lambda each: max(each.utility()["mse"].values())
    for name, what in (
        ("variance_per_user", "variance of a count, per user"),
        ("bit_variance_per_user", "variance of the count of a bit, per user"),
    ):
        if name in utility:
            return what, lambda each, name=name: _figure(each, name)
    raise click.ClickException(f"--plot: {mechanism.name} predicts no error, so there is nothing to draw.")


def _figure(mechanism: Mechanism, name: str) -> float:
    value: float = mechanism.utility()[name]
    return value


def _curve(mechanism: Mechanism, error: Callable[[Mechanism], float]) -> Curve:
    """Return (ε, error) for every ε to which the mechanism can be calibrated; empty if it takes no ε."""
    from ldp_budget.errors import LdpBudgetError

    own = mechanism.guarantee.epsilon
    least = min(_LEAST, own / 2) if own > 0 else _LEAST
    most = max(_MOST, 2 * own) if math.isfinite(own) else _MOST
    curve = []
    for step in range(_STEPS + 1):
        epsilon = f"{least * (most / least) ** (step / _STEPS):.6g}"
        try:
            value = error(mechanism.at_epsilon(epsilon))
        except (LdpBudgetError, KeyError):  # cannot be calibrated to this ε, or predicts no error there
            continue
        if 0 < value < math.inf:
            curve.append((float(epsilon), value))
    return curve


def _draw_error(
    axes: Any, mechanism: Mechanism, error: Callable[[Mechanism], float], curve: Curve, what: str
) -> None:
    own, value = mechanism.guarantee.epsilon, error(mechanism)
    points = [*curve, *([(own, value)] if math.isfinite(own) and own > 0 < value else [])]
    if not points:
        raise click.ClickException(f"--plot: {mechanism.name} has no finite ε, so there is nothing to draw.")
    axes.plot([x for x, _ in curve], [y for _, y in curve], color=BLUE, linewidth=2)
    if points[len(curve) :]:
        axes.plot([own], [value], marker="o", color=ORANGE, markersize=8, linestyle="none")
        left = own > math.sqrt(points[0][0] * max(x for x, _ in points)) and bool(curve)
        axes.annotate(
            f"here: ε = {own:.4g}, error {value:.4g}{' %' * what.endswith('%')}",
            (own, value),
            (-8 if left else 8, -8 if left else 8),
            textcoords="offset points",
            ha="right" if left else "left",
            va="top" if left else "bottom",
        )
    # Room for the text below a point at the lower end.
    axes.margins(0.05 if curve else 0.5, 0.15 if curve else 0.5)
    constant = mechanism.utility().get("constant_output")
    if constant is not None and what.endswith("evenly"):
        _draw_constant(axes, constant)
    logarithmic(axes.xaxis, (min(x for x, _ in points), max(x for x, _ in points)))
    logarithmic(axes.yaxis, (min(y for _, y in points), max(y for _, y in points)))
    axes.grid()
    axes.set_xlabel("ε of one report" + ("" if curve else "; what was declared has this one and no other"))
    axes.set_ylabel(what)


def _draw_constant(axes: Any, constant: Mapping[str, Any]) -> None:
    """Draw the error of always reporting the center of the range: above this line a report is worth less."""
    level = constant["mse_uniform_prior"]
    axes.axhline(level, linestyle="--", color=GREY, linewidth=1.2)
    axes.annotate(
        "always saying the centre",
        (0.99, level),
        (0, 3),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=9,
    )


# -- densities -----------------------------------------------------------------------------------------------

_POINTS = 1200
_LINES = (("lower end", 0.0, BLUE, "-"), ("centre", 0.5, INK, "--"), ("four fifths", 0.8, ORANGE, "-."))


def _densities(mechanism: Mechanism) -> list[tuple[str, str, str, list[tuple[float, float]]]]:
    """Return a name, a color, a line style and (report, density) points for users at three places of the range."""
    from ldp_budget.errors import NotSupported
    from ldp_budget.sdk.numeric_mechanism import NumericMechanism

    if not isinstance(mechanism, NumericMechanism) or mechanism.domain is None:
        return []
    lower, upper = mechanism.interval.ends
    try:
        reports = _reports(mechanism, lower, upper)
        return [
            (
                f"value {lower + share * (upper - lower):g} ({called})",
                colour,
                line,
                [(report, mechanism.density(report, lower + share * (upper - lower))) for report in reports],
            )
            for called, share, colour, line in _LINES
        ]
    except NotSupported:  # reports without a density, such as bits
        return []


def _reports(mechanism: NumericMechanism, lower: float, upper: float) -> list[float]:
    """Return reports between the ends of the range, and as far again on both sides if reports exceed the range."""
    width = upper - lower
    margin = 0.0 if mechanism.density(lower - width, lower) == 0 else width
    start, length = lower - margin, width + 2 * margin
    return [start + length * point / _POINTS for point in range(_POINTS + 1)]


def _draw_densities(axes: Any, drawn: list[tuple[str, str, str, list[tuple[float, float]]]]) -> None:
    for called, colour, line, points in drawn:
        axes.plot([x for x, _ in points], [y for _, y in points], color=colour, linestyle=line, label=called)
    axes.set_xlabel("report, in the unit of the values")
    axes.set_ylabel("density of reports")
    axes.set_ylim(bottom=0)
    axes.grid()
    axes.legend(title="A user who has the", alignment="left")
