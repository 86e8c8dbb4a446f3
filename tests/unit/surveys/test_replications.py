"""Coverage, width and level over replications of a survey; the few replications of the plain run have wide bounds."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from ldp_budget import mechanism
from ldp_budget.reports.public_attributes import PublicAttributes
from ldp_budget.sdk.share_laws import AnswerLaw, TableLaw
from ldp_budget_surveys.designs.differences import difference
from ldp_budget_surveys.designs.finite_population import FinitePopulation, Noise
from ldp_budget_surveys.designs.moments import PRODUCTS, SQUARES, Moments, MomentsReader
from ldp_budget_surveys.designs.raking import rake
from ldp_budget_surveys.designs.strata import Design
from ldp_budget_surveys.designs.two_way import TwoWayTable, paired
from ldp_budget_surveys.designs.weighted_means import Survey
from ldp_budget_surveys.designs.weights import equal_weights, table_weights

PEOPLE, ANSWERS, QUESTIONS = 100_000, 8, 3
REGIONS, AGES = ("east", "north", "south", "west"), ("old", "middle", "young")
EACH = 500
"""The respondents of a region."""
EPSILON = 2
"""The ε of a respondent for the whole survey."""


@dataclass(frozen=True)
class Population:
    """The people: their region, their age group, and their answers, (people, questions)."""

    region: np.ndarray
    age: np.ndarray
    answers: np.ndarray

    @functools.cached_property
    def totals(self) -> dict[str, dict[str, float]]:
        return {
            "region": dict(zip(REGIONS, np.bincount(self.region).tolist(), strict=True)),
            "age": dict(zip(AGES, np.bincount(self.age).tolist(), strict=True)),
        }

    def shares(self, question: int, of: Any = slice(None)) -> np.ndarray:
        chosen = self.answers[of, question]
        return np.bincount(chosen, minlength=ANSWERS) / len(chosen)

    def table(self, first: int, second: int) -> np.ndarray:
        both = self.answers[:, first] * ANSWERS + self.answers[:, second]
        return np.bincount(both, minlength=ANSWERS**2) / PEOPLE


def population(seed: int = 1, *, alike: bool = False) -> Population:
    """Return a population. With `alike`, no answer depends on anything: the null hypothesis of the tests."""
    rng = np.random.default_rng(seed)
    region = rng.choice(4, PEOPLE, p=(0.1, 0.2, 0.3, 0.4))
    age = (rng.random(PEOPLE)[:, None] > np.cumsum((0.3, 0.35)) + 0.04 * (region[:, None] - 1.5)).sum(axis=1)
    columns = []
    for question in range(QUESTIONS):
        logits = np.tile(0.25 * np.sin(np.arange(ANSWERS) * (question + 1)), (PEOPLE, 1))
        if not alike:
            logits += 0.15 * (age[:, None] - 1) * np.cos(np.arange(ANSWERS)) + 0.1 * (region[:, None] - 1.5) * np.sin(
                2 * np.arange(ANSWERS)
            )
            logits += 0.3 * np.cos(columns[0][:, None] - np.arange(ANSWERS)) if columns else 0
        columns.append((logits + rng.gumbel(size=logits.shape)).argmax(axis=1))
    return Population(region, age, np.stack(columns, axis=1))


class Sample(NamedTuple):
    """The people in a sample, and their public attributes."""

    people: np.ndarray
    public: PublicAttributes


_CELLS = tuple((region, age) for region in REGIONS for age in AGES)


def draw(people: Population, rng: np.random.Generator) -> Sample:
    """Draw a stratified sample."""
    drawn = np.concatenate([rng.choice(np.flatnonzero(people.region == r), EACH, replace=False) for r in range(4)])
    codes = people.region[drawn] * len(AGES) + people.age[drawn]
    return Sample(drawn, PublicAttributes(("region", "age"), _CELLS, codes))


def survey_of(
    people: Population, contributions: Any, public: PublicAttributes, products: str = SQUARES, law: Any = None
) -> Survey:
    """Return the survey of contributions, with raked weights and the regions as strata."""
    reader = MomentsReader(contributions.shape[1], products)
    reader.add(contributions, public)
    moments: Moments = reader.read()
    base = table_weights(
        moments, [{"region": name, "weight": str(size / EACH)} for name, size in people.totals["region"].items()]
    )
    return Survey(moments, rake(moments, people.totals, base), Design(("region",)), law)


class Coverage(NamedTuple):
    """For each kind of estimate, how often each interval covers, (parameters,)."""

    totals: np.ndarray
    differences: np.ndarray
    cells: np.ndarray
    bound: float
    """The mean width of the totals' intervals over that of the Fisher bound."""
    split: float
    """The mean width of the totals' intervals over that of answering all questions with a third of ε each."""


