"""Pictures, one file for each; the option `--plot`, and what every picture has in common, in `canvas`.

Matplotlib is the extra `plot`; without it a picture is an error that says how to get it. Nothing of it is imported
before a picture is asked for.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

FORMATS = ("png", "svg", "pdf")
"""What a picture can be written as: the suffix of its file."""


def format_of(path: str) -> str:
    """The format that the suffix of a picture's file says. Raises `click.BadParameter` for any other suffix."""
    suffix = os.path.splitext(path)[1].lower().removeprefix(".")
    if suffix not in FORMATS:
        expected = f"a file that ends in {', '.join(f'.{each}' for each in FORMATS[:-1])} or .{FORMATS[-1]}"
        raise click.UsageError(f"--plot: expected {expected}; found {path}")
    return suffix


def need_matplotlib() -> None:
    """Raises `click.ClickException` with the way to get it where it is missing."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise click.ClickException("a picture needs matplotlib: pip install 'ldp-budget[plot]'") from None


def plot_option(what: str) -> Callable[[Any], Any]:
    """`--plot FILE`. What is wrong with it is told before anything is worked out."""
    help = f"Draw {what}; FILE ends in .png, .svg or .pdf, and is replaced."
    return click.option("--plot", metavar="FILE", callback=_checked, help=help)


def _checked(ctx: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    if path is not None:
        format_of(path)
        need_matplotlib()
    return path
