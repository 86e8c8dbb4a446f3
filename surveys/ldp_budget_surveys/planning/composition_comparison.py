"""The total cost of many reports of one mechanism, and the affordable cost per report, under every rule.

`composed`, `planned_rules` and `compared` return the JSON objects that the commands and the service print.
"""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

from ldp_budget.accounting.plans import enforceable, largest_epsilon
from ldp_budget.composition import RULES, compose, rule_named
from ldp_budget.composition.rules import of_one_question
from ldp_budget.errors import InvalidParameter, LdpBudgetError, NotSupported
from ldp_budget.guarantees import Memoised, Unbounded
from ldp_budget.guarantees.costs import measure_at
from ldp_budget.guarantees.fixed_point import decimal, float_down
from ldp_budget.guarantees.guarantees import is_memoised
from ldp_budget.registry.plugins import RESERVED_NAME
from ldp_budget.sdk.domain import Categories

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ldp_budget.guarantees import Guarantee
    from ldp_budget.sdk.mechanism import Mechanism

    from .shuffle_amplification import Message

Rules: TypeAlias = "dict[str, dict[str, Any] | None]"

_MOST_PAIRS = 12
"""The most distinct pairs of inputs of which all are shuffled; each takes some hundredths of a second."""


def by_rule(find: Callable[[str], dict[str, Any]]) -> tuple[Rules, dict[str, str]]:
    """The results of `find` under each rule, None if the rule does not apply; and the reasons why not."""
    rules: Rules = {}
    reasons: dict[str, str] = {}
    for rule in RULES:
        try:
            rules[rule] = find(rule)
        except NotSupported as error:
            rules[rule], reasons[rule] = None, str(error)
    return rules, reasons


def totals(mechanism: Mechanism, reports: int, delta: Decimal) -> tuple[Rules, dict[str, str]]:
    """The total of `reports` reports of one question under each rule, and the reasons why some rules do not apply."""
    guarantee = promise_of(mechanism)
    return by_rule(lambda rule: total(of_one_question(guarantee, reports, rule), delta, rule))


def promise_of(mechanism: Mechanism) -> Guarantee:
    """The guarantee, with the number of caps that bound all reports of a question, if known."""
    return with_values(mechanism.guarantee, _caps(mechanism))


def with_values(guarantee: Guarantee, values: int | None) -> Guarantee:
    """A memoised guarantee with the number of its values, if known."""
    return replace(guarantee, values=values) if isinstance(guarantee, Memoised) else guarantee


def _caps(mechanism: Mechanism) -> int | None:
    """The number of caps that bound all reports of a question: from the guarantee, or one for each memoised draw."""
    stated = mechanism.guarantee.values if isinstance(mechanism.guarantee, Memoised) else None
    return min((each for each in (stated, mechanism.memoised_values) if each is not None), default=None)


def total(charge: tuple[Guarantee, int], delta: Decimal, rule: str) -> dict[str, Any]:
    """The JSON object of the total under one rule, for `--json`. Raises `NotSupported` if the rule does not apply."""
    own = own_delta(*charge)
    bound = compose([charge], delta=max(delta, own) if rule == "basic" else delta, rule=rule)
    if rule_named(rule).is_filter:
        order = {} if bound.order is None else {"order": float(bound.order)}
        named = rule if bound.order is None else measure_at(bound.order)
        epsilon = enforceable(bound.epsilon, charge, decimal(bound.delta), named)
        return {"epsilon": epsilon, "delta": bound.delta, "filter": True, **order}
    return {"epsilon": bound.epsilon, "lower": bound.lower, "delta": bound.delta, "filter": False}


def own_delta(guarantee: Guarantee, reports: int) -> Decimal:
    """The sum of the reports' own δ; 0 if it reaches one, because nothing is guaranteed then."""
    loss = guarantee.loss()
    own = Decimal(0) if loss is None else loss[1] * reports
    return own if own < 1 else Decimal(0)


