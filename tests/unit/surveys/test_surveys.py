"""Surveys: what a TOML file may say, what is kept of it, and messages that name file, key, value and remedy."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from ldp_budget import Accountant, InvalidParameter, Limit, NameTaken, NotSupported, UnknownName
from ldp_budget.guarantees import Pure
from ldp_budget.registry.collections import Collection
from ldp_budget.registry.public_definition import digest_of
from ldp_budget.reports.inbox import Inbox
from ldp_budget.sdk.client_program import Program
from ldp_budget_surveys.questionnaires.questionnaire import Questionnaire
from ldp_budget_surveys.questionnaires.survey_collection import survey_collection
from ldp_budget_surveys.questionnaires.surveys import Survey, SurveyQuestion

TEXT = """
[survey]
name = "health"
title = "Health and habits"
organisation = "Institute of Public Health"
contact = "https://example.org/health"
purpose = "To plan the clinics of the region."
policy = "panel"
epsilon = 1.5
answer = 2
rounds = 4

[survey.languages.de]
title = "Gesundheit"

[[question]]
name = "mood"
text = "How do you feel today?"
categories = ["good", "fair", "bad"]

[question.languages.de]
text = "Wie geht es Ihnen heute?"
categories = ["gut", "mittel", "schlecht"]

[[question]]
name = "smoke"
kind = "yes-no"

