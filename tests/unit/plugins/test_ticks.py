"""Tick all that apply: reference values, designs, estimates, and what is refused."""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from ldp_budget import mechanism
from ldp_budget.errors import InvalidParameter, NotSupported, OutsideDomain

Ticks = mechanism("ticks")


@pytest.mark.parametrize(
    ("options", "most", "epsilon", "design", "variance"),
    [
        (10, 3, 1, (1, 1), 8.54082),
        (10, 3, 4, (2, 2), 0.747964),
        (10, 5, 2, (2, 0), 3.10513),
        (10, 5, 1, (1, 0), 11.3067),
        (100, 5, 2, (4, 1), 6.17284),
        (100, 5, 4, (22, 3), 1.88241),
    ],
)
def test_design_of_ticks_has_the_least_variance(
    options: int, most: int, epsilon: int, design: tuple[int, int], variance: float
) -> None:
    made = Ticks(epsilon=epsilon, domain_size=options, at_most=most)
    assert made.design == design
    assert made.chances.variance(0.3) == pytest.approx(variance, rel=1e-5)
    # The sampling of users is a part of it; what randomization adds is the law of a contribution.
    law = made.contribution_law
    assert 0.7 * law.other[0] + 0.3 * law.held[0] + 0.21 == pytest.approx(variance, rel=1e-5)


def test_design_for_pairs_has_the_least_variance_of_two_options() -> None:
    made = Ticks(epsilon=2, domain_size=10, at_most=3, pairs=True)
    assert made.design == (7, 3)
    assert made.chances.variance_together(0.3, 0.3, 0.15) == pytest.approx(3.1393, rel=1e-4)


@pytest.mark.parametrize(
    "declared",
    [
        {"epsilon": 4, "domain_size": 10, "at_most": 3},
        {"epsilon": 2, "domain_size": 8},
        {"epsilon": 2, "domain_size": 6, "k": 6},
        {"epsilon": 3, "domain_size": 9, "at_most": 2, "pairs": True},
    ],
)
def test_estimates_of_many_reports_are_as_far_off_as_they_say(declared: dict[str, Any]) -> None:
    made = Ticks(**declared)
    rng = np.random.default_rng(3)
    sets = made.domain.ticked(rng.integers(0, made.domain.size, 20_000))
    reports = made.randomize(sets, rng=5)
    found = made.estimate(reports)
    assert np.abs((found.counts - sets.sum(axis=0)) / found.std_errors).max() < 4.5
    assert made.contributions(reports).sum(axis=0) == pytest.approx(found.counts)
    both = found.pairs(0, 1)
    assert abs(both.share - (sets[:, 0] & sets[:, 1]).mean()) < 4.5 * both.std_error
    assert 0 <= both.low < both.high <= 1


def test_parts_of_reports_add_up_to_the_whole() -> None:
    made = Ticks(epsilon=2, domain_size=8)
    reports = made.randomize([[0], [], [1, 2, 7]] * 50, rng=1)
    whole = made.aggregate(reports[:70]).merge(made.aggregate(reports[70:]))
    assert (whole.support == made.aggregate(reports).support).all()


@pytest.mark.parametrize("declared", [{"at_most": 2}, {"at_most": 4}, {}])
def test_client_refuses_sets_that_are_not_of_the_domain(declared: dict[str, Any]) -> None:
    made = Ticks(epsilon=1, domain_size=5, **declared)
    most = declared.get("at_most", 5)
    assert made.domain.most == most
    for wrong in ([*range(most + 1)], [0, 0], [-1], [5], ["0"], [0.5]):
        with pytest.raises(OutsideDomain):
            made.randomize([[], wrong])
    if most < 5:
        everything = made.domain.size if made.domain.numbered == most else 31
        with pytest.raises(OutsideDomain):
            made.randomize([everything])
        with pytest.raises(OutsideDomain):
            made.randomize(np.ones((1, 5), bool))


