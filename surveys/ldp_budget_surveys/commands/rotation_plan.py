"""`ldp-budget plan --survey FILE --panel N`: rotation, splitting ε and memoization of a panel, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ldp_budget_cli.output import next_step, print_json, rounded
from ldp_budget_cli.tables import KEPT, print_table

from .figure_files import save_plan

if TYPE_CHECKING:
    from ..questionnaires.surveys import Survey

_DESIGNS = {
    "rotate": "one report of each member in a turn",
    "split": "each member reports in each period",
    "memoize": "one error for all periods; shows changes; the same ε again for each new answer",
}


def show_rotation(survey: Survey, panel: int, as_json: bool) -> None:
    """Print the designs of a panel, and which has less variance."""
    from ..rotation_planning import CHANGED, compare_rotation

    found = compare_rotation(survey, panel)
    rows = (
        {**each[design], "question": each["name"], "design": design, "range": each["range"]}
        for each in found["questions"]
        for design in _DESIGNS
    )
    save_plan(
        ({**row, "epsilon": float(row["epsilon"]), "respondents": row["asked"]} for row in rows), "the population"
    )
    if as_json:
        print_json(found)
        return
    periods, every = found["periods"], found["every"]
    click.echo(
        f"Panel of {panel:,}, ε = {found['epsilon']} of each member in {periods} periods ({every}); margins at 95{KEPT}% about "
        f"the population, at a share of {100 * found['share']:.0f}{KEPT}%, of which {100 * CHANGED:.0f}{KEPT}% change in a period"
    )
    for each in found["questions"]:
        click.echo(f"\n{each['name']}")
        print_table(
            ("design", "ε", "asked", "level", "change", "note"),
            [
                (
                    design,
                    f"{float(each[design]['epsilon']):.3g}",
                    each[design]["asked"],
                    *(_margin(each, each[design][name]) for name in ("margin", "change_margin")),
                    note,
                )
                for design, note in _DESIGNS.items()
            ],
        )
        click.echo(_verdict(each, found))
    if found["recommended"] == "rotate" and not survey.rotate:
        next_step(f'rotate = {periods} and every = "week" in the [survey] table')


def _margin(row: dict[str, Any], value: float) -> str:
    return f"± {rounded(100 * value, 1)} points" if row["range"] is None else f"± {value:.3g}"


def _verdict(row: dict[str, Any], found: dict[str, Any]) -> str:
    """Return which design has less variance, and how often to ask each member."""
    gain, answers, periods = row["split_to_rotate"], row["best_answers"], found["periods"]
    said = (
        f"Rotation has {rounded(gain, 0 if gain >= 10 else 1)} times less variance than splitting ε over {periods} periods."
        if gain >= 1
        else f"Rotation is worse here: splitting ε over {periods} periods has {rounded(1 / gain, 1)} times less variance."
    )
    if answers == 1:
        return said
    often = "in each period" if answers == periods else f"in {answers} of the {periods} periods"
    return f"{said} Least variance: ask each member {often}, at ε = {float(found['epsilon']) / answers:.3g}."
