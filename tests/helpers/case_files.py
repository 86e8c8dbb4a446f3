"""Tables and texts of tests that are kept in `tests/data/cases`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "data" / "cases"


def case_table(file: str, name: str) -> Any:
    """Return a table of a file: a list or a dictionary, in which each row that is a list is a tuple."""
    found = json.loads((FOLDER / f"{file}.json").read_text(encoding="utf-8"))[name]
    return {key: _row(row) for key, row in found.items()} if isinstance(found, dict) else [*map(_row, found)]


def _row(row: Any) -> Any:
    return tuple(map(_row, row)) if isinstance(row, list) else row


def case_text(file: str) -> str:
    """Return the text of a file."""
    return (FOLDER / file).read_text(encoding="utf-8")
