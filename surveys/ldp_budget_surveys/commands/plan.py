"""`ldp-budget plan`: the ε that each of many reports may cost, and the margins of a survey."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from ldp_budget.guarantees.fixed_point import printed_down, printed_up
from ldp_budget_cli.excel_files import xlsx_option
from ldp_budget_cli.limit_figures import number
from ldp_budget_cli.mechanism_arguments import mechanism_command
from ldp_budget_cli.notes import print_note
from ldp_budget_cli.output import JSON, counted, decimal_option, next_step, print_json, print_rows, rows_options
from ldp_budget_cli.rule_tables import (
    applicable,
    enforced_by,
    limit_rule,
    parse_delta,
    print_reasons,
    reports_option,
    rule_rows,
)
from ldp_budget_cli.tables import Affordable, print_table

from .figure_files import save_plan
from .survey_plan import PlanGroup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ldp_budget.sdk.mechanism import Mechanism

    Chosen = tuple[type[Mechanism], Mapping[str, Any]]


@mechanism_command(
    "Find the largest ε of one report for which K reports fit a total ε, under every rule of composition.",
    example="plan {} --reports 50 --total-epsilon 8 --total-delta 1e-6",
    group=PlanGroup,
    build=lambda mechanism, values: (mechanism, values),
    offers=lambda mechanism, field: not field.derived and field.name not in mechanism.targets,
)
@reports_option
@click.option("--total-epsilon", required=True, metavar="E", help="The ε of all K reports together.")
@click.option("--total-delta", default="0", metavar="D", help="The δ of all K reports together [default: 0]")
@xlsx_option
@rows_options
def plan(chosen: Chosen | Mechanism, reports: int, total_epsilon: str, total_delta: str, form: str | None) -> None:
    from ..planning.composition_comparison import maker, planned_rules

    make = chosen.at_epsilon if not isinstance(chosen, tuple) else maker(*chosen)
    epsilon, delta = decimal_option("total_epsilon", total_epsilon), parse_delta(total_delta)
    row, reasons = planned_rules(make, reports, epsilon, delta)
    rules = row["rules"]
    save_plan(
        map(_saved, applicable(rules)), "", reports=reports, total_epsilon=float(epsilon), total_delta=float(delta)
    )
    if form == JSON:
        print_json(row)
        return
    if form is not None:
        print_rows(rule_rows(rules), form)
        return
    click.echo(f"{counted(reports, 'report')} within ε = {number(epsilon)} at δ = {number(delta)}: each may cost")
    rows = [
        (limit_rule(name, row), Affordable(row["epsilon_per_report"]), row.get("variance_per_user"), enforced_by(row))
        for name, row in applicable(rules)
    ]
    print_table(("rule", "epsilon per report", "variance per user", "enforced by"), rows)
    _print_differing(applicable(rules))
    print_reasons(reasons)
    _print_next(applicable(rules), reports, total_epsilon, total_delta)


def _saved(given: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the result of a rule as a row of a spreadsheet, its ε rounded down."""
    name, row = given
    return {**row, "rule": limit_rule(name, row), "epsilon": float(printed_down(row["epsilon_per_report"]))}


def _print_next(
    rules: Sequence[tuple[str, Mapping[str, Any]]], reports: int, total_epsilon: str, total_delta: str
) -> None:
    """Print the policy that enforces the best rule, and that of a plan if a plan affords more."""
    filters = [(row["epsilon_per_report"], name, row) for name, row in rules if row["filter"]]
    if filters:
        best, name, row = max(filters, key=lambda each: each[0])
        terms = "" if name == "basic" and not float(total_delta) else f",{total_delta}"
        rule = "" if name == "basic" else f",{limit_rule(name, row)}"
        next_step(f"ldp-budget policy set default --limit lifetime={total_epsilon}{terms}{rule}")
    else:
        best = 0.0
    exact = dict(rules).get("exact")
    if exact is not None and exact["epsilon_per_report"] > best:
        more = f" --plan-delta {total_delta}" if float(total_delta) else ""
        print_note(
            f"Or, if all reports are fixed now: ldp-budget policy set default --plan COLLECTION={reports}{more}"
        )


def _print_differing(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Print both ε if the ε to calibrate to differs from the loss of one report, as for a memoised value."""
    if all(math.isclose(row["epsilon_per_report"], row["guaranteed_epsilon_per_report"]) for _, row in rows):
        return
    losses = ", ".join(f"{printed_up(row['guaranteed_epsilon_per_report'])} ({name})" for name, row in rows)
    click.echo(f"The ε per report is the value for --epsilon. One report alone then loses {losses}")
