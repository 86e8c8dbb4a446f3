"""A collection or survey draws the seed of its public hash functions from the operating system and stores it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import ldp_budget
from ldp_budget import Accountant
from ldp_budget.registry.collections import Collection, collection_of
from ldp_budget.registry.plugins import mechanisms
from ldp_budget_surveys.questionnaires.survey_collection import survey_collection
from ldp_budget_surveys.questionnaires.surveys import Survey

SKETCHES: dict[str, dict[str, Any]] = {
    "cms": {"epsilon": 1, "hashes": 16, "width": 16},
    "hcms": {"epsilon": 1, "hashes": 16, "width": 16},
    "loloha": {"epsilon_lifetime": 2, "epsilon_first": 1, "domain_size": 9, "hashes": 16},
    "heavy-hitters": {"epsilon": 1, "length": 4},
    "rappor": {"bits": 16, "hashes": 1, "cohorts": 2, "epsilon": 1, "epsilon_lifetime": 2},
    "olh": {"epsilon": 1, "domain_size": 9, "functions": 16},
}


def made(name: str, known: Collection | None = None, **more: Any) -> Collection:
    return collection_of("word", ldp_budget.mechanism(name), {**SKETCHES[name], **more}, known=known)


@pytest.mark.parametrize("name", SKETCHES)
def test_collection_draws_another_seed_each_time_and_keeps_a_given_one(name: str) -> None:
    first, second = made(name), made(name)
    assert first.mechanism.declared["seed"] != second.mechanism.declared["seed"]
    assert first.fingerprint != second.fingerprint
    assert made(name, seed=7).mechanism.declared["seed"] == 7
    assert Collection.from_json(first.to_json()) == first


@pytest.mark.parametrize("name", SKETCHES)
def test_collection_with_the_same_options_has_the_seed_that_is_stored(name: str) -> None:
    with Accountant(":memory:") as accountant:
        accountant.add_collection(made(name))
        stored = accountant.collection("word")
        again = made(name, stored)
        assert again.fingerprint == stored.fingerprint
        accountant.add_collection(again)


def test_every_mechanism_with_a_field_for_a_seed_names_it_as_public() -> None:
    seeded = {kind.name for kind in mechanisms() if "seed" in kind.fields}
    assert seeded == set(SKETCHES)
    assert all(ldp_budget.mechanism(name).public_seed == "seed" for name in SKETCHES)


def test_questions_of_a_survey_draw_a_seed_each_and_keep_the_stored_ones(tmp_path: Any) -> None:
    file = tmp_path / "survey.toml"
    question = '[[question]]\nname = "{}"\ncategories = ["a", "b"]\nmechanism = "{}"\n'
    file.write_text(
        '[survey]\nname = "words"\nepsilon = 4\n'
        + "".join(question.format(*each) for each in (("one", "cms"), ("two", "cms"), ("three", "oue")))
    )
    survey = Survey.from_toml(str(file))
    first, second = survey_collection(survey), survey_collection(survey)
    seeds = [
        question.mechanism.declared.get("seed") for each in (first, second) for question in each.mechanism.questions
    ]
    assert len(set(seeds)) == 5
    assert seeds[2] is seeds[5] is None
    assert survey_collection(survey, first) == first
    assert Collection.from_json(first.to_json()) == first


@pytest.mark.slow
def test_estimates_of_drawn_seeds_have_no_bias_that_one_seed_has() -> None:
    """Half of the users hold one answer. Over collections the mean error of a rare answer is within its error."""
    users, groups = 2000, 60
    values = np.zeros(users, dtype=np.int64)
    values[: users // 2] = 1

    def errors(seed: dict[str, int]) -> Any:
        found = []
        for group in range(groups):
            sketch: Any = made("cms", epsilon=4, domain_size=4, **seed).mechanism
            found.append(sketch.estimate(sketch.randomize(values, rng=group)).counts[2])
        return np.array(found)

    drawn, one = errors({}), errors({"seed": 0})
    assert abs(drawn.mean()) < 4.5 * drawn.std() / math.sqrt(groups)
    assert one.std() < drawn.std()  # the part of the error that is the same in every collection
