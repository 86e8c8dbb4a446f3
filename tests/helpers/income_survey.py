"""A survey of one income, read from a TOML file, for the kinds of questions that have no bins."""

from __future__ import annotations

from pathlib import Path

from ldp_budget_surveys.questionnaires.surveys import Survey

FILE = """
[survey]
name = "pay"
epsilon = 2

[[question]]
name = "income"
kind = "{kind}"
lower = 1000
upper = 1000000
"""


def income_survey(folder: Path, kind: str, more: str = "") -> Survey:
    """Return the survey, with more keys of the question."""
    path = folder / "pay.toml"
    path.write_text(FILE.format(kind=kind) + more, encoding="utf-8")
    return Survey.from_toml(path)
