"""Contributions of single reports: unbiased, and with the estimate of all reports as their sum."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_budget import mechanism
from ldp_budget.errors import NotSupported

CATEGORIES = {
    "grr": {"epsilon": 2, "domain_size": 5},
    "random-substitution": {"epsilon": 3, "domain_size": 5, "draws": 3},
    "subset-selection": {"epsilon": 1, "domain_size": 6},
    "oue": {"epsilon": 2, "domain_size": 11},
    "sue": {"epsilon": 2, "domain_size": 8},
    "unary-encoding": {"p": "0.7", "q": "0.2", "domain_size": 4},
    "randomized-response": {"epsilon": 1},
    "pgr": {"epsilon": 2, "domain_size": 7},
    "cms": {"epsilon": 2, "hashes": 16, "width": 16, "domain_size": 5},
    "hcms": {"epsilon": 2, "hashes": 16, "width": 16, "domain_size": 5},
    "d-bit-flip": {"epsilon": 2, "buckets": 9, "bits": 3},
}
NUMBERS = ("laplace", "staircase", "gaussian", "hybrid", "square-wave")


@pytest.mark.slow
@pytest.mark.parametrize("name", CATEGORIES)
def test_contributions_of_any_oracle_sum_to_its_estimate(name: str) -> None:
    made = mechanism(name).calibrate(**CATEGORIES[name])
    answers = np.arange(600) % made.answers
    reports = made.randomize(answers, rng=1)
    z = made.contributions(reports)
    assert z.shape == (600, made.answers)
    assert np.allclose(z.sum(axis=0), made.estimate(reports).counts)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CATEGORIES, "d-bit-flip packed"])
def test_contributions_of_any_oracle_are_unbiased_for_each_answer(name: str) -> None:
    made = mechanism(name.split()[0]).calibrate(**CATEGORIES[name.split()[0]])
    if name.endswith("packed"):
        made = made.replace(bits=made.buckets)
    if name in ("cms", "hcms"):
        made = made.replace(hashes=1024)  # the seed is public, and the estimate unbiased over many functions
    z = made.contributions(made.randomize(np.full(4000, 1), rng=2))
    gap = z.mean(axis=0) - (np.arange(made.answers) == 1)
    assert np.all(np.abs(gap) < 4.5 * z.std(axis=0) / 4000**0.5 + 0.02 * (name in ("cms", "hcms")))


@pytest.mark.parametrize("name", [name for name in CATEGORIES if name not in ("cms", "hcms")])
def test_contribution_noise_of_any_oracle_is_the_variance_of_its_reports(name: str) -> None:
    made = mechanism(name).calibrate(**CATEGORIES[name])
    at_zero, slope = made.contribution_noise
    z = made.contributions(made.randomize(np.full(20_000, 1), rng=6))
    assert z.var(axis=0) == pytest.approx(at_zero + slope * (np.arange(made.answers) == 1), rel=0.06)


def test_contribution_noise_of_a_matrix_is_an_upper_bound() -> None:
    made = mechanism("matrix-substitution")(matrix=[["0.6", "0.2"], ["0.4", "0.8"]])
    at_zero, slope = made.contribution_noise
    each = [made.contributions(made.randomize(np.full(20_000, answer), rng=7)).var(axis=0) for answer in (0, 1)]
    assert not slope.any()
    assert at_zero == pytest.approx(np.max(each, axis=0), rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("name", NUMBERS)
def test_contribution_noise_of_a_number_is_at_least_the_variance_of_its_reports(name: str) -> None:
    target = {"epsilon": 2, "lower": 10, "upper": 20} | ({"delta": "1e-6"} if name == "gaussian" else {})
    made = mechanism(name).calibrate(**target)
    each = [
        made.contributions(made.randomize(np.full(20_000, value), rng=8)).var() for value in (10.0, 12.5, 15.0, 20.0)
    ]
    assert made.contribution_noise[0][0] == pytest.approx(max(each), rel=0.06)


def test_contributions_of_a_matrix_sum_to_its_estimate() -> None:
    made = mechanism("matrix-substitution")(
        matrix=[["0.6", "0.2", "0.2"], ["0.2", "0.5", "0.3"], ["0.2", "0.3", "0.5"]]
    )
    reports = made.randomize(np.arange(90) % 3, rng=3)
    assert np.allclose(made.contributions(reports).sum(axis=0), made.estimate(reports).counts)


@pytest.mark.parametrize("name", NUMBERS)
def test_contributions_of_a_number_average_to_the_estimated_mean(name: str) -> None:
    target = {"epsilon": 2, "lower": 10, "upper": 20} | ({"delta": "1e-6"} if name == "gaussian" else {})
    made = mechanism(name).calibrate(**target)
    reports = made.randomize(np.linspace(10, 20, 500), rng=4)
    z = made.contributions(reports)
    assert z.shape == (500, 1)
    assert z.mean() == pytest.approx(made.estimate(reports).mean)


def test_contributions_of_one_bit_average_to_the_estimated_mean() -> None:
    made = mechanism("one-bit-mean").calibrate(epsilon=1, maximum=50)
    reports = made.randomize(np.linspace(0, 50, 400), rng=5)
    assert made.contributions(reports).mean() == pytest.approx(made.estimate(reports).mean)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("bounded-laplace", {"epsilon": 1, "lower": 0, "upper": 1}),
        ("rappor", {"epsilon": 1, "epsilon_lifetime": 2, "bits": 16, "hashes": 2, "cohorts": 4}),
        ("heavy-hitters", {"epsilon": 1, "length": 4}),
    ],
)
def test_contributions_without_an_unbiased_report_raise(name: str, target: dict[str, object]) -> None:
    with pytest.raises(NotSupported, match=name):
        mechanism(name).calibrate(**target).contributions(np.zeros(1))


def test_contributions_of_no_reports_are_empty() -> None:
    made = mechanism("grr").calibrate(epsilon=1, domain_size=3)
    assert made.contributions(made.randomize(np.zeros(0, int))).shape == (0, 3)


@pytest.mark.parametrize("name", [each for each in CATEGORIES if each not in ("cms", "hcms")])
def test_least_noise_is_below_the_variance_for_any_answer(name: str) -> None:
    made = mechanism(name).calibrate(**CATEGORIES[name])
    for answer in (0, made.answers - 1):
        z = made.contributions(made.randomize(np.full(4000, answer), rng=6))
        assert np.all(made.least_noise <= 1.3 * z.var(axis=0))
