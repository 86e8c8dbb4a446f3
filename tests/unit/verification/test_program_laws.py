"""The distribution of every client program, enumerated in fractions, is the channel of its proof."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import ldp_budget
from client_cases import CASES
from ldp_budget import Mechanism, NotSupported
from ldp_budget.sdk.client_program import Program, uint
from ldp_budget_verify import Broken, NotChecked
from ldp_budget_verify.contract.client_checks import program_draws_what_the_client_draws, program_law_is_the_channel
from ldp_budget_verify.law.all_outcomes import law

SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("randomized-response", {"truth": "0.4", "yes": "0.3"}),
    ("one-sided", {"g": "0.3"}),
    ("unary-encoding", {"p": "0.6", "q": "0.2", "domain_size": 6}),
    ("sue", {"epsilon": 1, "domain_size": 5}),
    ("oue", {"epsilon": 2, "domain_size": 8}),
    ("random-substitution", {"epsilon": 1, "domain_size": 7}),
    ("random-substitution", {"epsilon": 1, "domain_size": 7, "draws": 2}),
    ("random-substitution", {"epsilon": 1, "domain_size": 6, "draws": 3, "sampling": "distinct"}),
    ("random-substitution", {"epsilon": 1, "domain_size": 5, "draws": 3, "sampling": "distinct", "ordered": True}),
    ("subset-selection", {"epsilon": 1, "domain_size": 10}),
    ("pgr", {"epsilon": 1, "domain_size": 60}),
    ("pgr", {"epsilon": 3, "domain_size": 20}),
    ("matrix-substitution", {"matrix": [["0.5", "0.25"], ["0.25", "0.5"], ["0.25", "0.25"]]}),
    ("cms", {"epsilon": 2, "hashes": 4, "width": 8, "domain_size": 20}),
    ("hcms", {"epsilon": 2, "hashes": 16, "width": 32, "domain_size": 50}),
    ("one-bit-mean", {"epsilon": 1, "maximum": 10}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 8, "bits": 3}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 5, "bits": 5, "memoize": True}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 6, "bits": 3, "memoize": True}),
    ("loloha", {"epsilon_lifetime": 2, "epsilon_first": 1, "domain_size": 9, "hashes": 8}),
    ("heavy-hitters", {"epsilon": 2, "length": 3, "hashes": 2}),
    ("olh", {"epsilon": 1, "domain_size": 9, "functions": 4}),
    ("grid", {"epsilon": 4, "items": 3, "domain_size": 3}),
    ("ticks", {"epsilon": 4, "domain_size": 7, "at_most": 2}),
    ("ticks", {"epsilon": 2, "domain_size": 5}),
    ("rappor", {"bits": 3, "hashes": 1, "cohorts": 2, "f": "0.5", "p": "0.25", "q": "0.75", "domain_size": 3}),
]
ENDLESS = {
    *("gaussian", "laplace", "staircase", "bounded-laplace", "bounded-staircase", "hybrid", "square-wave"),
    "random-threshold",
    "rounded-response",
}


def test_programs_of_all_mechanisms_except_grids_are_listed() -> None:
    assert {name for name, _ in SETTINGS} == {each.name for each in CASES.values()} - ENDLESS - {"exact-olh"}


@pytest.mark.some(22)
@pytest.mark.parametrize(("name", "parameters"), SETTINGS, ids=lambda item: item if isinstance(item, str) else "")
def test_program_distribution_equals_that_of_compare(name: str, parameters: dict[str, Any]) -> None:
    if name == "rappor":  # of 16 different reports the ways to send four are too many to list
        with pytest.raises(NotChecked, match="the points from 4 reports on were not looked at"):
            program_law_is_the_channel(ldp_budget.mechanism(name)(**parameters))
        return
    program_law_is_the_channel(ldp_budget.mechanism(name)(**parameters))


def test_program_distribution_sums_to_one() -> None:
    assert sum(law(CASES["sue"].client_program(), 2).values()) == 1


def test_program_that_cannot_be_listed_is_checked_by_its_law() -> None:
    program_law_is_the_channel(CASES["oue of 100"])


@pytest.mark.slow
def test_hashed_program_that_cannot_be_listed_is_not_checked() -> None:
    with pytest.raises(NotChecked, match="outcomes"):
        program_law_is_the_channel(CASES["cms"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["staircase", "bounded-laplace"])
def test_program_on_a_grid_is_checked_without_listing(name: str) -> None:
    program_law_is_the_channel(CASES[name])


# -- programs that are not the client -----------------------------------------------------------------------------


def _with_program(mechanism: Mechanism, changed: Program) -> Mechanism:
    """The mechanism with its client as a method, as a plugin may have one, and with another program."""

    class Changed(type(mechanism)):  # type: ignore[misc]
        def client_program(self) -> Program:
            return changed

        def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
            return mechanism.randomize(values, rng=rng, secrets=secrets)

    return Changed(**mechanism.declared)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("randomized-response", ["where", "value", "if_yes", "if_no"], ["where", "value", "if_no", "if_yes"]),
        ("sue", ["put", "others", "value", "own"], ["put", "others", 0, "own"]),
        ("d-bit-flip", ["floyd", "drawn", 17], "drawn"),
        ("subset-selection", ["below", 3], ["below", 2]),
    ],
)
def test_program_different_from_the_client_is_found(name: str, old: Any, new: Any) -> None:
    program = CASES[name].client_program()
    steps = tuple((step, new if expression == old else expression) for step, expression in program.steps)
    assert steps != program.steps
    changed = Program(program.input, steps, program.report, program.tables, program.memo)
    with pytest.raises(Broken, match="the program"):
        program_draws_what_the_client_draws(_with_program(CASES[name], changed))


def test_program_that_reads_more_is_found() -> None:
    made = CASES["randomized-response"]
    program = made.client_program()
    more = Program(program.input, (*program.steps, ("spare", ["below", 7])), program.report)
    with pytest.raises(Broken, match="the program reads 3 bytes, the client 2"):
        program_draws_what_the_client_draws(_with_program(made, more))


# -- what no interpreter would run ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ((("a", ["shift", 1]),), "an expression must be a whole number, a name or an operator"),
        ((("a", ["constructor", 1]),), "an expression must be a whole number, a name or an operator"),
        ((("a", ["add", 1]),), "the arguments of add must be a, b: got 1 arguments"),
        ((("a", ["add", 1, ["below", 2]]),), "below draws, so it must be the outermost operator of a step"),
        ((("a", "later"), ("later", 1)), "no earlier step or table is named 'later'"),
        ((("a", 2**53),), "must be a string"),
        ((("a", 0.5),), "must be a whole number"),
        ((("a", 1), ("a", 2)), "its own name"),
        ((("value", 1),), "its own name"),
        ((("a", ["kept_top", "alpha", 0, 20]),), "memo must be"),
    ],
)
def test_program_malformed_is_refused_at_construction(steps: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Program({"kind": "answer", "count": 2, "text": False}, steps, uint("a", 1))


def test_mechanism_without_a_program_says_so() -> None:
    class Silent(Mechanism):
        name = "silent"

    with pytest.raises(NotSupported, match="silent has no client program"):
        Silent().client_program()


def test_program_fractions_are_those_of_the_thresholds() -> None:
    made = ldp_budget.mechanism("randomized-response")(p="0.75", q="0.25")
    assert law(made.client_program(), 1) == {b"\x01": Fraction(3, 4), b"\x00": Fraction(1, 4)}
