"""Labels that fit a picture: cut and broken by how wide they are drawn, and still told apart."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from unicodedata import combining, east_asian_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WIDTH = 30
"""How many columns a line of a label has; a Chinese, Japanese or Korean character takes two."""
LINES = 3


def columns(text: str) -> int:
    """How wide a text is drawn."""
    return sum(_width(each) for each in text)


def _width(character: str) -> int:
    if combining(character):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def labels(texts: Iterable[str], width: int = WIDTH, lines: int = LINES) -> list[str]:
    """Labels of at most so many lines; two that would look the same get their place in the list behind them."""
    plain = [printable(text) for text in texts]
    # Less than all the room, as lines are broken between words.
    cut = [shortened(text, width * lines if lines == 1 else width * (lines - 1)) for text in plain]
    often = Counter(cut)
    unique = [f"{text} ({place})" if often[text] > 1 else text for place, text in enumerate(cut, 1)]
    return [wrapped(text, width) if lines > 1 else text for text in unique]


def printable(text: str) -> str:
    """In one line, without what cannot be drawn or written down."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split()) or "(empty)"


def shortened(text: str, most: int) -> str:
    """The text, or where it is wider its beginning and its end: long labels often differ in their last words."""
    if columns(text) <= most:
        return text
    end = _whole_words(_fitting(text[::-1], most * 2 // 5))[::-1]
    return f"{_whole_words(_fitting(text, most - columns(end) - 1))}…{end}"


def _whole_words(part: str) -> str:
    """Without the beginning of a word at its end, unless that is most of it."""
    words, space, _ = part.rpartition(" ")
    return words if space and 2 * len(words) > len(part) else part.rstrip()


def wrapped(text: str, width: int) -> str:
    """Broken into lines of at most so many columns, between words where it can be."""
    lines: list[str] = []
    for word in text.split():
        if lines and columns(lines[-1]) + 1 + columns(word) <= width:
            lines[-1] += f" {word}"
            continue
        while columns(word) > width:
            part = _fitting(word, width)
            lines.append(part)
            word = word[len(part) :]
        lines.append(word)
    return "\n".join(lines)


def _fitting(text: str, most: int) -> str:
    """As much of the beginning as fits."""
    used = 0
    for place, character in enumerate(text):
        used += _width(character)
        if used > most:
            return text[:place]
    return text


def every(count: int, most: int) -> Sequence[int]:
    """The places of `count` labels in a row of which at most so many are shown, evenly apart."""
    return range(0, count, -(-count // most)) if count else ()
