"""Design variance of means, computed by hand: strata, clusters, ratios and groups."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import stdtrit

from ldp_budget import mechanism
from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.sdk.share_laws import AnswerLaw, Cumulants
from ldp_budget_surveys.designs.differences import difference, groups
from ldp_budget_surveys.designs.finite_population import FinitePopulation, Noise
from ldp_budget_surveys.designs.moments import EXCLUSIVE, PRODUCTS, MomentsReader, moments_of
from ldp_budget_surveys.designs.strata import Design
from ldp_budget_surveys.designs.weighted_means import Survey
from ldp_budget_surveys.designs.weights import column_weights, equal_weights, table_weights

Z = np.array([[1.0], [3.0], [8.0], [2.0], [6.0], [4.0]])
STRATUM = ["a", "a", "a", "b", "b", "b"]


def test_means_of_a_simple_sample_have_the_usual_standard_error() -> None:
    moments = moments_of(Z)
    found = Survey(moments, equal_weights(moments)).means()
    assert found.values[0] == pytest.approx(4)
    assert found.std_errors[0] == pytest.approx(Z.std(ddof=1) / 6**0.5)
    assert found.freedom == 5
    assert found.design_effect == pytest.approx(1)


def test_means_of_strata_have_the_textbook_variance() -> None:
    # Cochran 1977, (5.3): Σ W² s²/n, with W = ⅔ and ⅓ from weights of 20 and 10.
    moments = moments_of(Z, {"region": STRATUM})
    weights = table_weights(moments, [{"region": "a", "weight": "20"}, {"region": "b", "weight": "10"}])
    found = Survey(moments, weights, Design(("region",))).means()
    assert found.values[0] == pytest.approx(2 / 3 * 4 + 1 / 3 * 4)
    assert found.std_errors[0] ** 2 == pytest.approx(4 / 9 * 13 / 3 + 1 / 9 * 4 / 3)
    assert found.freedom == 4
    assert weights.kish(moments) == pytest.approx(6 * (3 * 400 + 3 * 100) / 90**2)


def test_means_of_clusters_have_the_variance_of_their_totals() -> None:
    # Three clusters of two people: means 2, 5 and 5 around 4, so the variance is that of three numbers.
    moments = moments_of(Z, {"school": ["x", "x", "y", "y", "z", "z"]})
    found = Survey(moments, equal_weights(moments), Design(clusters="school")).means()
    assert found.std_errors[0] == pytest.approx(np.std([2, 5, 5], ddof=1) / 3**0.5)
    assert found.freedom == 2


def test_means_of_unequal_clusters_have_the_variance_of_the_jackknife() -> None:
    moments = moments_of(Z, {"school": ["x", "x", "x", "y", "y", "z"]})
    found = Survey(moments, equal_weights(moments), Design(clusters="school")).means()
    without = np.array([Z[3:].mean(), Z[[0, 1, 2, 5]].mean(), Z[:5].mean()])
    influences = (
        (without - Z.mean()) * 2 / 3
    )  # each is (C - 1)/C times the change of the estimate without the cluster
    assert found.std_errors[0] == pytest.approx((3 / 2 * ((influences - influences.mean()) ** 2).sum()) ** 0.5)


def test_freedom_of_unequal_clusters_is_that_of_their_effective_number() -> None:
    moments = moments_of(np.zeros((12, 1)), {"school": list("xxxxyyyyzzww")})
    survey = Survey(moments, equal_weights(moments), Design(clusters="school"))
    influence = survey.influence(np.zeros(1), np.ones(4, bool), 12.0)
    alone, together = survey.design.freedom(moments, influence, np.array([1.0, 1e9]))
    assert alone == pytest.approx(
        12**2 / (4**2 * 2 + 2**2 * 2) - 1
    )  # people drawn one by one: a part for each person
    squares = 4**2 * 2 + 2**2 * 2  # people of a cluster who all agree: its variance grows with the square of its size
    assert together == pytest.approx(squares**2 / (4**4 * 2 + 2**4 * 2) - 1)


def test_covariance_has_the_variances_on_its_diagonal() -> None:
    rng = np.random.default_rng(1)
    z, region = rng.normal(size=(50, 3)), [str(x) for x in rng.integers(3, size=50)]
    for design in (Design(("region",)), Design(clusters="region")):
        moments = moments_of(z, {"region": region}, PRODUCTS)
        survey = Survey(moments, equal_weights(moments), design)
        influence = survey.means().influence
        covariance = design.covariance(moments, influence)
        assert np.allclose(np.diagonal(covariance), design.variance(moments, influence))


def test_covariance_of_a_simple_sample_is_that_of_numpy() -> None:
    z = np.random.default_rng(2).normal(size=(40, 3))
    moments = moments_of(z, products=PRODUCTS)
    influence = Survey(moments, equal_weights(moments)).means().influence
    assert np.allclose(Design().covariance(moments, influence), np.cov(z.T) / 40)


def test_covariance_of_exclusive_answers_needs_no_products() -> None:
    z = np.eye(3)[np.random.default_rng(5).integers(3, size=60)]
    region = {"region": [str(x % 4) for x in range(60)]}
    found = []
    for kept in (EXCLUSIVE, PRODUCTS):
        moments = moments_of(z, region, kept)
        influence = Survey(moments, equal_weights(moments)).means().influence
        found.append(Design(("region",)).covariance(moments, influence))
    assert np.allclose(*found)


def test_covariance_without_products_is_refused() -> None:
    moments = moments_of(Z)
    with pytest.raises(NotSupported, match="products"):
        Design().covariance(moments, Survey(moments, equal_weights(moments)).means().influence)


def test_difference_of_groups_in_one_sample_has_welchs_standard_error_in_a_large_sample() -> None:
    rng = np.random.default_rng(3)
    z, sex = rng.normal(size=(4000, 1)), ["f", "m"] * 2000
    moments = moments_of(z, {"sex": sex})
    survey = Survey(moments, equal_weights(moments))
    found = groups(survey, "sex")
    gap = difference(survey, found["f"], found["m"])
    women, men = z[::2, 0], z[1::2, 0]
    assert gap.values[0] == pytest.approx(women.mean() - men.mean())
    assert gap.std_errors[0] == pytest.approx((women.var() / 2000 + men.var() / 2000) ** 0.5, rel=1e-3)
    t = gap.values[0] / gap.std_errors[0]
    assert gap.interval()[0][0] == pytest.approx(
        gap.values[0] - stdtrit(gap.freedom, 0.975) * gap.std_errors[0], rel=2e-3
    )
    assert (gap.p_values[0] < 0.05) == (abs(t) > stdtrit(gap.freedom, 0.975))


def test_difference_of_groups_in_shared_clusters_is_paired() -> None:
    # Each couple differs by 1 exactly, so the difference has no variance, though the groups vary.
    z = np.array([[1.0], [2.0], [5.0], [6.0], [9.0], [10.0]])
    moments = moments_of(z, {"sex": ["f", "m"] * 3, "couple": ["a", "a", "b", "b", "c", "c"]})
    survey = Survey(moments, equal_weights(moments), Design(clusters="couple"))
    found = groups(survey, "sex")
    gap = difference(survey, found["m"], found["f"])
    assert gap.values[0] == pytest.approx(1)
    assert gap.std_errors[0] == pytest.approx(0, abs=1e-7)
    assert found["f"].std_errors[0] > 1


@pytest.mark.parametrize("design", [Design(("region",)), Design(("region",), "school")])
def test_variance_of_a_lonely_stratum_names_it(design: Design) -> None:
    moments = moments_of(Z[:3], {"region": ["a", "a", "b"], "school": ["x", "y", "x"]})
    with pytest.raises(InvalidParameter, match=r"1 (respondent|cluster) in b"):
        Survey(moments, equal_weights(moments), design).means()


def test_means_of_reports_that_agree_keep_the_noise_of_the_mechanism() -> None:
    grr = mechanism("grr").calibrate(epsilon=3, domain_size=3)
    moments = moments_of(grr.contributions(np.zeros(5, np.uint8)))
    plain = Survey(moments, equal_weights(moments)).means()
    assert plain.std_errors.max() < 1e-6
    law = grr.contribution_law
    kept = Survey(moments, equal_weights(moments), law=AnswerLaw(law)).means()
    assert np.allclose(kept.std_errors**2, np.maximum(grr.least_noise / 5, 2 / 25 * (1 + law.held)))


@pytest.mark.parametrize("column", ["weight", "school", "region", None])
@pytest.mark.parametrize("supported", [0, 1, 12])
def test_interval_of_a_share_has_width_within_its_range_for_every_design(column: str | None, supported: int) -> None:
    """Reports that all agree, or all but one, say little of a share, however the sample was drawn."""
    made = mechanism("oue").calibrate(epsilon=8, domain_size=2)
    p, q = map(float, made.support_probabilities[0])
    z = ((np.arange(12) < supported)[:, None] - q) / (p - q)
    moments = moments_of(z, {"weight": ["1", "20", "1"] * 4, "school": list("abcd") * 3, "region": list("xy") * 6})
    weights = column_weights(moments, "weight") if column == "weight" else equal_weights(moments)
    design = Design((column,) if column == "region" else (), column if column == "school" else None)
    law = AnswerLaw(Cumulants(*(part[:1] for part in made.contribution_law)))
    (low,), (high,) = Survey(moments, weights, design, law).means().interval()
    assert 0 <= low < high <= 1
    assert high - low > 1 / 12  # not narrower than one report can justify


def test_moments_of_blocks_are_those_of_all_reports() -> None:
    from ldp_budget.reports.public_attributes import PublicAttributes

    z = np.random.default_rng(4).normal(size=(30, 2))
    rows = [(str(x % 3),) for x in range(30)]
    reader = MomentsReader(2, PRODUCTS)
    for part in (slice(0, 11), slice(11, 30)):
        reader.add(z[part], PublicAttributes.of(("g",), rows[part]))
    both, whole = reader.read(), moments_of(z, {"g": [row[0] for row in rows]}, PRODUCTS)
    assert both.cells == whole.cells
    for name in ("counts", "sums", "products"):
        assert np.allclose(getattr(both, name), getattr(whole, name))


def test_moments_of_too_many_combinations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldp_budget_surveys.designs.moments.MOST_NUMBERS", 20)
    with pytest.raises(NotSupported, match="combinations of public attributes"):
        moments_of(np.ones((9, 2)), {"g": [str(x) for x in range(9)]})


@pytest.mark.parametrize("text", ["-1", "inf", "many", ""])
def test_column_weights_that_are_no_positive_numbers_are_refused(text: str) -> None:
    moments = moments_of(Z, {"w": ["1", "2", text, "1", "2", "3"]})
    with pytest.raises(InvalidParameter, match="numbers from 1e-30 to 1e"):
        column_weights(moments, "w")


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([{"region": "a", "weight": "1"}], "none for b"),
        ([{"region": "a", "weight": "1"}] * 2, "a twice"),
        ([{"weight": "1"}], "columns for public attributes"),
        ([], "columns for public attributes"),
        ([{"town": "a", "weight": "1"}], "public column"),
    ],
)
def test_table_weights_of_a_wrong_table_names_the_combination(rows: list[dict[str, str]], named: str) -> None:
    with pytest.raises(InvalidParameter, match=named):
        table_weights(moments_of(Z, {"region": STRATUM}), rows)


def test_groups_of_too_many_values_are_refused() -> None:
    moments = moments_of(np.ones((42, 1)), {"g": [str(x // 2) for x in range(42)]})
    with pytest.raises(InvalidParameter, match="at most 20 groups"):
        groups(Survey(moments, equal_weights(moments)), "g")


@pytest.mark.parametrize("people", [None, 40])
def test_means_of_few_respondents_who_agree_keep_the_chance_of_the_sample(people: int | None) -> None:
    """At a large ε the noise is small, and 20 equal answers of a sample do not mean that all people agree."""
    made = mechanism("grr").calibrate(epsilon=8, domain_size=2)
    moments = moments_of(made.contributions(np.zeros(20, np.int64)))
    population = None if people is None else FinitePopulation(people, Noise(*made.contribution_noise))
    survey = Survey(moments, equal_weights(moments), Design(), AnswerLaw(made.contribution_law), population)
    low, high = survey.means().interval()
    # Of 20 people, none holds an answer that a share of 1 - 0.05^(1/20) = 0.139 of the population holds, 5 times of 100.
    assert high[1] == pytest.approx(1 - 0.025 ** (1 / 20) if people is None else 0.13, abs=0.03)
    assert low[0] == pytest.approx(1 - high[1])


@pytest.mark.slow
def test_intervals_of_small_samples_cover_a_rare_answer_at_a_large_epsilon() -> None:
    made, rng = mechanism("grr").calibrate(epsilon=6, domain_size=2), np.random.default_rng(1)
    truth, hits = np.array([0.95, 0.05]), []
    for _ in range(400):
        answers = rng.choice(2, 20, p=truth)
        moments = moments_of(made.contributions(made.randomize(answers, rng=int(rng.integers(2**62)))))
        low, high = Survey(moments, equal_weights(moments), law=AnswerLaw(made.contribution_law)).means().interval()
        hits.append((low <= truth) & (truth <= high))
    assert np.mean(hits) >= 0.94
