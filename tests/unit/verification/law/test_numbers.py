"""Runs of numbers: two numbers, all numbers by corners, the moments, kept bits, and what is refused."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

import ldp_budget
from changed_numbers import HALF, changed, excess, good_programs, judge, laplace_weights, numbers, steps_of_noise
from ldp_budget.guarantees.fixed_point import exp_down
from ldp_budget.sampling import ONE
from ldp_budget.sdk.channels import Comparison
from ldp_budget.sdk.client_program import Program, uint
from ldp_budget_verify.exact.dominance import check
from ldp_budget_verify.law import Unknown, law_of
from ldp_budget_verify.law.all_outcomes import AllOutcomes, law
from ldp_budget_verify.law.corners import Numbers
from ldp_budget_verify.law.symbolic_intervals import Affine, signs

GOOD = good_programs()


def made(name: str, epsilon: Any = 1, **more: Any) -> Any:
    return ldp_budget.mechanism(name)(epsilon=epsilon, lower=0, upper=1, **more)


# -- against the list of all outcomes ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(GOOD)))
def test_numbers_of_small_program_has_the_listed_law(place: int) -> None:
    assert judge(GOOD[place]) == "equal"


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("seed", range(20))
def test_numbers_of_changed_programs_is_never_too_good(seed: int) -> None:
    chance = random.Random(f"numbers {seed}")
    for _ in range(3):
        try:
            program = changed(chance, chance.choice(GOOD))
        except ValueError:
            continue
        found = judge(program)
        assert not found.startswith("too good"), (found, program.steps)


@pytest.mark.slow
@pytest.mark.parametrize(("cells", "reach", "x", "y"), [(4, 1, 0, 4), (4, 1, 1, 2), (5, 3, 0, 3), (5, 4, 2, 0)])
def test_numbers_with_geometric_draw_adds_up_all_turns(cells: int, reach: int, x: int, y: int) -> None:
    fall, turns = Fraction(1, 8), 8
    count = ["add", ["shl", "periods", 2], ["join", "digits"]]
    noise = steps_of_noise(cells, reach, count)
    derived = Numbers(numbers([["periods", ["geometric", str(ONE // 8)]], *noise], cells))
    assert derived.every_pair
    sides: list[dict[bytes, Fraction]] = [{}, {}]
    for turn in range(turns):
        fixed = numbers([["periods", ["add", turn, 0]], *noise], cells)
        for side, value in zip(sides, (x, y), strict=True):
            for row, p in law(fixed, value).items():
                side[row] = side.get(row, Fraction(0)) + p * (1 - fall) * fall**turn
    pair = derived.compare(x, y)
    mine = [{b"%d" % place: mass[side] for place, mass in enumerate(pair)} for side in (0, 1)]
    for slope in (Fraction(1, 2), Fraction(1), Fraction(5, 3)):
        assert abs(excess(*mine, slope) - excess(*sides, slope)) <= 2 * fall**turns
        worst = max(excess(*_sides(each), slope) for each in derived.pairs())
        assert worst >= excess(*sides, slope) - 2 * fall**turns


def _sides(pair: Any) -> tuple[dict[bytes, Fraction], dict[bytes, Fraction]]:
    one, other = ({b"%d" % place: mass[side] for place, mass in enumerate(pair)} for side in (0, 1))
    return one, other


@pytest.mark.parametrize(("slope", "plus"), [(0, -1), (0, 0), (3, -7), (3, -6), (-2, 5), (-2, 4), (1, -9), (-1, -1)])
def test_signs_covers_every_number_once(slope: int, plus: int) -> None:
    ranges = signs(Affine(slope, plus), -3, 6)
    seen = {x: negative for first, last, negative in ranges for x in range(first, last + 1)}
    assert seen == {x: slope * x + plus < 0 for x in range(-3, 7)}
    assert sum(last - first + 1 for first, last, _ in ranges) == 10


# -- the built-in mechanisms ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.1", "1", "8"])
@pytest.mark.parametrize("name", ["square-wave", "hybrid", "one-bit-mean", "staircase"])
def test_numbers_of_mechanism_covers_every_pair_within_its_guarantee(name: str, epsilon: str) -> None:
    mechanism = made(name, epsilon)
    found = law_of(mechanism.client_program())
    assert found.rule == "runs of numbers"
    assert found.every_pair
    for pair in found.pairs():
        comparison = Comparison.rows(*zip(*pair, strict=True))
        for each in (comparison, comparison.swapped()):
            assert check(mechanism.guarantee, each).verdict == "holds"
    derived = found.guarantee(Decimal(epsilon))
    assert mechanism.guarantee.epsilon * (1 - 1e-9) <= derived.epsilon <= mechanism.guarantee.epsilon


@pytest.mark.parametrize("epsilon", ["0.5", "3"])
def test_numbers_of_window_at_the_ends_is_declared_not_derived(epsilon: str) -> None:
    """Pairs of ends have a variation of .318 at ε = 1, some pair between has .365."""
    found = law_of(made("bounded-staircase", epsilon).client_program())
    assert not found.every_pair
    with pytest.raises(Unknown, match="covers only the answers that were compared"):
        found.guarantee()


@pytest.mark.slow
def test_numbers_of_long_table_compares_the_ends() -> None:
    mechanism = made("bounded-laplace", 2)
    found = law_of(mechanism.client_program())
    assert not found.every_pair
    (pair,) = found.pairs()
    assert found.ratio is not None
    assert Fraction(exp_down(Decimal(2))) * Fraction(9999, 10000) < found.ratio <= Fraction(exp_down(Decimal(2)))
    assert sum(p for p, _ in pair) == sum(q for _, q in pair) == 1


@pytest.mark.parametrize("name", ["square-wave", "hybrid"])
def test_moments_are_those_of_the_mechanism(name: str) -> None:
    mechanism = made(name)
    found = Numbers(mechanism.client_program())
    for point in (0, 12345, 2**20):
        mean, square = found.moments(point)
        assert mean == sum(c * point**k for k, c in enumerate(mechanism.moments.mean))
        assert square == sum(c * point**k for k, c in enumerate(mechanism.moments.square))


# -- what is refused ---------------------------------------------------------------------------------------------------


REFUSED = {
    "a sum of two draws": [["a", ["below", 99]], ["b", ["below", 99]], ["r", ["add", "a", "b"]]],
    "a multiple of a draw": [["a", ["below", 99]], ["r", ["add", "value", ["mul", 2, "a"]]]],
    "bits of a draw": [["a", ["below", 99]], ["r", ["xor", "a", 5]]],
    "a product of the answer": [["a", ["below", 99]], ["r", ["add", "a", ["mul", "value", "value"]]]],
    "a bound from a draw": [["a", ["below", 99]], ["b", ["below", ["add", "a", 1]]], ["r", ["add", "b", 0]]],
    "a coin from a draw": [["a", ["below", 99]], ["b", ["bit_at", "a"]], ["r", ["add", "b", 0]]],
    "a coin beyond one": [["b", ["bit_at", ["mul", "value", str(ONE // 50)]]], ["r", ["add", "b", 0]]],
    "a bound of zero": [["b", ["below", "value"]], ["r", ["add", "b", 0]]],
    "too large for its bytes": [["r", ["mul", "value", 3]]],
    "negative": [["r", ["sub", "value", 1]]],
    "a hash": [["r", ["polynomial", "seed", 1, "value", 7]]],
    "a divided geometric draw": [["g", ["geometric", HALF]], ["r", ["div", "g", 3]]],
    "a compared geometric draw": [["g", ["geometric", HALF]], ["r", ["lt", "g", "value"]]],
}


@pytest.mark.parametrize("why", REFUSED)
def test_numbers_of_unknown_step_is_refused(why: str) -> None:
    with pytest.raises(Unknown):
        Numbers(numbers(REFUSED[why], 99, uint("r", 255)))


def test_numbers_of_step_that_is_not_affine_are_not_covered() -> None:
    assert not law_of(numbers([["r", ["parity", "value"]]], 999, uint("r", 1))).every_pair


def test_numbers_that_are_sent_are_ruled_out() -> None:
    found = law_of(numbers([["r", ["add", "value", 1]]], 999))
    assert found.every_pair
    assert found.ratio is None
    assert found.worst().loss is None


def test_numbers_of_one_number_treated_differently_finds_it() -> None:
    steps = [["near", ["below", 500]], ["r", ["where", ["eq", "value", 77], 0, "near"]]]
    found = law_of(numbers(steps, 1000))
    assert found.every_pair
    assert found.ratio is None


def test_numbers_with_a_shared_label_is_refused() -> None:
    steps = [["a", ["kept_bits", "x", "value", HALF, 1]], ["b", ["kept_bits", "x", "value", HALF, 1]]]
    program = numbers([*steps, ["r", ["xor", ["at", "a", 0], ["at", "b", 0]]]], 99, uint("r", 1), memo="value")
    with pytest.raises(Unknown, match="same words of the secret"):
        Numbers(program)


def test_numbers_of_too_many_branches_gives_up() -> None:
    digits = [[f"d{place}", ["bit", HALF]] for place in range(40)]
    total: Any = "value"
    for place in range(40):
        total = ["add", total, ["mul", 2**place, f"d{place}"]]
    with pytest.raises(Unknown, match="too many branches"):
        Numbers(numbers([*digits, ["r", total]], 99))


LONG = list(range(0, 2**17, 2))


@pytest.mark.parametrize(
    "steps",
    [
        [["u", ["below", 2**17]], ["r", ["rank", "table", ["add", "u", "value"]]]],
        [["u", ["below", 2**17]], ["r", ["rank", "table", ["mul", 3, "u"]]]],
        [["u", ["bits_each", ["list", *[HALF] * 9]]], ["s", ["sort", "table"]], ["r", ["at", "s", ["join", "u"]]]],
    ],
)
def test_numbers_of_long_table_covers_no_range_of_answers(steps: list[Any]) -> None:
    try:
        found = Numbers(numbers(steps, 2**20, tables={"table": LONG}))
    except Unknown:
        return
    assert not found.every_pair


def test_numbers_of_falling_table_reads_every_entry() -> None:
    steps, tables = laplace_weights(5)
    found = Numbers(numbers(steps, 5, tables=tables))
    weights = [b - a for a, b in pairwise(found.program.table_values["below"])]
    assert found.compare(0, 5)[0] == (Fraction(weights[0], sum(weights)), Fraction(weights[4], sum(weights)))


# -- places ------------------------------------------------------------------------------------------------------------


def _ranked(
    *more: tuple[str, Any], report: Any = ("add", "drawn", ["where", ["xor", "yes", "lie"], 8, 0])
) -> Program:
    """A randomized answer to a random one of 8 thresholds, of a number up to 100 that enters by its rank in 8 turns."""
    turns = [5, 10, 20, 40, 50, 60, 80, 100]
    steps: tuple[tuple[str, Any], ...] = (
        ("place", ["rank", ["list", *turns], "value"]),
        ("drawn", ["below", 8]),
        ("yes", ["ge", "drawn", "place"]),
        ("lie", ["bit", str(2**62)]),
        *more,
        ("report", list(report)),
    )
    given = {"kind": "answer", "count": 101, "text": False}
    return Program(given, steps, uint("report", 255))


def test_answer_that_enters_by_its_rank_alone_has_the_law_of_places() -> None:
    law, listed = Numbers(_ranked()), AllOutcomes(_ranked())
    assert (law.every_pair, law.ratio, law.variation) == (True, listed.ratio, listed.variation)
    assert (law.ratio, set(law.worst().pair)) == (3, {0, 5})  # the least answers of the first two places


def test_answer_that_also_enters_by_another_step_has_no_places() -> None:
    leaking = _ranked(("more", ["ge", "value", 7]), report=("add", "drawn", ["where", "more", 8, 0]))
    assert Numbers(leaking).ratio is None
