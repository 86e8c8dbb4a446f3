"""Composition: certified totals of privacy loss from guarantees and counts.

Five rules: `basic`, `zcdp`, `gdp` and `renyi` are filters, which a limit may use. `exact` is the tightest and holds
only for a list of reports that was fixed beforehand.
May import from guarantees.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from .._validation import check_name, shown
from ..errors import InvalidParameter, NotSupported, UnknownName
from ..guarantees import Guarantee, Unbounded
from ..guarantees.costs import RENYI, order_of
from ..guarantees.fixed_point import Costs, decimal, float_above, float_up
from .filters import ZCDP, GaussianDP, Renyi
from .rules import Basic, Bound, Filter, Rule, canonical_charges, weakest_relation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .rules import HasGuarantee

__all__ = [
    "RULES",
    "Bound",
    "Filter",
    "Rule",
    "capacity",
    "compose",
    "compose_delta",
    "filter_rule",
    "measure_of",
    "rule_named",
]

RULES = ("basic", "zcdp", "gdp", "renyi", "exact")

_FILTERS: dict[str, Filter] = {rule.name: rule for rule in (Basic(), ZCDP(), GaussianDP(), Renyi())}

_NOT_A_FILTER = (
    "rule exact is not a privacy filter: if the next mechanism depends on earlier outputs, exact composition can state "
    "less than was lost (one example exceeds delta = .0497 by half)"
)
_USE_A_FILTER = "Use basic, zcdp, gdp or renyi for a limit. Use exact for a plan, which is fixed beforehand."


def compose(
    charges: Iterable[tuple[Guarantee | HasGuarantee, int]], *, delta: float | str | Decimal, rule: str = "basic"
) -> Bound:
    """The total loss of many reports of one user.

    Local adjacency: any two inputs of one user, whose inputs may differ in every report. Grouping and order do not
    change the result, to the last digit.

    Parameters:
        charges: pairs of a mechanism, or a guarantee, and the number of its reports.
        delta: the δ of the total, >= 0 and < 1. With rule "basic" the total's δ is the sum of the δ's.
        rule: "basic", "zcdp", "gdp", "renyi" or "exact". "renyi" takes the order of the published grid that is best
            for these charges and reports it; "renyi:ALPHA" takes that order.

    Returns:
        A certified bound; its `epsilon` is infinite where nothing can be guaranteed.

    Raises:
        NotSupported: the rule does not apply, with the reason: all but basic and exact at δ = 0; zcdp and renyi if
            the reports' own δ use up all of it; gdp with such a guarantee, or one without a μ; basic and exact with
            one that has no ε.
        InvalidParameter: an argument has the wrong type or is out of range.
        UnknownName: the rule does not exist.
    """
    share = checked_delta(delta)
    listed = canonical_charges(charges)
    chosen = rule_named(rule)
    relation = weakest_relation(listed)
    if any(isinstance(guarantee, Unbounded) for guarantee, _ in listed):
        return Bound(math.inf, math.inf, float_up(share), relation)
    total = chosen.total(listed, share)
    return Bound(printed_above(total.upper), total.lower, float_up(total.delta), relation, total.order)


def compose_delta(charges: Iterable[tuple[Guarantee | HasGuarantee, int]], epsilon: float) -> tuple[float, float]:
    """The best δ of `charges` at `epsilon` >= 0 under the rule "exact", as a certified (lower, upper)."""
    from .pld import exact_delta

    if not (isinstance(epsilon, int | float) and 0 <= epsilon < math.inf):
        raise InvalidParameter("epsilon", "a finite number >= 0", shown(epsilon))
    listed = canonical_charges(charges)
    if any(isinstance(guarantee, Unbounded) for guarantee, _ in listed):
        return 1.0, 1.0
    return exact_delta(listed, float(epsilon))


def rule_named(name: str) -> Rule:
    """The rule with that name. Raises `UnknownName`, and `InvalidParameter` for an order that is not on the grid."""
    check_name("rule", name)
    if name == "exact":
        from .pld import Exact

        return Exact()
    if name.startswith(f"{RENYI}:"):
        try:
            return Renyi(order_of(name))
        except ValueError as error:
            raise InvalidParameter(
                "rule", "renyi, or renyi:ORDER with an order of the published grid", name, hint=f"{error}."
            ) from None
    if name not in _FILTERS:
        raise UnknownName("rule", name, RULES)
    return _FILTERS[name]


def filter_rule(name: str) -> Filter:
    """The additive rule with that name.

    Raises `NotSupported` with the reason for exact; `UnknownName` for an unknown rule.
    """
    rule = rule_named(name)
    if not isinstance(rule, Filter):
        raise NotSupported(_NOT_A_FILTER, hint=_USE_A_FILTER)
    return rule


def capacity(rule: str, epsilon: Decimal, delta: Decimal, aside: Decimal = Decimal(0)) -> Costs:
    """The largest costs that a limit of (`epsilon`, `delta`) under `rule` admits, in integer units, rounded down.

    Charges whose integer costs add up to at most this capacity compose to at most `epsilon` at `delta`. An amount
    that the rule does not add is None. `aside` is the part of δ for reports with a δ of their own, under zcdp and
    renyi. The amounts of renyi, and of zcdp with δ aside, are those of `guarantees.costs.measured`. Raises the same
    errors as `filter_rule`, and `NotSupported` if no δ is left for the conversion.
    """
    return filter_rule(rule).capacity(epsilon, delta, aside)


def measure_of(rule: str, aside: Decimal) -> str | None:
    """The measure in which a limit counts under a rule with an order; None for the four amounts of a charge."""
    return rule if rule.startswith(f"{RENYI}:") or (aside and rule == ZCDP.name) else None


def checked_delta(delta: Any) -> Decimal:
    try:
        number = decimal(delta)
    except ValueError:
        raise InvalidParameter(
            "delta", "a number >= 0 and < 1", delta if isinstance(delta, str) else shown(delta)
        ) from None
    if not 0 <= number < 1:
        raise InvalidParameter("delta", "a number >= 0 and < 1", delta)
    return number


def printed_above(epsilon: float) -> float:
    """`epsilon`, or the next double if its shortest decimal would be below it."""
    return epsilon if math.isinf(epsilon) else float_above(Decimal(epsilon))
