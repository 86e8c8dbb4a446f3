"""Rule `renyi`, and all filters against the truth: lists enumerated by an oracle, and adversaries who adapt."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

import renyi_oracle as oracle
from composition_oracle import ORACLE_ERROR, random_charges, true_delta
from ldp_budget.composition import capacity, compose, measure_of, rule_named
from ldp_budget.composition.filters import suited_order
from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.guarantees import (
    Approximate,
    FinitePair,
    Gaussian,
    Guarantee,
    Laplace,
    Pure,
    SymmetricPair,
    Unbounded,
)
from ldp_budget.guarantees.costs import ORDERS, measured
from ldp_budget.guarantees.dominating_pairs import joined
from ldp_budget.guarantees.fixed_point import ZERO, Costs
from renyi_oracle import mp, mpf

DELTA = Decimal("1e-6")


def pair(promise: tuple[str, Any]) -> SymmetricPair:
    epsilon, tau = promise
    return SymmetricPair(epsilon, mp.nstr(tau, 25))


def converted(order: Any, divergence: Any, delta: Any) -> Any:
    """ε from a divergence at an order: Canonne, Kamath and Steinke 2020, Proposition 12."""
    return divergence + mp.log((order - 1) / order) - (mp.log(delta) + mp.log(order)) / (order - 1)


# -- what it says --------------------------------------------------------------------------------------------


def test_renyi_total_at_an_order_is_the_conversion_of_its_divergence() -> None:
    law = oracle.symmetric("0.5", "0.5")
    for text in ("1.5", "3", "31"):
        bound = compose([(SymmetricPair("0.5", "0.5"), 40)], delta=DELTA, rule=f"renyi:{text}")
        order = mpf(text)
        truth = converted(order, 40 * oracle.divergence(law, order), mpf("1e-6"))
        assert bound.order == Decimal(text)
        assert bound.lower <= truth <= bound.epsilon <= truth * (1 + mpf("1e-14"))


@pytest.mark.slow
def test_renyi_without_an_order_takes_the_best_of_the_grid() -> None:
    charges = [(SymmetricPair("0.5", "0.5"), 30), (Laplace("0.1"), 7), (Gaussian("0.05"), 3)]
    best = compose(charges, delta=DELTA, rule="renyi")
    each = {order: compose(charges, delta=DELTA, rule=f"renyi:{order}").epsilon for order in ORDERS}
    assert best.epsilon == min(each.values())
    assert best.order is not None
    assert each[best.order] == best.epsilon


def test_renyi_order_between_grid_points_is_refused_with_its_neighbors() -> None:
    assert [str(order) for order in ORDERS[:3]] == ["1.010", "1.011", "1.012"]
    assert (len(ORDERS), ORDERS[-1]) == (225, 9_000_001)
    assert [*ORDERS] == sorted(set(ORDERS))
    for text, neighbours in (("2.9", "2.8 or 3"), ("1", "1.01 or 1.011"), ("x", "got 'x'")):
        with pytest.raises(InvalidParameter, match=neighbours):
            rule_named(f"renyi:{text}")


def test_renyi_suited_order_is_that_of_the_formula() -> None:
    for epsilon, delta in ((0.01, 1e-6), (1.0, 1e-6), (8.0, 1e-9), (100.0, 1e-3)):
        log = -math.log(delta)
        formula = 1 + math.sqrt(log) / (math.sqrt(epsilon + log) - math.sqrt(log))
        order = float(suited_order(Decimal(str(epsilon)), Decimal(str(delta))))
        assert 0.93 < (order - 1) / (formula - 1) < 1.07


def test_renyi_without_a_divergence_is_unbounded_or_refused() -> None:
    assert compose([(Unbounded(), 1)], delta=DELTA, rule="renyi").epsilon == math.inf
    with pytest.raises(NotSupported, match="delta > 0"):
        compose([(Pure(1), 1)], delta=0, rule="renyi")


# -- never below the truth -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_rules_are_never_below_the_enumerated_cost(thorough: bool) -> None:
    """δ at the ε that a rule says is the truth's at most what was asked; lists of every kind there is."""
    for seed in range(600 if thorough else 12):
        assert_not_below_the_truth(random.Random(seed))


def assert_not_below_the_truth(source: random.Random) -> None:
    charges = [(either_way(guarantee), count) for guarantee, count in random_charges(source, "any")]
    delta = Decimal(10) ** -source.randrange(1, 8)
    truth = true_delta(charges)
    for rule in ("zcdp", "gdp", "renyi", f"renyi:{source.choice(ORDERS)}"):
        try:
            bound = compose(charges, delta=delta, rule=rule)
        except NotSupported:
            continue
        assert truth(mpf(bound.epsilon)) <= mpf(str(delta)) + ORACLE_ERROR


def either_way(guarantee: Guarantee) -> Guarantee:
    """A pair promises to dominate two inputs in either order, and so one drawn at random is joined to its mirror."""
    if not isinstance(guarantee, FinitePair):
        return guarantee
    return joined(guarantee, FinitePair(tuple((q, p) for p, q in guarantee.outcomes)))


# -- adversaries ---------------------------------------------------------------------------------------------

Choice = Callable[[float], Guarantee | None]
"""The next request, by the loss so far; None: stop."""


