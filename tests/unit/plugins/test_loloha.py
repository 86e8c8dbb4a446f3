"""LOLOHA: its curve against enumerated reports, its cap over all cells, its labels, its estimates, planted faults."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import ldp_budget
from ldp_budget import NotSupported, verify
from ldp_budget.guarantees import SAME_CHANGE_PATTERN, Memoised
from ldp_budget.sampling import ONE
from ldp_budget_verify.law.all_outcomes import law_of_values

Loloha: Any = ldp_budget.mechanism("loloha")

SETTINGS = [
    {"epsilon_lifetime": 2, "epsilon_first": "0.5", "g": 2},
    {"epsilon_lifetime": 3, "epsilon_first": "1.5", "g": 3},
    {"epsilon_lifetime": 1, "epsilon_first": "0.9", "g": 4},
]


def kept_and_shown(made: Any) -> tuple[Fraction, Fraction]:
    """The two probabilities as they are drawn."""
    kept, shown = (Fraction(part, ONE) for part in made._response)
    return kept, shown


def likelihood(made: Any, cell: int, reports: tuple[int, ...]) -> Fraction:
    """The probability of reports of one cell, over its kept draw."""
    kept, shown = kept_and_shown(made)
    others = made.width - 1
    total = Fraction(0)
    for permanent in range(made.width):
        chance = kept if permanent == cell else (1 - kept) / others
        for report in reports:
            chance *= shown if report == permanent else (1 - shown) / others
        total += chance
    return total


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS)
def test_loloha_curve_is_the_largest_ratio_of_all_enumerated_reports(settings: dict[str, Any]) -> None:
    made = Loloha(**settings)
    guarantee = made.guarantee
    for count in (1, 2, 3, 4):
        ratio = max(
            likelihood(made, 0, reports) / likelihood(made, 1, reports)
            for reports in itertools.product(range(made.width), repeat=count)
        )
        loss = math.log(ratio)
        stated = float(guarantee.curve[count - 1])
        assert loss <= stated * (1 + 1e-15)
        assert stated <= loss * (1 + 1e-9)


@pytest.mark.parametrize("settings", SETTINGS)
def test_loloha_guarantee_has_the_declared_ends_and_a_cap_for_each_cell(settings: dict[str, Any]) -> None:
    made = Loloha(**settings)
    guarantee = made.guarantee
    assert isinstance(guarantee, Memoised)
    assert guarantee.relation == SAME_CHANGE_PATTERN
    assert (guarantee.curve[0], guarantee.cap) == (made.epsilon_first, made.epsilon_lifetime)
    assert guarantee.values == made.memoised_values == made.width
    assert guarantee.describe()["lifetime_epsilon"] == pytest.approx(made.width * float(made.epsilon_lifetime))
    kept, _ = kept_and_shown(made)
    # A word of the secret modulo g-1 is off uniform, so the least likely other cell counts.
    least = (1 - kept) * (ONE // (made.width - 1)) / ONE
    assert math.log(kept / least) <= float(guarantee.cap) * (1 + 1e-15)
    assert math.log(kept / least) >= float(guarantee.cap) * (1 - 1e-12)


def test_loloha_reports_of_all_cells_lose_at_most_g_caps_by_enumeration() -> None:
    """Histories (A, B, A, B) and (C, D, C, D) of two cells, over every kept draw and every report."""
    made = Loloha(epsilon_lifetime=1, epsilon_first="0.7", g=2, hashes=1)
    seed = 0
    program = made.client_program()
    cells = {value: int(made._family.cells_of(value)[seed]) for value in range(20)}
    zero = next(value for value, cell in cells.items() if cell == 0)
    one = next(value for value, cell in cells.items() if cell == 1)
    histories = [(zero, one, zero, one), (one, zero, one, zero)]
    laws = [law_of_values(program, history) for history in histories]
    ratio = max(max(laws[0][row] / laws[1][row], laws[1][row] / laws[0][row]) for row in laws[0])
    charged = 2 * float(made.guarantee.curve[1])
    assert charged <= 2 * float(made.guarantee.cap)
    assert math.log(ratio) <= charged * (1 + 1e-12)


def test_loloha_of_a_changed_history_exceeds_the_cap_so_the_relation_is_needed() -> None:
    made = Loloha(epsilon_lifetime="0.2", epsilon_first="0.19", g=2)
    kept, shown = kept_and_shown(made)
    # Reports of (A, B, A, B, …) that alternate, against those of (A, A, A, A, …).
    count = 6
    alternating = sum(
        (kept if first == 0 else 1 - kept)
        * (kept if second == 1 else 1 - kept)
        * (shown if first == 0 else 1 - shown) ** count
        * (shown if second == 1 else 1 - shown) ** count
        for first in (0, 1)
        for second in (0, 1)
    )
    constant = sum((kept if cell == 0 else 1 - kept) * (shown * (1 - shown)) ** count for cell in (0, 1))
    assert math.log(alternating / constant) > 2 * float(made.epsilon_lifetime)


@pytest.mark.parametrize(
    ("lifetime", "first", "cells"), [(1, "0.5", 2), (3, "1.5", 4), (4, "2", 7), (5, "2.5", 11), (6, "3", 19)]
)
def test_loloha_default_cells_are_those_of_the_printed_formula(lifetime: int, first: str, cells: int) -> None:
    assert Loloha(epsilon_lifetime=lifetime, epsilon_first=first).width == cells


# -- client -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_loloha_labels_name_cells_and_there_are_at_most_g_of_them() -> None:
    made = Loloha(epsilon_lifetime=2, epsilon_first=1, domain_size=300, g=5)
    answers, secret = np.arange(300), b"s" * 32
    cells, labels = made.memoised(answers, secret), made.labels(answers, secret)
    assert len(set(labels)) == 5 == len(set(cells.tolist()))
    assert len(set(zip(cells.tolist(), labels, strict=True))) == 5
    assert not set(labels) & set(made.labels(answers, b"t" * 32))


@pytest.mark.slow
def test_loloha_reports_repeat_the_function_and_the_kept_cell() -> None:
    made = Loloha(epsilon_lifetime=8, epsilon_first="7.9", domain_size=50, g=8)
    reports = made.randomize(np.full(4000, 7), secrets=b"one user, one secret", rng=1)
    functions, cells = made._read(reports)
    assert len(set(functions.tolist())) == 1
    share = np.bincount(cells, minlength=8).max() / len(cells)
    _, shown = kept_and_shown(made)
    assert share == pytest.approx(float(shown), abs=0.02)


@pytest.mark.exhaustive
def test_loloha_estimate_is_unbiased_over_functions_and_its_errors_are_true() -> None:
    made = Loloha(epsilon_lifetime=4, epsilon_first=2, domain_size=5)
    truth = np.array([900, 500, 300, 200, 100])
    answers = np.repeat(np.arange(5), truth)
    found = []
    for run in range(60):
        secrets = [f"user {run} {user} of the test".encode() for user in range(len(answers))]
        found.append(made.estimate(made.randomize(answers, secrets=secrets, rng=run)))
    off = (np.array([each.counts for each in found]) - truth) / np.array([each.std_errors for each in found])
    assert abs(off.mean()) < 5 / math.sqrt(off.size)
    assert off.std() == pytest.approx(1, abs=0.15)


@pytest.mark.slow
def test_loloha_estimate_of_listed_candidates_needs_no_domain() -> None:
    made = Loloha(epsilon_lifetime=6, epsilon_first=4)
    answers = np.repeat([17, 10**12], [3000, 1000])
    secrets = [f"another user {user:05}".encode() for user in range(len(answers))]
    reports = made.randomize(answers, secrets=secrets, rng=3)
    found = made.estimate(reports, candidates=[17, 10**12, 5])
    assert np.abs(found.counts - [3000, 1000, 0]).max() < 5 * found.std_errors.max()
    with pytest.raises(NotSupported, match="candidates"):
        made.estimate(reports)


# -- verification -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon_lifetime": 2, "epsilon_first": "0.5", "domain_size": 6},
        {"epsilon_lifetime": 3, "epsilon_first": "1.5", "domain_size": 1000, "hashes": 64},
        {"epsilon_lifetime": 5, "epsilon_first": "2.5"},
        {"epsilon_lifetime": "0.01", "epsilon_first": "0.001", "domain_size": 10, "hashes": 64},
    ],
)
def test_verify_proves_loloha(settings: dict[str, Any]) -> None:
    found = verify(Loloha(**settings))
    assert found.verdict == "holds"


def planted(made: Any, change: Any) -> Any:
    """The same mechanism with another client program."""
    program = change(made.client_program())

    class Planted(type(made)):  # type: ignore[misc]
        def client_program(self) -> Any:
            return program

    return Planted(**made.declared)


def with_step(name: str, step: Any) -> Any:
    def change(program: Any) -> Any:
        return replace(program, steps=tuple((each, step if each == name else old) for each, old in program.steps))

    return change


FAULTS = {
    "a cell that is kept too often": with_step("keeps", ["kept_bits", "permanent", "cell", str(2**64 - 2**60), 1]),
    "a report that shows the kept cell": with_step("shows", ["bit", str(2**64 - 1)]),
    "a report that shows the cell itself": with_step("shown", ["mod", ["add", "cell", "shows"], 2]),
    "words that all cells share": with_step("keeps", ["kept_bits", "permanent", 0, str(2**63), 1]),
    "a draw for each value": with_step("keeps", ["kept_bits", "permanent", "value", str(2**63 + 2**60), 1]),
    "a function that depends on the value": with_step("function", ["mod", ["add", ["at", "drawn", 0], "value"], 8]),
}


@pytest.mark.slow
@pytest.mark.some(6)
@pytest.mark.parametrize("fault", FAULTS)
def test_verify_does_not_prove_loloha_with_a_planted_fault(fault: str) -> None:
    made = Loloha(epsilon_lifetime=2, epsilon_first="0.5", domain_size=6, hashes=8, g=2)
    assert verify(made).verdict == "holds"
    found = verify(planted(made, FAULTS[fault]))
    assert found.verdict != "holds" or found.program == "violated"
