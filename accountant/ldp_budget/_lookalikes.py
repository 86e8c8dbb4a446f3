"""Texts that look alike and differ: their code points in words, for messages.

Two texts look alike if they have the same skeleton: compatibility forms, letters of other scripts that have the shape of
a Latin letter, dashes and quotes are replaced by plain characters, and characters without a shape of their own are left
out. The idea is that of the Unicode Technical Standard 39; the table has the letters that people confuse in practice.
Only errors and warnings use it, never a decision about a charge or an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from unicodedata import category, name, normalize

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHAPES = {
    # Cyrillic
    "а": "a", "в": "в", "е": "e", "ё": "ë", "һ": "h", "і": "i", "ї": "ï", "ј": "j", "ӏ": "l", "о": "o", "р": "p",
    "с": "c", "ԁ": "d", "ԛ": "q", "ѕ": "s", "ѵ": "v", "ԝ": "w", "х": "x", "у": "y", "ү": "y", "А": "A", "В": "B",
    "Е": "E", "Н": "H", "І": "I", "Ј": "J", "К": "K", "М": "M", "О": "O", "Р": "P", "С": "C", "Ѕ": "S", "Т": "T",
    "Х": "X", "У": "Y", "Ү": "Y", "Ԛ": "Q", "Ԝ": "W", "Ԍ": "G",
    # Greek
    "α": "a", "ι": "i", "κ": "k", "ν": "v", "ο": "o", "ρ": "p", "υ": "u", "χ": "x", "γ": "y", "Α": "A", "Β": "B",
    "Ε": "E", "Ζ": "Z", "Η": "H", "Ι": "I", "Κ": "K", "Μ": "M", "Ν": "N", "Ο": "O", "Ρ": "P", "Τ": "T", "Υ": "Y",
    "Χ": "X",
    # Armenian, Latin, and letters without a dot
    "օ": "o", "ո": "n", "ս": "u", "հ": "h", "ı": "i", "ɑ": "a", "ɡ": "g", "ɩ": "i", "ȷ": "j", "ǀ": "l",
    # dashes, quotes, and the letters that are used as quotes
    "‐": "-", "‑": "-", "‒": "-", "–": "-", "—": "-", "―": "-", "−": "-", "﹣": "-", "－": "-", "ー": "-",
    "‘": "'", "’": "'", "‚": "'", "‛": "'", "′": "'", "ʹ": "'", "ʻ": "'", "ʼ": "'", "´": "'", "`": "'",
    "“": '"', "”": '"', "„": '"', "‟": '"', "″": '"', "⁄": "/", "∕": "/", "‧": "·", "∙": "·", "⋅": "·", "・": "·",
}  # fmt: skip
_TABLE = str.maketrans({letter: shape for letter, shape in _SHAPES.items() if letter != shape})

_SHAPELESS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters without a shape that are not of a category of such characters."""
_SELECTORS = (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
_MOST_PLACES = 3
_MOST_CHARACTERS = 4


def is_shapeless(character: str) -> bool:
    """True for a character that a reader does not see: formats, variation selectors, fillers; not for a space."""
    if character in _SHAPELESS or category(character) in ("Cf", "Cc", "Cn", "Co", "Cs"):
        return True
    return any(ord(character) in some for some in _SELECTORS)


def skeleton(text: str) -> str:
    """Return a text that is the same for all texts that look alike."""
    if text.isascii():
        return " ".join(text.split())
    plain = normalize("NFKC", text.translate(_TABLE)).translate(_TABLE)
    return " ".join("".join(each for each in plain if not is_shapeless(each)).split())


def _base(text: str) -> str:
    """Return the skeleton without combining marks."""
    return "".join(each for each in normalize("NFD", skeleton(text)) if category(each) not in ("Mn", "Me"))


def difference(text: object, others: Iterable[object]) -> str:
    """Return a sentence on the code points in which a text differs from the first text that looks like it, or empty.

    Parameters:
        text: the text that was found.
        others: the texts that it may be mistaken for.
    """
    if not isinstance(text, str):
        return ""
    known = [each for each in others if isinstance(each, str) and each != text]
    for form in (skeleton, _base):
        own = form(text)
        for each in known:
            if own and form(each) == own and (form is skeleton or not (text.isascii() and each.isascii())):
                return _apart(text, each)
    return ""


def _apart(text: str, other: str) -> str:
    from difflib import SequenceMatcher  # slow to import, and needed by errors only

    if text.isascii() and other.isascii() and text.split() == other.split() and text.isprintable():
        return ""  # spaces are seen in the quotes of a message
    places = [
        (text[low:high], other[first:last])
        for kind, low, high, first, last in SequenceMatcher(None, text, other, autojunk=False).get_opcodes()
        if kind != "equal"
    ]
    words = [f"{points(mine)} where {other!r} has {points(its)}" for mine, its in places[:_MOST_PLACES]]
    more = f", and {len(places) - _MOST_PLACES} more differences" if len(places) > _MOST_PLACES else ""
    return f"{text!r} looks like {other!r} and has {', '.join(words)}{more}."


def points(text: str) -> str:
    """Return the code points of a text with their names, such as `U+00A0 NO-BREAK SPACE`; `nothing` for no text."""
    listed = [f"U+{ord(each):04X} {name(each, category(each))}" for each in text[:_MOST_CHARACTERS]]
    return " ".join(listed) + (" …" if len(text) > _MOST_CHARACTERS else "") if text else "nothing"


def near(text: str, others: Iterable[str]) -> str:
    """Return a sentence on the text that was meant: one that looks alike, or differs only by case or spaces.

    Parameters:
        text: the text that was found.
        others: the texts that may be meant.
    """
    known = list(others)
    same = [each for each in known if each.casefold().split() == text.casefold().split()]
    return f"Did you mean {same[0]!r}?" if same and same[0] != text else difference(text, known)
