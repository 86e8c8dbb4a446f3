"""Rounds in which the same people answer: another round is no other sample."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_budget import mechanism
from ldp_budget.sdk.share_laws import AnswerLaw
from ldp_budget_surveys.designs.differences import difference, groups
from ldp_budget_surveys.designs.moments import moments_of
from ldp_budget_surveys.designs.strata import Design
from ldp_budget_surveys.designs.weighted_means import MeansEstimate, Survey
from ldp_budget_surveys.designs.weights import equal_weights

ROUNDS = 4


def pooled(rounds: str | None, design: Design, *, law: bool = True, seed: int = 1) -> MeansEstimate:
    made, rng = mechanism("grr").calibrate(epsilon=3, domain_size=4), np.random.default_rng(seed)
    answers = (rng.random(200) < 0.3).astype(np.uint8)
    z = np.concatenate(
        [made.contributions(made.randomize(answers, rng=seed * 10 + place)) for place in range(ROUNDS)]
    )
    public = {"round": np.repeat(list("abcd"), 200), "school": [str(place % 20) for place in range(200)] * ROUNDS}
    moments = moments_of(z, {name: list(map(str, column)) for name, column in public.items()})
    stated = AnswerLaw(made.contribution_law) if law else None
    return Survey(moments, equal_weights(moments), design, stated, rounds=rounds).means()


@pytest.mark.parametrize("law", [True, False])
def test_errors_of_rounds_of_the_same_people_add_up(law: bool) -> None:
    apart, same = (pooled(rounds, Design(("round",)), law=law) for rounds in (None, "round"))
    assert same.std_errors == pytest.approx(2 * apart.std_errors, rel=0.05)  # four rounds: √4 times as large
    widths = [np.subtract(*each.interval()[::-1]) for each in (apart, same)]
    assert widths[1] == pytest.approx(2 * widths[0], rel=0.2)


def test_errors_of_rounds_of_unequal_sizes_are_the_weighted_sum_of_their_own() -> None:
    z = np.random.default_rng(2).normal(size=(600, 1))
    moments = moments_of(z, {"round": ["a"] * 500 + ["b"] * 100})
    survey = Survey(moments, equal_weights(moments), Design(("round",)), rounds="round")
    own = [each.std_errors[0] for each in groups(survey, "round").values()]
    assert survey.means().std_errors[0] == pytest.approx((5 * own[0] + own[1]) / 6, rel=1e-3)


def test_groups_of_one_round_keep_their_own_error() -> None:
    z = np.random.default_rng(3).normal(size=(90, 1))
    moments = moments_of(z, {"round": list("abc") * 30})
    same, apart = (
        Survey(moments, equal_weights(moments), Design(("round",)), rounds=rounds) for rounds in ("round", None)
    )
    for name, each in groups(same, "round").items():
        assert each.std_errors == pytest.approx(groups(apart, "round")[name].std_errors)


@pytest.mark.slow
def test_interval_over_rounds_of_the_same_people_covers() -> None:
    hits = [
        low[1] <= 0.3 <= high[1]
        for seed in range(1, 201)
        for low, high in (pooled("round", Design(("round",)), seed=seed).interval(),)
    ]
    assert np.mean(hits) > 0.91


def test_difference_of_groups_is_within_its_range() -> None:
    made = mechanism("grr").calibrate(epsilon=6, domain_size=2)
    z = made.contributions(np.repeat([0, 1], 6).astype(np.uint8))
    moments = moments_of(z, {"g": list("a" * 6 + "b" * 6)})
    survey = Survey(moments, equal_weights(moments), law=AnswerLaw(made.contribution_law))
    found = groups(survey, "g")
    low, high = difference(survey, found["a"], found["b"]).interval()
    assert (low >= -1).all()
    assert (high <= 1).all()
    assert (high - low > 0.3).all()
    assert low[0] > 0
