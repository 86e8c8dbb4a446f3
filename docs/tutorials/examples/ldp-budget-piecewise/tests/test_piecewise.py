"""The piecewise mechanism: guarantee and moments by enumeration, a check of the client against them, and the paper's figures."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from ldp_budget_piecewise import Piecewise, piecewise

import ldp_budget
from ldp_budget import verify
from ldp_budget.guarantees import SymmetricPair
from ldp_budget.sampling import ONE
from ldp_budget.testing import MechanismContract
from ldp_budget_verify.exact.dominance import check

STANDARD_ERRORS = 4.5


def made(**declared: Any) -> Piecewise:
    return Piecewise.calibrate(**{"epsilon": 1, "lower": -1, "upper": 1, **declared})


class TestContract(MechanismContract):
    mechanism = Piecewise
    targets = (*Piecewise.examples, {"epsilon": "0.1", "lower": -3, "upper": 5})


# -- everything that a coarse grid can send -------------------------------------------------------------------


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> int:
    """Sixteen steps in place of a million, so that every report of every value can be listed."""
    monkeypatch.setattr(piecewise, "POINTS", 16)
    return 16


def law(mechanism: Piecewise, point: int, points: int) -> list[Fraction]:
    """The probability of every cell, from the two draws of the client: in the window or not, then one of so many cells."""
    keep, window = Fraction(mechanism._keep, ONE), mechanism.window
    inside = range(point, point + window)
    return [keep / window if cell in inside else (1 - keep) / points for cell in range(window + points)]


@pytest.mark.parametrize("epsilon", ["0.05", "1", "2.5", "6", "30"])
def test_any_two_values_keep_the_promise_and_the_ends_need_all_of_it(coarse: int, epsilon: str) -> None:
    mechanism = made(epsilon=epsilon)
    laws = [law(mechanism, point, coarse) for point in range(coarse + 1)]
    assert all(sum(masses) == 1 for masses in laws)
    worst, spread = Fraction(0), []
    for one, other in itertools.permutations(laws, 2):
        ratios = [p / q for p, q in zip(one, other, strict=True)]
        assert len({ratio for ratio in ratios if ratio > 1}) == 1  # e^±ε or nothing
        worst = max(worst, *ratios)
        spread.append(sum(p for p, ratio in zip(one, ratios, strict=True) if ratio != 1))
    assert math.exp(float(epsilon)) * (1 - 1e-5) <= worst
    assert Decimal(worst.numerator) / Decimal(worst.denominator) <= Decimal(epsilon).exp()
    assert isinstance(mechanism.guarantee, SymmetricPair)
    assert float(mechanism.guarantee.tau) == pytest.approx(float(max(spread)), rel=1e-12)
    # The pair compared is that of the ends, and it is the one enumerated.
    masses = mechanism.compare(-1.0, 1.0).masses()
    assert masses[0][0] == sum(p for p, q in zip(laws[0], laws[-1], strict=True) if p > q)


@pytest.mark.parametrize("epsilon", ["0.05", "1", "6"])
def test_every_point_is_its_mean_report_and_the_variance_is_the_stated_one(coarse: int, epsilon: str) -> None:
    mechanism = made(epsilon=epsilon, lower=-3, upper=5)
    origin, step = mechanism._stretched
    for point in range(coarse + 1):
        reports = [(mass, origin + cell * step) for cell, mass in enumerate(law(mechanism, point, coarse))]
        value = Fraction(-3) + Fraction(8 * point, coarse)
        assert sum(mass * report for mass, report in reports) == value
        variance = sum(mass * (report - value) ** 2 for mass, report in reports)
        assert mechanism.error_at(float(value)) == (0.0, pytest.approx(float(variance), rel=1e-12))


@pytest.mark.parametrize("epsilon", ["0.05", "1", "6"])
def test_the_client_program_draws_that_law_whatever_is_drawn(coarse: int, epsilon: str) -> None:
    found = verify(made(epsilon=epsilon, lower=-3, upper=5))
    assert (found.verdict, found.program) == ("holds", "holds")


@pytest.mark.parametrize("value", [-1.0, -0.25, 1.0])
def test_the_client_draws_that_law(coarse: int, value: float) -> None:
    mechanism, users = made(epsilon=2), 200_000
    cells = mechanism.cells(mechanism.randomize(np.full(users, value), rng=5))
    expected = [float(mass) for mass in law(mechanism, round((value + 1) * coarse / 2), coarse)]
    counts = np.bincount(cells, minlength=len(expected))
    for count, share in zip(counts.tolist(), expected, strict=True):
        assert abs(count - users * share) <= STANDARD_ERRORS * (users * share * (1 - share)) ** 0.5


# -- the paper's figures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 8.0])
def test_the_figures_are_those_of_the_paper_but_for_the_grid(epsilon: float) -> None:
    mechanism = made(epsilon=epsilon)
    root, bound = math.exp(epsilon / 2), 1 / math.tanh(epsilon / 4)
    for value in (-1.0, 0.0, 0.3, 1.0):
        variance = value**2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
        assert mechanism.error_at(value)[1] == pytest.approx(variance, rel=1e-4)
    assert mechanism.parameters["p"] == pytest.approx(root / (root + 1), rel=1e-4)
    assert mechanism.parameters["window"] == pytest.approx(bound - 1, rel=1e-4)
    assert mechanism.parameters["highest"] == pytest.approx(bound, rel=1e-4)
    assert mechanism.parameters["lowest"] == pytest.approx(-bound, rel=1e-4)
    tau = (math.exp(epsilon) + 1) / (math.exp(epsilon) + root)
    assert float(mechanism._tau) == pytest.approx(tau, rel=1e-5)


def test_it_is_proved_and_no_smaller_promise_would_be() -> None:
    for epsilon in ("0.0001", "0.7", "3", "50"):
        assert verify(made(epsilon=epsilon)).verdict == "holds"
    mechanism = made()
    ends = mechanism.compare(-1.0, 1.0)
    for claim in (SymmetricPair("1", mechanism._tau * Decimal("0.999999")), SymmetricPair("0.999999", 1)):
        assert check(claim, ends).verdict == "violated"


def test_a_pair_is_worth_more_than_its_epsilon() -> None:
    mechanism = made(epsilon="0.5")
    pair = ldp_budget.compose([(mechanism.guarantee, 50)], delta="1e-6", rule="exact").epsilon
    pure = ldp_budget.compose([(SymmetricPair("0.5", 1), 50)], delta="1e-6", rule="exact").epsilon
    assert pair < 0.95 * pure


# -- estimates ------------------------------------------------------------------------------------------------


def test_the_standard_error_is_that_of_the_users_at_hand() -> None:
    """Half of the users at either end, where a report varies most: how far apart they are adds nothing to it."""
    mechanism = made(epsilon=3, lower=0, upper=10)
    values = np.repeat([0.0, 10.0, 5.0], 100)
    rounds = [mechanism.estimate(mechanism.randomize(values, rng=seed)) for seed in range(2000)]
    means = np.array([estimate.mean for estimate in rounds])
    variance = np.mean([mechanism.error_at(value)[1] for value in values]) / len(values)
    assert abs(means.mean() - 5) <= STANDARD_ERRORS * (variance / len(rounds)) ** 0.5
    assert means.var() == pytest.approx(variance, rel=STANDARD_ERRORS * (2 / len(rounds)) ** 0.5)
    assert np.mean([estimate.std_error**2 for estimate in rounds]) == pytest.approx(variance, rel=0.005)


@pytest.mark.parametrize(
    "reports", [[0.0, math.nan], [math.inf], [1e9], [-1e9], [1, 2], [[0.0]]], ids=lambda reports: str(reports)
)
def test_what_no_client_sends_is_refused(reports: Any) -> None:
    with pytest.raises(ldp_budget.NotSupported, match="reports of piecewise"):
        made().aggregate(np.array(reports))


def test_a_loss_beyond_the_grid_is_still_no_more_than_it_says() -> None:
    """From ε = 27 on a window is one cell; the odds of it are still those of ε, or of 2**-64."""
    mechanism = made(epsilon=50)
    assert mechanism.window == 1
    inside, outside = mechanism.drawn
    assert outside > 0
    assert math.log(inside / outside) <= 50