@pytest.mark.parametrize(
    "reports", [[[0, 1], [1, 0]], [[0, 13]], [[3, 3]], [[0, 1, 2]], [[0.5, 1.0]], [0, 1]], ids=str
)
def test_reports_that_no_client_sends_are_refused(reports: Any) -> None:
    made = Ticks(epsilon=4, domain_size=10, at_most=3)
    for method in (made.aggregate, made.check_reports, made.contributions):
        with pytest.raises(NotSupported):
            method(np.array(reports))


@pytest.mark.parametrize(
    "wrong",
    [
        {"at_most": 11},
        {"at_most": 3, "threshold": 4},
        {"at_most": 3, "k": 11},
        {"at_most": 7, "threshold": 1},
        {"k": 11},
        {"pairs": True, "k": 1},
    ],
    ids=str,
)
def test_ticks_of_wrong_sizes_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        Ticks(epsilon=1, domain_size=10, **wrong)


def test_pairs_need_reports_of_two_options() -> None:
    found = (made := Ticks(epsilon=2, domain_size=10, at_most=3)).estimate(made.randomize([[0, 1]] * 20, rng=1))
    with pytest.raises(NotSupported, match="pairs"):
        found.pairs(0, 1)
    with pytest.raises(InvalidParameter):
        found.pairs(1, 1)


@pytest.mark.parametrize("reports", [[[0, 9], [1, 11]], [[0, 1]], [[9, 10]]], ids=str)
def test_interval_of_a_pair_has_a_width_for_any_reports(reports: Any) -> None:
    made = Ticks(epsilon=4, domain_size=10, at_most=3)
    both = made.estimate(np.array(reports * 100, np.uint8)).pairs(0, 1)
    assert 0 <= both.low < both.high <= 1
    assert both.high - both.low > 0.01


def _laws(declared: dict[str, Any], ticked: list[int]) -> list[tuple[float, list[int]]]:
    """Return all reports with their probabilities, from the definition of the design."""
    made = Ticks(**declared)
    d, odds = made.domain_size, math.exp(made.epsilon)
    size, least = made.design
    if not least:
        asked = list(combinations(range(d), size))
        bits = [(which, held) for which in asked for held in product((0, 1), repeat=size)]
        truth = [tuple(int(option in ticked) for option in which) for which, _ in bits]
        return [
            (
                (odds if held == own else 1) / (odds + 2**size - 1) / len(asked),
                [2 * o + b for o, b in zip(which, held, strict=True)],
            )
            for (which, held), own in zip(bits, truth, strict=True)
        ]
    own = {*ticked, *range(d, d + made.at_most - len(ticked))}
    sets = list(combinations(range(d + made.at_most), size))
    masses = [odds if len(own & set(each)) >= least else 1.0 for each in sets]
    return [(mass / sum(masses), list(each)) for mass, each in zip(masses, sets, strict=True)]


@pytest.mark.parametrize(
    "declared",
    [{"domain_size": 6, "at_most": 2, "pairs": True}, {"domain_size": 5, "k": 3}, {"domain_size": 4, "k": 4}],
    ids=str,
)
def test_law_of_a_pair_is_that_of_all_reports(declared: dict[str, Any]) -> None:
    made = Ticks(epsilon=2, **declared)
    found = made.chances.moments_together()
    for number, ticked in enumerate(([], [1], [0, 1])):
        law = _laws({"epsilon": 2, **declared}, ticked)
        reports = np.array([report for _, report in law], np.uint8)
        adds = made.pair_contributions(reports)[:, made.domain_size]  # options 0 and 1
        chances = np.array([chance for chance, _ in law])
        assert chances @ adds == pytest.approx(float(number == 2), abs=1e-9)
        assert (chances @ adds**2, chances @ adds**3) == pytest.approx(found[number], rel=1e-8)
        whole = made.estimate(reports)
        assert whole.pairs(0, 1).share == pytest.approx(adds.mean(), abs=1e-9)
