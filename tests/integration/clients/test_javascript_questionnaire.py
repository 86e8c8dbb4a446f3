"""The JavaScript client of a survey, on Node: the vectors, refused definitions and answers, and the confirmed loss."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from javascript import PACKAGE, VECTORS, evaluated, run
from ldp_budget.registry.public_definition import digest_of
from questionnaire_site import health

FILE = VECTORS.parent / "questionnaires.json"
SOURCE = (PACKAGE / "src").as_uri()


def test_questionnaire_vectors_all_agree() -> None:
    done = run(PACKAGE / "test" / "questionnaires.mjs", FILE)
    assert (done.returncode, done.stdout) == (0, "126 vectors, 0 wrong\n")


def test_questionnaire_vector_with_another_byte_is_wrong(tmp_path: Path) -> None:
    surveys = json.loads(FILE.read_text())
    report = surveys[0]["reports"][0]
    report["report"] = "07" + report["report"][2:]
    (tmp_path / "wrong.json").write_text(json.dumps(surveys))
    done = run(PACKAGE / "test" / "questionnaires.mjs", tmp_path / "wrong.json")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "126 vectors, 1 wrong")


def tried(definition: dict[str, Any], work: str) -> Any:
    """Return the value of an expression on `survey`, or the name of its error."""
    return evaluated(f"""
        const {{ Questionnaire }} = await import("{SOURCE}/questionnaire.js");
        const {{ confirmLoss }} = await import("{SOURCE}/loss.js");
        const definition = {json.dumps(definition)};
        let found;
        try {{
            const survey = new Questionnaire(definition);
            found = {work};
        }} catch (error) {{
            found = error.name;
        }}
        console.log(JSON.stringify(found));
    """)


def sealed(definition: dict[str, Any]) -> dict[str, Any]:
    definition["digest"] = digest_of(definition)
    return definition


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ({"mood": "good", "sleep": 7.5}, 11),
        ({"mood": "good"}, "RangeError"),
        ({"mood": "good", "smoke": "no", "sleep": 7.5}, "RangeError"),
        ({"mood": "great", "sleep": 7.5}, "RangeError"),
        ({"mood": "good", "sleep": 14.5}, "RangeError"),
        ({"mood": "good", "diet": "no"}, "RangeError"),
        ({"mood": "good", "toString": 1}, "RangeError"),
    ],
)
def test_randomize_accepts_an_answer_to_each_asked_question_only(answers: dict[str, Any], found: Any) -> None:
    assert tried(health("two", 2).definition(), f"survey.randomize({json.dumps(answers)}).length") == found


def _other_rule(definition: dict[str, Any]) -> None:
    definition["selection"]["rule"] = "first"


def _overlap(definition: dict[str, Any]) -> None:
    question = definition["questions"][1]
    question["slot"] = [1, 1]
    question["digest"] = digest_of(question)


def _longer(definition: dict[str, Any]) -> None:
    definition["report"]["bytes"] += 1


def _many(definition: dict[str, Any]) -> None:
    definition["ask"] = 4


def _stale(definition: dict[str, Any]) -> None:
    definition["questions"][0]["guarantee"]["epsilon"] = "0.1"


@pytest.mark.parametrize("change", [_other_rule, _overlap, _longer, _many, _stale])
def test_questionnaire_with_an_inconsistent_definition_is_refused(change: Any) -> None:
    definition = health("two", 2).definition()
    change(definition)
    assert tried(sealed(definition), "survey.questions.length") == "TypeError"


@pytest.mark.parametrize(
    ("epsilon", "found"), [("2.0", "confirmed"), ("1.999999999", "Unconfirmed"), ("1.0", "Unconfirmed")]
)
def test_confirm_loss_adds_the_losses_of_the_asked_questions(epsilon: str, found: str) -> None:
    definition = health("two", 2).definition()
    assert {question["guarantee"]["epsilon"] for question in definition["questions"]} == {"1.0"}
    definition["guarantee"]["epsilon"] = epsilon
    assert tried(sealed(definition), '(confirmLoss(definition), "confirmed")') == found


def test_confirm_loss_of_one_question_does_not_look_at_listed_questions() -> None:
    """A program without noise was confirmed by the questions that its definition listed too."""
    survey = health("two", 2).definition()
    single = copy.deepcopy(survey["questions"][0])
    single["steps"][0] = ["kept", ["bits", str(2**64 - 1), 1]]
    single |= {"questions": survey["questions"], "ask": 1}
    assert tried(survey, f"confirmLoss({json.dumps(sealed(single))})") == "Unconfirmed"


MUTANTS = [
    ("questionnaire.js", "byte ^ 0x5c", "byte ^ 0x36"),
    ("questionnaire.js", '"ldp-budget questions 1\\n"', '"ldp-budget questions 1"'),
    ("bytes.js", '.normalize("NFC")', ""),
    ("bytes.js", '.replace(AROUND, "")', ""),
    ("questionnaire.js", "one[at] - other[at]", "other[at] - one[at]"),
    ("questionnaire.js", "report[place >> 3] |= 1 << (place & 7)", "report[0] |= 1 << (place & 7)"),
    ("questionnaire.js", "names.flatMap((name, place)", "[...names].reverse().flatMap((name, place)"),
]


@pytest.mark.parametrize(("file", "code", "fault"), MUTANTS, ids=[fault or code for _, code, fault in MUTANTS])
def test_questionnaire_client_with_a_fault_disagrees_with_the_vectors(
    tmp_path: Path, file: str, code: str, fault: str
) -> None:
    copied = tmp_path / "js"
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("node_modules", "dist"))
    source = (copied / "src" / file).read_text()
    assert source.count(code) == 1
    (copied / "src" / file).write_text(source.replace(code, fault))
    assert run(copied / "test" / "questionnaires.mjs", FILE).returncode == 1


@pytest.mark.parametrize("place", [3, 4, 5, 6])
def test_scales_and_grids_of_the_vectors_lose_what_they_state(place: int) -> None:
    definition = json.loads(FILE.read_text())[place]["definition"]
    assert tried(definition, "confirmLoss(definition) ?? 'confirmed'") == "confirmed"


@pytest.mark.parametrize("name", ["mean", "nps", "box", "shares"])
def test_scale_that_states_less_than_it_loses_is_not_confirmed(name: str) -> None:
    definition = json.loads(FILE.read_text())[3]["definition"]
    question = next(each for each in definition["questions"] if each["name"] == name)
    question["guarantee"]["epsilon"] = "0.99"
    sealed(question)
    assert tried(sealed(definition), "confirmLoss(definition) ?? 'confirmed'") == "Unconfirmed"


@pytest.mark.parametrize("name", ["yes or no", "often", "good", "index"])
def test_grid_that_states_less_than_it_loses_is_not_confirmed(name: str) -> None:
    definition = json.loads(FILE.read_text())[5]["definition"]
    question = next(each for each in definition["questions"] if each["name"] == name)
    question["guarantee"]["epsilon"] = "0.99"
    sealed(question)
    assert tried(sealed(definition), "confirmLoss(definition) ?? 'confirmed'") == "Unconfirmed"


@pytest.mark.parametrize(
    "change",
    [
        lambda steps: steps[-1][1].reverse(),
        lambda steps: steps.insert(5, ["more", ["below", 2]]),
        lambda steps: steps[1][1].__setitem__(1, "18446744073709551616"),
    ],
)
def test_grid_with_other_steps_is_not_confirmed(change: Any) -> None:
    question = json.loads(FILE.read_text())[5]["definition"]["questions"][1]
    change(question["steps"])
    done = evaluated(f"""
        const {{ confirmLoss }} = await import("{SOURCE}/loss.js");
        let found = "confirmed";
        try {{ confirmLoss({json.dumps(question)}); }} catch (error) {{ found = error.name; }}
        console.log(JSON.stringify(found));
    """)
    assert done == "Unconfirmed"


@pytest.mark.parametrize(
    "answers",
    [
        {"often/fish": "never"},
        {"often/fish": "always", "often/meat": "never", "often/eggs": "never", "often/bread": "never"},
        {
            "often/fish": "never",
            "often/meat": "never",
            "often/eggs": "never",
            "often/bread": "never",
            "more": "never",
        },
        "never",
    ],
)
def test_grid_refuses_an_item_without_an_answer_of_its_own(answers: Any) -> None:
    definition = json.loads(FILE.read_text())[5]["definition"]
    definition["ask"] = 1
    assert tried(sealed(definition), f"survey.randomize({json.dumps({'often': answers})})") == "RangeError"