[[question]]
name = "sleep"
lower = 0
upper = 14.5
"""


def survey_of(folder: Path, text: str = TEXT) -> Survey:
    (folder / "health.toml").write_text(text, encoding="utf-8")
    return Survey.from_toml(folder / "health.toml")


@pytest.fixture
def survey(tmp_path: Path) -> Survey:
    return survey_of(tmp_path)


@pytest.fixture
def collection(survey: Survey) -> Collection:
    return survey_collection(survey)


# -- reading ------------------------------------------------------------------------------------------------------------


def test_toml_is_read_completely(survey: Survey) -> None:
    assert (survey.name, survey.policy, survey.epsilon, survey.answer) == ("health", "panel", Decimal("1.5"), 2)
    assert (survey.rounds, survey.title, survey.languages) == (
        4,
        "Health and habits",
        {"de": {"title": "Gesundheit"}},
    )
    mood, smoke, sleep = survey.questions
    assert mood.languages["de"]["categories"] == ["gut", "mittel", "schlecht"]
    assert (smoke.kind, smoke.categories) == ("yes-no", ("yes", "no"))
    assert (sleep.kind, sleep.lower, sleep.upper) == ("number", Decimal(0), Decimal("14.5"))


def test_json_form_reads_back_and_has_a_fingerprint(survey: Survey) -> None:
    again = Survey.from_json(json.loads(json.dumps(survey.to_json())))
    assert again == survey
    assert again.fingerprint == survey.fingerprint != replace(survey, title="Another").fingerprint


def test_equal_epsilons_are_rounded_down_and_never_above_the_survey() -> None:
    questions = tuple(SurveyQuestion(f"q{n}", kind="yes-no", categories=("yes", "no")) for n in range(3))
    survey = Survey("s", questions, Decimal(1))
    assert survey.epsilons() == [Decimal("0.333333333")] * 3
    asked = survey.questionnaire()
    assert asked.ask == 3
    assert asked.guarantee.epsilon == pytest.approx(0.999999999, abs=1e-12)
    assert asked.guarantee.costs().epsilon <= 10**9


def test_epsilons_of_questions_add_up_to_at_most_the_survey() -> None:
    questions = tuple(
        SurveyQuestion(f"q{n}", kind="yes-no", categories=("yes", "no"), epsilon=Decimal(epsilon))
        for n, epsilon in enumerate(("0.5", "1", "1.5"))
    )
    assert Survey("s", questions, Decimal("2.5"), 2).questionnaire().guarantee == Pure(Decimal("2.5"))
    with pytest.raises(InvalidParameter, match=r"at most 2.*got 2\.5"):
        Survey("s", questions, Decimal(2), 2).questionnaire()


@pytest.mark.parametrize("kind", ["laplace", "no-such", "rappor"])
def test_mechanism_that_does_not_fit_is_an_error(tmp_path: Path, kind: str) -> None:
    survey = survey_of(tmp_path, TEXT.replace('kind = "yes-no"', f'kind = "yes-no"\nmechanism = "{kind}"'))
    with pytest.raises(InvalidParameter, match=r"question 2 \(smoke\)|smoke"):
        survey.questionnaire()


# -- the collection -----------------------------------------------------------------------------------------------------


def test_collection_refuses_a_survey_of_other_questions(collection: Collection, survey: Survey) -> None:
    fewer = replace(survey, questions=survey.questions[:2])
    with pytest.raises(InvalidParameter, match="same name and questions"):
        replace(collection, survey=fewer)
    with pytest.raises(InvalidParameter, match="in a `SurveyCollection`: got questionnaire"):
        Collection("health", collection.mechanism)


def test_definition_has_programs_slots_and_a_digest(collection: Collection) -> None:
    definition = collection.definition()
    asked = collection.mechanism
    assert isinstance(asked, Questionnaire)
    assert (definition["format"], definition["ask"]) == ("ldp-budget questionnaire", 2)
    assert definition["selection"] == {"rule": "hmac-sha256", "key": collection.fingerprint}
    assert definition["digest"] == digest_of(definition) == collection.client
    assert definition["organisation"] == "Institute of Public Health"
    start = definition["report"]["mask"]
    for question, mine in zip(definition["questions"], asked.questions, strict=True):
        assert question["digest"] == digest_of(question)
        assert Program.from_json(question) == mine.mechanism.client_program()
        assert question["slot"] == [start, mine.mechanism.client_program().size]
        start += question["slot"][1]
    assert start == definition["report"]["bytes"]
    assert definition["questions"][0]["languages"]["de"] == {
        "question": "Wie geht es Ihnen heute?",
        "answers": ["gut", "mittel", "schlecht"],
    }


def test_question_of_a_collection_is_a_collection(collection: Collection) -> None:
    mood = collection.question("mood")
    assert (mood.name, mood.categories) == ("mood", ("good", "fair", "bad"))
    with pytest.raises(UnknownName, match="mood, smoke, sleep"):
        collection.question("weight")


def test_select_questions_asks_each_user_the_same_again(collection: Collection) -> None:
    values = collection.read_values([{"mood": "good", "smoke": "no", "sleep": "7"}] * 4)  # type: ignore[list-item]
    users = ["alice", "bob", "alice ", "carol"]
    first, again = (collection.select_questions(values, users)["asked"].tolist() for _ in range(2))
    assert first == again
    assert first[0] == first[2]
    assert all(mask.bit_count() == 2 for mask in collection.select_questions(values)["asked"].tolist())


# -- the ledger ---------------------------------------------------------------------------------------------------------


def test_ledger_stores_a_survey_and_charges_it_once(collection: Collection, tmp_path: Path) -> None:
    with Accountant(tmp_path / "ledger.db") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon="3")], checked=True)
        accountant.add_collection(collection)
        accountant.add_collection(collection)
        assert accountant.collection("health") == collection
        retitled = survey_collection(replace(collection.survey, title="Other"))  # type: ignore[type-var]
        with pytest.raises(NameTaken):
            accountant.add_collection(retitled)
        spent = [bool(accountant.spend("alice", collection)) for _ in range(3)]
        assert spent == [True, True, False], "each costs 1.5 of 3"
        assert accountant.balance("alice").shuffled(1000) is None, "the asked questions split the crowd"
        assert accountant.verify()


def test_inbox_takes_the_selected_questions_only(collection: Collection, tmp_path: Path) -> None:
    assert collection.survey is not None
    collection = survey_collection(replace(collection.survey, minimum_group=1))
    values = collection.read_values([{"mood": "good", "smoke": "no", "sleep": "7"}])  # type: ignore[list-item]
    [own] = collection.masks(["alice"])
    with Accountant(tmp_path / "ledger.db") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon="3")])
        box = Inbox(accountant, collection)
        for mask in (0b011, 0b101, 0b110):
            values["asked"] = mask
            report = collection.randomize(values)[0].tobytes()
            if mask == own:
                assert box.take("alice", f"k{mask}", report)
            else:
                with pytest.raises(NotSupported, match="other questions"):
                    box.take("alice", f"k{mask}", report)
        assert (len(box), box.seal("one")) == (1, 1)
        [block] = box.round("one")
        assert collection.estimate(block).reports == 1
