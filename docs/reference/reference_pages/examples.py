"""The examples of the Python reference: each file of a folder has a heading for each name, and blocks below it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"
Example = list[tuple[str, str]]
"""Blocks in order, each with its language."""


@cache
def examples(folder: Path) -> dict[str, Example]:
    """The blocks of every example, by the path of the name without `ldp_budget.`."""
    found: dict[str, Example] = {}
    for page in sorted(folder.glob("*.txt")):
        text = page.read_text(encoding="utf-8")
        for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
            heading, _, body = section.partition("\n")
            blocks = re.findall(r"^```(\w+)\n(.*?)^```$", body, flags=re.MULTILINE | re.DOTALL)
            found[heading.strip("` ")] = [(kind, code) for kind, code in blocks]
    return found
