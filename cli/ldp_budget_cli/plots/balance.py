"""Chart of `balance --plot`: the remaining budget of each limit over time, as steps, with the refills of windows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from .figure import BLUE, GREY, INK, ORANGE, PALE, heading, picture, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ldp_budget.accounting.budget_timeline import Remaining


_SYMBOLS = {"epsilon": "ε", "delta": "δ", "rho": "ρ", "mu_squared": "μ²", "renyi": "D"}
_MOST_MARKS = 40
"""The most refills that get a mark; the title mentions more."""


def plot_balance(user: str, policy: str, found: Sequence[Remaining], path: str) -> None:
    """Draw a panel for each amount that a limit counts, all over the same time."""
    panels = [panel for each in found for panel in _panels(each)]
    until = found[0].until
    start = min(panel.times[0] for panel in panels)
    untouched = all(len(panel.times) == 1 and panel.left[0] == panel.capacity for panel in panels)
    if untouched:  # a flat line, over a time span that is wide enough to see
        start = until - timedelta(hours=1)
        panels = [panel._replace(times=[start]) for panel in panels]
    title = f"{shortened(user, 40)}: what is left of each limit, policy {policy}"
    with picture(path, 1.2 + 1.75 * len(panels)) as figure:
        every = list(figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0])
        for axes, panel in zip(every, panels, strict=True):
            _draw(axes, panel, until)
        room = (until - start) * 0.02 or timedelta(minutes=30)
        every[-1].set_xlim(start - room, until + room)
        _name_days(every[-1])
        nothing = "nothing was charged" if untouched else ""
        heading(figure, title, f"as of {until:%Y-%m-%d %H:%M} UTC", nothing, _refills(panels))


class _Panel(NamedTuple):
    """One amount of a limit over time."""

    title: str
    symbol: str
    capacity: float
    times: list[datetime]
    left: list[float]
    refills: list[datetime]


def _panels(found: Remaining) -> Iterator[_Panel]:
    """Yield a panel for each amount that the limit admits; for δ = 0 nothing is ever left."""
    limit = found.limit
    course = [(left.at, limit.amounts(left.remaining_units)) for left in found.course]
    refills = [left.at for left in found.course if left.refilled]
    for name, capacity in limit.amounts(limit.capacity).items():
        if capacity:
            symbol = _SYMBOLS[name]
            total = f"of ε = {float(limit.epsilon):.6g}" + (f", δ = {float(limit.delta):.6g}" if limit.delta else "")
            title = f"{limit.label} limit ({limit.rule}) {total}: {symbol} left"
            left = [amounts[name] or 0.0 for _, amounts in course]
            yield _Panel(title, symbol, capacity, [at for at, _ in course], left, refills)


def _draw(axes: Any, panel: _Panel, until: datetime) -> None:
    times, left = [*panel.times, max(until, panel.times[-1])], [*panel.left, panel.left[-1]]
    axes.fill_between(times, left, step="post", color=PALE, alpha=0.45, linewidth=0)
    axes.step(times, left, where="post", color=BLUE, linewidth=1.8 if len(times) < 200 else 0.8)
    axes.axhline(panel.capacity, color=GREY, linestyle="--", linewidth=1)
    if 0 < len(panel.refills) <= _MOST_MARKS:
        full = [panel.capacity] * len(panel.refills)
        axes.plot(panel.refills, full, linestyle="none", marker="^", color=ORANGE, markersize=6)
    axes.axhline(0, color=INK, linewidth=0.9)
    axes.set_ylim(-0.03 * panel.capacity, 1.12 * panel.capacity)
    axes.set_title(panel.title)
    axes.yaxis.set_major_formatter(lambda value, place: f"{value:.6g}")
    axes.set_ylabel(f"{panel.symbol} left")
    axes.annotate(
        f"{left[-1]:.4g}",
        (1, left[-1]),
        (6, 0),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        va="center",
        annotation_clip=False,
    )


def _refills(panels: Sequence[_Panel]) -> str:
    """Return the legend of the refill marks; empty if there were no refills."""
    most = max(len(panel.refills) for panel in panels)
    if not most:
        return "dashed: the whole limit"
    marked = f"▲ a new window refills it{' (not marked where there are many)' if most > _MOST_MARKS else ''}"
    return f"dashed: the whole limit; {marked}"


def _name_days(axes: Any) -> None:
    from datetime import UTC

    import matplotlib.dates

    dates: Any = matplotlib.dates
    locator = dates.AutoDateLocator(tz=UTC, maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=UTC))
    axes.set_xlabel("time, UTC")
