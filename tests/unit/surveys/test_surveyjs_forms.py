"""`survey export --surveyjs`: the form of a survey."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import CommandLine

ALL_KINDS = Path(__file__).parents[2] / "data" / "all_kinds.toml"
ENGLISH = """
[survey]
name = "poll"
epsilon = 1

[[question]]
name = "mood"
categories = ["1", "2"]
[question.languages.en]
text = "How are you?"
categories = ["good", "bad"]
[question.languages.pt-BR]
text = "Como está?"
"""


def test_export_maps_every_kind_of_question(command: CommandLine) -> None:
    command("survey", "add", ALL_KINDS)
    form = json.loads(command("survey", "export", "health", "--surveyjs").stdout)
    assert form["title"] == {"default": "Health", "ko": "건강"}
    assert form["description"] == "To plan."
    asked = {each["name"]: each for each in form["pages"][0]["elements"]}
    types = [each["type"] for each in asked.values()]
    assert types == [
        *(
            "radiogroup",
            "boolean",
            "boolean",
            "boolean",
            "text",
            "text",
            "rating",
            "rating",
            "checkbox",
            "checkbox",
            "dropdown",
        ),
        *("matrix", "matrix", "matrix"),
    ]
    required = {name for name, each in asked.items() if each.get("isRequired") or each.get("eachRowRequired")}
    assert set(asked) - required == {"maybe", "pain", "drink", "seen", "many", "rent"}
    assert (asked["sleep"]["min"], asked["sleep"]["max"]) == (-0.5, 14)
    assert (asked["pain"]["rateMin"], asked["pain"]["rateMax"]) == (0, 10)
    assert asked["drink"]["maxSelectedChoices"] == 2
    assert asked["seen"]["choices"] == ["sea", "hill"]
    assert asked["smoke"]["labelTrue"] == {"default": "yes", "ko": "예"}
    assert asked["rent"]["columns"] == ["1", "2", "3", "4"]
    assert asked["food"]["rows"][0] == {"value": "soup", "text": {"default": "soup", "ko": "국"}}


def test_export_takes_english_as_the_language_without_a_tag(command: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "poll.toml").write_text(ENGLISH, encoding="utf-8")
    command("survey", "add", tmp_path / "poll.toml")
    (mood,) = json.loads(command("survey", "export", "poll", "--surveyjs").stdout)["pages"][0]["elements"]
    assert mood["title"] == {"default": "How are you?", "pt-br": "Como está?"}
    assert mood["choices"] == [{"value": "1", "text": "good"}, {"value": "2", "text": "bad"}]


def test_export_of_a_collection_that_is_no_survey_is_refused(command: CommandLine) -> None:
    command("collection", "add", "mood", "grr", "--epsilon", 1, "--categories", "good,bad")
    error = command.error("survey", "export", "mood", "--surveyjs", code=2)
    assert "'mood' is a collection of one question" in error
