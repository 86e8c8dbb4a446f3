"""`ldp-budget compose` and `ldp-budget plan`: what many reports cost together, and what each may cost."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from ldp_budget.errors import InvalidParameter, NotSupported

from .mechanism_group import mechanism_command, parse_reports
from .output import (
    central_loss,
    counted,
    decimal_option,
    json_option,
    print_json,
    print_table,
    shown,
    shuffled_option,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
@json_option
def compose(mechanism: Mechanism, reports: int, total_delta: str | None, shuffled: int | None, as_json: bool) -> None:
    from ldp_budget.composition.charges import of_one_question

    guarantee = _with_values(mechanism.guarantee, _caps(mechanism))
    delta = _own_delta(guarantee, reports) if total_delta is None else _delta(total_delta)
    rules, reasons = _by_rule(lambda rule: _total(of_one_question(guarantee, reports, rule), delta, rule))
    central, reason = (None, None) if shuffled is None else _central(mechanism, reports, delta, shuffled)
    if as_json:
        beside = {} if shuffled is None else {"shuffled": central}
        print_json({"reports": reports, "delta": float(delta), "rules": rules, **beside})
        return
    click.echo(f"{counted(reports, 'report')} of {mechanism!r}; total δ = {delta}")
    rows = [(_named(name, row), row["epsilon"], row["delta"], _filter(row)) for name, row in _given(rules)]
    print_table(("rule", "epsilon", "delta", "may be a limit's rule"), rows)
    _print_memoised(guarantee, reports)
    if central is not None:
        click.echo(central_loss(central))
    _print_reasons(reasons if reason is None else {**reasons, "shuffled": reason})


@mechanism_command(
    "Find the largest ε of one report for which K reports fit a total, under every rule.",
    build=lambda mechanism, values: (mechanism, values),
    offers=lambda mechanism, field: not field.derived and field.name not in mechanism.targets,
)
@_reports_option
@click.option("--total-epsilon", required=True, metavar="E", help="The ε of all reports together.")
@click.option("--total-delta", default="0", metavar="D", help="The δ of all reports together [default: 0]")
@json_option
def plan(chosen: Chosen | Mechanism, reports: int, total_epsilon: str, total_delta: str, as_json: bool) -> None:
    make = _maker(chosen)
    epsilon, delta = decimal_option("total_epsilon", total_epsilon), _delta(total_delta)
    rules, reasons = _by_rule(lambda rule: _planned(make, reports, epsilon, delta, rule))
    if as_json:
        print_json({"reports": reports, "epsilon": float(epsilon), "delta": float(delta), "rules": rules})
        return
    click.echo(f"{counted(reports, 'report')} within ε = {epsilon}, δ = {delta}: each may cost")
    rows = [
        (_named(name, row), row["epsilon_per_report"], row.get("variance_per_user"), _filter(row))
        for name, row in _given(rules)
    ]
    print_table(("rule", "epsilon per report", "variance per user", "may be a limit's rule"), rows)
    _print_differing(_given(rules))
    _print_reasons(reasons)


def _by_rule(find: Callable[[str], dict[str, Any]]) -> tuple[dict[str, dict[str, Any] | None], dict[str, str]]:
    """What `find` answers under each rule, None where the rule does not apply, and why it does not."""
    from ldp_budget.composition import RULES

    rules: dict[str, dict[str, Any] | None] = {}
    reasons: dict[str, str] = {}
    for rule in RULES:
        try:
            rules[rule] = find(rule)
        except NotSupported as error:
            rules[rule], reasons[rule] = None, str(error)
    return rules, reasons


def _with_values(guarantee: Guarantee, values: int | None) -> Guarantee:
    """A memoised guarantee with what is known of the number of its values."""
    from ldp_budget.guarantees import Memoised

    return replace(guarantee, values=values) if isinstance(guarantee, Memoised) else guarantee


def _caps(mechanism: Mechanism) -> int | None:
    """How many caps bound all reports of a question: as the guarantee says, or one for each kept draw."""
    from ldp_budget.guarantees import Memoised

    stated = mechanism.guarantee.values if isinstance(mechanism.guarantee, Memoised) else None
    return min((each for each in (stated, mechanism.memoised_values) if each is not None), default=None)


def _total(charge: tuple[Guarantee, int], delta: Decimal, rule: str) -> dict[str, Any]:
    from ldp_budget.composition import compose as compose_charges
    from ldp_budget.composition import rule_named

    own = _own_delta(*charge)
    bound = compose_charges([charge], delta=max(delta, own) if rule == "basic" else delta, rule=rule)
    if rule_named(rule).is_filter:
        order = {} if bound.order is None else {"order": float(bound.order)}
        return {"epsilon": bound.epsilon, "delta": bound.delta, "filter": True, **order}
    return {"epsilon": bound.epsilon, "lower": bound.lower, "delta": bound.delta, "filter": False}


def _central(
    mechanism: Mechanism, reports: int, delta: Decimal, users: int
) -> tuple[dict[str, Any] | None, str | None]:
    """What shuffling makes of the loss, or why that is not known."""
    from ldp_budget.authoring.domain import Categories
    from ldp_budget.composition.shuffle import shuffled

    inputs = mechanism.domain.size if isinstance(mechanism.domain, Categories) else None
    try:
        return shuffled([(mechanism.guarantee, reports)], users, delta, inputs=inputs).to_json(), None
    except NotSupported as error:
        return None, str(error)


def _own_delta(guarantee: Guarantee, reports: int) -> Decimal:
    """The sum of the reports' own δ's, which is below one or not promised at all."""
    loss = guarantee.loss()
    own = Decimal(0) if loss is None else loss[1] * reports
    return own if own < 1 else Decimal(0)


def _planned(
    make: Callable[[Decimal], Mechanism], reports: int, epsilon: Decimal, delta: Decimal, rule: str
) -> dict[str, Any]:
    from ldp_budget.accounting.plans import largest_epsilon
    from ldp_budget.composition import rule_named
    from ldp_budget.composition.charges import of_one_question

    def promise(each: Decimal) -> Guarantee:
        # A ledger charges each kept draw by its label, also where all of them lose less together.
        mechanism = make(each)
        return _with_values(mechanism.guarantee, mechanism.memoised_values)

    found = largest_epsilon(promise, reports, epsilon, delta, rule)
    if found is None:
        raise NotSupported(f"rule {rule}: no ε of a billionth or more fits")
    mechanism, is_filter = make(found), rule_named(rule).is_filter
    charge = promise(found), reports
    total = _total(of_one_question(*charge, rule) if is_filter else charge, delta, rule)
    utility = mechanism.utility()
    variance = {key: utility[key] for key in ("variance_per_user",) if key in utility}
    return {
        "epsilon_per_report": float(found),
        "guaranteed_epsilon_per_report": mechanism.guarantee.epsilon,
        **total,
        **variance,
        "filter": is_filter,
    }


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


def _maker(chosen: Chosen | Mechanism) -> Callable[[Decimal], Mechanism]:
    """A function from one report's ε to the mechanism."""
    if not isinstance(chosen, tuple):
        return chosen.at_epsilon
    mechanism, values = chosen
    if "epsilon" not in mechanism.fields:
        raise NotSupported(f"{mechanism.name} is not calibrated from ε, so there is nothing to plan")
    # What is wrong with the other options comes to light here, once, and not as an ε that never fits.
    mechanism.calibrate(**values, epsilon="1")
    return lambda epsilon: mechanism.calibrate(**values, epsilon=epsilon)


def _delta(text: str) -> Decimal:
    delta = decimal_option("total_delta", text)
    if not 0 <= delta < 1:
        raise InvalidParameter("total_delta", "a number >= 0 and < 1", text)
    return delta


def _given(rules: Mapping[str, dict[str, Any] | None]) -> list[tuple[str, dict[str, Any]]]:
    """The rules that apply."""
    return [(name, row) for name, row in rules.items() if row is not None]


def _named(rule: str, row: Mapping[str, Any]) -> str:
    """A rule as a limit takes it, with its order."""
    return f"{rule}:{row['order']:.15g}" if "order" in row else rule


def _filter(row: dict[str, Any]) -> str:
    return "yes" if row["filter"] else "no, a plan's only"


def _print_reasons(reasons: dict[str, str]) -> None:
    for reason in reasons.values():
        click.echo(f"not shown: {reason}")
