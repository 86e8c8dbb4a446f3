"""Two-way tables: cells, the test of independence, and the choice between separate and joint randomization."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import chdtrc

from ldp_budget import mechanism
from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.reports.public_attributes import PublicAttributes
from ldp_budget_surveys.designs.finite_population import FinitePopulation, Noise, paired_noise
from ldp_budget_surveys.designs.moments import PRODUCTS, moments_of
from ldp_budget_surveys.designs.questions import question, questions_of, read_moments, read_table
from ldp_budget_surveys.designs.strata import Design
from ldp_budget_surveys.designs.two_way import LEAST_EXPECTED, MOST_CELLS, TwoWayTable, cell_errors, paired
from ldp_budget_surveys.designs.weighted_means import Survey
from ldp_budget_surveys.designs.weights import equal_weights


def table_of(counts: list[list[int]], design: Design | None = None, copies: int = 1) -> TwoWayTable:
    """Return the table of answers without noise, each respondent of it `copies` times in a cluster of its own."""
    cells = [(r, c) for r, row in enumerate(counts) for c, count in enumerate(row) for _ in range(count)]
    rows, columns = (np.repeat([cell[side] for cell in cells], copies) for side in (0, 1))
    z = paired(np.eye(len(counts))[rows], np.eye(len(counts[0]))[columns])
    public = {"person": [str(place // copies) for place in range(len(rows))]}
    moments = moments_of(z, public, PRODUCTS)
    return TwoWayTable(Survey(moments, equal_weights(moments), design or Design()), len(counts))


def test_two_way_cells_without_noise_are_the_observed_shares() -> None:
    table = table_of([[10, 20], [30, 40]])
    assert table.means().values == pytest.approx([0.3, 0.7, 0.4, 0.6, 0.1, 0.2, 0.3, 0.4])
    assert table.columns == 2


def test_independence_without_noise_agrees_with_pearsons_test() -> None:
    # X² = 0.794 and p = 0.373, computed by hand; and a table with six degrees of freedom.
    assert table_of([[10, 20], [30, 40]]).independence().p_value == pytest.approx(0.373, abs=0.01)
    counts = np.array([[30, 25, 20, 25], [25, 35, 30, 20], [20, 30, 35, 25]])
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    pearson = float(((counts - expected) ** 2 / expected).sum())
    test = table_of(counts.tolist()).independence()
    assert test.p_value == pytest.approx(chdtrc(6, pearson), abs=0.02)
    assert test.freedom[0] == pytest.approx(6, abs=0.2)


def test_independence_of_copied_respondents_in_clusters_is_that_of_one_copy() -> None:
    counts = [[10, 20], [30, 25]]
    plain = table_of(counts).independence()
    copied = table_of(counts, Design(clusters="person"), copies=5).independence()
    assert copied.p_value == pytest.approx(plain.p_value, abs=0.005)
    assert table_of(counts, copies=5).independence().p_value < plain.p_value / 2


def noisy_table(
    name: str, epsilon: int, answers: tuple[np.ndarray, np.ndarray], seed: int, people: int | None = None
) -> TwoWayTable:
    """Return the table of two questions of two answers, randomized; of a part of `people`, if given."""
    made = mechanism(name).calibrate(epsilon=epsilon, domain_size=2)
    one, two = (made.contributions(made.randomize(each, rng=2 * seed + side)) for side, each in enumerate(answers))
    moments = moments_of(paired(one, two), products=PRODUCTS)
    noise = Noise(*made.contribution_noise)
    population = None if people is None else FinitePopulation(people, paired_noise(noise, noise))
    return TwoWayTable(Survey(moments, equal_weights(moments), population=population), 2)


@pytest.mark.parametrize("name", ["oue", "grr"])
def test_independence_is_the_score_test_of_a_simple_sample(name: str) -> None:
    rng = np.random.default_rng(8)
    answers = (np.asarray(rng.random(300) < 0.2, int), np.asarray(rng.random(300) < 0.3, int))
    table = noisy_table(name, 2, answers, 1)
    means, moments = table.means().values, table.survey.moments
    cell = means[4] - means[0] * means[2]
    variances = moments.products[0].diagonal()[[0, 2]] / 300 - means[[0, 2]] ** 2
    assert table.independence().statistic == pytest.approx(300 * cell**2 / variances.prod())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "epsilon", "share"), [("oue", 4, 0.05), ("grr", 3, 0.05), ("grr", 3, 0.5)])
def test_independence_of_independent_rare_answers_keeps_its_level(name: str, epsilon: int, share: float) -> None:
    """A test with the observed variance rejects 40 % of the first: no sample holds a rare pair, so its cell varies little."""
    rng = np.random.default_rng(9)
    rejected = 0
    for seed in range(400):
        answers = (np.asarray(rng.random(200) < share, int), np.asarray(rng.random(200) < share, int))
        rejected += noisy_table(name, epsilon, answers, seed).independence().p_value < 0.05
    assert rejected <= 32, "8 %: 400 true levels of 5 % reject more with a chance of 0.4 %"


@pytest.mark.slow
def test_independence_of_dependent_answers_is_rejected() -> None:
    rng = np.random.default_rng(10)
    rejected = 0
    for seed in range(100):
        first = np.asarray(rng.random(500) < 0.3, int)
        second = np.where(rng.random(500) < 0.5, first, np.asarray(rng.random(500) < 0.3, int))
        rejected += noisy_table("grr", 3, (first, second), seed).independence().p_value < 0.05
    assert rejected >= 90


@pytest.mark.slow
@pytest.mark.parametrize("asked", [200, 400])
def test_independence_in_a_finite_population_keeps_its_level_and_gains_power(asked: int) -> None:
    """Of a population of 400 in which the answers are exactly independent; then of one with a small dependence."""
    rng = np.random.default_rng(11)
    independent = np.array([(row < 6, column < 6) for row in range(20) for column in range(20)], int)
    dependent = independent.copy()
    dependent[:36, 1] = dependent[:36, 0]
    levels, powers, uncorrected = 0, 0, 0
    for seed in range(300):
        picked = rng.permutation(400)[:asked]
        for people, wanted in ((400, True), (400, False)):
            answers = (independent if wanted else dependent)[picked]
            table = noisy_table("grr", 3, (answers[:, 0], answers[:, 1]), seed, people)
            if wanted:
                levels += table.independence().p_value < 0.05
            else:
                powers += table.independence().p_value < 0.05
                uncorrected += (
                    replace(table, survey=replace(table.survey, population=None)).independence().p_value < 0.05
                )
    assert levels <= 27, "9 %: 300 true levels of 5 % reject more with a chance of 0.2 %"
    assert powers > uncorrected


def test_independence_reports_the_least_expected_cell() -> None:
    assert table_of([[10, 20], [30, 40]]).independence().expected == pytest.approx(100 * 0.3 * 0.4)
    assert table_of([[1, 9], [3, 87]]).independence().expected < LEAST_EXPECTED


def test_two_way_cells_of_noisy_reports_are_unbiased() -> None:
    grr = mechanism("grr").calibrate(epsilon=2, domain_size=3)
    rng = np.random.default_rng(1)
    first = rng.integers(3, size=40_000)
    second = (first + (rng.random(40_000) < 0.5)) % 3
    z = paired(*(grr.contributions(grr.randomize(answers, rng=seed)) for seed, answers in ((2, first), (3, second))))
    moments = moments_of(z, products=PRODUCTS)
    found = TwoWayTable(Survey(moments, equal_weights(moments)), 3)
    truth = np.bincount(3 * first + second, minlength=9) / 40_000
    means = found.means()
    assert np.all(np.abs(means.values[6:] - truth) < 4.5 * means.std_errors[6:])
    assert found.independence().p_value < 1e-6


def test_paired_of_different_respondents_or_too_many_cells_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="3 respondents"):
        paired(np.ones((3, 2)), np.ones((4, 2)))
    with pytest.raises(InvalidParameter, match=f"at most {MOST_CELLS} cells"):
        paired(np.ones((3, 21)), np.ones((3, 20)))


def test_independence_of_a_constant_answer_is_refused() -> None:
    with pytest.raises(NotSupported, match="do not vary"):
        table_of([[10, 10], [0, 0]]).independence()


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second", "epsilon"), [(2, 2, 1), (2, 2, 6), (8, 8, 1), (5, 4, 3)])
def test_cell_errors_are_those_of_simulated_tables(first: int, second: int, epsilon: float) -> None:
    n, rng = 20_000, np.random.default_rng(4)
    errors = cell_errors(first, second, epsilon)
    one, two = rng.integers(first, size=n), rng.integers(second, size=n)

    def contributions(answers: np.ndarray, size: int, loss: float) -> np.ndarray:
        from ldp_budget_surveys.planning.ranking import rank_frequency

        name = rank_frequency(loss, size, 1)[0]["mechanism"]
        made = next(each for each in (mechanism(name),)).for_answers(loss, size)
        return np.asarray(made.contributions(made.randomize(answers, rng=5)))

    z = paired(contributions(one, first, epsilon / 2), contributions(two[::-1], second, epsilon / 2)[::-1])
    separate = z[:, first + second :].var(axis=0).mean() ** 0.5
    joint = contributions(one * second + two, first * second, epsilon).var(axis=0).mean() ** 0.5
    assert errors.separate == pytest.approx(separate, rel=0.1)
    assert errors.joint == pytest.approx(joint, rel=0.1)
    assert errors.better == ("separate" if separate < joint else "joint")


class _Mechanism:
    """Two questions in a row of three bytes: the mask, and the report of each question."""

    def __init__(self) -> None:
        grr = mechanism("grr").calibrate(epsilon=20, domain_size=2)
        named = {"mechanism": grr, "categories": ("no", "yes"), "item": None}
        self.views = [SimpleNamespace(name=name, place=place, **named) for place, name in enumerate("ab")]
        self.components = (grr, grr)

    def unpack(self, reports: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        asked = (reports[:, :1] >> np.arange(2)) & 1 == 1
        return asked, [reports[asked[:, place], place + 1] for place in range(2)]


def _survey() -> SimpleNamespace:
    return SimpleNamespace(name="both", mechanism=_Mechanism(), categories=None)


def test_read_table_uses_those_who_answered_both_questions() -> None:
    rows = np.array([[3, 1, 1], [3, 1, 0], [3, 0, 0], [3, 0, 0], [1, 1, 0], [2, 0, 1]], np.uint8)
    survey = _survey()
    first, second = questions_of(survey)
    public = PublicAttributes((), ((),), np.zeros(6, np.int64))
    moments = read_table(survey, first, second, [(rows, public)])
    assert moments.reports == 4
    assert moments.sums[0, 4:] == pytest.approx([2, 0, 1, 1], abs=1e-6)
    assert read_moments(survey, first, [(rows, public)], PRODUCTS).sums[0] == pytest.approx([2, 3], abs=1e-6)


def test_read_table_without_a_respondent_for_both_says_what_to_do() -> None:
    survey = _survey()
    rows = np.array([[1, 1, 0], [2, 0, 1]], np.uint8)
    public = PublicAttributes((), ((),), np.zeros(2, np.int64))
    with pytest.raises(NotSupported, match="no respondent answered both a and b"):
        read_table(survey, *questions_of(survey), [(rows, public)])
    with pytest.raises(NotSupported, match="two different questions"):
        read_table(survey, question(survey, "a"), question(survey, "a"), [(rows, public)])
