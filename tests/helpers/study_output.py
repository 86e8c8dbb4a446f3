"""Output of a case study that a page shows: its lines as words and numbers, to compare two runs with other noise."""

from __future__ import annotations

import re
from pathlib import Path

from doc_blocks import blocks, commands_of

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w]|\.\d)")


def shown_lines(page: Path, command: str) -> list[str]:
    """Return the lines that a page shows below the commands that begin with `command`, without blank ones."""
    found = [each for block in blocks(page.read_text(encoding="utf-8")) for each in commands_of(block)]
    shown = [each.output for each in found if each.text.startswith(command)]
    return [line for line in "".join(shown).splitlines() if line]


def numbers(line: str) -> list[float]:
    """Return the numbers of a line."""
    return [float(each) for each in _NUMBER.findall(line)]


def words(line: str) -> list[str]:
    """Return the words of a line, with `#` for each number."""
    return _NUMBER.sub("#", line).split()
