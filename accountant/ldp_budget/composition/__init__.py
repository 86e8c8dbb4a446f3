"""Composition: from guarantees and counts to one certified loss.

Four rules. `basic`, `zcdp` and `gdp` are filters, and may be a limit's; `exact` is the tightest and holds only for
a list of reports that was fixed beforehand.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ..errors import InvalidParameter, NotSupported, UnknownName
from ..guarantees import Guarantee, Unbounded
from ..guarantees.amounts import Costs, decimal, float_above, float_up
from .basic import Basic
from .charges import canonical_charges, weakest_relation
from .gdp import GaussianDP
from .rules import Bound, Filter, Rule
from .zcdp import ZCDP

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["RULES", "Bound", "Filter", "Rule", "capacity", "compose", "compose_delta", "filter_rule", "rule_named"]

RULES = ("basic", "zcdp", "gdp", "exact")

_FILTERS: dict[str, Filter] = {rule.name: rule for rule in (Basic(), ZCDP(), GaussianDP())}

_NOT_A_FILTER = (
    "rule exact is not a filter: when the next mechanism is chosen after seeing earlier outputs, exact composition "
    "of what happened can promise less than was lost (an example exceeds delta = .0497 by half), so it may "
    "enforce only a plan fixed beforehand. A limit takes basic, zcdp or gdp."
)


def compose(charges: Iterable[tuple[Guarantee, int]], *, delta: float | str | Decimal, rule: str = "basic") -> Bound:
    """The total loss of `charges`, pairs of a guarantee and how many reports carry it, at `delta` in [0, 1).

    Local adjacency: any two inputs of one user, who may give another input in every report. Grouping and order make
    no difference, to the last digit. With rule "basic" the total's δ is the sum of the δ's.

    Raises `NotSupported`, saying why, where the rule does not apply (zcdp and gdp at δ = 0, or with a guarantee
    that has δ > 0 and no ρ or μ; basic and exact with one that has no ε); `InvalidParameter`; `UnknownName`.
    """
    share = _checked_delta(delta)
    listed = canonical_charges(charges)
    chosen = rule_named(rule)
    relation = weakest_relation(listed)
    if any(isinstance(guarantee, Unbounded) for guarantee, _ in listed):
        return Bound(math.inf, math.inf, float_up(share), relation)
    total = chosen.total(listed, share)
    return Bound(_printed_above(total.upper), total.lower, float_up(total.delta), relation)


def compose_delta(
    charges: Iterable[tuple[Guarantee, int]], epsilon: float, *, rule: str = "exact"
) -> tuple[float, float]:
    """The best δ of `charges` at `epsilon` >= 0, as a certified (lower, upper). Only for rule "exact"."""
    from .exact import exact_delta

    if rule_named(rule).is_filter:
        raise NotSupported(f"rule {rule}: the delta of a limit is chosen, not computed; use exact")
    if not (isinstance(epsilon, int | float) and 0 <= epsilon < math.inf):
        raise InvalidParameter("epsilon", "a finite number >= 0", epsilon)
    listed = canonical_charges(charges)
    if any(isinstance(guarantee, Unbounded) for guarantee, _ in listed):
        return 1.0, 1.0
    return exact_delta(listed, float(epsilon))


def rule_named(name: str) -> Rule:
    """The rule of that name. Raises `UnknownName`."""
    if name == "exact":
        from .exact import Exact

        return Exact()
    if name not in _FILTERS:
        raise UnknownName("rule", name, RULES)
    return _FILTERS[name]


def filter_rule(name: str) -> Filter:
    """The additive rule of that name. Raises `NotSupported`, saying why, for exact; `UnknownName` for no rule."""
    rule = rule_named(name)
    if not isinstance(rule, Filter):
        raise NotSupported(_NOT_A_FILTER)
    return rule


def capacity(rule: str, epsilon: Decimal, delta: Decimal) -> Costs:
    """What a limit of (`epsilon`, `delta`) under `rule` admits, in integer units, rounded down.

    Charges whose integer costs add up to no more compose to at most `epsilon` at `delta`. None stands for amounts
    that the rule does not add. Raises as `filter_rule`, and `NotSupported` for zcdp and gdp at δ = 0.
    """
    return filter_rule(rule).capacity(epsilon, delta)


def _checked_delta(delta: Any) -> Decimal:
    try:
        number = decimal(delta)
    except ValueError:
        raise InvalidParameter("delta", "a number >= 0 and < 1", delta) from None
    if not 0 <= number < 1:
        raise InvalidParameter("delta", "a number >= 0 and < 1", delta)
    return number


def _printed_above(epsilon: float) -> float:
    """`epsilon`, or the next double where its shortest decimal would be below it."""
    return epsilon if math.isinf(epsilon) else float_above(Decimal(epsilon))
