"""Reports of one kept draw: the curves of the mechanisms, small programs listed in full, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

import ldp_budget
from ldp_budget.guarantees import Memoised
from ldp_budget.guarantees.fixed_point import decimal_up, ln_up
from ldp_budget.sdk.client_program import Program, packed, record, uint
from ldp_budget_verify.law import Unknown, law_of
from ldp_budget_verify.law.all_outcomes import law
from ldp_budget_verify.law.corners import Numbers
from ldp_budget_verify.law.independent_places import IndependentPlaces
from ldp_budget_verify.law.tracked_answers import TrackedAnswers

RANGE = {"lower": 0, "upper": 1}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("rappor", {"bits": 32, "hashes": 2, "cohorts": 8, "epsilon": 1, "epsilon_lifetime": 4}),
    ("rappor", {"bits": 64, "hashes": 1, "cohorts": 8, "f": "0.5", "p": "0.5", "q": "0.75"}),
    ("loloha", {"epsilon_lifetime": 2, "epsilon_first": 1, "domain_size": 100}),
    ("loloha", {"epsilon_lifetime": 4, "epsilon_first": 1, "domain_size": 100}),
    ("one-bit-mean", {"epsilon": 1, "rounding": "0.25", "flip": "0.1", **RANGE}),
    ("one-bit-mean", {"epsilon": 2, "rounding": "0.125", "flip": "0.25", **RANGE}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 8, "bits": 3, "memoize": True}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 8, "bits": 8, "memoize": True}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "given"), CASES)
def test_curve_of_mechanism_is_the_declared_one(name: str, given: dict[str, Any]) -> None:
    mechanism = ldp_budget.mechanism(name)(**given)
    guarantee = mechanism.guarantee
    assert isinstance(guarantee, Memoised)
    found = law_of(mechanism.client_program())
    for reports in (1, 2, 3, 5, 10, 20, None):
        derived = ln_up(decimal_up(found.curve(reports)))
        longer = reports is None or reports > len(guarantee.curve)
        declared = guarantee.cap if longer else guarantee.curve[reports - 1]  # type: ignore[operator]
        assert derived <= declared
        if reports is None or not longer:
            assert float(derived) == pytest.approx(float(declared), rel=1e-8)


# -- against every outcome ----------------------------------------------------------------------------------------------


def answers(count: int, steps: list[Any], report: dict[str, Any], memo: str = "value") -> Program:
    return Program({"kind": "answer", "count": count, "text": False}, tuple(map(tuple, steps)), report, {}, memo)


T, U, V = (str(2**64 // 10 * tenths) for tenths in (7, 6, 1))
ROW = answers(
    3,
    [
        ["own", ["onehot", "value", 3]],
        ["flips", ["kept_bits", "bits", "value", V, 3]],
        ["kept", ["xor", "own", "flips"]],
        ["ones", ["bits", T, 3]],
        ["zeros", ["bits", V, 3]],
        ["row", ["where", "kept", "ones", "zeros"]],
    ],
    packed("row", 3),
)
CELL = answers(
    4,
    [
        ["keeps", ["kept_bits", "keep", "value", U, 1]],
        ["elsewhere", ["kept_belows", "other", "value", 3, 1]],
        ["others", ["at", "elsewhere", 0]],
        ["kept", ["mod", ["add", "value", ["where", ["at", "keeps", 0], 0, ["add", 1, "others"]]], 4]],
        ["shows", ["bit", T]],
        ["next", ["below", 3]],
        ["shown", ["mod", ["add", "kept", ["where", "shows", 0, ["add", 1, "next"]]], 4]],
    ],
    record([["uint", "shown", 1, 1]]),
)
NUMBER = Program(
    {"kind": "number", "lower": "0.0", "upper": "1.0", "times": "5.0", "last": 5},
    (
        ("kept", ["kept_bits", "bit", "value", ["add", str(2**62), ["mul", "value", str(2**60)]], 1]),
        ("flip", ["bit", V]),
        ("report", ["xor", ["at", "kept", 0], "flip"]),
    ),
    uint("report", 1),
    {},
    "value",
)


def largest(program: Program, reports: int) -> Fraction:
    """Return the largest ratio of rows of reports of two answers, from every outcome of every draw."""
    given = program.input
    size = int(given["count"]) if given["kind"] == "answer" else int(given["last"]) + 1
    laws = [law(program, value, 100_000, reports) for value in range(size)]
    return max(max(p[row] / q[row], q[row] / p[row]) for p, q in combinations(laws, 2) for row in p)


@pytest.mark.slow
@pytest.mark.parametrize("reports", [1, 2])
@pytest.mark.parametrize(
    ("program", "rule"),
    [(ROW, IndependentPlaces), (CELL, TrackedAnswers), (NUMBER, Numbers)],
    ids=["row", "cell", "bit"],
)
def test_curve_of_small_program_is_that_of_all_outcomes(program: Program, rule: Any, reports: int) -> None:
    assert rule(program).curve(reports) == largest(program, reports)


@pytest.mark.slow
@pytest.mark.parametrize(("program", "rule"), [(CELL, TrackedAnswers), (NUMBER, Numbers)], ids=["cell", "bit"])
def test_curve_of_three_reports_is_that_of_all_outcomes(program: Program, rule: Any) -> None:
    found = rule(program)
    assert found.curve(3) == largest(program, 3)
    assert found.curve(3) < found.curve(40) < found.curve(None)


# -- what is refused ---------------------------------------------------------------------------------------------------


AGAIN = ["mod", ["add", "kept", ["where", ["at", "shows", 0], 0, ["add", 1, "next"]]], 4]


def changed(program: Program, name: str, x: Any) -> Program:
    steps = tuple((each, x if each == name else was) for each, was in program.steps)
    return Program(program.input, steps, program.report, program.tables, program.memo)


@pytest.mark.parametrize(
    ("program", "rule"),
    [
        (changed(CELL, "shown", ["mod", ["add", "kept", ["where", "shows", "value", "next"]], 4]), TrackedAnswers),
        (changed(CELL, "shows", ["bit", V]), TrackedAnswers),
        (changed(changed(CELL, "shows", ["kept_bits", "again", "kept", T, 1]), "shown", AGAIN), TrackedAnswers),
        (changed(NUMBER, "report", ["xor", ["at", "kept", 0], ["lt", "value", 3]]), Numbers),
        (changed(NUMBER, "kept", ["kept_bits", "bit", 0, ["add", str(2**62), "value"], 1]), Numbers),
    ],
    ids=[
        "the answer is used again",
        "others are shown more often",
        "another draw is kept",
        "the answer is shown",
        "kept for no answer",
    ],
)
def test_curve_of_changed_program_is_refused(program: Program, rule: Any) -> None:
    with pytest.raises(Unknown):
        rule(program).curve(2)


def test_curve_without_a_kept_draw_is_refused() -> None:
    mechanism = ldp_budget.mechanism("oue")(epsilon=1, domain_size=4)
    with pytest.raises(Unknown, match="keeps no draw"):
        law_of(mechanism.client_program()).curve(2)
