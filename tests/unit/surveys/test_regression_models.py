"""The models of `regress`: reference figures, other solvers, and the laws of their intervals."""

from __future__ import annotations

from math import exp, inf
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from ldp_budget import mechanism
from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget_surveys.regression.channels import report_likelihood
from ldp_budget_surveys.regression.hidden_covariate import hidden_covariate
from ldp_budget_surveys.regression.likelihood import MultinomialModel
from ldp_budget_surveys.regression.linear import by_normal_errors, linear
from ldp_budget_surveys.regression.sample import Sample


def _chances(epsilon: float, answers: int) -> tuple[float, float]:
    e = exp(epsilon)
    return e / (e + answers - 1), 1 / (e + answers - 1)


def _reports(y: Any, epsilon: float, answers: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return the likelihood and the contributions of reports by grr."""
    p, q = _chances(epsilon, answers)
    report = np.where(rng.random(len(y)) < p, y, (y + rng.integers(1, answers, len(y))) % answers)
    held = report[:, None] == np.arange(answers)
    return np.where(held, p, q), (held - q) / (p - q)


def test_multinomial_model_equals_another_maximizer() -> None:
    rng = np.random.default_rng(4)
    x = np.column_stack((np.ones(600), rng.normal(size=600)))
    likelihood, _ = _reports(rng.integers(0, 3, 600), 2, 3, rng)
    weights = 1 + rng.random(600)

    def loss(beta: Any) -> float:
        eta = np.column_stack((np.zeros(600), x @ beta.reshape(2, 2).T))
        shares = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
        return -float(weights @ np.log((likelihood * shares).sum(axis=1)))

    best = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).x
    found = MultinomialModel(likelihood, x, Sample.of(np.ones(600), weights), "abcd").coefficients(0.95)
    assert [each.estimate for each in found] == pytest.approx(best, abs=1e-5)


def test_models_of_counted_rows_equal_those_of_a_row_for_each_respondent() -> None:
    rng = np.random.default_rng(5)
    counts, x = rng.integers(2, 9, 12), np.column_stack((np.ones(12), np.arange(12) % 5))
    likelihood, z = _reports(rng.integers(0, 2, 12), 2, 2, rng)
    strata, each = np.arange(12) % 2, np.repeat(np.arange(12), counts)
    short, long = Sample.of(counts, strata=strata), Sample.of(np.ones(len(each)), strata=strata[each])
    one, other = linear(x, z[:, 1], short, "ab"), linear(x[each], z[each, 1], long, "ab")
    assert one.covariance == pytest.approx(other.covariance, rel=1e-10)
    rows = zip(
        MultinomialModel(likelihood, x, short, "ab").coefficients(0.9),
        MultinomialModel(likelihood[each], x[each], long, "ab").coefficients(0.9),
        strict=True,
    )
    for first, second in rows:
        assert first[1:] == pytest.approx(second[1:], rel=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-6])
def test_logistic_coefficients_follow_the_unit_of_a_term(scale: float) -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(size=400) + 5
    likelihood, _ = _reports((rng.random(400) < expit(x - 5)).astype(int), 3, 2, rng)
    sample = Sample.of(np.ones(400))
    one, other = (
        MultinomialModel(likelihood, np.column_stack((np.ones(400), x * unit)), sample, "ab").coefficients(0.95)
        for unit in (1.0, scale)
    )
    assert other[1].estimate * scale == pytest.approx(one[1].estimate, rel=1e-8)
    assert (other[1].low * scale, other[1].high * scale) == pytest.approx((one[1].low, one[1].high), rel=1e-5)
    assert other[0].estimate == pytest.approx(one[0].estimate, rel=1e-8)


def test_score_test_rejects_exactly_the_values_outside_of_its_interval() -> None:
    rng = np.random.default_rng(7)
    x = np.column_stack((np.ones(80), rng.normal(size=80)))
    likelihood, _ = _reports((rng.random(80) < expit(x[:, 1])).astype(int), 4, 2, rng)
    sample = Sample.of(np.ones(80))
    slope = MultinomialModel(likelihood, x, sample, "ab").coefficients(0.95)[1]
    # A constant times the term is an offset of the model with b times that term: the test of b is that of 0.
    ends = MultinomialModel(likelihood, x, sample, "ab").coefficients(1 - slope.p_value)[1]
    assert min(abs(ends.low), abs(ends.high)) == pytest.approx(0, abs=1e-6)
    assert slope.low < slope.estimate < slope.high


def test_separated_answers_give_an_open_interval_and_an_infinite_estimate() -> None:
    x = np.column_stack((np.ones(40), np.arange(40) % 2))
    p, q = _chances(3, 2)
    report = np.where(x[:, 1] == 1, 1, np.arange(40) // 2 % 2)  # all reports of the group 1 say yes
    likelihood = np.where(report[:, None] == np.arange(2), p, q)
    constant, slope = MultinomialModel(likelihood, x, Sample.of(np.ones(40)), "ab").coefficients(0.95)
    assert (slope.estimate, slope.high) == (inf, inf)
    assert -inf < slope.low
    assert -inf < constant.low < constant.high < inf


def test_hidden_covariate_without_noise_is_least_squares() -> None:
    rng = np.random.default_rng(8)
    x = np.column_stack((np.ones(300), rng.normal(size=300)))
    first, second = np.eye(3)[rng.integers(0, 3, 300)], np.eye(2)[rng.integers(0, 2, 300)]
    y = 1 + first @ (0, 0.5, 1) - second[:, 1] + x[:, 1] + rng.normal(size=300)
    sample = Sample.of(np.ones(300), 1 + rng.random(300))
    found, freedom = hidden_covariate(y, [first[:, 1:], second[:, 1:]], x, sample, "abcde", 0.95)
    plain = linear(np.column_stack((first[:, 1:], second[:, 1:], x)), y, sample, "abcde")
    assert [each.estimate for each in found] == pytest.approx(plain.values, rel=1e-9)
    assert [each.std_error for each in found] == pytest.approx(np.sqrt(plain.covariance.diagonal()), rel=1e-9)
    assert freedom == plain.freedom
    rows = zip(found, by_normal_errors(plain, "abcde", 0.95), strict=True)
    assert all(each.low == pytest.approx(other.low, abs=0.03) for each, other in rows)


def test_hidden_covariate_of_noisy_reports_is_not_attenuated_and_its_interval_opens_without_reports() -> None:
    rng = np.random.default_rng(9)
    held = rng.integers(0, 2, 100_000)
    y = 1 + 0.5 * held + rng.normal(size=len(held))
    _, z = _reports(held, 1, 2, rng)
    ones = np.ones((len(y), 1))
    [slope, _], _ = hidden_covariate(y, [z[:, 1:]], ones, Sample.of(np.ones(len(y))), "ab", 0.95)
    assert slope.estimate == pytest.approx(0.5, abs=0.05)
    assert slope.low < slope.estimate < slope.high
    few = slice(20)
    [wide, _], _ = hidden_covariate(y[few], [z[few, 1:]], ones[few], Sample.of(np.ones(20)), "ab", 0.95)
    assert (wide.low, wide.high) == (-inf, inf)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("grr", {"epsilon": 2, "domain_size": 4}),
        ("oue", {"epsilon": 2, "domain_size": 4}),
        ("subset-selection", {"epsilon": 1, "domain_size": 6}),
        ("random-substitution", {"epsilon": 3, "domain_size": 5, "draws": 3}),
        ("hcms", {"epsilon": 2, "hashes": 16, "width": 16, "domain_size": 5}),
    ],
)
def test_likelihood_of_reports_averages_to_one_over_the_reports_of_an_answer(
    name: str, fields: dict[str, int]
) -> None:
    made = mechanism(name).calibrate(**fields)
    likelihood = report_likelihood(made, made.randomize(np.zeros(20_000, int), rng=1))
    ratios = likelihood / likelihood[:, :1]  # E[P(r | y)/P(r | 0)] = 1 for reports of 0
    assert ratios.mean(axis=0) == pytest.approx(np.ones(made.answers), abs=0.06)
    assert ratios.max() <= exp(fields["epsilon"]) * 1.001


def test_sample_of_one_respondent_in_a_stratum_or_of_dependent_terms_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="at least 2 respondents in each stratum"):
        Sample.of(np.ones(5), strata=np.array([0, 0, 0, 0, 1]))
    with pytest.raises(NotSupported, match="a, b depend on each other"):
        linear(np.ones((5, 2)), np.arange(5.0), Sample.of(np.ones(5)), "ab")
    with pytest.raises(NotSupported, match="3 coefficients need more respondents"):
        linear(np.eye(3), np.arange(3.0), Sample.of(np.ones(3)), "abc")


def test_repeated_files_of_the_same_people_multiply_the_variance() -> None:
    x, z = np.column_stack((np.ones(9), np.arange(9.0))), np.arange(9.0) % 4
    once, twice = (linear(x, z, Sample.of(np.ones(9), repeats=each), "ab").covariance for each in (1, 2))
    assert twice == pytest.approx(2 * once)
