"""Pictures. Matplotlib is the extra `plot`; without it a picture is an error that says how to get it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .output import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ldp_budget.authoring.base import Mechanism
    from ldp_budget.authoring.estimates import Estimate
    from ldp_budget.authoring.numeric import NumericMechanism
    from ldp_budget.catalogue.collections import Collection


def figure(width: float = 7, height: float = 4) -> tuple[Any, Any]:
    """An empty figure and its axes."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise click.ClickException("a picture needs matplotlib: pip install 'ldp-budget[plot]'") from None
    drawing = Figure(figsize=(width, height), layout="constrained")
    axes = drawing.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return drawing, axes


def save(drawing: Any, path: str) -> None:
    """Write the figure as a PNG."""
    try:
        drawing.savefig(path, format="png", dpi=150)
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}") from None


def plot_estimate(
    collection: Collection,
    result: Estimate,
    path: str,
    truth: Sequence[float] | None = None,
    *,
    rows: Sequence[Mapping[str, Any]] = (),
    level: float = 0.95,
) -> None:
    """Bars with the intervals of a level, one for each of the `rows` that an estimate of counts is printed in.

    With `truth`, the true shares stand as points beside them.
    """
    from ldp_budget.authoring.estimates import CountEstimate

    drawing, axes = figure()
    interval = f"{100 * level:.12g} % interval"
    if isinstance(result, CountEstimate):
        names = [row["answer"] for row in rows]
        shares, low, high = ([100 * row[part] for row in rows] for part in ("share", "share_low", "share_high"))
        # An interval may end at its estimate, where the estimate is below 0.
        margins = [
            [share - end for share, end in zip(shares, low, strict=True)],
            [end - share for share, end in zip(shares, high, strict=True)],
        ]
        axes.bar(names, shares, yerr=margins, capsize=4, color="#9bb8d3", label=f"estimate, {interval}")
        if truth is not None:
            axes.plot(names, [100 * share for share in truth], "o", color="#c0392b", label="truth")
            axes.legend(frameon=False)
        axes.set_ylabel("share of users, %")
        axes.tick_params(axis="x", rotation=30)
        axes.axhline(0, color="black", linewidth=0.8)
    else:
        low, high = result.interval(level)  # type: ignore[attr-defined]
        axes.errorbar([result.mean], [0], xerr=[[result.mean - low], [high - result.mean]], fmt="o", capsize=4)  # type: ignore[attr-defined]
        axes.set_yticks([])
        axes.set_xlabel(f"mean, {interval}")
    axes.set_title(f"{collection.name}: {counted(result.reports, 'report')}, {collection.mechanism.name}")
    save(drawing, path)


def plot_mechanism(mechanism: Mechanism, path: str) -> None:
    """A numeric mechanism: densities of its reports, and error against ε; any other: error against ε."""
    from ldp_budget.authoring.domain import Categories
    from ldp_budget.authoring.numeric import NumericMechanism

    if isinstance(mechanism, NumericMechanism) and mechanism.domain is not None:
        drawing, (left, right) = _two_panels()
        _draw_densities(left, mechanism)
        _draw_error(right, mechanism, "mean squared error, uniform prior", lambda m: m.utility()["mse_uniform_prior"])
        constant = mechanism.utility()["constant_output"]["mse_uniform_prior"]
        right.axhline(constant, linestyle="--", color="#777777", label="constant output")
        right.legend(frameon=False)
    elif isinstance(mechanism.domain, Categories) and "variance_per_user" in mechanism.utility():
        drawing, axes = figure()
        _draw_error(axes, mechanism, "variance per user of a count", lambda m: m.utility()["variance_per_user"])
    elif isinstance(mechanism.domain, Categories):
        raise click.ClickException(f"--plot: {mechanism.name} predicts no variance of a count here")
    else:
        raise click.ClickException(f"--plot: {mechanism.name} needs --lower and --upper to be drawn")
    drawing.suptitle(repr(mechanism), fontsize=9)
    save(drawing, path)


def _two_panels() -> tuple[Any, Any]:
    drawing, first = figure(10, 4)
    first.remove()
    panels = drawing.subplots(1, 2)
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
    return drawing, panels


def _draw_densities(axes: Any, mechanism: NumericMechanism) -> None:
    """The density of the reports of users at the lower edge, the centre and four fifths of the range."""
    lower, upper = mechanism.interval.ends
    width = upper - lower
    bounded = mechanism.density(lower - width, lower) == 0
    margin = 0.0 if bounded else width
    start, length = lower - margin, width + 2 * margin
    reports = [start + length * point / 1200 for point in range(1201)]
    for share, colour in ((0.0, "#9bb8d3"), (0.5, "#2e6da4"), (0.8, "#c0392b")):
        value = lower + share * width
        axes.plot(
            reports,
            [mechanism.density(report, value) for report in reports],
            color=colour,
            label=f"value {value:g}",
        )
    axes.set_xlabel("report")
    axes.set_ylabel("density")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


def _draw_error(axes: Any, mechanism: Mechanism, label: str, error: Callable[[Mechanism], float]) -> None:
    """An error against ε from 0.2 to 10, and where the mechanism stands."""
    from ldp_budget.errors import LdpBudgetError

    curve = []
    for step in range(35):
        epsilon = 0.2 * 50 ** (step / 34)
        try:
            curve.append((epsilon, error(mechanism.at_epsilon(f"{epsilon:.6g}"))))
        except LdpBudgetError:
            continue
    axes.plot([epsilon for epsilon, _ in curve], [value for _, value in curve], color="#2e6da4", label=mechanism.name)
    epsilon = mechanism.guarantee.epsilon
    if 0.2 <= epsilon <= 10:
        axes.plot([epsilon], [error(mechanism)], "o", color="#c0392b")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("ε")
    axes.set_ylabel(label)


def plot_comparison(rows: Sequence[Mapping[str, Any]], epsilon: str, path: str) -> None:
    """Bars, best first: the standard error of a share, or the error of a mean or of a report."""
    measure = {
        "frequency": ("mean_std_error", "mean standard error of a share"),
        "numeric": ("mse_uniform_prior", "mean squared error of one report, uniform prior"),
    }
    if any("mean_error" in row for row in rows):
        measure["numeric"] = ("mean_error", "error of the estimated mean, at worst")
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    drawing, first = figure(7, 3.2 * len(kinds))
    first.remove()
    for place, kind in enumerate(kinds, 1):
        axes = drawing.add_subplot(len(kinds), 1, place)
        axes.spines[["top", "right"]].set_visible(False)
        name, label = measure[kind]
        shown = [row for row in rows if row["kind"] == kind][::-1]
        axes.barh([row["mechanism"] for row in shown], [row[name] for row in shown], color="#9bb8d3")
        axes.set_xlabel(label)
    drawing.suptitle(f"ε = {epsilon}")
    save(drawing, path)
