"""Tags of a survey's questions: what one report says about each tag, and what it is charged in each scope."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldp_budget import Accountant, InvalidParameter, KeyConflict
from ldp_budget_surveys.questionnaires.survey_collection import SurveyCollection, survey_collection
from ldp_budget_surveys.questionnaires.surveys import Survey

HEALTH, INCOME, ADS = "attribute:health", "attribute:income", "purpose:ads"
SMOKE = 'name = "smoke"\nkind = "yes-no"\nepsilon = 0.5\ntags = ["attribute:health"]'
MOOD = 'name = "mood"\ncategories = ["good", "bad"]\nepsilon = 0.75\ntags = ["purpose:ads", "attribute:health"]'
EARNED = 'name = "earned"\nkind = "number"\nlower = 0\nupper = 10\nepsilon = 0.75\ntags = ["attribute:income"]'
SPORT = 'name = "sport"\nkind = "yes-no"\nepsilon = 0.25'


def survey(path: Path, *questions: str, **more: str) -> SurveyCollection:
    head = {"name": '"life"', "epsilon": "2.25", **more}
    lines = [f"{key} = {value}" for key, value in head.items()]
    file = path / "life.toml"
    file.write_text("\n".join(["[survey]", *lines, *[f"[[question]]\n{each}" for each in questions]]))
    return survey_collection(Survey.from_toml(file))


def losses(found: SurveyCollection) -> dict[str, float]:
    return {tag: float(loss.epsilon) for tag, loss in found.losses.items()}


def test_loss_about_a_tag_is_that_of_the_questions_with_it(tmp_path: Path) -> None:
    found = survey(tmp_path, SMOKE, MOOD, EARNED)
    assert losses(found) == {HEALTH: 1.25, INCOME: 0.75, ADS: 0.75}


def test_loss_of_a_person_who_answers_some_questions_is_that_of_the_largest(tmp_path: Path) -> None:
    found = survey(tmp_path, SMOKE, MOOD, EARNED, answer="1")
    assert losses(found) == {HEALTH: 0.75, INCOME: 0.75, ADS: 0.75}


def test_question_without_tags_counts_under_every_scope(tmp_path: Path) -> None:
    found = survey(tmp_path, SMOKE, MOOD, EARNED, SPORT)
    assert losses(found) == {HEALTH: 1.5, INCOME: 1, ADS: 1, "*": 0.25}
    assert losses(survey(tmp_path, SPORT)) == {}


def test_tags_of_the_survey_are_tags_of_each_question(tmp_path: Path) -> None:
    found = survey(tmp_path, SMOKE, SPORT, tags='["purpose:ads"]')
    assert losses(found) == {HEALTH: 0.5, ADS: 0.75}
    assert SurveyCollection.from_json(found.to_json()) == found


def test_questions_that_are_randomized_together_depend_on_the_tags_of_all(tmp_path: Path) -> None:
    yes_no = [f'name = "{name}"\nkind = "yes-no"\ntags = ["{tag}"]' for name, tag in (("a", HEALTH), ("b", INCOME))]
    found = survey(tmp_path, *yes_no, joint="true")
    assert losses(found) == {HEALTH: 2.25, INCOME: 2.25}
    half = survey(tmp_path, yes_no[0], 'name = "b"\nkind = "yes-no"', joint="true")
    assert losses(half) == {}, "nothing is known of one of them"


@pytest.mark.parametrize("index", ["true", "false"])
def test_grid_depends_on_its_tags_as_a_whole(tmp_path: Path, index: str) -> None:
    grid = f"[[grid]]\nname = 'care'\nitems = ['a', 'b']\nlower = 1\nupper = 5\nindex = {index}\ntags = ['{HEALTH}']"
    file = tmp_path / "life.toml"
    file.write_text(f"[survey]\nname = 'life'\nepsilon = 1\n{grid}\n")
    found = survey_collection(Survey.from_toml(file))
    assert losses(found) == {HEALTH: 1}


def test_tag_of_another_form_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match=r"\[\[question\]\] 1 tags .*KIND:NAME"):
        survey(tmp_path, SMOKE.replace("attribute:health", "health"))


# -- charges ------------------------------------------------------------------------------------------------------


def spent(accountant: Accountant, user: str = "ann") -> dict[str, float | None]:
    return {each.limit.label: each.spent.epsilon for each in accountant.balance(user).limits}


@pytest.mark.policy("lifetime=9", f"{HEALTH}:lifetime=4", f"{HEALTH}:7d=25,1e-6,zcdp", f"{ADS}:month=1.5")
def test_charge_of_a_survey_costs_each_scope_what_the_row_says_about_it(
    accountant: Accountant, tmp_path: Path
) -> None:
    accountant.add_collection(survey(tmp_path, SMOKE, MOOD, EARNED))
    life = accountant.collection("life")
    assert accountant.spend("ann", life, key="k")
    assert accountant.spend("ann", life, key="k").repeated
    held = accountant.reserve("ann", life)
    assert accountant.spend("ann", life).binding == (f"{ADS}:month",)
    assert accountant.spend_many(["ann", *[f"user {number}" for number in range(20)]], life).refused_users == ["ann"]
    found = spent(accountant)
    assert (found["lifetime"], found[f"{HEALTH}:lifetime"], found[f"{ADS}:month"]) == (4, 2.5, 1.5)
    accountant.void(held.receipt or "")
    later = ["lifetime=9", f"{HEALTH}:lifetime=4", f"{HEALTH}:7d=25,1e-6,zcdp", f"{ADS}:month=1.5", f"{INCOME}:day=2"]
    accountant.set_policy("default", [*later, "attribute:other:lifetime=1"])
    expected = {"lifetime": 2, f"{HEALTH}:lifetime": 1.25, f"{ADS}:month": 0.75, f"{INCOME}:day": 0.75}
    for user in ("ann", "user 7"):
        found = spent(accountant, user)
        assert {**found, **expected, "attribute:other:lifetime": 0} == found
    assert accountant.history("ann")[0]["tags"] == [HEALTH, INCOME, ADS]
    assert accountant.verify().ok


@pytest.mark.policy("lifetime=9", f"{HEALTH}:lifetime=4", "attribute:other:lifetime=1")
def test_question_without_tags_is_charged_under_scopes_that_no_question_names(
    accountant: Accountant, tmp_path: Path
) -> None:
    accountant.add_collection(survey(tmp_path, SMOKE, MOOD, EARNED, SPORT))
    life = accountant.collection("life")
    assert accountant.spend("ann", life)
    assert spent(accountant) == {"lifetime": 2.25, f"{HEALTH}:lifetime": 1.5, "attribute:other:lifetime": 0.25}
    assert accountant.spend("ben", life, tags=["attribute:other"]).binding == ("attribute:other:lifetime",)
    assert accountant.verify().ok


@pytest.mark.policy("lifetime=9", f"{HEALTH}:lifetime=3", "attribute:other:lifetime=4")
def test_tags_of_a_call_take_no_scope_from_a_survey_that_costs_each_scope_the_whole(
    accountant: Accountant, tmp_path: Path
) -> None:
    alike = [
        f'name = "{name}"\ncategories = ["good", "bad"]\n{more}'
        for name, more in (("a", f'tags = ["{HEALTH}"]'), ("b", ""))
    ]
    accountant.add_collection(survey(tmp_path, *alike, answer="1"))
    life = accountant.collection("life")
    assert accountant.spend("ann", life, tags=[ADS], key="k")
    assert spent(accountant) == {"lifetime": 2.25, f"{HEALTH}:lifetime": 2.25, "attribute:other:lifetime": 2.25}
    assert accountant.spend("ann", life, tags=[ADS]).binding == (f"{HEALTH}:lifetime", "attribute:other:lifetime")
    with pytest.raises(KeyConflict):
        accountant.spend("ann", life, key="k")
    assert accountant.history("ann")[0]["tags"] == [ADS]
    assert accountant.verify().ok
