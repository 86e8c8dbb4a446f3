"""Domains: the declared sets of values that users may have.

A domain is declared and never inferred from the data. Values are checked before anything is drawn. A `Domain` is
either `Categories`, one of several answers, or an `Interval`, a number. Code that needs to know the inputs of a
mechanism reads its `domain`.
"""

from __future__ import annotations

import hashlib
import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from .._number_parsing import NO_NUMBER, number_in, whole_in, why_no_number
from .._validation import canonical_text, check_storable, shown
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
        size: the number of answers.
        listed: True if the answers were declared, so an estimate can cover all of them. If False, any whole number
            below `size` is accepted, most often to be hashed, and an estimate needs the list of answers to count. A
            text then maps to a number (`number_of`), so that words and addresses can be collected.
    """

    size: int
    listed: bool = True

    def __str__(self) -> str:
        return f"whole numbers from 0 to {self.size - 1}" + ("" if self.listed else ", or any text")

    @property
    def names(self) -> int:
        """The number of names of the answers: `size`, or the number of options where an answer is a set of options."""
        return self.size

    def check(self, values: Any) -> NDArray[np.int64]:
        """Return the values as answers.

        Parameters:
            values: an array or a list.

        Returns:
            An integer array, shape (n,).

        Raises:
            OutsideDomain: a value is not an answer; the error names the first.
        """
        from .._dataframes import as_texts
        from ._inputs import as_answers

        if not self.listed and (texts := as_texts(values)) is not None:
            return self.read(texts)
        return as_answers(values, self.size, str(self))

    def read(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return texts as answers.

        Parameters:
            texts: one for each user.

        Returns:
            An integer array, shape (n,).

        Raises:
            OutsideDomain: a text is not an answer; the error names the first.
            InvalidParameter: `texts` are not texts.
        """
        return self.check(_parsed(texts, whole_in if self.listed else self.number_of, str(self)))

    def number_of(self, text: str) -> int:
        """Return the number that a text maps to where answers are not listed.

        A whole number without leading zeros maps to itself. So a number that is negative, or `size` or more, is
        outside the domain. Any other text maps to its digest: 8 bytes of BLAKE2b (personalised "ldp-budget text")
        over its UTF-8 form, little-endian, mod `size`. The text is first brought into Unicode normal form NFC, without
        spaces and invisible characters at its ends. Every client computes the same number.

        Parameters:
            text: any text that is not empty and has no lone surrogate, which UTF-8 cannot encode.

        Returns:
            The number of the text.

        Raises:
            InvalidParameter: `text` is empty, has a lone surrogate, or is not a text.
        """
        if not isinstance(text, str) or not (text := canonical_text(text)):
            raise InvalidParameter("text", "a string of at least one character", shown(text))
        if _WHOLE_NUMBER.fullmatch(text):
            return int(text)
        try:
            digest = hashlib.blake2b(text.encode(), digest_size=8, person=b"ldp-budget text")
        except UnicodeEncodeError:
            raise InvalidParameter(
                "text", "a string that UTF-8 can encode, without lone surrogates", shown(text)
            ) from None
        return int.from_bytes(digest.digest(), "little") % self.size


class Words(Categories):
    """The texts of 1 to `length` bytes in UTF-8, without NUL, whose bytes a mechanism reads one after the other.

    A word is the number whose bytes, the highest first, are those of the word, followed by zeros up to `length`. Any
    number below 256**length is accepted too.

    Parameters:
        length: the most bytes of a word.
    """

    def __init__(self, length: int) -> None:
        super().__init__(256**length, listed=False)

    @property
    def length(self) -> int:
        """The most bytes of a word."""
        return (self.size.bit_length() - 1) // 8

    def __str__(self) -> str:
        return f"texts of 1 to {self.length} bytes in UTF-8"

    def check(self, values: Any) -> NDArray[Any]:
        from .._dataframes import as_texts
        from ._inputs import as_answers, as_large_answers

        if (texts := as_texts(values)) is not None:
            return self.read(texts)
        return (as_answers if self.size < _LARGE else as_large_answers)(values, self.size, str(self))

    def number_of(self, text: str) -> int:
        """Return the number of a word, in the form in which texts are compared.

        Parameters:
            text: the word.

        Returns:
            A whole number below `size`.

        Raises:
            ValueError: `text` is empty, too long, contains NUL, has a lone surrogate, or is not a text.
        """
        word = canonical_text(text).encode() if isinstance(text, str) else b""
        if not 0 < len(word) <= self.length or 0 in word:
            raise ValueError(f"the text must be one of the {self}, without NUL: got {shown(text)}")
        return int.from_bytes(word.ljust(self.length, b"\0"), "big")

    def word_of(self, number: int) -> str:
        """Return the word of a number; bytes that are not UTF-8 are shown as escapes.

        Parameters:
            number: a whole number below `size`.
        """
        return int(number).to_bytes(self.length, "big").rstrip(b"\0").decode(errors="backslashreplace")