def fisher_widths(people: Population, sampled: Any) -> np.ndarray:
    """Return the widths of the intervals of the Fisher bound, for each question and answer.

    The bound is that of a survey in which the shares of the answers in each region and age group are free, and the
    number of people in each is known: it is below the bound of raking, which knows the margins alone. A third of the
    respondents answers each question. For random substitution the inverse information is the covariance of a report.
    """
    codes = people.region * len(AGES) + people.age
    sizes = np.bincount(codes)
    widths = []
    for question in range(QUESTIONS):
        variance = np.zeros(ANSWERS)
        for cell, size in enumerate(sizes):
            share = size / (people.region == cell // len(AGES)).sum()
            asked = EACH * share / QUESTIONS
            law = sampled._law
            shares = people.shares(question, codes == cell)
            one = law.at_zero * (1 - shares) + law.at_one * shares + shares * (1 - shares)
            variance += (size / PEOPLE) ** 2 * one / asked
        widths.append(2 * 1.959964 * np.sqrt(variance))
    return np.concatenate(widths)


def coverage(replications: int, seed: int = 2) -> Coverage:
    """Return the coverage of 95 % intervals, and the widths."""
    people, rng = population(), np.random.default_rng(seed)
    sampled = mechanism("grr").calibrate(epsilon=EPSILON, domain_size=ANSWERS)
    third = mechanism("oue").calibrate(epsilon="0.6666666666", domain_size=ANSWERS)
    half = mechanism("grr").calibrate(epsilon=EPSILON / 2, domain_size=ANSWERS)
    truths = np.concatenate([people.shares(question) for question in range(QUESTIONS)])
    old, young = (np.concatenate([people.shares(q, people.age == a) for q in range(QUESTIONS)]) for a in (0, 2))
    cells = people.table(0, 1)
    hits: tuple[list[np.ndarray], ...] = ([], [], [])
    widths: tuple[list[float], ...] = ([], [])
    for number in range(replications):
        sample = draw(people, rng)
        answers = people.answers[sample.people]
        asked = rng.integers(QUESTIONS, size=len(answers))
        found, parts = [], []
        for question in range(QUESTIONS):
            here = np.flatnonzero(asked == question)
            reports = sampled.randomize(answers[here, question], rng=int(rng.integers(2**62)))
            survey = survey_of(
                people,
                sampled.contributions(reports),
                sample.public.take(here),
                law=AnswerLaw(sampled.contribution_law),
            )
            means = survey.means()
            found.append(means.interval())
            groups = [survey.means(survey.where("age", name)) for name in ("old", "young")]
            parts.append(difference(survey, *groups).interval())
            if number % 5:
                continue  # widths vary little, so those of a fifth of the replications are enough
            reports = third.randomize(answers[:, question], rng=int(rng.integers(2**62)))
            low, high = (
                survey_of(people, third.contributions(reports), sample.public, law=AnswerLaw(third.contribution_law))
                .means()
                .interval()
            )
            widths[1].append(float((high - low).mean()))
        low, high = (np.concatenate([ends[side] for ends in found]) for side in (0, 1))
        hits[0].append((low <= truths) & (truths <= high))
        widths[0].append(float((high - low).mean()))
        low, high = (np.concatenate([ends[side] for ends in parts]) for side in (0, 1))
        hits[1].append((low <= old - young) & (old - young <= high))
        z = [half.contributions(half.randomize(answers[:, q], rng=int(rng.integers(2**62)))) for q in (0, 1)]
        law = TableLaw(*(AnswerLaw(half.contribution_law),) * 2)
        low, high = survey_of(people, paired(*z), sample.public, law=law).means().interval()
        hits[2].append((low[2 * ANSWERS :] <= cells) & (cells <= high[2 * ANSWERS :]))
    width = float(np.mean(widths[0]))
    return Coverage(
        *(np.mean(each, axis=0) for each in hits),
        width / float(fisher_widths(people, sampled).mean()),
        width / float(np.mean(widths[1])),
    )


def finite_coverage(replications: int, seed: int = 4) -> tuple[float, float]:
    """Return the coverage of 95 % intervals where half of each region is asked: with the correction, and without it.

    A population of 2,000 in two regions of 400 and 1,600, of which 200 and 800 are asked, and 4 answers.
    """
    rng = np.random.default_rng(seed)
    region = np.repeat([0, 1], (400, 1600))
    answers = np.where(region == 0, rng.choice(4, 2000, p=(0.4, 0.3, 0.2, 0.1)), rng.choice(4, 2000))
    truths = np.bincount(answers, minlength=4) / 2000
    made = mechanism("grr").calibrate(epsilon=3, domain_size=4)
    hits = np.zeros((2, replications, 4), bool)
    for number in range(replications):
        people = np.concatenate(
            [rng.choice(np.flatnonzero(region == r), n, replace=False) for r, n in ((0, 200), (1, 800))]
        )
        reader = MomentsReader(4)
        reports = made.randomize(answers[people], rng=int(rng.integers(2**62)))
        reader.add(made.contributions(reports), PublicAttributes(("region",), (("a",), ("b",)), region[people]))
        moments = reader.read()
        for place, population in enumerate((FinitePopulation(2000, Noise(*made.contribution_noise)), None)):
            law = AnswerLaw(made.contribution_law)
            survey = Survey(moments, equal_weights(moments), Design(("region",)), law, population)
            low, high = survey.means().interval()
            hits[place, number] = (low <= truths) & (truths <= high)
    corrected, plain = hits.mean(axis=(1, 2))
    return float(corrected), float(plain)


def levels(replications: int, seed: int = 3, *, epsilon: float = 1, clusters: bool = False) -> tuple[float, float]:
    """Return how often the test of independence and a test of a difference reject at 5 %, under the null."""
    people, rng = population(alike=True), np.random.default_rng(seed)
    half = mechanism("grr").calibrate(epsilon=epsilon, domain_size=ANSWERS)
    rejected = np.zeros((replications, 2), bool)
    for number in range(replications):
        sample = draw(people, rng)
        answers = people.answers[sample.people]
        z = [half.contributions(half.randomize(answers[:, q], rng=int(rng.integers(2**62)))) for q in (0, 1)]
        survey = survey_of(people, paired(*z), sample.public, PRODUCTS)
        groups = [survey.means(survey.where("age", name)) for name in ("old", "young")]
        rejected[number] = (
            TwoWayTable(survey, ANSWERS).independence().p_value < 0.05,
            difference(survey, *groups).p_values[0] < 0.05,
        )
    independence, differences = rejected.mean(axis=0)
    return float(independence), float(differences)


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]] or [1000, 2000]
    result = coverage(given[0])
    for kind in ("totals", "differences", "cells"):
        rates = 100 * getattr(result, kind)
        print(f"{kind}: {rates.mean():.2f} % (least {rates.min():.1f}, most {rates.max():.1f}, of {len(rates)})")
    print(f"width: {result.bound:.3f} of the Fisher bound, {result.split:.3f} of splitting ε")
    print("coverage where half of the population is asked, corrected and not:", *finite_coverage(given[-1]))
    print("level of the tests of independence and of a difference:", *levels(given[-1]))


