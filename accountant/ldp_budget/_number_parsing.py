"""The one reader of numbers in texts: a text is a number in one way, wherever it comes from.

Python's own `float`, `int` and `Decimal` also read `1_000`, full-width digits, `inf` and `nan`. No table means these as
numbers, and no other program reads them as the same number.
"""

from __future__ import annotations

import re
from decimal import Decimal

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,18})?")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(?:(?:,[0-9]{3})+|(?:\.[0-9]{3}){2,}|(?:['’\s][0-9]{3})+)")
_MOST = 100_000
"""The most characters of a number."""


NO_NUMBER = "not a number"


def is_number(text: str) -> bool:
    """True for the text of a decimal number: digits 0-9, at most one point, perhaps a sign and an exponent.

    Parameters:
        text: the text, without spaces at its ends.
    """
    return len(text) <= _MOST and _NUMBER.fullmatch(text) is not None


def number_in(text: str | float) -> float:
    """Return the number in a text as a double. Raises `ValueError` for any other text.

    Parameters:
        text: the text; spaces at its ends are ignored. A number is returned as it is.
    """
    if isinstance(text, str) and not is_number(text.strip()):
        raise ValueError(why_no_number(text))
    return float(text)


def whole_in(text: str) -> int:
    """Return the whole number in a text of digits. Raises `ValueError` for any other text.

    Parameters:
        text: the text; spaces at its ends are ignored.
    """
    plain = text.strip()
    if len(plain) > _MOST or _WHOLE.fullmatch(plain) is None:
        raise ValueError(why_no_number(text))
    return int(plain)


def value_of(text: str) -> Decimal | None:
    """Return the exact number in a text: the same for `99`, `99.0` and `+99`. None for any other text.

    Parameters:
        text: the text; spaces at its ends are ignored.
    """
    plain = text.strip()
    if not is_number(plain):
        return None
    try:
        return Decimal(plain)
    except ArithmeticError:
        return None


def why_no_number(text: object) -> str:
    """Return why a text is no number, and what to write; `NO_NUMBER` where there is no better advice.

    Parameters:
        text: the text.
    """
    plain = str(text).strip()
    if _THOUSANDS.fullmatch(plain):
        joined = re.sub(r"[,.'’\s]", "", plain)
        point = f", or with a decimal point {plain.replace(',', '.')}" if _COMMA.fullmatch(plain) else ""
        return f"{plain!r} has a separator of thousands. Write {joined}{point}"
    if _COMMA.fullmatch(plain):
        return f"{plain!r} has a decimal comma. Write a decimal point: {plain.replace(',', '.')}"
    if "_" in plain and is_number(plain.replace("_", "")):
        return f"{plain!r} has underscores. Write {plain.replace('_', '')}"
    digits = _ascii(plain)
    if digits != plain and is_number(digits):
        return f"{plain!r} has digits or signs of another script. Write {digits}"
    return NO_NUMBER


def _ascii(text: str) -> str:
    """Return a text with ASCII digits, points and signs in place of those of other scripts."""
    from unicodedata import decimal, normalize

    plain = normalize("NFKC", text).replace("−", "-").replace("–", "-").replace("٫", ".")
    return "".join(each if each.isascii() else str(decimal(each, each)) for each in plain)
