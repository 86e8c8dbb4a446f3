"""`ldp-budget compose` and `ldp-budget plan`: what many reports cost together, and what each may cost."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from .mechanism_group import mechanism_command, parse_reports
from .output import (
    JSON,
    central_loss,
    counted,
    decimal_option,
    print_json,
    print_rows,
    print_table,
    rows_options,
    shown,
    shuffled_option,
)
from .totals import parse_delta, print_reasons

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ldp_budget.authoring.base import Mechanism
    from ldp_budget.guarantees import Guarantee

    Chosen = tuple[type[Mechanism], Mapping[str, Any]]

_reports_option = click.option(
    "--reports", required=True, metavar="K", callback=parse_reports, help="How many reports one user sends."
)


@mechanism_command("Show the total loss of K reports of one user, under every rule.")
@_reports_option
@click.option("--total-delta", metavar="D", help="The δ of the total [default: the sum of the reports' own]")
@shuffled_option
@rows_options
def compose(
    mechanism: Mechanism, reports: int, total_delta: str | None, shuffled: int | None, form: str | None
) -> None:
    from ldp_budget.accounting.totals import central_of, own_delta, promise_of, totals

    guarantee = promise_of(mechanism)
    delta = own_delta(guarantee, reports) if total_delta is None else parse_delta(total_delta)
    rules, reasons = totals(mechanism, reports, delta)
    central, reason = (None, None) if shuffled is None else central_of(mechanism, reports, delta, shuffled)
    if form == JSON:
        beside = {} if shuffled is None else {"shuffled": central}
        print_json({"reports": reports, "delta": float(delta), "rules": rules, **beside})
        return
    if form is not None:
        print_rows(_rows({**rules, **({} if shuffled is None else {"shuffled": central})}), form)
        return
    click.echo(f"{counted(reports, 'report')} of {mechanism!r}; total δ = {delta}")
    rows = [(_named(name, row), row["epsilon"], row["delta"], _filter(row)) for name, row in _given(rules)]
    print_table(("rule", "epsilon", "delta", "may be a limit's rule"), rows)
    _print_memoised(guarantee, reports)
    if central is not None:
        click.echo(central_loss(central))
    print_reasons(reasons if reason is None else {**reasons, "shuffled": reason})


@mechanism_command(
    "Find the largest ε of one report for which K reports fit a total, under every rule.",
    build=lambda mechanism, values: (mechanism, values),
    offers=lambda mechanism, field: not field.derived and field.name not in mechanism.targets,
)
@_reports_option
@click.option("--total-epsilon", required=True, metavar="E", help="The ε of all reports together.")
@click.option("--total-delta", default="0", metavar="D", help="The δ of all reports together [default: 0]")
@rows_options
def plan(chosen: Chosen | Mechanism, reports: int, total_epsilon: str, total_delta: str, form: str | None) -> None:
    from ldp_budget.accounting.totals import by_rule, maker, planned

    make = chosen.at_epsilon if not isinstance(chosen, tuple) else maker(*chosen)
    epsilon, delta = decimal_option("total_epsilon", total_epsilon), parse_delta(total_delta)
    rules, reasons = by_rule(lambda rule: planned(make, reports, epsilon, delta, rule))
    if form == JSON:
        print_json({"reports": reports, "epsilon": float(epsilon), "delta": float(delta), "rules": rules})
        return
    if form is not None:
        print_rows(_rows(rules), form)
        return
    click.echo(f"{counted(reports, 'report')} within ε = {epsilon}, δ = {delta}: each may cost")
    rows = [
        (_named(name, row), row["epsilon_per_report"], row.get("variance_per_user"), _filter(row))
        for name, row in _given(rules)
    ]
    print_table(("rule", "epsilon per report", "variance per user", "may be a limit's rule"), rows)
    _print_differing(_given(rules))
    print_reasons(reasons)


def _rows(rules: Mapping[str, dict[str, Any] | None]) -> list[dict[str, Any]]:
    """What is found under each rule as rows; those of a rule that does not apply are empty."""
    return [{"rule": rule, **(row or {})} for rule, row in rules.items()]


def _print_differing(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Where the ε to calibrate to is not what one report loses, such as the ε of a memoised value: both."""
    if all(math.isclose(row["epsilon_per_report"], row["guaranteed_epsilon_per_report"]) for _, row in rows):
        return
    losses = ", ".join(f"{shown(row['guaranteed_epsilon_per_report'])} ({name})" for name, row in rows)
    click.echo(f"epsilon per report is what --epsilon takes; by its guarantee one report alone then loses {losses}")


def _print_memoised(guarantee: Guarantee, reports: int) -> None:
    """Why `basic` may come to less than the other rules, and why all rules may come to less than the reports do."""
    from ldp_budget.composition.charges import of_one_question
    from ldp_budget.guarantees import Memoised
    from ldp_budget.guarantees.amounts import float_up

    if not isinstance(guarantee, Memoised):
        return
    cap = shown(float_up(guarantee.cap))
    if guarantee.values is not None and guarantee.values < reports:
        click.echo(
            f"all reports of one question and secret lose no more than {guarantee.values} at the cap of what is "
            f"memoised, ε = {cap}"
        )
    if guarantee.epsilon < float_up(guarantee.cap) and of_one_question(guarantee, reports, "basic")[0] == guarantee:
        click.echo(
            f"basic counts each report as the first of another memoised value, at ε = {shown(guarantee.epsilon)}; "
            f"the other rules as one of any value, at its cap ε = {cap}"
        )


def _given(rules: Mapping[str, dict[str, Any] | None]) -> list[tuple[str, dict[str, Any]]]:
    """The rules that apply."""
    return [(name, row) for name, row in rules.items() if row is not None]


def _named(rule: str, row: Mapping[str, Any]) -> str:
    """A rule as a limit takes it, with its order."""
    return f"{rule}:{row['order']:.15g}" if "order" in row else rule


def _filter(row: dict[str, Any]) -> str:
    return "yes" if row["filter"] else "no, a plan's only"
