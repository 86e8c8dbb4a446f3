"""Users who are listed more than once: counted without keeping a list of names."""

from __future__ import annotations

from array import array
from collections import Counter
from typing import TYPE_CHECKING

import click

from .output import counted

if TYPE_CHECKING:
    from collections.abc import Iterator


_TOGETHER = 500_000
"""So many names at a time are counted: all at once would take a hundred bytes for each."""


class Repeats:
    """Counts how often users come again, in eight bytes each.

    Of two users in 10**12 lists of a million one pair may be taken for one; so this is for a warning, and decides
    nothing.
    """

    def __init__(self) -> None:
        self._hashes = array("q")

    def counting(self, users: Iterator[str]) -> Iterator[str]:
        """The users as they are, each counted."""
        for user in users:
            self._hashes.append(hash(user))
            yield user

    def warn(self) -> None:
        """Say how many users come more than once, and how many charges more that is; nothing where none does."""
        often = more = 0
        parts = 1 + len(self._hashes) // _TOGETHER
        for part in range(parts):
            times = Counter(each for each in self._hashes if each % parts == part)
            again = [count for count in times.values() if count > 1]
            often += len(again)
            more += sum(again) - len(again)
        _warn(often, more)


def warn_of_repeats(users: list[str]) -> None:
    """Say so where users are listed more than once, and how often."""
    again = [times for times in Counter(users).values() if times > 1]
    _warn(len(again), sum(again) - len(again))


def _warn(often: int, more: int) -> None:
    if often:
        click.echo(
            f"Warning: {counted(often, 'user is', 'users are')} listed more than once, which is "
            f"{counted(more, 'charge')} more than there are users; --once charges each name once",
            err=True,
        )


def once_each(users: Iterator[str]) -> Iterator[str]:
    """Each user where it first comes."""
    seen: set[str] = set()
    for user in users:
        if user not in seen:
            seen.add(user)
            yield user
