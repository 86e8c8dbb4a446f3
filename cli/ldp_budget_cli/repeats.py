"""Users who are listed more than once, or in two spellings: counted without keeping a list of names."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import click

from .output import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_TOGETHER = 500_000
"""So many names at a time are counted: all at once would take a hundred bytes for each."""


class Repeats:
    """Counts how often users come again, and how many names differ by case alone, in 16 bytes each.

    Of two users in 10**12 lists of a million one pair may be taken for one; so this is for a warning, and decides
    nothing.
    """

    def __init__(self) -> None:
        self._names = array("q")
        self._folded = array("q")

    def counting(self, users: Iterable[str]) -> Iterator[str]:
        """The users as they are, each counted."""
        for user in users:
            self._names.append(hash(user))
            self._folded.append(hash(user.casefold()))
            yield user

    def warn(self) -> None:
        """Say how many users come more than once, and how many names differ by case; nothing where none does."""
        often = more = 0
        parts = 1 + len(self._names) // _TOGETHER
        for part in range(parts):
            times = Counter(each for each in self._names if each % parts == part)
            again = [count for count in times.values() if count > 1]
            often += len(again)
            more += sum(again) - len(again)
        if often:
            click.echo(
                f"Warning: {counted(often, 'user is', 'users are')} listed more than once, which is "
                f"{counted(more, 'charge')} more than there are users; --once charges each name once",
                err=True,
            )
        self.warn_of_case()

    def warn_of_case(self) -> None:
        """Say how many names differ from another one by case alone."""
        alike = 0
        parts = 1 + len(self._names) // _TOGETHER
        for part in range(parts):
            spellings: dict[int, set[int]] = defaultdict(set)
            for name, folded in zip(self._names, self._folded, strict=True):
                if folded % parts == part:
                    spellings[folded].add(name)
            alike += sum(len(names) for names in spellings.values() if len(names) > 1)
        if alike:
            click.echo(
                f"Warning: {alike} names differ from another one by case alone, and each has a budget of its own. If "
                "they name the same users, write each user in one way",
                err=True,
            )


def warn_of_repeats(users: Iterable[str]) -> None:
    """Say how many users are listed more than once, and how many names differ by case alone."""
    repeats = Repeats()
    for _ in repeats.counting(users):
        pass
    repeats.warn()


def once_each(users: Iterator[str]) -> Iterator[str]:
    """Each user where it first comes."""
    seen: set[str] = set()
    for user in users:
        if user not in seen:
            seen.add(user)
            yield user
