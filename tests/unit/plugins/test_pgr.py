"""Projective geometry response: its law by enumeration, its geometry, and its estimates by counting one by one."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import ldp_budget
from ldp_budget import InvalidParameter
from ldp_budget.guarantees import SymmetricPair
from ldp_budget.guarantees.dominating_pairs import dominating_pair
from ldp_budget.guarantees.fixed_point import exp_down
from ldp_budget.sampling import ONE
from ldp_budget.sdk.affine_geometry import LinearHashing, is_order, linear_law
from ldp_budget.sdk.client_program import Program
from ldp_budget_verify.exact import verify
from ldp_budget_verify.law.all_outcomes import law

Pgr: Any = ldp_budget.mechanism("pgr")

SPACES = [
    LinearHashing(2, 1),
    LinearHashing(2, 4),
    LinearHashing(3, 3),
    LinearHashing(4, 2),
    LinearHashing(8, 2),
    LinearHashing(16, 1),
    LinearHashing(5, 2, 2),
    LinearHashing(11, 1, 3),
    LinearHashing(4, 2, 2),
    LinearHashing(16, 1, 5),
]
spaces = pytest.mark.parametrize("space", SPACES, ids=str)


def made(domain_size: int, epsilon: object = 1) -> Any:
    return Pgr.calibrate(epsilon=epsilon, domain_size=domain_size)


def incidence(space: LinearHashing) -> Any:
    """True where a slab holds a point, (slabs, points)."""
    return space.holds(np.arange(space.slabs)[:, None], np.arange(space.points))


# -- the geometry ---------------------------------------------------------------------------------------------


@spaces
def test_slabs_hold_every_point_and_every_pair_of_points_equally_often(space: LinearHashing) -> None:
    held = incidence(space).astype(np.int64)
    share, both = space.shares
    together = held.T @ held
    assert (np.diag(together) == share * space.slabs).all()
    assert (together[~np.eye(space.points, dtype=bool)] == both * space.slabs).all()


@spaces
def test_slabs_hold_equally_many_points(space: LinearHashing) -> None:
    assert (incidence(space).sum(axis=1) == space.points * space.width // space.order).all()


@pytest.mark.parametrize("order", [4, 8, 16])
def test_multiplication_in_a_field_of_a_power_of_two_is_that_of_a_field(order: int) -> None:
    times = LinearHashing(order, 1)._products
    numbers = range(order)
    for a, b, c in itertools.product(numbers, repeat=3):
        assert times[a][b] == times[b][a]
        assert times[times[a][b]][c] == times[a][times[b][c]]
        assert times[a][b ^ c] == times[a][b] ^ times[a][c]
    assert times[1] == list(numbers)
    assert all(sorted(times[a]) == list(numbers) for a in numbers if a)


def test_is_order_accepts_primes_and_three_powers_of_two_alone() -> None:
    assert [number for number in range(34) if is_order(number)] == [2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 19, 23, 29, 31]


@spaces
@pytest.mark.parametrize("left_out", [0, 1, 3])
def test_supports_counts_what_each_slab_holds(space: LinearHashing, left_out: int) -> None:
    counts = np.random.default_rng(1).integers(0, 9, space.slabs)
    answers = max(1, space.points - left_out)
    expected = (counts @ incidence(space))[:answers]
    assert (space.supports(counts, answers) == expected).all()
    listed = np.flatnonzero(counts)
    assert (space.supports(counts[listed], answers, listed) == expected).all()


def test_supports_of_few_listed_slabs_counts_them_one_by_one() -> None:
    space = LinearHashing(7, 3)
    listed = np.array([0, 5, space.slabs - 1])
    expected = np.array([2, 1, 7]) @ space.holds(listed[:, None], np.arange(300))
    assert (space.supports(np.array([2, 1, 7]), 300, listed) == expected).all()


# -- the law of a report --------------------------------------------------------------------------------------

SETTINGS = [(2, "1"), (4, "1"), (9, "0.3"), (6, "1"), (11, "3"), (13, "0.01"), (16, "2"), (30, "4")]
settings = pytest.mark.parametrize(("domain_size", "epsilon"), SETTINGS)


@pytest.mark.some(8)
@settings
def test_law_of_the_program_is_that_of_the_declared_guarantee(domain_size: int, epsilon: str) -> None:
    """Every report of every answer in fractions: the loss is at most ε, and τ is the least that dominates."""
    mechanism = made(domain_size, epsilon)
    program = mechanism.client_program()
    laws = [law(program, answer) for answer in range(domain_size)]
    reports = sorted(set().union(*laws))
    rows = [[one.get(report, Fraction(0)) for report in reports] for one in laws]
    assert all(sum(row) == 1 for row in rows)
    odds = max(p / q for first, second in itertools.permutations(rows, 2) for p, q in zip(first, second, strict=True))
    assert odds <= Fraction(exp_down(Decimal(epsilon)))
    assert float(odds) == pytest.approx(math.exp(float(epsilon)), rel=1e-12)
    tightest = dominating_pair(rows)
    telling = sum((p for p, q in tightest.outcomes if p != q), Fraction(0))
    assert isinstance(mechanism.guarantee, SymmetricPair)
    assert telling <= Fraction(mechanism.guarantee.tau) <= telling + Fraction(1, 10**12)


@pytest.mark.slow
@settings
def test_estimate_is_unbiased_with_the_stated_variance_by_enumeration(domain_size: int, epsilon: str) -> None:
    mechanism = made(domain_size, epsilon)
    space, program = mechanism.space, mechanism.client_program()
    p, q = mechanism.support_probabilities[0]
    for answer in (0, domain_size - 1):
        chances = law(program, answer)
        numbers = np.array([int.from_bytes(report, "little") for report in chances])
        held = space.holds(numbers[:, None], np.arange(domain_size))
        likely = list(chances.values())
        for other in range(domain_size):
            share = sum((each for each, here in zip(likely, held[:, other], strict=True) if here), Fraction(0))
            assert share == (p if other == answer else q)
    stated = mechanism.utility()["variance_per_user"]
    assert stated == pytest.approx(float(q * (1 - q) / (p - q) ** 2), rel=1e-12)


@pytest.mark.slow
@pytest.mark.some(2)
@settings
def test_verify_proves_promise_and_client(domain_size: int, epsilon: str) -> None:
    found = verify(made(domain_size, epsilon))
    assert (found.verdict, found.program) == ("holds", "holds")


@pytest.mark.parametrize("epsilon", ["0.0001", "1", "3", "20"])
def test_verify_proves_a_million_answers_by_the_steps_of_the_client(epsilon: str) -> None:
    found = verify(made(10**6, epsilon))
    assert (found.verdict, found.program) == ("holds", "holds")


# -- programs that are another one ----------------------------------------------------------------------------


def altered(mechanism: Any, step: str, expression: Any) -> Program:
    program = mechanism.client_program()
    steps = tuple((name, expression if name == step else own) for name, own in program.steps)
    return Program(program.input, steps, program.report, program.tables)


@pytest.mark.parametrize("domain_size", [1000, 5000])
@pytest.mark.parametrize(
    ("step", "expression"),
    [
        ("place", ["where", "kept", "inside", "outside"]),
        ("b", "place"),
        ("b", ["mod", "hash", 4]),
        ("vector", ["add", "direction", 2]),
        ("hash", ["mod", "value", 4]),
        ("direction", ["below", 7]),
        ("inside", ["below", 2]),
        ("report", ["add", ["mul", 2, "direction"], "b"]),
    ],
)
def test_linear_law_knows_no_altered_program(domain_size: int, step: str, expression: Any) -> None:
    mechanism = made(domain_size)
    assert linear_law(mechanism.client_program()) is not None
    assert linear_law(altered(mechanism, step, expression)) is None


def test_linear_law_knows_no_program_with_more_answers_than_points() -> None:
    program = made(1000).client_program()
    more = Program({**program.input, "count": 1025}, program.steps, program.report, program.tables)
    assert linear_law(more) is None
    assert linear_law(Program({**program.input, "count": 1024}, program.steps, program.report, program.tables))


def test_linear_law_knows_no_program_with_another_table_or_a_huge_field() -> None:
    program = made(1000).client_program()
    tables = {**program.tables, "times": [0] * len(program.tables["times"])}
    assert linear_law(Program(program.input, program.steps, program.report, tables)) is None
    huge = altered(made(1000), "report", ["add", ["mul", str(2**80), "direction"], "b"])
    assert linear_law(huge) is None


# -- the choice of a space ------------------------------------------------------------------------------------


# -- reports and estimates ------------------------------------------------------------------------------------


def test_pgr_of_a_loss_too_small_to_be_drawn_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="epsilon must be a loss large enough to be drawn"):
        made(1000, "1e-19")
    assert made(1000, "1e-17")._keep * 2 > ONE
