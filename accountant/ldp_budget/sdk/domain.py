"""What users' values may be: the domain is declared, never read off the data, and checked before anything is drawn.

A `Domain` is one of two: `Categories`, for one of several answers, or an `Interval`, for a number. Whatever wants to
know what a mechanism asks for asks its `domain`, and nothing else.
"""

from __future__ import annotations

import hashlib
import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from .._dataframes import as_texts, check_texts
from .._validation import shown
from ..errors import InvalidParameter, OutsideDomain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from decimal import Decimal
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray


_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]*")


@dataclass(frozen=True)
class Categories:
    """The answers 0..size-1.

    Parameters:
        size: how many there are.
        listed: they were declared, and an estimate may be made of all of them. Else any whole number below `size` is
            taken, most often to be hashed, and an estimate must be told which it is to count. There a text stands for
            a number as well (`number_of`), so that words and addresses can be asked for.

    Raises:
        Nothing.
    """

    size: int
    listed: bool = True

    def __str__(self) -> str:
        return f"whole numbers from 0 to {self.size - 1}" + ("" if self.listed else ", or any text")

    def check(self, values: Any) -> NDArray[np.int64]:
        """The values as answers.

        Parameters:
            values: an array or a list.

        Returns:
            An integer array, shape (n,).

        Raises:
            OutsideDomain: at the first value that is no answer.
        """
        from ._inputs import as_answers

        if not self.listed and (texts := as_texts(values)) is not None:
            return self.read(texts)
        return as_answers(values, self.size, str(self))

    def read(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Texts as answers.

        Parameters:
            texts: one for each user.

        Returns:
            An integer array, shape (n,).

        Raises:
            OutsideDomain: at the first text that is no answer.
            InvalidParameter: these are no texts.
        """
        return self.check(_parsed(texts, int if self.listed else self.number_of, str(self)))

    def number_of(self, text: str) -> int:
        """The number that any text stands for where answers are not listed.

        A whole number without leading zeros stands for itself, so one beyond `size` is outside the domain, as is one
        below zero. Any other text stands for its digest, 8 bytes of BLAKE2b (personalised "ldp-budget text") over its
        UTF-8 form, little-endian, mod `size`: the same in every client.

        Parameters:
            text: any text but the empty one, which says nothing, and one with half of a character (a lone surrogate),
                which has no such form.

        Raises:
            InvalidParameter: it is one of these, or no text.
        """
        if not isinstance(text, str) or not text:
            raise InvalidParameter("text", "a text of at least one character", shown(text))
        if _WHOLE_NUMBER.fullmatch(text):
            return int(text)
        try:
            digest = hashlib.blake2b(text.encode(), digest_size=8, person=b"ldp-budget text")
        except UnicodeEncodeError:
            raise InvalidParameter("text", "a text of whole characters", shown(text)) from None
        return int.from_bytes(digest.digest(), "little") % self.size


@dataclass(frozen=True)
class Interval:
    """The numbers in [lower, upper].

    Parameters:
        lower: the smallest, a decimal.
        upper: the largest, a decimal.

    Raises:
        Nothing.
    """

    lower: Decimal
    upper: Decimal

    def __str__(self) -> str:
        return f"numbers from {self.lower} to {self.upper}"

    @property
    def ends(self) -> tuple[float, float]:
        """`lower` and `upper` as doubles."""
        return float(self.lower), float(self.upper)

    def check(self, values: Any) -> NDArray[np.float64]:
        """The values as numbers of the interval.

        Parameters:
            values: an array or a list.

        Returns:
            A float array, shape (n,).

        Raises:
            OutsideDomain: at the first value that is not in it.
        """
        from ._inputs import as_numbers

        return as_numbers(values, *self.ends, str(self))

    def read(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Texts as numbers of the interval.

        Parameters:
            texts: one for each user.

        Returns:
            A float array, shape (n,).

        Raises:
            OutsideDomain: at the first text that is no number of it.
            InvalidParameter: these are no texts.
        """
        return self.check(_parsed(texts, float, str(self)))


_MOST_USERS = 10**18

Domain: TypeAlias = Categories | Interval


def check_users(users: int) -> None:
    """Raise `InvalidParameter` unless `users` is a whole number of at least one."""
    if isinstance(users, bool) or not isinstance(users, int) or users < 1:
        raise InvalidParameter("users", "a whole number >= 1", shown(users))
    if users > _MOST_USERS:  # of more there is no double
        raise InvalidParameter("users", f"a whole number from 1 to {_MOST_USERS}", shown(users))


def _parsed(texts: Sequence[str], kind: Callable[[str], int | float], domain: str) -> list[int | float]:
    numbers = []
    whole = kind is int  # of a number with a fraction `int` would take what is before the point
    for position, text in enumerate(check_texts("texts", texts, "texts, one for each user")):
        try:
            numbers.append(operator.index(text) if whole and not isinstance(text, str) else kind(text))
        except (OverflowError, TypeError, ValueError):
            raise OutsideDomain(domain, text, position) from None
    return numbers
