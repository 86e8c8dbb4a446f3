"""Indices of grids: the device sends the mean of its answers to all items as one number."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldp_budget.errors import InvalidParameter, OutsideDomain
from ldp_budget.registry.collections import Collection
from ldp_budget.sampling.rng import open_stream
from ldp_budget.sdk.client_program import Program
from ldp_budget.sdk.interpreter import StreamDraws, read, run
from ldp_budget_surveys.questionnaires.survey_collection import survey_collection
from ldp_budget_surveys.questionnaires.surveys import Survey

FILE = """
[survey]
name = "service"
epsilon = {epsilon}

[[grid]]
name = "good"
items = ["staff", "price", "hours"]
index = true
"""
ENDS = "lower = 1\nupper = 5"


def survey_of(folder: Path, more: str = ENDS, epsilon: Any = 2) -> Survey:
    (folder / "service.toml").write_text(FILE.format(epsilon=epsilon) + more, encoding="utf-8")
    return Survey.from_toml(folder / "service.toml")


def test_index_is_one_number_of_the_range_of_its_scale(tmp_path: Path) -> None:
    survey = survey_of(tmp_path)
    asked = survey.questionnaire().questions[0]
    assert asked.recode is not None
    assert asked.asked_items == ("good/staff", "good/price", "good/hours")
    assert (asked.items, asked.categories, asked.domain.ends) == (None, None, (1.0, 5.0))  # type: ignore[union-attr]
    assert asked.recode.values == pytest.approx([1 + total / 3 for total in range(13)])
    assert [view.name for view in survey.questionnaire().views] == ["good"]
    assert Survey.from_json(survey.to_json()) == survey
    collection = survey_collection(survey)
    assert Collection.from_json(collection.to_json()).fingerprint == collection.fingerprint


def test_index_is_the_mean_of_the_answers_to_its_items(tmp_path: Path) -> None:
    asked = survey_of(tmp_path).questionnaire().questions[0]
    assert asked.number_of([5, "4", 2], 0) == pytest.approx(11 / 3)
    for wrong in ([5, 4], [5, 4, 6], {"good/staff": 5}, "4"):
        with pytest.raises(OutsideDomain):
            asked.number_of(wrong, 0)


def test_program_of_an_index_draws_from_the_mean(tmp_path: Path) -> None:
    """For every answer to the three items, the report is that of the mechanism's own program for their mean."""
    collection = survey_collection(survey_of(tmp_path))
    definition = collection.definition()["questions"][0]
    program, own = Program.from_json(definition), collection.mechanism.questions[0].mechanism.client_program()  # type: ignore[attr-defined]
    assert definition["input"] == {"kind": "answer", "count": 125, "text": False}
    for number, chosen in enumerate(product(range(5), repeat=3)):
        value = sum(each * 5**place for place, each in enumerate(chosen))
        mean = 1 + sum(chosen) / 3
        draws = [StreamDraws(open_stream(number)) for _ in range(2)]
        assert run(program, value, draws[0]) == run(own, read(own, mean), draws[1])


@pytest.mark.parametrize(("epsilon", "noise"), [(2, 3.374), (4, 0.559)])
def test_index_of_eight_items_has_no_more_noise_than_in_the_design_note(
    tmp_path: Path, epsilon: int, noise: float
) -> None:
    items = ", ".join(f'"{place}"' for place in range(8))
    text = FILE.format(epsilon=epsilon).replace('"staff", "price", "hours"', items) + ENDS
    (tmp_path / "a.toml").write_text(text)
    asked = Survey.from_toml(tmp_path / "a.toml").questionnaire().questions[0]
    assert asked.recode is not None
    errors = [asked.mechanism.error_at(value)[1] for value in asked.recode.values]  # type: ignore[attr-defined]
    assert np.mean(errors) < 1.04 * noise


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('categories = ["a", "b"]', "index must be false"),
        ("answer = 1\n" + ENDS, "answer must be left out"),
        ("optional = true\n" + ENDS, "optional must be false"),
        ('mechanism = "oue"\n' + ENDS, "oue does not randomize a number"),
    ],
)
def test_index_with_a_wrong_key_is_refused(tmp_path: Path, more: str, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        survey_of(tmp_path, more).questionnaire()
