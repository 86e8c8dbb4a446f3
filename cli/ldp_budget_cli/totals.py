"""What many reports of one mechanism cost together, under every rule."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from ldp_budget.errors import InvalidParameter, NotSupported

from .output import decimal_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from ldp_budget.authoring.base import Mechanism
    from ldp_budget.guarantees import Guarantee

    Rules = dict[str, dict[str, Any] | None]


def by_rule(find: Callable[[str], dict[str, Any]]) -> tuple[Rules, dict[str, str]]:
    """What `find` answers under each rule, None where the rule does not apply, and why it does not."""
    from ldp_budget.composition import RULES

    rules: Rules = {}
    reasons: dict[str, str] = {}
    for rule in RULES:
        try:
            rules[rule] = find(rule)
        except NotSupported as error:
            rules[rule], reasons[rule] = None, str(error)
    return rules, reasons


def totals(mechanism: Mechanism, reports: int, delta: Decimal) -> tuple[Rules, dict[str, str]]:
    """The total of so many reports of one question under each rule, and why some do not apply."""
    from ldp_budget.composition.charges import of_one_question

    guarantee = promise(mechanism)
    return by_rule(lambda rule: total(of_one_question(guarantee, reports, rule), delta, rule))


def promise(mechanism: Mechanism) -> Guarantee:
    """The guarantee, with what is known of how many caps bound all reports of a question."""
    return with_values(mechanism.guarantee, _caps(mechanism))


def with_values(guarantee: Guarantee, values: int | None) -> Guarantee:
    """A memoised guarantee with what is known of the number of its values."""
    from ldp_budget.guarantees import Memoised

    return replace(guarantee, values=values) if isinstance(guarantee, Memoised) else guarantee


def _caps(mechanism: Mechanism) -> int | None:
    """How many caps bound all reports of a question: as the guarantee says, or one for each kept draw."""
    from ldp_budget.guarantees import Memoised

    stated = mechanism.guarantee.values if isinstance(mechanism.guarantee, Memoised) else None
    return min((each for each in (stated, mechanism.memoised_values) if each is not None), default=None)


def total(charge: tuple[Guarantee, int], delta: Decimal, rule: str) -> dict[str, Any]:
    """What `--json` prints of the total under one rule. Raises `NotSupported` where it does not apply."""
    from ldp_budget.composition import compose as compose_charges
    from ldp_budget.composition import rule_named

    own = own_delta(*charge)
    bound = compose_charges([charge], delta=max(delta, own) if rule == "basic" else delta, rule=rule)
    if rule_named(rule).is_filter:
        order = {} if bound.order is None else {"order": float(bound.order)}
        return {"epsilon": bound.epsilon, "delta": bound.delta, "filter": True, **order}
    return {"epsilon": bound.epsilon, "lower": bound.lower, "delta": bound.delta, "filter": False}


def own_delta(guarantee: Guarantee, reports: int) -> Decimal:
    """The sum of the reports' own δ's, which is below one or not promised at all."""
    loss = guarantee.loss()
    own = Decimal(0) if loss is None else loss[1] * reports
    return own if own < 1 else Decimal(0)


def parse_delta(text: str) -> Decimal:
    """The δ of a total."""
    delta = decimal_option("total_delta", text)
    if not 0 <= delta < 1:
        raise InvalidParameter("total_delta", "a number >= 0 and < 1", text)
    return delta


def print_reasons(reasons: dict[str, str]) -> None:
    """Why some rules do not apply."""
    for reason in reasons.values():
        click.echo(f"not shown: {reason}")
