"""`cannot_fail`: it never says so of a program that fails for some answer, and laws of a few answers need it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checker_vectors import refusals
from client_cases import CASES
from generated_programs import FAILED, Generator, law_of
from ldp_budget.sdk.client_program import Program
from ldp_budget_verify.exact.derived_law import answers_are_alike
from ldp_budget_verify.exact.memoisation_checks import cell_laws
from ldp_budget_verify.law.totality import cannot_fail

PROVED_ELSEWHERE = {
    *("bounded-staircase", "bounded-laplace", "bounded-laplace at 20", "staircase", "staircase at 0.01"),
    *("laplace", "gaussian"),
    *(
        "ticks",
        "many ticks",
        "grid",
        "grid of sets",
        "joint yes or no",
    ),  # a rule accepts only the program that it rebuilds
}
"""Programs that are checked as a whole, or whose draws have no bounds."""


@pytest.mark.parametrize("name", sorted(set(CASES) - PROVED_ELSEWHERE))
def test_cannot_fail_of_a_builtin_program_is_shown(name: str) -> None:
    assert cannot_fail(CASES[name].client_program())


@pytest.mark.parametrize("vector", refusals("failures"), ids=lambda vector: vector["name"])
def test_cannot_fail_of_a_program_that_fails_is_not_shown(vector: dict[str, Any]) -> None:
    assert not cannot_fail(Program.from_json(vector["definition"]))


def shown(seed: int, count: int) -> tuple[int, int]:
    """How many random programs never fail, and of how many that is shown. None that fails may be among these."""
    generator, never, proved = Generator(seed), 0, 0
    for _ in range(count):
        definition = generator.definition()
        given = definition["input"]
        answers = given["count"] if given["kind"] == "answer" else given["last"] + 1
        fails = any(FAILED in law_of(definition, value) for value in range(answers))
        found = cannot_fail(Program.from_json(definition))
        assert not (found and fails), definition
        never += not fails
        proved += found
    return never, proved


@pytest.mark.parametrize("seed", range(6))
def test_cannot_fail_of_a_random_program_that_fails_is_not_shown(seed: int) -> None:
    shown(seed, 3)


@pytest.mark.slow
def test_cannot_fail_is_shown_of_most_programs_that_never_fail() -> None:
    never, proved = shown(99, 300)
    assert proved > never / 2


@pytest.mark.parametrize("name", ["a kept bit", "loloha", "heavy-hitters"])
def test_cell_laws_with_a_step_that_fails_for_some_answer_are_not_listed(name: str) -> None:
    """Such a step was left out, as no report needs it; but the device of that person sends no report."""
    program = CASES[name].client_program()
    assert cell_laws(program, 4096, 20_000) is not None
    dead = ("dead", ["div", 1, ["sub", "value", 5]])
    for steps in ((dead, *program.steps), (*program.steps, dead)):
        assert cell_laws(replace(program, steps=steps), 4096, 20_000) is None


def test_answers_alike_with_fewer_places_than_answers_is_not_shown() -> None:
    program = CASES["oue"].client_program()
    assert answers_are_alike(program)
    dead = ("dead", ["onehot", "value", 3])
    assert not answers_are_alike(replace(program, steps=(*program.steps, dead)))
