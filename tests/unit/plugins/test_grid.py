"""The mechanism of grids: its law, its estimates, and the variances of the design note."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from ldp_budget.errors import InvalidParameter, NotSupported, OutsideDomain
from ldp_budget.registry.plugins import mechanism
from ldp_budget.sdk.client_program import Program
from ldp_budget.sdk.grid_answers import GridAnswers, grid_program
from ldp_budget.sdk.report_law import rules
from ldp_budget_mechanisms.grid import Design, Grid, chances, variance

SMALL = [
    {"items": 2, "domain_size": 3, "asked": 2, "size": 1, "threshold": 1},
    {"items": 3, "domain_size": 2, "asked": 2, "size": 1, "threshold": 2},
    {"items": 2, "domain_size": 4, "asked": 1, "size": 2, "threshold": 1},
    {"items": 2, "domain_size": 3, "asked": 2, "size": 2, "threshold": 2},
    {"items": 3, "domain_size": 2, "asked": 3, "size": 1, "threshold": 2},
]


def grid_of(**given: Any) -> Any:
    return mechanism("grid")(**given)


@pytest.mark.parametrize("given", SMALL)
def test_law_of_a_grid_is_that_of_the_definition(given: dict[str, int]) -> None:
    """Every report is listed with its weight, 1 or (1 - π)A / (π(N - A)) times as much, as the docstring says."""
    grid = grid_of(epsilon=1, **given)
    items, d, s, w, t = given.values()
    sets = list(combinations(range(d), w))
    high = Fraction(grid.drawn, 2**64)
    answers = list(product(range(d), repeat=items))
    for first, second in [(answers[0], answers[-1]), (answers[0], answers[1])]:
        worst, variation = Fraction(0), Fraction(0)
        for asked in combinations(range(items), s):
            rows = list(product(sets, repeat=s))
            hits = [
                [sum(a[i] in z for i, z in zip(asked, row, strict=True)) >= t for row in rows]
                for a in (first, second)
            ]
            each = [[high / sum(own) if hit else (1 - high) / (len(rows) - sum(own)) for hit in own] for own in hits]
            worst = max(worst, *(p / q for p, q in zip(*each, strict=True)))
            variation += sum((max(p - q, Fraction(0)) for p, q in zip(*each, strict=True)), Fraction(0))
        differ = sum(a != b for a, b in zip(first, second, strict=True))
        law = grid.report_law
        pairs = law.pairs()[differ - 1]
        assert max(p / q for p, q in pairs) == worst
        assert sum((max(p - q, Fraction(0)) for p, q in pairs), Fraction(0)) == variation / math.comb(items, s)


@pytest.mark.parametrize("given", SMALL)
def test_list_of_all_reports_of_a_program_has_the_law_of_the_rule(given: dict[str, int]) -> None:
    grid = grid_of(epsilon=1, **given)
    listed = rules().AllOutcomes(grid.client_program())
    assert (listed.ratio, listed.variation) == (grid.report_law.ratio, grid.report_law.variation)
    assert grid.guarantee.loss() == (1, 0)


@pytest.mark.parametrize("given", SMALL)
def test_chances_of_a_grid_are_those_of_the_formula(given: dict[str, int]) -> None:
    grid = grid_of(epsilon=1, **given)
    p, q = chances(Design(*list(given.values())[2:]), given["domain_size"], math.e)
    assert float(grid.chance["p"]) == pytest.approx(p, rel=1e-10)
    assert float(grid.chance["q"]) == pytest.approx(q, rel=1e-10)


@pytest.mark.parametrize(
    ("epsilon", "items", "answers", "expected", "split"),
    [
        (1, 8, 5, 19.57, 166.87),
        (2, 8, 5, 4.07, 40.99),
        (4, 8, 5, 1.376, 10.05),
        (8, 8, 5, 0.463, 2.45),
        (4, 4, 2, 0.4216, 1.171),
    ],
)
def test_variance_of_a_grid_is_that_of_the_design_note(
    epsilon: int, items: int, answers: int, expected: float, split: float
) -> None:
    made = grid_of(epsilon=epsilon, items=items, domain_size=answers)
    found = variance(made.design, items, answers, math.exp(epsilon))
    assert found == pytest.approx(expected, rel=0.01)
    assert found < split


@pytest.mark.parametrize("epsilon", [1, 2, 4, 8])
def test_asked_item_of_a_grid_is_within_two_percent_of_the_best_known_channel(epsilon: int) -> None:
    """For one item the subset of optimal size attains the minimax rate (Ye and Barg); a grid does no worse with all of them."""
    made = grid_of(epsilon=epsilon, items=8, domain_size=5)
    one = min(variance(Design(1, w, 1), 8, 5, math.exp(epsilon)) for w in range(1, 5))
    assert variance(made.design, 8, 5, math.exp(epsilon)) <= 1.02 * one


@pytest.mark.parametrize(
    "given", [{"epsilon": 4, "items": 4, "domain_size": 3}, {"epsilon": 2, "items": 3, "domain_size": 2}]
)
def test_contributions_of_a_grid_are_unbiased_for_cells_and_for_two_of_them(given: dict[str, int]) -> None:
    """Exactly: over every report and its chance, from the exact probabilities of the sets."""
    grid: Grid = grid_of(**given, asked=2, size=1, threshold=2)
    chance, part = grid.chance, grid.part()
    d = given["domain_size"]
    # Sets (a, b) of two asked items; the chosen answers are (0, 0).
    both, one, none = (chance[name] for name in ("both", "one", "none"))
    law = {(a, b): both if (a, b) == (0, 0) else one if 0 in (a, b) else none for a in range(d) for b in range(d)}
    assert sum(law.values()) == 1
    rows = [np.array([[key[place]] for key in law]) for place in (0, 1)]
    rates = np.array([float(each) for each in law.values()])
    assert rates @ part.contributions(rows[0]) == pytest.approx([1, *[0] * (d - 1)], abs=1e-12)
    together = np.tensordot(rates, grid.contributions_together(*rows), 1)
    assert together == pytest.approx(np.eye(d)[:1].T @ np.eye(d)[:1], abs=1e-12)


def test_estimates_of_a_grid_hold_the_answers_of_the_users() -> None:
    grid = grid_of(epsilon=4, items=5, domain_size=4)
    rng = np.random.default_rng(7)
    chosen = rng.choice(4, (20_000, 5), p=[0.1, 0.2, 0.3, 0.4])
    reports = grid.randomize((chosen * 4 ** np.arange(5)).sum(axis=1), rng=rng)
    total = grid.aggregate(reports)
    whole = grid.estimate(reports)
    for item in range(5):
        truth = np.bincount(chosen[:, item], minlength=4) / len(chosen)
        own = grid.part().estimate(grid.total_of(total, item))
        asked, sets = grid.part_of(reports, item)
        assert own.reports == asked.sum() == len(sets)
        assert np.abs(own.shares - truth).max() < 5 * own.std_errors.max() / own.reports + 0.01
        cells = whole.shares[4 * item : 4 * item + 4]
        assert np.abs(cells - truth).max() < 5 * whole.std_errors.max() / whole.reports
    assert grid.contributions(reports).mean(axis=0) == pytest.approx(whole.shares, abs=1e-9)


def test_numbers_of_grids_are_the_digits_of_their_answers() -> None:
    domain = GridAnswers(3, 5)
    assert domain.check([[0, 1, 4], [2, 0, 0]]).tolist() == [0 + 5 + 100, 2]
    assert domain.chosen([105, 2]).tolist() == [[0, 1, 4], [2, 0, 0]]
    assert (domain.size, domain) == (125, GridAnswers(3, 5))
    assert len({domain, GridAnswers(3, 4)}) == 2
    for wrong in ([[0, 5, 0]], [[0, 0]], [[0, True, 0]], [125]):
        with pytest.raises(OutsideDomain, match="3 numbers from 0 to 4"):
            domain.check(wrong)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"items": 30, "domain_size": 5}, "items"),
        ({"items": 3, "domain_size": 5, "asked": 4}, "asked"),
        ({"items": 3, "domain_size": 5, "size": 5}, "size"),
        ({"items": 3, "domain_size": 5, "asked": 2, "threshold": 3}, "threshold"),
        ({"items": 3, "domain_size": 5, "epsilon": "1e-30"}, "epsilon"),
    ],
)
def test_grid_with_a_wrong_number_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        grid_of(**{"epsilon": 1, **given})


@pytest.mark.parametrize("row", [[0, 1], [6, 0], [0, 99], [0]])
def test_rows_that_no_client_sends_are_refused(row: list[int]) -> None:
    grid = grid_of(epsilon=4, items=4, domain_size=3, asked=2, size=1, threshold=2)
    with pytest.raises(NotSupported):
        grid.aggregate(np.array([row], np.uint8))


def test_changed_program_is_no_grid() -> None:
    made = grid_program(4, 3, 2, 1, 2, 2**63).to_json()
    changed = json.loads(json.dumps(made).replace('["mod", ["div"', '["div", ["div"'))
    assert isinstance(rules().AskedItems(Program.from_json(made)).ratio, Fraction)
    with pytest.raises(NotSupported, match="no program of a grid"):
        rules().AskedItems(Program.from_json(changed))


def test_grid_states_its_design_in_words() -> None:
    assert grid_of(epsilon=4, items=8, domain_size=5).notes == ("2 of 8 items, ε = 4 for them together.",)
    made = grid_of(epsilon=1, items=4, domain_size=11, asked=1, size=3)
    assert made.design_words == "1 of 4 items, sets of 3 answers, t = 1, ε = 1 for them together"
    with pytest.raises(NotSupported, match="several items"):
        type(made).for_answers(Decimal(1), 5)


def test_reference_case_of_the_design_note_is_a_pinned_design() -> None:
    """The chances at ε = 4 of the block of two items of five answers, to ten digits."""
    grid = grid_of(epsilon=4, items=8, domain_size=5, asked=2, size=1, threshold=2)
    odds = math.exp(4)
    total = odds + 24
    assert float(grid.chance["p"]) == pytest.approx((odds + 4) / total, rel=1e-10)
    assert float(grid.chance["both"]) == pytest.approx(odds / total, rel=1e-10)
    assert float(grid.chance["one"]) == pytest.approx(1 / total, rel=1e-10)