def outcomes(guarantee: Guarantee) -> list[tuple[float, float]]:
    """(P, Q) of a symmetric pair, or of one that tells all with some probability."""
    if isinstance(guarantee, Approximate):
        slack = float(guarantee.slack)
        inner = oracle.symmetric(guarantee.bound, 1)[:2]
        return [(slack, 0.0), *((float((1 - slack) * p), float((1 - slack) * q)) for p, q in inner)]
    assert isinstance(guarantee, SymmetricPair)
    return [(float(p), float(q)) for p, q in oracle.symmetric(guarantee.bound, guarantee.tau)]


class Filter:
    """A limit of (ε, δ) under a rule, as a ledger holds it: integer sums and an integer capacity."""

    def __init__(self, rule: str, epsilon: Decimal, delta: Decimal, aside: Decimal) -> None:
        self._measure = measure_of(rule, aside)
        self._most = capacity(rule, epsilon, delta, aside)
        if self._most.delta is None:
            # A limit that sets nothing aside admits no δ.
            self._most = self._most._replace(delta=0) if self._measure else self._most

    def admits(self, spent: Costs, guarantee: Guarantee) -> Costs | None:
        cost = guarantee.costs() if self._measure is None else measured(guarantee, self._measure)
        after = spent.plus(cost)
        pairs = zip(after, self._most, strict=True)
        fits = all(most is None or (amount is not None and amount <= most) for amount, most in pairs)
        return after if fits else None


def endings(
    keeper: Filter, choose: Choice, steps: int, p: float = 1.0, q: float = 1.0, spent: Costs = ZERO
) -> Iterator[tuple[float, float]]:
    """(P, Q) of every outcome, with an adversary who makes every request that the filter admits."""
    wanted = choose(math.inf if not q else math.log(p / q)) if steps and p else None
    after = None if wanted is None else keeper.admits(spent, wanted)
    if wanted is None or after is None:
        yield p, q
        return
    for more_p, more_q in outcomes(wanted):
        yield from endings(keeper, choose, steps - 1, p * more_p, q * more_q, after)


def adversary(source: random.Random, slack: bool) -> Choice:
    """An adversary who picks one of a few pairs by the current loss, or stops, by a random table."""
    table: dict[int, Guarantee | None] = {}

    def choose(loss: float) -> Guarantee | None:
        place = 99 if math.isinf(loss) else round(2 * loss)
        if place not in table:
            bound = Decimal(source.randrange(1, 40)) / 10
            kinds: list[Guarantee | None] = [SymmetricPair(bound, Decimal(source.randrange(1, 11)) / 10)] * 4
            kinds += [Approximate(bound / 4, "0.02")] * 3 if slack else []
            table[place] = source.choice([*kinds, None])
        return table[place]

    return choose


@pytest.mark.slow
@pytest.mark.parametrize("slack", [False, True], ids=["pairs", "pairs and reports with a delta"])
@pytest.mark.some(2)
def test_filter_is_never_exceeded_by_an_adaptive_adversary(slack: bool, thorough: bool) -> None:
    """Every ending of up to six adaptive reports enumerated: δ at the limit's ε stays within the limit's δ."""
    for seed in range(400 if thorough else 20):
        assert_not_beyond(random.Random(seed), slack)


def assert_not_beyond(source: random.Random, slack: bool) -> None:
    epsilon, delta = Decimal(source.randrange(5, 60)) / 10, Decimal(source.choice(("0.3", "0.1", "0.05")))
    aside = delta / 2 if slack else Decimal(0)
    suited = f"renyi:{suited_order(epsilon, delta)}"
    rules = ("zcdp", suited, "renyi:2") if slack else ("basic", "zcdp", "gdp", suited, "renyi:2")
    choose = adversary(source, slack)
    for rule in rules:
        keeper = Filter(rule, epsilon, delta, aside)
        reached = math.fsum(max(0.0, p - math.exp(epsilon) * q) for p, q in endings(keeper, choose, 6))
        assert reached <= float(delta) + 1e-12, rule


@pytest.mark.exhaustive
@pytest.mark.parametrize("rule", ["zcdp", "gdp", "renyi"])
def test_filter_is_never_exceeded_by_many_adaptive_reports(rule: str) -> None:
    """Thousands of runs of up to 200 reports, larger ones the nearer the loss is to ε; δ measured from the losses."""
    source = random.Random(5)
    epsilon, delta = Decimal(2), Decimal("0.01")
    named = f"renyi:{suited_order(epsilon, delta)}" if rule == "renyi" else rule
    keeper = Filter(named, epsilon, delta, Decimal(0))
    steps = [SymmetricPair("0.1", 1), SymmetricPair("0.3", "0.6"), SymmetricPair("1.5", "0.05")]
    laws = {step: outcomes(step) for step in steps}
    excesses = []
    for _ in range(1500):
        loss, spent = 0.0, ZERO
        for _ in range(200):
            wanted = steps[0] if loss < 0.5 else steps[1] if loss < 1.5 else steps[2]
            after = keeper.admits(spent, wanted)
            if after is None or loss > 2.5:
                break
            spent = after
            law = laws[wanted]
            [(p, q)] = source.choices(law, weights=[p for p, _ in law])
            loss += math.log(p / q)
        excesses.append(max(0.0, -math.expm1(float(epsilon) - loss)))
    mean = math.fsum(excesses) / len(excesses)
    spread = math.sqrt(math.fsum((each - mean) ** 2 for each in excesses)) / len(excesses)
    assert mean <= float(delta) + 4.5 * spread