def check_delta(delta: Decimal) -> Decimal:
    """Return the δ of a total. Raises `InvalidParameter` unless it is >= 0 and < 1."""
    if not 0 <= delta < 1:
        raise InvalidParameter("total_delta", "a number >= 0 and < 1", str(delta))
    return delta


def central_of(
    mechanism: Mechanism, reports: int, delta: Decimal, users: int
) -> tuple[dict[str, Any] | None, str | None]:
    """The central loss after shuffling, or the reason why it is unknown."""
    from .shuffle_amplification import shuffled

    inputs = mechanism.domain.size if isinstance(mechanism.domain, Categories) else None
    try:
        return shuffled([(message_of(mechanism), reports)], users, delta, inputs=inputs).to_json(), None
    except NotSupported as error:
        return None, str(error)


def message_of(mechanism: Mechanism) -> Message:
    """A report of a mechanism as a shuffler sees it: with its own blanket if the mechanism describes one.

    Reports that repeat a memoised draw keep their guarantee alone: `compare` describes one of them by itself.
    """
    from .shuffle_amplification import Message

    if mechanism.components:
        raise NotSupported(
            "no loss after shuffling is known for a survey: the asked questions are visible in a report"
        )
    plain = Message(mechanism.guarantee)
    if mechanism.repeats:
        return plain
    try:
        pairs = combinations(mechanism.critical_inputs(), 2)
        found = [each.covered() for each in dict.fromkeys(mechanism.compare(*pair) for pair in pairs)]
    except NotSupported:
        return plain
    if not 0 < len(found) <= _MOST_PAIRS:
        return plain
    known = [tuple(law) for law in found if law]
    return replace(plain, pairs=tuple(known)) if len(known) == len(found) else plain


def message_charged(guarantee: Guarantee, name: str, declared: str) -> Message:
    """The same for a charge, if the mechanism that it names is installed and still promises this guarantee."""
    from ldp_budget.registry.plugins import mechanism as find_mechanism

    from .shuffle_amplification import Message

    if name == RESERVED_NAME:
        return Message(Unbounded())  # the asked questions split the crowd
    try:
        found = message_of(find_mechanism(name)(**json.loads(declared)))
    except LdpBudgetError:
        return Message(guarantee)
    return found if found.guarantee == guarantee else Message(guarantee)


def central_of_charges(
    charges: Sequence[tuple[Guarantee, int]], mechanisms: Sequence[tuple[str, str]], users: int, delta: Decimal
) -> dict[str, Any] | None:
    """The central loss of a user's charges if each report was shuffled; None if no bound is known.

    Parameters:
        charges: guarantees with numbers of reports.
        mechanisms: the name of the mechanism of each charge, with its declared parameters.
        users: the number of users, including this one.
        delta: of the loss.

    Raises:
        InvalidParameter: `users` is not a whole number from 1 to 10^12.
    """
    from .shuffle_amplification import shuffled, whole_users

    whole_users(users)
    # All reports of a label are one charge here, and a receiver knows the reports that other users repeat.
    if not charges or any(is_memoised(guarantee) for guarantee, _ in charges):
        return None
    # A service of an earlier version sends no mechanisms.
    known = len(mechanisms) == len(charges)
    messages = [
        (message_charged(charge[0], *mechanisms[i]) if known else charge[0], charge[1])
        for i, charge in enumerate(charges)
    ]
    try:
        return shuffled(messages, users, delta).to_json()
    except NotSupported:
        return None


