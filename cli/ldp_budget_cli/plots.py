"""Pictures. Matplotlib is the extra `plot`; without it a picture is an error that says how to get it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ldp_budget.collection import Collection
    from ldp_budget.estimates import Estimate


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


def plot_estimate(collection: Collection, result: Estimate, path: str, truth: Sequence[float] | None = None) -> None:
    """Bars with 95 % intervals; with `truth`, the true shares as points beside them."""
    from ldp_budget.estimates import CountEstimate

    drawing, axes = figure()
    if isinstance(result, CountEstimate):
        names = collection.answer_names(len(result.counts))
        low, high = result.interval()
        shares, n = 100 * result.shares, result.reports
        margins = [shares - 100 * low / n, 100 * high / n - shares]
        axes.bar(names, shares, yerr=margins, capsize=4, color="#9bb8d3", label="estimate, 95 % interval")
        if truth is not None:
            axes.plot(names, [100 * share for share in truth], "o", color="#c0392b", label="truth")
            axes.legend(frameon=False)
        axes.set_ylabel("share of users, %")
        axes.tick_params(axis="x", rotation=30)
        axes.axhline(0, color="black", linewidth=0.8)
    else:
        low, high = result.interval()  # type: ignore[attr-defined]
        axes.errorbar([result.mean], [0], xerr=[[result.mean - low], [high - result.mean]], fmt="o", capsize=4)  # type: ignore[attr-defined]
        axes.set_yticks([])
        axes.set_xlabel("mean, 95 % interval")
    axes.set_title(f"{collection.name}: {result.reports} reports, {collection.mechanism.name}")
    save(drawing, path)
