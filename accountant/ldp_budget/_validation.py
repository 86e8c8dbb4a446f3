"""What callers hand over, looked at before anything is done with it.

Whoever gives a number for a name, or a class for a mechanism, reads which argument it was, what was expected there
and what was found, and not where in the package it could not be used. Each of these raises `InvalidParameter`.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar
from unicodedata import normalize

from .errors import InvalidParameter

T = TypeVar("T")

_LONGEST = 80


def shown(value: object) -> str:
    """A value as an error shows it: as it is written in Python, on one line of no more than about 80 characters."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    try:
        text = " ".join(repr(value).split())
    except Exception:
        return f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 20]}… (a {type(value).__name__})"


def check_text(option: str, value: object) -> str:
    """`value`, if it is a text of at least one character."""
    if not isinstance(value, str) or not value:
        raise InvalidParameter(option, "a text of at least one character", shown(value))
    # Of numpy's texts there is a plain one, so that a request is the same whichever of the two it came with.
    return _storable(option, value if type(value) is str else str.__str__(value))


# Programs put these around a text to say how it is written: the zero-width space, the byte order mark, joiners, the
# soft hyphen and marks of direction. Inside a name some of them make another word, so they stay there.
_INVISIBLE = "\u00ad\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
_INVISIBLE += "\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\ufeff"


def canonical_user(text: str) -> str:
    """A user's name as the ledger knows it: in Unicode's form NFC, its ends trimmed of what cannot be seen.

    Every name goes through here before it is hashed, so that one user has one budget however the name was typed.
    Names that differ by case stay two: many systems have both.
    """
    if text.isascii():
        return text.strip()
    text = normalize("NFC", text)
    while (trimmed := text.strip().strip(_INVISIBLE)) != text:
        text = trimmed
    return text


def check_user(value: object) -> str:
    """The canonical form of a user's name, if a character is left in it."""
    name = canonical_user(check_text("user", value))
    if not name:
        raise InvalidParameter("user", "a text of at least one character besides white space", shown(value))
    return name


def check_name(option: str, value: object) -> str:
    """`value`, if it is a text; whether anything has that name is for others to say."""
    if not isinstance(value, str):
        raise InvalidParameter(option, "a name, which is a text", shown(value))
    return _storable(option, value)


def _storable(option: str, text: str) -> str:
    """`text`, if every engine of a ledger can store it: neither NUL nor half of a character fits everywhere."""
    if text.isascii() and "\0" not in text:
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidParameter(option, "a text of whole characters, without lone surrogates", shown(text)) from None
    if "\0" in text:
        raise InvalidParameter(option, "a text without the character NUL", shown(text))
    return text


def check_switch(option: str, value: object) -> bool:
    """`value`, if it is True or False: what merely counts as true may well be a text that says no."""
    if not isinstance(value, bool):
        raise InvalidParameter(option, "True or False", shown(value))
    return value


def check_instance(option: str, value: object, kind: type[T], expected: str) -> T:
    """`value`, if it is of that kind, which `expected` says in words."""
    if not isinstance(value, kind):
        raise InvalidParameter(option, expected, shown(value))
    return value


def check_whole(option: str, value: object, least: int = 0, most: int | None = None) -> int:
    """`value` as an int, if it is a whole number in the range; one of numpy's is one."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least or (most is not None and number > most):
        expected = f"a whole number >= {least}" if most is None else f"a whole number from {least} to {most}"
        raise InvalidParameter(option, expected, shown(value))
    return number


def check_share(option: str, value: object) -> float:
    """`value` as a float, if it is a number above 0 and below 1."""
    try:
        number = -1.0 if isinstance(value, bool | str | bytes) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if not 0 < number < 1:
        raise InvalidParameter(option, "a number > 0 and < 1", shown(value))
    return number


def check_call(option: str, value: T) -> T:
    """`value`, if it can be called, or None."""
    if value is not None and not callable(value):
        raise InvalidParameter(option, "a function, or None", shown(value))
    return value


def check_many(option: str, value: Any, expected: str) -> Iterable[Any]:
    """`value`, if it can be gone through and is no text, whose letters nobody means."""
    if isinstance(value, str | bytes | bytearray):
        raise InvalidParameter(option, expected, shown(value))
    try:
        iter(value)
    except TypeError:
        raise InvalidParameter(option, expected, shown(value)) from None
    many: Iterable[Any] = value
    return many


def check_path(option: str, value: object) -> Path:
    """`value` as a path, if it is a text or a path that a file system could hold."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    try:
        # A number would be opened as well: as whatever file this process has open under it.
        if isinstance(text, str) and text and b"\0" not in os.fsencode(text):
            return Path(text)
    except UnicodeEncodeError:
        pass
    raise InvalidParameter(option, "a path", shown(value))