@dataclass(frozen=True)
class Interval:
    """The numbers in [lower, upper].

    Parameters:
        lower: the smallest, a decimal.
        upper: the largest, a decimal.
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
        """Return the values as numbers of the interval.

        Parameters:
            values: an array or a list.

        Returns:
            A float array, shape (n,).

        Raises:
            OutsideDomain: a value is outside the interval; the error names the first.
        """
        from ._inputs import as_numbers

        return as_numbers(values, *self.ends, str(self))

    def read(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return texts as numbers of the interval.

        Parameters:
            texts: one for each user.

        Returns:
            A float array, shape (n,).

        Raises:
            OutsideDomain: a text is not a number of the interval; the error names the first.
            InvalidParameter: `texts` are not texts.
        """
        return self.check(_parsed(texts, number_in, str(self)))


def check_categories(categories: Sequence[str]) -> None:
    """Raise `InvalidParameter` unless these are at least two distinct, non-empty names.

    Names that are the same in Unicode normal form NFC, without spaces at their ends, are not distinct.
    """
    expected = "at least two distinct, non-empty names"
    if len(categories) < 2 or not all(isinstance(each, str) and canonical_text(each) for each in categories):
        found = f"one name, {categories[0]!r}" if len(categories) == 1 else shown(list(categories))
        raise InvalidParameter("categories", expected, found)
    seen: dict[str, int] = {}
    for place, category in enumerate(categories):
        check_storable("categories", category)
        other = categories[seen.setdefault(canonical_text(category), place)]
        if seen[canonical_text(category)] != place:
            from .._lookalikes import difference

            count = list(categories).count(category)
            found = f"{category!r} {count} times" if count > 1 else f"{category!r} and {other!r}"
            raise InvalidParameter("categories", expected, found, hint=difference(category, [other]))


def codes_of(categories: Sequence[str]) -> dict[str, int]:
    """Return the number of each text that counts as an answer; texts are compared in their canonical form.

    If the answers are yes and no, 1, 0, true and false count as well: tables of official data have them.

    Parameters:
        categories: the names of the answers, in order.
    """
    codes = {canonical_text(category): code for code, category in enumerate(categories)}
    return {other: codes[name] for other, name in yes_no(categories).items()} | codes


def yes_no(categories: Sequence[str]) -> dict[str, str]:
    """Return the answer for each of 1, 0, true and false if the answers are yes and no; else an empty mapping.

    Parameters:
        categories: the names of the answers, in order.
    """
    named = (
        {canonical_text(each).casefold(): canonical_text(each) for each in categories} if len(categories) == 2 else {}
    )
    if set(named) != {"yes", "no"}:
        return {}
    yes, no = named["yes"], named["no"]
    return dict.fromkeys(_YES, yes) | dict.fromkeys(_NO, no)


_YES = ("1", "1.0", "true", "True", "TRUE")
_NO = ("0", "0.0", "false", "False", "FALSE")
_MOST_USERS = 10**18
_LARGE = 2**62
"""From this size on, answers are Python integers in an array of objects."""

Domain: TypeAlias = Categories | Interval


def check_users(users: int) -> None:
    """Raise `InvalidParameter` unless `users` is a whole number of at least one."""
    if isinstance(users, bool) or not isinstance(users, int) or users < 1:
        raise InvalidParameter("users", "a whole number >= 1", shown(users))
    if users > _MOST_USERS:  # a larger number may not fit into a double
        raise InvalidParameter("users", f"a whole number from 1 to {_MOST_USERS}", shown(users))


def _parsed(texts: Sequence[str], kind: Callable[[Any], int | float], domain: str) -> list[int | float]:
    from .._dataframes import check_texts

    numbers = []
    whole = kind is whole_in  # `int` would silently drop the fraction of a number
    for position, text in enumerate(check_texts("texts", texts, "a list of strings, one for each user")):
        try:
            numbers.append(operator.index(text) if whole and not isinstance(text, str) else kind(text))
        except (OverflowError, TypeError, ValueError):
            why = why_no_number(text) if kind in (whole_in, number_in) else ""
            hint = "" if why in ("", NO_NUMBER) else f"{why}."
            raise OutsideDomain(domain, text, position, hint=hint) from None
    return numbers
