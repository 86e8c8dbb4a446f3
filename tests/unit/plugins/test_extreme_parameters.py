"""Extreme parameters: correct results within a few seconds, or a refusal by name when the mechanism is built."""

from __future__ import annotations

import pytest

import ldp_budget
from corners import Parameters, cases_of, run_all
from ldp_budget_mechanisms import register_mechanisms


def _built_in() -> list[str]:
    names: list[str] = []
    register_mechanisms(lambda mechanism: names.append(mechanism.name))
    return names


NAMES = _built_in()


def wrong_answers(cases: list[tuple[str, Parameters]]) -> list[str]:
    """Return the problems at these corners, each with its parameters."""
    found = [(name, case, answer) for name, case, answer in run_all(cases) if answer.outcome == "wrong"]
    return [f"{name} {case}: {answer.text}" for name, case, answer in found]


def corner_cases(name: str, together: int, *, at_most: int) -> list[tuple[str, Parameters]]:
    """So many of the cases, spread over all of them."""
    cases = cases_of(ldp_budget.mechanism(name), together)
    step = max(1, -(-len(cases) // at_most))
    return [(name, case) for case in cases[::step]]


@pytest.mark.exhaustive
def test_parameters_at_one_corner_are_answered_or_refused() -> None:
    assert not wrong_answers([case for name in NAMES for case in corner_cases(name, 1, at_most=1)])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_parameters_at_any_two_corners_are_answered_or_refused(name: str) -> None:
    cases = corner_cases(name, 1, at_most=12) + corner_cases(name, 2, at_most=12)
    assert not wrong_answers(cases)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("bounded-staircase", {"epsilon": 190, "gamma": "0.5", "lower": 0, "upper": 1}),
        ("bounded-staircase", {"epsilon": 1, "gamma": "0." + "9" * 400, "lower": 0, "upper": 1}),
        ("staircase", {"epsilon": 1000, "lower": 0, "upper": 1}),
        ("staircase", {"epsilon": 1000, "gamma": 0, "lower": 0, "upper": 1}),
        ("randomized-response", {"truth": "0.25", "yes": "1e-300"}),
        ("matrix-substitution", {"matrix": [["1e-300", "0.5"], ["1", "0.5"]]}),
        ("rappor", {"bits": 8, "hashes": 1, "cohorts": 2, "f": "1e-300", "p": 0, "q": 1, "domain_size": 3}),
        ("rappor", {"bits": 32, "hashes": 1, "cohorts": 2, "epsilon": 700, "epsilon_lifetime": 1400}),
        ("rappor", {"bits": 2**16, "hashes": 2, "cohorts": 256, "f": 0.5, "p": 0.25, "q": 0.75}),
        ("loloha", {"epsilon_lifetime": "39.99999999996", "epsilon_first": "1"}),
        ("randomized-response", {"epsilon": 10**6}),
        ("d-bit-flip", {"epsilon": "1e-17", "buckets": 2, "bits": 1}),
        ("sue", {"epsilon": 10**6, "domain_size": 4}),
        ("cms", {"epsilon": 10**6, "hashes": 16, "width": 16, "domain_size": 4}),
        ("d-bit-flip", {"epsilon": 1, "buckets": 10**5, "bits": 10**4}),
        ("d-bit-flip", {"epsilon": 1, "buckets": 10**5, "bits": 10**4, "memoize": True}),
        (
            "random-substitution",
            {"epsilon": 2, "domain_size": 2000, "draws": 1000, "sampling": "distinct", "ordered": True},
        ),
    ],
)
def test_parameters_that_failed_before_are_answered(name: str, parameters: Parameters) -> None:
    assert not wrong_answers([(name, parameters)])


@pytest.mark.parametrize(
    ("name", "parameters", "expected"),
    [
        ("oue", {"epsilon": 1, "domain_size": 10**9}, "domain_size must be a whole number from 2 to 4000000"),
        ("unary-encoding", {"p": "0.5", "q": "1e-400000", "domain_size": 2}, "q must be .*within 1e.1000"),
        ("unary-encoding", {"p": "0." + "3" * 2000, "q": "0.1", "domain_size": 2}, "with at most 1000 digits"),
    ],
)
def test_parameters_that_take_too_long_are_refused_by_name(name: str, parameters: Parameters, expected: str) -> None:
    with pytest.raises(ldp_budget.InvalidParameter, match=expected):
        ldp_budget.mechanism(name)(**parameters)
