"""The figures of an estimate or a plan as an Excel file: `estimate --xlsx` and `plan --xlsx`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ldp_budget_cli.excel_files import save_figures

from ..figures import COLUMNS, figures, form_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Row = Mapping[str, Any]

_FACTS = (
    *("reports", "respondents", "charged", "uncharged", "consistent", "adjusted"),
    *("weighted", "population", "design_effect"),
)
"""What the JSON of an estimate says of all its figures."""
_PLAN = {
    "rule": "The rule of composition that adds up the reports.",
    "answers of each": "How many of the questions each respondent answers.",
    "question": "The question.",
    "design": "How the members of a panel are asked.",
    "mechanism": "The mechanism that randomizes the answers.",
    "epsilon": "The privacy loss of one report.",
    "respondents": "The number of people who send a report, or who answer the question.",
    "margin": "The error that 95 of 100 surveys stay below, at the worst answers; for {people}. A number has its own unit.",
    "change_margin": "The margin of a change from one period to the next.",
    "population_margin": "The same for a large population: sampling and noise.",
    "variance_per_user": "The variance of a count, for each respondent.",
    "recommended": "The plan that the command recommends.",
}


def save_estimate(found: Row, level: float, *, population: bool = False) -> None:
    """Write the JSON of an estimate, if a file was requested; `population`: its intervals hold sampling too."""
    known = {name: found[name] for name in _FACTS if name in found}
    of = "the population: sampling and noise" if population else "these respondents: noise"
    intervals = f"They have {100 * level:.12g} % confidence, for {of}."
    save_figures(figures(found), COLUMNS, form_of, {"intervals": intervals, **known})


def save_plan(rows: Iterable[Row], people: str, **facts: Any) -> None:
    """Write the rows of a plan, if a file was requested; `people`: those that the margin is about."""
    meanings = {name: text.replace("{people}", people) for name, text in _PLAN.items()}
    save_figures(rows, meanings, _form_of_plan, facts)


def _form_of_plan(row: Row, column: str) -> str:
    is_share = column.endswith("margin") and not row.get("range")
    return "0.0%" if is_share else "#,##0" if column == "respondents" else "General"
