"""The `repr` of public objects: a few readable lines, for objects of any size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ldp_budget
from fixed_clock import Clock
from ldp_budget import Accountant, Collection, Limit, Plan, mechanism
from ldp_budget.guarantees import Approximate, Copies, FinitePair, Gaussian, Memoised, Pure

OUE = mechanism("oue")(epsilon=1, domain_size=3)
LAPLACE = mechanism("laplace")(epsilon=1, lower=0, upper=1)
MANY = 2000

Made = Callable[[Accountant], object]

SHOWN: dict[str, tuple[Made, str]] = {
    "accountant": (lambda ledger: ledger, "<Accountant of :memory:>"),
    "limit": (lambda ledger: Limit("day", 1), "Limit('day', '1')"),
    "limit with everything": (
        lambda ledger: Limit("lifetime", 4, "1e-6", "zcdp", "1e-7"),
        "Limit('lifetime', '4', delta='0.000001', rule='zcdp', aside='1E-7')",
    ),
    "policy": (
        lambda ledger: ledger.policy(),
        "<Policy default, version 1: lifetime=4,0.000001,zcdp; day=1; checked>",
    ),
    "policy with a plan": (
        lambda ledger: ledger.set_policy("planned", [], plan=Plan([(OUE, 9)], "1e-6")),
        "<Policy planned, version 1: PlanTerms: 9 reports at ε = 8.9",
    ),
    "receipt": (lambda ledger: ledger.spend("alice", OUE), "<Receipt: spent: alice, ε = 1 (receipt "),
    "quote": (
        lambda ledger: ledger.quote("bob", OUE),
        "<Receipt: quoted: bob asked for ε = 1 (1 report). It fits. 1 such report fits.>",
    ),
    "balance": (
        lambda ledger: ledger.balance("bob"),
        "<Balance of bob, policy default:\n"
        "  lifetime (zcdp): ρ = 0 spent of ρ = 0.31106495494, ρ = 0.31106495494 left\n"
        "  day (basic): ε = 0 spent of ε = 1, ε = 1 left, resets at 2026-11-22T00:00:00Z>",
    ),
    "bulk result": (
        lambda ledger: ledger.spend_many([f"user-{n % 1000}" for n in range(MANY)], OUE),
        "<BulkResult: 1000 spent, 1000 refused, 0 repeated>",
    ),
    "integrity": (lambda ledger: ledger.verify(), "<Integrity ok; "),
    "collection": (
        lambda ledger: Collection("poll", OUE, ("cat", "dog", "bird")),
        "<Collection poll, OptimizedUnaryEncoding(domain_size=3, epsilon=1): cat, dog, bird>",
    ),
    "large collection": (
        lambda ledger: Collection("words", mechanism("oue")(epsilon=1, domain_size=MANY), words()),
        "word-0, word-1, word-2, word-3, word-4, … (2000 answers)>",
    ),
    "mechanism": (lambda ledger: OUE, "OptimizedUnaryEncoding(domain_size=3, epsilon=1)"),
    "mechanism with a large matrix": (lambda ledger: matrix(30), "MatrixSubstitution(matrix=[['71/100'"),
    "pure": (lambda ledger: Pure("0.1"), "Pure(bound=0.1)"),
    "approximate": (lambda ledger: Approximate(1, "1e-15"), "Approximate(bound=1, slack=1E-15)"),
    "gaussian": (lambda ledger: Gaussian("0.20591462491694391"), "Gaussian(mu=0.205914625)"),
    "pair": (
        lambda ledger: FinitePair((("1/4", "3/4"), ("3/4", "1/4"))),
        "FinitePair(outcomes=((1/4, 3/4), (3/4, 1/4)))",
    ),
    "memoised": (
        lambda ledger: Memoised(tuple(range(1, 100)), 99),
        "Memoised(curve=(1, 2, 3, …, 99), cap=99)",
    ),
    "copies": (lambda ledger: Copies(3, Pure(1)), "Copies(count=3, of=Pure(bound=1))"),
    "plan": (
        lambda ledger: Plan([(OUE, 9), (LAPLACE, 1)], "1e-6"),
        "<Plan: 10 reports of 2 guarantees, ε = 9.9",
    ),
    "bound": (lambda ledger: ldp_budget.compose([(Pure(1), 3)], delta=0), "<Bound: ε = 3.0 at δ = 0.0"),
    "verification": (lambda ledger: ldp_budget.verify(OUE), "<Verification: holds by channel, over 6 pairs; loss "),
    "audit": (lambda ledger: ldp_budget.audit(OUE, samples=2000, rng=1), "<Audit: ε >= 0."),
    "counts": (lambda ledger: estimated(3), "<CountEstimate of 100 reports: "),
    "many counts": (lambda ledger: estimated(MANY), "… (2000 answers) (standard errors)>"),
    "mean": (lambda ledger: LAPLACE.estimate(LAPLACE.randomize([0.5] * 9)), "<NoiseMeanEstimate of 9 reports: "),
    "aggregate": (lambda ledger: OUE.aggregate(OUE.randomize([0])), "<CountAggregate of 1 report: "),
    "sum": (lambda ledger: LAPLACE.aggregate(LAPLACE.randomize([0.5])), "<SumAggregate of 1 report: "),
    "comparison": (lambda ledger: OUE.compare(0, 1), "<Comparison of 4 outcomes in 1 case>"),
    "field": (lambda ledger: mechanism("oue").fields["epsilon"], "<Real epsilon: a number > 0 and <= 1000000>"),
}


def words() -> tuple[str, ...]:
    return tuple(f"word-{number}" for number in range(MANY))


def matrix(size: int) -> Any:
    columns = [["71/100" if row == column else "1/100" for column in range(size)] for row in range(size)]
    return mechanism("matrix-substitution")(matrix=columns)


def estimated(answers: int) -> object:
    asked = mechanism("oue")(epsilon=1, domain_size=answers)
    return asked.estimate(asked.randomize([number % answers for number in range(100)]))


@pytest.fixture(scope="module")
def ledger() -> Iterator[Accountant]:
    with Accountant(":memory:", clock=Clock()) as made:
        made.set_policy("default", ["lifetime=4,1e-6,zcdp", "day=1"], checked=True)
        yield made


@pytest.mark.parametrize("made", SHOWN)
def test_repr_is_short(ledger: Accountant, made: str) -> None:
    make, expected = SHOWN[made]
    text = repr(make(ledger))
    assert expected in text
    assert len(text) <= 300
    assert max(map(len, text.splitlines())) <= 200
    assert "Decimal(" not in text


def test_repr_of_a_limit_recreates_it() -> None:
    for limit in (Limit("day", 1), Limit("week", "0.3", "1e-9"), Limit("lifetime", 4, "1e-6", "zcdp", "1e-7")):
        assert eval(repr(limit)) == limit
        assert Limit.parse(str(limit)) == limit
    renyi = Limit("lifetime", 4, "1e-6", "renyi")
    assert Limit.parse(str(renyi)) == renyi
