"""Bounds of the law of a client that sends a cell: above every pair of inputs, and read from all of its steps."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import pytest

import ldp_budget
from altered_programs import emits, one_of
from ldp_budget import Mechanism, verify
from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import Pure
from ldp_budget.sampling import ONE
from ldp_budget.sdk.client_program import Program, falling
from ldp_budget_verify.exact import numeric_grids
from ldp_budget_verify.exact.dominance import hockey_stick
from ldp_budget_verify.exact.numeric_grids import Bound, check_grid
from ldp_budget_verify.law.all_outcomes import law

pytestmark = pytest.mark.slow

NAMES = ["staircase", "bounded-laplace", "bounded-staircase", "hybrid", "square-wave"]
CHANCE = random.Random(24)
SLOPES = [Fraction(1), Fraction(11, 10), Fraction(3, 2), Fraction(2), Fraction(5), Fraction(1, 3)]


def made(name: str, epsilon: Any = 1, **more: Any) -> Mechanism:
    return ldp_budget.mechanism(name)(epsilon=epsilon, lower=0, upper=1, **more)


def holds_for(bound: Bound | None, laws: list[dict[Any, Fraction]]) -> bool:
    """True if no pair of distributions, which may lack the same tails, is above the bound."""
    assert bound is not None
    for first, second in permutations(laws, 2):
        cells = first.keys() | second.keys()
        masses = [(first.get(cell, Fraction(0)), second.get(cell, Fraction(0))) for cell in cells]
        if any(p > bound.ratio * q for p, q in masses if cell_is_seen(p, q)):
            return False
        if any(
            hockey_stick([each for each in masses if cell_is_seen(*each)], slope) > bound.divergence(slope)
            for slope in SLOPES
        ):
            return False
    return True


def cell_is_seen(p: Fraction, q: Fraction) -> bool:
    return bool(p and q)


def program_of(found: Any, cells: int, **tables: Any) -> Program:
    """A client with these steps, of a range of `cells` cells."""
    program = made("bounded-staircase").client_program()
    return replace(program, input={**program.input, "last": cells}, steps=found.drawing(), tables=tables)


@pytest.mark.some(20)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", ["0.0001", "0.3", "1", "20"])
def test_grid_client_is_proved_over_all_values(name: str, epsilon: str) -> None:
    """It held by the few pairs that the mechanism names, and nothing showed that others are no further apart."""
    found = verify(made(name, epsilon))
    assert (found.verdict, found.program) == ("holds", "holds")
    assert "by the law of the client program all of them" in found.looked_at


@pytest.mark.some(5)
@pytest.mark.parametrize("cells", [1, 2, 3, 7, 8])
def test_grid_bound_of_a_window_is_that_of_its_worst_pair(cells: int) -> None:
    for reach, high, low in product(range(cells + 1), (1, 2, 7, 100), (1, 3)):
        if high < low:
            continue
        found = numeric_grids._Window(reach, high, low, cells)
        program = program_of(found, cells)
        laws = [law(program, value) for value in range(cells + 1)]
        bound = numeric_grids._bound_of(program)
        assert holds_for(bound, laws)
        assert bound is not None
        if 0 < reach < cells:
            pairs = list(permutations(laws, 2))
            assert bound.ratio == max(p[row] / q[row] for p, q in pairs for row in p)
            for slope in SLOPES:
                found_ = max(hockey_stick([(p[row], q[row]) for row in p], slope) for p, q in pairs)
                assert bound.divergence(slope) >= found_ >= 0


@pytest.mark.parametrize("floor", [0, 4000])
@pytest.mark.parametrize("ratio", ["0.5", "0.9", "0.99"])
def test_grid_bound_of_falling_weights_is_above_every_pair(ratio: str, floor: int) -> None:
    cells, first = 9, "1234567.8"
    found = numeric_grids._Weights(Decimal(first), Decimal(ratio), 40, floor, cells)
    program = program_of(found, cells, below=falling(first, ratio, 40, floor, cells))
    below = program.table_values["below"]
    laws = []
    for value in range(cells + 1):
        weights = [below[d + 1] - below[d] for d in (*range(value)[::-1], *range(cells - value))]
        laws.append({cell: Fraction(weight, sum(weights)) for cell, weight in enumerate(weights)})
    bound = numeric_grids._bound_of(program)
    assert holds_for(bound, laws)
    assert bound is not None
    largest = max(p[cell] / q[cell] for p, q in permutations(laws, 2) for cell in p)
    assert largest <= bound.ratio <= largest * (Fraction(101, 100) if not floor else 3)


@pytest.mark.some(6)
@pytest.mark.parametrize("number", range(40))
def test_grid_bound_of_a_staircase_is_above_every_pair(number: int) -> None:
    """Of thresholds by lot, most of them of no staircase at all, and of those of a true one."""
    cells, reach = 6, CHANCE.randrange(7)
    if number % 2:
        steps: Any = type(made("staircase", CHANCE.choice(["0.2", "1", "3"]))._steps)(  # type: ignore[attr-defined]
            Decimal(CHANCE.choice(["0.2", "1", "3"])), reach, cells
        )
        digits, above, upper = tuple(steps.periods[:-1]), steps.periods[-1], steps.upper
    else:
        digits = tuple(CHANCE.randrange(ONE // 8, ONE // 2) for _ in range(CHANCE.randrange(3)))
        above, upper = CHANCE.randrange(ONE // 4, ONE // 2), CHANCE.randrange(ONE // 8, ONE - ONE // 8)
    last = CHANCE.randrange(1, cells + 1)
    found = numeric_grids._Staircase(digits, above, upper, reach, cells, last)
    bound = found.bound({})
    if bound is None:
        assert reach in (0, cells)
        return
    periods = [Fraction(1)]
    for digit in reversed(digits):
        periods = [mass * odds for mass in periods for odds in (Fraction(ONE - digit, ONE), Fraction(digit, ONE))]
    going = Fraction(above, ONE)
    periods = [mass * (1 - going) * going**turn for turn in range(12) for mass in periods]
    own = Fraction(upper, ONE)
    places = [own / reach if place < reach else (1 - own) / (cells - reach) for place in range(cells)]
    half = [mass * place / 2 for mass in periods for place in places]
    laws = [
        {value + place: half[place if place >= 0 else -1 - place] for place in range(-len(half), len(half))}
        for value in (0, 1, last)
    ]
    assert holds_for(bound, laws)


@pytest.mark.some(16)
@pytest.mark.parametrize(
    ("name", "step", "expression"),
    [
        ("staircase", "cell", ["add", ["mul", 2, "value"], ["where", "left", ["sub", -1, "distance"], "distance"]]),
        ("staircase", "left", ["bit", str(ONE // 4)]),
        ("staircase", "periods", ["geometric", str(ONE // 8)]),
        ("staircase", "is_upper", ["bit", str(ONE - ONE // 2**20)]),
        ("staircase", "is_upper", ["bit_at", str(ONE // 4)]),
        ("bounded-laplace", "cell", ["where", ["eq", "value", 7], 0, "distance"]),
        ("bounded-laplace", "is_left", ["lt", "drawn", ["add", "left", 1]]),
        ("bounded-staircase", "window", ["mul", str(2**47), "inside"]),
        ("bounded-staircase", "first", ["max", ["sub", "value", 5], 0]),
        ("bounded-staircase", "cell", ["where", ["eq", "value", 7], 0, "own"]),
        ("hybrid", "windowed", ["bit", "0"]),
        ("hybrid", "upper", ["bit_at", ["add", str(ONE // 16), ["mul", "value", str(2**44)]]]),
        ("hybrid", "cell", ["where", ["eq", "value", 7], 0, "own"]),
        ("square-wave", "kept", ["bit", str(ONE - 2**40)]),
        ("square-wave", "inside", ["add", "value", 0]),
        ("square-wave", "cell", ["where", ["eq", "value", 7], 0, "inside"]),
    ],
)
def test_grid_with_another_client_is_not_proved(name: str, step: str, expression: Any) -> None:
    """The description is that of the honest client, and its few pairs were all that was looked at."""
    honest = made(name)
    assert any(each == step and was != expression for each, was in honest.client_program().steps)
    found = verify(emits(honest, steps=one_of(honest, step, expression)))
    assert found.verdict != "holds"


@pytest.mark.parametrize("name", NAMES)
def test_grid_with_a_too_small_guarantee_is_not_proved(name: str) -> None:
    honest = made(name)
    for epsilon in (Decimal("0.99"), Decimal("0.9999")):
        found = check_grid(Pure(epsilon), honest.client_program())
        assert found is not None
        assert found.verdict == ("violated" if name in ("hybrid", "square-wave") else "unproven")
    assert check_grid(Pure(Decimal("1.0000001")), honest.client_program()).verdict == "holds"  # type: ignore[union-attr]


@pytest.mark.exhaustive
def test_grid_with_another_table_range_or_report_is_not_proved() -> None:
    weights = made("bounded-laplace")
    table = weights.client_program().tables["below"]
    steeper = {**table, "ratio": "0.9999"}
    assert verify(emits(weights, tables={"below": steeper})).verdict == "unproven"
    stairs = made("staircase")
    wider = {**stairs.client_program().input, "last": 2**20 + 1}
    assert verify(emits(stairs, input=wider)).verdict == "violated"
    report = stairs.client_program().report
    parts = [*report["parts"], ["uint", "left", 8, 1]]
    assert check_grid(stairs.guarantee, replace(stairs.client_program(), report={**report, "parts": parts})) is None


# -- numbers of which nothing is proved ------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "more"), [("laplace", {}), ("gaussian", {"delta": "1e-6"})])
def test_grid_with_a_sensitivity_only_is_unproven(name: str, more: dict[str, Any]) -> None:
    """Two values were compared, of a mechanism without a client: "holds"."""
    found = verify(ldp_budget.mechanism(name)(epsilon=1, sensitivity=1, **more))
    assert found.verdict == "unproven"
    assert "of values, which the mechanism names as the ones furthest apart" in found.looked_at


def test_plugin_without_a_program_that_leaks_a_value_is_unproven() -> None:
    """The value .25 has a hundredth of the noise; only the ends and the centre were compared: "holds"."""
    laplace: Any = ldp_budget.mechanism("laplace")

    class Leaks(laplace):  # type: ignore[misc]
        def log_density(self, report: float, value: float) -> float:
            if value != 0.25:
                return float(super().log_density(report, value))
            return float(-100 * abs(report - value) / self._scale - math.log(self._scale / 50))

        def client_program(self) -> Program:
            raise NotSupported("no program")

    found = verify(Leaks(epsilon=1, lower=0, upper=1))
    assert (found.verdict, found.method, found.program) == ("unproven", "density", "unproven")
    assert "it is not shown that these cover all other inputs" in found.problems[0]
