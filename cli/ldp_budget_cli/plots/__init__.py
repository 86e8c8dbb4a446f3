"""Plots: one file per topic; the option `--plot`. `figure` holds what all plots share.

Matplotlib is the extra `plot`; without it a plot is an error that says how to install it. Nothing of matplotlib is
imported before a plot is requested.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

FORMATS = ("png", "svg", "pdf")
"""The file suffixes of a plot."""


def format_of(path: str) -> str:
    """Return the format from the suffix of a plot's file. Raises `click.UsageError` for any other suffix."""
    suffix = os.path.splitext(path)[1].lower().removeprefix(".")
    if suffix not in FORMATS:
        expected = f"a file that ends in {', '.join(f'.{each}' for each in FORMATS[:-1])} or .{FORMATS[-1]}"
        raise click.UsageError(f"--plot must be {expected}: got {path}")
    return suffix


def need_matplotlib() -> None:
    """Raise `click.ClickException` with the install command if matplotlib is missing."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise click.ClickException("A plot needs matplotlib. Install it: pip install 'ldp-budget[plot]'") from None


def plot_option(what: str) -> Callable[[Any], Any]:
    """Return the option `--plot FILE`. Its errors appear before any calculation."""
    help = f"Draw {what}. FILE ends in .png, .svg or .pdf; an existing FILE is replaced."
    return click.option("--plot", metavar="FILE", callback=_checked, help=help)


def _checked(ctx: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    if path is not None:
        format_of(path)
        need_matplotlib()
    return path
