"""Designs of *tick all that apply*, ranked by their predicted error."""

from __future__ import annotations

import math

import pytest

from ldp_budget.errors import InvalidParameter
from ldp_budget_surveys.margin_planning import Sample, plan_question
from ldp_budget_surveys.planning.ranking import rank_frequency


@pytest.mark.parametrize(
    ("options", "most", "epsilon", "settings"),
    [
        (10, 3, 4, ["at_most=3", "at_most=3, threshold=1", ""]),
        (10, 3, 1, ["at_most=3", ""]),
        (10, 5, 2, ["at_most=5"]),
        (10, "any", 2, [""]),
        (100, 5, 2, ["at_most=5"]),  # 100 options have too many sets of any number
    ],
)
def test_ranking_of_ticks_has_the_best_sets_privset_and_joint_signs(
    options: int, most: int | str, epsilon: int, settings: list[str]
) -> None:
    rows = rank_frequency(epsilon, options, 1000, at_most=most)
    assert sorted(row["setting"] for row in rows) == sorted(settings)
    assert [row["mean_std_error"] for row in rows] == sorted(row["mean_std_error"] for row in rows)
    assert all(row["consistent_error"] is None for row in rows)


def test_plan_of_ticks_has_the_margin_of_the_best_design() -> None:
    plan = plan_question(10, epsilon=2, respondents=3000, sample=Sample(at_most=3))
    ranked = rank_frequency(2, 10, 3000, at_most=3)
    assert plan["mechanism"] == "ticks"
    # The margin is that of the noise and, for a population, of sampling.
    noise = min(row["margin"] for row in ranked)
    assert noise <= plan["margin"] <= math.hypot(noise, 1.96 * math.sqrt(0.25 / 3000))


def test_ranking_of_more_ticks_than_options_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="at_most"):
        rank_frequency(1, 4, 100, at_most=5)
