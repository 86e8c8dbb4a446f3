"""Print figures that decide about privacy, computed under the named decimal context of the caller.

Started afresh each time, as what is worked out once, on import or in a cache, depends on nothing later.
"""

from __future__ import annotations

import decimal
import json
import sys
import threading
from collections.abc import Callable
from typing import Any

CONTEXTS: dict[str, Callable[[], decimal.Context]] = {
    "default": lambda: decimal.Context(prec=28, rounding=decimal.ROUND_HALF_EVEN),
    "one digit down": lambda: decimal.Context(prec=1, rounding=decimal.ROUND_DOWN),
    "three digits up": lambda: decimal.Context(prec=3, rounding=decimal.ROUND_UP),
    "a hundred digits": lambda: decimal.Context(prec=100),
    "nothing rounded": lambda: decimal.Context(prec=1, traps=[decimal.Inexact, decimal.Rounded]),
}


def figures() -> dict[str, Any]:
    """By what they are called, as text."""
    from fractions import Fraction

    from ldp_budget import Limit, mechanism
    from ldp_budget.accounting.plans import Plan, largest_epsilon
    from ldp_budget.accounting.policies import PlanTerms, Policy
    from ldp_budget.composition import compose, compose_delta
    from ldp_budget.errors import NotSupported
    from ldp_budget.guarantees import (
        Approximate,
        Copies,
        FinitePair,
        Gaussian,
        Laplace,
        Memoised,
        Pure,
        SymmetricPair,
        ZeroConcentrated,
    )
    from ldp_budget.guarantees.costs import ORDERS, measured, order_of

    many_digits = "1.23456789012345678901234567890123456789"
    third, seventh, rest = Fraction(1, 3), Fraction(1, 7), Fraction(11, 21)
    slack = Fraction(1, 1000)
    pair = ((third, seventh), (seventh, third), (rest, rest))
    with_slack = ((slack, Fraction(0)), (third, seventh), (seventh, third), (rest - slack, rest))
    guarantees = [
        Pure(many_digits),
        SymmetricPair("1.23456789", "0.3333333333333333333333333333333333333"),
        FinitePair(pair),
        FinitePair(with_slack),
        Laplace("0.98765432109876543210987654321"),
        Approximate("0.7654321987", "0.00000123456"),
        Gaussian("0.3456789", "1.2345", "0.00001234567"),
        ZeroConcentrated("0.123456789012345678901234567890123"),
        Memoised(("0.1234567", "0.234567"), "0.3456789"),
        Copies(7, Pure(many_digits)),
    ]
    found: dict[str, Any] = {"orders": [str(order) for order in ORDERS]}

    def note(name: str, work: Callable[[], Any]) -> None:
        try:
            found[name] = repr(work())
        except (NotSupported, ValueError) as error:
            found[name] = repr(error)

    for number, each in enumerate(guarantees):
        name = f"{number} {each.kind}"
        found[name] = [repr(each.costs()), repr(each.least_costs()), each.epsilon, str(each.describe())]
        note(f"{name} steps", lambda each=each: [measured(each, m) for m in ("renyi:3", "renyi:1.01", "zcdp")])
        for rule in ("basic", "zcdp", "gdp", "renyi", "renyi:3", "exact"):
            charges = [(each, 17), (guarantees[0], 2)]
            note(
                f"{name} {rule}",
                lambda charges=charges, rule=rule: compose(charges, delta="0.012345678901234567", rule=rule),
            )
    note("delta", lambda: compose_delta([(guarantees[1], 3), (guarantees[4], 2)], 2.465))
    tight, share = "0.00123456789012345678901234567890123456789", "0.000987654321"
    for rule, aside in (("basic", 0), ("zcdp", share), ("gdp", 0), ("renyi", share), ("renyi:3", 0), ("zcdp", 0)):
        limit = Limit("lifetime", "9.87654321", tight, rule, aside)
        found[f"limit {rule} {aside}"] = [str(limit.to_json()), limit.delta_text]
    note("neighbours", lambda: order_of("renyi:2.3456789"))
    parsed = Limit.parse("lifetime=3.3333,1.2345678e-6+3.3e-7,renyi", [(guarantees[0], 3)])
    found["parsed"] = str(parsed.to_json())
    # A plan that takes all of δ, and one with a thirtieth digit of it.
    plans = [Plan(((Approximate("0.1", share), 1),), decimal.Decimal(share)) for share in ("0.5", "1e-30", "1e-300")]
    first, *others = [PlanTerms.of(plan) for plan in plans]
    policy = Policy("x", (Limit("lifetime", 1, "0.5"),), plan=first, earlier=tuple(others))
    found["planned"] = [str(policy.planned()), str(policy.overdrawn_by(policy.planned()))]
    for rule in ("basic", "zcdp", "renyi", "exact"):
        note(f"most {rule}", lambda rule=rule: largest_epsilon(Pure, 7, "3.3333333", "1.23456e-6", rule))
    note("most approximate", lambda: largest_epsilon(lambda e: Approximate(e, "1.1e-9"), 7, "3", "1.2e-6", "renyi:3"))
    for name, options in (
        ("subset-selection", {"epsilon": "1.2345678901", "size": 7}),
        ("randomized-response", {"epsilon": "1.2345678901"}),
        ("staircase", {"epsilon": "1.2345678901", "lower": 0, "upper": 1}),
        ("bounded-staircase", {"epsilon": "1.2345678901", "lower": 0, "upper": 1}),
        ("bounded-laplace", {"epsilon": "1.2345678901", "lower": 0, "upper": 1}),
        ("pgr", {"epsilon": "1.2345678901", "domain_size": 700}),
        ("hybrid", {"epsilon": "1.2345678901", "lower": 0, "upper": 1}),
        ("square-wave", {"epsilon": "1.2345678901", "lower": 0, "upper": 1}),
        ("rappor", {"f": "0.5", "p": "0.5", "q": "0.75", "bits": 64, "hashes": 2, "cohorts": 8}),
    ):
        note(f"mechanism {name}", lambda name=name, options=options: mechanism(name)(**options).guarantee)
    return found


def main(name: str, *, in_thread: bool) -> None:
    def run() -> None:
        decimal.setcontext(CONTEXTS[name]())
        print(json.dumps(figures()))

    if in_thread:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    else:
        run()


if __name__ == "__main__":
    main(sys.argv[1], in_thread="thread" in sys.argv)
