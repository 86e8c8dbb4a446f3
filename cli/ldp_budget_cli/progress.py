"""Progress of a long command: a bar on stderr, if that is a terminal and the command is not quiet.

A command that is stopped by Ctrl-C ends with exit code 130, see `errors.Stopped`. Files are written as drafts, and
ledgers in transactions, so nothing is left half-written.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .notes import is_quiet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """Return a bar as a function of (done, total); None if nothing is shown. A step back begins another bar."""
    if not _is_shown():
        yield None
        return
    with ExitStack() as stack:
        bar: Any = None

        def advance(done: int, total: int) -> None:
            nonlocal bar
            if bar is None or done < bar.pos:
                stack.close()
                bar = stack.enter_context(click.progressbar(length=total, label=label, file=sys.stderr))
            bar.update(done - bar.pos)

        yield advance


@contextmanager
def counting(label: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Return a bar as a function that takes the size of each part; `total` is None if the sum is unknown.

    The bar appears with the first part, so that earlier errors are printed alone. Without a terminal, it is the label.
    """
    with ExitStack() as stack:
        bar: Any = None

        def advance(part: int) -> None:
            nonlocal bar
            if is_quiet():
                return
            if bar is None:
                # An endless iterator means that the length is unknown.
                shown = click.progressbar(count(), total, label=label, file=sys.stderr, show_pos=True)
                bar = stack.enter_context(shown)
            bar.update(part)

        yield advance


def followed(
    rows: Iterable[T], label: str, total: Callable[[], int] | None = None, size: Callable[[T], int] = lambda row: 1
) -> Iterator[T]:
    """Yield the rows of a long read, with a bar if it is shown. Rows that are printed to a terminal show it themselves.

    `total` returns the sum of the sizes of all rows.
    """
    if not _is_shown() or sys.stdout.isatty():
        yield from rows
        return
    with counting(label, None if total is None else total()) as advance:
        waiting = 0
        for row in rows:
            yield row
            waiting += size(row)
            if waiting >= _TOGETHER:
                advance(waiting)
                waiting = 0
        advance(waiting)


@contextmanager
def reading_reports(label: str = "estimating") -> Iterator[Callable[[int], None] | None]:
    """Return the bar of an estimate, as a function that takes the number of reports of each part; None if not shown."""
    if not _is_shown():
        yield None
        return
    with counting(label) as advance:
        yield advance


def _is_shown() -> bool:
    return not is_quiet() and sys.stderr.isatty()


_TOGETHER = 1_000
"""The number of rows for which a bar is moved."""