pytestmark = pytest.mark.slow


def _rates(found: Coverage) -> list[float]:
    return [float(each.mean()) for each in (found.totals, found.differences, found.cells)]


def test_intervals_of_a_few_replications_cover_and_are_near_the_fisher_bound() -> None:
    found = coverage(30)
    assert all(0.91 <= rate <= 0.99 for rate in _rates(found))
    assert found.bound <= 1.10
    assert found.split <= 0.55  # intervals are cut to 0 to 1, which makes those of the worse survey narrower


def test_tests_of_a_few_replications_reject_seldom_under_the_null() -> None:
    assert max(levels(40)) <= 0.2


@pytest.mark.exhaustive
def test_intervals_of_a_thousand_replications_cover_94_to_97_percent() -> None:
    found = coverage(1000)
    assert all(0.94 <= rate <= 0.975 for rate in _rates(found))
    assert min(float(each.min()) for each in found[:3]) >= 0.92
    assert found.bound <= 1.10
    assert found.split <= 0.55  # intervals are cut to 0 to 1, which makes those of the worse survey narrower


@pytest.mark.exhaustive
def test_corrected_intervals_of_two_thousand_replications_cover_94_to_97_percent_at_half_of_a_population() -> None:
    corrected, plain = finite_coverage(2000)
    assert 0.94 <= corrected <= 0.975
    assert plain > 0.97


@pytest.mark.exhaustive
def test_tests_of_two_thousand_replications_reject_4_to_6_percent_under_the_null() -> None:
    assert all(0.04 <= level <= 0.06 for level in levels(2000))
