"""Plans of one question: of people, ε and margin, two give the third."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from ldp_budget import InvalidParameter, mechanism
from ldp_budget_surveys.margin_planning import Sample, candidates, plan_question


def test_margin_of_people_and_epsilon_is_that_of_the_best_mechanism() -> None:
    plan = plan_question(6, epsilon=1, respondents=3000)
    grr, best = (mechanism(name).calibrate(epsilon=1, domain_size=6) for name in ("grr", plan["mechanism"]))
    # A simple random sample of a large population: sampling and noise at the worst share.
    shares = np.linspace(0, 1, 1001)
    for each, expected in ((grr, None), (best, plan["margin"])):
        at_zero, at_one = (each.utility()[name] for name in ("variance_per_user", "variance_per_unit_frequency"))
        margin = 1.959963984540054 * np.sqrt(np.max(at_zero + shares * at_one + shares * (1 - shares)) / 3000)
        assert margin >= plan["margin"] * (1 - 1e-6)
        assert expected is None or margin == pytest.approx(expected, rel=1e-5)
    assert plan["runner_up"]["margin"] > plan["margin"]


@pytest.mark.slow
@pytest.mark.parametrize("answers", [2, 6, 100])
@pytest.mark.parametrize("margin", [0.02, 0.1])
@pytest.mark.parametrize("sample", [Sample(), Sample(1.36, 40_000, 4)])
def test_number_that_is_looked_for_keeps_the_margin_when_it_is_typed(
    answers: int, margin: float, sample: Sample
) -> None:
    people = plan_question(answers, epsilon="1.5", margin=margin, sample=sample)
    epsilon = plan_question(answers, respondents=20_000, margin=margin, sample=sample)
    for found in (people, epsilon):
        assert found["margin"] <= margin
        again = plan_question(answers, epsilon=str(found["epsilon"]), respondents=found["respondents"], sample=sample)
        assert again["margin"] == found["margin"]
    one_less = plan_question(answers, epsilon="1.5", respondents=people["respondents"] - 1, sample=sample)
    assert one_less["margin"] > margin


def test_population_shrinks_the_sampling_error_and_not_the_noise() -> None:
    noise = plan_question(6, epsilon=1, respondents=3000, sample=Sample(population=3000))["margin"]
    among_many = plan_question(6, epsilon=1, respondents=3000)["margin"]
    half = plan_question(6, epsilon=1, respondents=3000, sample=Sample(population=6000))["margin"]
    assert 0 < noise < half < among_many


def test_design_effect_multiplies_the_variance() -> None:
    plain, weighted = (plan_question(6, epsilon=1, respondents=3000, sample=Sample(d))["margin"] for d in (1, 1.44))
    assert weighted == pytest.approx(1.2 * plain)


def test_group_margin_is_that_of_its_part_of_the_people() -> None:
    plan = plan_question(6, epsilon=1, respondents=3000, sample=Sample(population=9000, groups=4))
    part = plan_question(6, epsilon=1, respondents=750, sample=Sample(population=2250))
    assert plan["group_margin"] == part["margin"]


def test_margin_below_the_sampling_error_has_no_epsilon() -> None:
    plan = plan_question(6, respondents=300, margin=0.04)
    assert plan["epsilon"] is None
    assert plan["mechanism"] is None
    assert plan_question(6, epsilon=1, margin=0.001, sample=Sample(population=500))["respondents"] is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"margin": 0.1}, "margin must be given with two of"),
        ({"epsilon": None}, "margin is missing: it must be given with two of"),
        ({"epsilon": "0"}, "epsilon must be from 0.0001 to 20"),
        ({"epsilon": "nan"}, "epsilon must be"),
        ({"respondents": 0}, "respondents must be a whole number"),
        ({"answers": 1}, "domain_size must be"),
        ({"sample": Sample(population=100)}, "population must be at least the 3000 respondents: got 100"),
    ],
)
def test_plan_of_bad_arguments_says_which(changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"answers": 6, "epsilon": 1, "respondents": 3000, **changes}
    with pytest.raises(InvalidParameter, match=message):
        plan_question(arguments.pop("answers"), **arguments)


@pytest.mark.parametrize("wrong", [{"design_effect": 0.9}, {"design_effect": float("nan")}, {"groups": 0}])
def test_sample_of_bad_arguments_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        Sample(**wrong)


# -- against simulated surveys ---------------------------------------------------------------------------------------


def realised(share: float, people: int, epsilon: str, sample: Sample, cv: float, rng: np.random.Generator) -> float:
    """The error that 95 of 100 of 1,000 surveys stay below: people are drawn, randomized and estimated.

    With groups, each person belongs to one of them by chance, and the error is that of the share in the first group.
    """
    name = candidates(Decimal(epsilon), 4, people, sample)[0].mechanism
    built: Any = mechanism(name).calibrate(epsilon=epsilon, domain_size=4)
    population = sample.population or 50 * people
    held = np.zeros(population, np.int64) + 1
    held[: round(share * population)] = 0
    errors = []
    for _ in range(1000):
        chosen = (
            held[rng.permutation(population)[:people]]
            if sample.population
            else np.where(rng.random(people) < share, 0, 1)
        )
        added = built.contributions(built.randomize(chosen, rng=int(rng.integers(2**31))))[:, 0]
        weights = np.ones(people) if not cv else rng.gamma(1 / cv**2, cv**2, people)
        weights = weights * (rng.integers(0, sample.groups, people) == 0)
        errors.append(weights @ added / weights.sum() - share)
    return float(np.quantile(np.abs(errors), 0.95))


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("people", "sample", "cv"),
    [
        (300, Sample(), 0.0),
        (300, Sample(1.36), 0.6),
        (300, Sample(population=600), 0.0),
        (300, Sample(population=300), 0.0),
        (1200, Sample(groups=4), 0.0),
        (1200, Sample(1.36, groups=4), 0.6),
    ],
    ids=["simple", "weighted", "half of the population", "census", "by group", "weighted by group"],
)
def test_planned_margin_is_that_of_simulated_surveys(people: int, sample: Sample, cv: float) -> None:
    plan = plan_question(4, epsilon="2", respondents=people, sample=sample)
    rng = np.random.default_rng(43)
    worst = max(realised(share, people, "2", sample, cv, rng) for share in (0.3, 0.5, 0.7, 0.9))
    assert worst == pytest.approx(plan["group_margin" if sample.groups > 1 else "margin"], rel=0.05)