def planned(
    make: Callable[[Decimal], Mechanism], reports: int, epsilon: Decimal, delta: Decimal, rule: str
) -> dict[str, Any]:
    """The JSON object that `plan --json` prints under one rule: the largest ε per report that fits.

    Raises `NotSupported`.
    """

    def labelled(each: Decimal) -> Guarantee:
        # A ledger charges each memoised draw by its label, even if all of them together lose less.
        mechanism = make(each)
        return with_values(mechanism.guarantee, mechanism.memoised_values)

    found = largest_epsilon(labelled, reports, epsilon, delta, rule)
    if found is None:
        raise NotSupported(
            f"no ε of 1e-9 or more fits under rule {rule}",
            hint="Use fewer reports, or a larger total epsilon or delta.",
        )
    mechanism, is_filter = make(found), rule_named(rule).is_filter
    charge = labelled(found), reports
    priced = total(of_one_question(*charge, rule) if is_filter else charge, delta, rule)
    priced["epsilon"] = min(priced["epsilon"], float_down(epsilon))
    utility = mechanism.utility()
    variance = {key: utility[key] for key in ("variance_per_user",) if key in utility}
    return {
        "epsilon_per_report": float(found),
        "guaranteed_epsilon_per_report": mechanism.guarantee.epsilon,
        **priced,
        **variance,
        "filter": is_filter,
    }


def maker(mechanism: type[Mechanism], options: Mapping[str, Any]) -> Callable[[Decimal], Mechanism]:
    """A function from a report's ε to a mechanism with these options. Raises `InvalidParameter`, `NotSupported`."""
    if "epsilon" not in mechanism.fields:
        raise NotSupported(f"{mechanism.name} is not calibrated from ε, so its ε cannot be planned")
    # Errors in the other options are raised here, once, and not later as an ε that never fits.
    mechanism.calibrate(**options, epsilon="1")
    return lambda epsilon: mechanism.calibrate(**options, epsilon=epsilon)


def composed(
    mechanism: Mechanism, reports: int, delta: Decimal | None, shuffled: int | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """The JSON object of `compose`, and the reasons why figures are missing.

    Parameters:
        mechanism: a mechanism with its parameters.
        reports: the number of reports of one user.
        delta: of the total; None for the sum of the reports' own.
        shuffled: the number of users among whom the reports are shuffled; None for no central loss.
    """
    delta = own_delta(promise_of(mechanism), reports) if delta is None else delta
    rules, reasons = totals(mechanism, reports, delta)
    row = {"reports": reports, "delta": float(delta), "rules": rules}
    if shuffled is not None:
        row["shuffled"], reason = central_of(mechanism, reports, delta, shuffled)
        reasons |= {} if reason is None else {"shuffled": reason}
    return row, reasons


def planned_rules(
    make: Callable[[Decimal], Mechanism], reports: int, epsilon: Decimal, delta: Decimal
) -> tuple[dict[str, Any], dict[str, str]]:
    """The JSON object of `plan` for so many reports, and the reasons why rules are missing; `make` as in `planned`."""
    rules, reasons = by_rule(lambda rule: planned(make, reports, epsilon, delta, rule))
    return {"reports": reports, "epsilon": float(epsilon), "delta": float(delta), "rules": rules}, reasons


def compared(
    epsilon: Any,
    *,
    domain_size: int | None,
    users: int | None,
    lower: Any,
    upper: Any,
    margin: float | None,
    reports: int | None,
    delta: Decimal | None,
    at_most: int | str | None = None,
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The rows of `compare`, each with the totals of so many reports if asked, and the reasons why rules are missing."""
    from .ranking import rank_frequency, rank_numeric

    reasons: dict[str, str] = {}

    def with_totals(mechanism: Mechanism) -> dict[str, Any]:
        assert reports is not None
        given = own_delta(mechanism.guarantee, reports) if delta is None else delta
        rules, missing = totals(mechanism, reports, given)
        reasons.update(missing)
        return {"totals": {"reports": reports, "delta": float(given), "rules": rules}}

    extra = None if reports is None else with_totals
    rows: list[dict[str, Any]] = []
    if domain_size is not None and users is not None:
        rows += rank_frequency(epsilon, domain_size, users, margin=margin, extra=extra, at_most=at_most)
    if lower is not None and upper is not None:
        rows += rank_numeric(epsilon, lower, upper, users, extra=extra)
    return rows, reasons
