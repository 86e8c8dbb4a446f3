"""Validators for the arguments of public functions. Each raises `InvalidParameter`.

The error names the argument, the expected value and the found value. So a caller who passes a number for a name, or
a class for a mechanism, reads this instead of a failure somewhere inside the package.
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
    """A value as an error shows it: its Python notation on one line of about 80 characters at most."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    try:
        text = " ".join(repr(value).split())
    except Exception:
        return _of_type(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 20]}… ({_of_type(value)})"


def _of_type(value: object) -> str:
    """The type of a value with its article: `a list`, `an int`."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def shown_with_type(value: object) -> str:
    """A value as an error shows it, with its type, for an argument of the wrong type: `5 (int)`."""
    text = shown(value)
    if value is None or isinstance(value, bool | type) or text.endswith(")"):
        return text
    return f"{text} ({type(value).__name__})"


def check_text(option: str, value: object) -> str:
    """Return `value` if it is a text of at least one character."""
    if not isinstance(value, str):
        hint = f"Use str({option})." if isinstance(value, int) and not isinstance(value, bool) else ""
        raise InvalidParameter(option, "a string", shown_with_type(value), hint=hint)
    if not value:
        raise InvalidParameter(option, "a string of at least one character", shown(value))
    # A numpy text becomes a plain one, so that both give the same request.
    return check_storable(option, value if type(value) is str else str.__str__(value))


# Invisible characters that programs put around a text: zero-width space, byte order mark, joiners, soft hyphen and
# direction marks. Inside a name some of them change the word, so only the ends are trimmed.
_INVISIBLE = "\u00ad\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
_INVISIBLE += "\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\ufeff"


def canonical_text(text: str) -> str:
    """A text in Unicode normal form NFC, without spaces and invisible characters at its ends.

    Users and answers are stored in this form: one user has one budget however the name was typed. Texts that differ by
    case stay different, because many systems have both.
    """
    if text.isascii():
        return text.strip()
    text = normalize("NFC", text)
    while (trimmed := text.strip().strip(_INVISIBLE)) != text:
        text = trimmed
    return text


def check_user(value: object) -> str:
    """Return the canonical form of a user's name if at least one character is left in it."""
    name = canonical_text(check_text("user", value))
    if not name or (not name.isascii() and _is_shapeless(name)):
        raise InvalidParameter("user", "a string with at least one character that is not white space", shown(value))
    return name


def _is_shapeless(name: str) -> bool:
    from ._lookalikes import is_shapeless  # most names are ASCII

    return all(is_shapeless(each) or each.isspace() for each in name)


def check_users(values: list[Any]) -> list[str]:
    """Return `check_user` of each value."""
    try:
        joined = "".join(values)
    except TypeError:
        joined = "\0"
    # Printable ASCII needs no normalization, so only blanks at the ends are left to look for.
    plain = joined.isascii() and joined.isprintable() and set(map(type, values)) == {str} and "" not in values
    if plain and (" " not in joined or all(each[0] != " " and each[-1] != " " for each in values)):
        return values
    return [check_user(value) for value in values]


def check_name(option: str, value: object) -> str:
    """Return `value` if it is a text. The caller checks that something has that name."""
    if not isinstance(value, str):
        raise InvalidParameter(option, "a name (a string)", shown_with_type(value))
    return check_storable(option, value)


SURROGATE_HINT = (
    "A program could not decode the text. On a command line, set the locale to UTF-8 and type it again: export "
    "LC_ALL=C.UTF-8 PYTHONUTF8=1"
)


def check_storable(option: str, text: str) -> str:
    """Return `text` if every ledger engine can store it: no NUL and no lone surrogates."""
    if text.isascii() and "\0" not in text:
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidParameter(
            option, "a string that UTF-8 can encode, without lone surrogates", shown(text), hint=SURROGATE_HINT
        ) from None
    if "\0" in text:
        raise InvalidParameter(option, "a string without the NUL character", shown(text))
    return text


def check_switch(option: str, value: object) -> bool:
    """Return `value` if it is True or False. Other truthy values are refused: a text may say "no"."""
    if not isinstance(value, bool):
        raise InvalidParameter(option, "True or False", shown_with_type(value))
    return value


def check_instance(option: str, value: object, kind: type[T], expected: str) -> T:
    """Return `value` if it is an instance of `kind`. `expected` describes the kind in words."""
    if not isinstance(value, kind):
        raise InvalidParameter(option, expected, shown_with_type(value))
    return value


def check_whole(option: str, value: object, least: int = 0, most: int | None = None) -> int:
    """Return `value` as an int if it is a whole number in the range. numpy integers are accepted."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least or (most is not None and number > most):
        expected = f"a whole number >= {least}" if most is None else f"a whole number from {least} to {most}"
        raise InvalidParameter(option, expected, shown(value))
    return number


def check_share(option: str, value: object) -> float:
    """Return `value` as a float if it is a number above 0 and below 1."""
    try:
        number = -1.0 if isinstance(value, bool | str | bytes) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if not 0 < number < 1:
        raise InvalidParameter(option, "a number > 0 and < 1", shown(value))
    return number


def check_call(option: str, value: T) -> T:
    """Return `value` if it is callable or None."""
    if value is not None and not callable(value):
        raise InvalidParameter(option, "a function or None", shown_with_type(value))
    return value


ONE_USER = "For one user, pass a list of one name."


def check_many(option: str, value: Any, expected: str, hint: str = "") -> Iterable[Any]:
    """Return `value` if it is iterable and not a text, whose single characters would be a mistake."""
    if isinstance(value, str | bytes | bytearray):
        raise InvalidParameter(option, expected, shown_with_type(value), hint=hint)
    try:
        iter(value)
    except TypeError:
        raise InvalidParameter(option, expected, shown_with_type(value), hint=hint) from None
    many: Iterable[Any] = value
    return many


def check_path(option: str, value: object) -> Path:
    """Return `value` as a path if it is a text or a path that a file system can hold."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    try:
        # A number must not pass: `open` would take it for a file descriptor of this process.
        if isinstance(text, str) and text and b"\0" not in os.fsencode(text):
            return Path(text)
    except UnicodeEncodeError:
        pass
    raise InvalidParameter(option, "a path (a string or a path object)", shown_with_type(value))
