"""`survey import`: an XLSForm becomes a survey file, and all that is not asked is named."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openpyxl", reason="no openpyxl: pip install 'ldp-budget[excel]'")
pytest.importorskip("pyxform", reason="no pyxform: pip install 'ldp-budget[xlsform]'")

import openpyxl

from command_line import CommandLine

CHOICES = ("list_name", "name", "label::English (en)", "label::Korean (ko)")
MOODS = [("mood", "good", "Good", "좋음"), ("mood", "bad", "Bad", "나쁨")]
YES_NO = [("yn", "no", "No", "아니오"), ("yn", "yes", "Yes", "예")]


def xlsform(
    path: Path,
    columns: Sequence[str],
    rows: Sequence[Sequence[str | None]],
    choices: Sequence[Sequence[str | None]] = (*MOODS, *YES_NO),
    settings: dict[str, str] | None = None,
    heading: Sequence[str] = CHOICES,
) -> Path:
    """Write a form with these columns and rows of its survey sheet; return its path."""
    book = openpyxl.Workbook()
    survey = book.active
    survey.title = "survey"
    for row in (columns, *rows):
        survey.append(list(row))
    sheet = book.create_sheet("choices")
    for row in (heading, *choices):
        sheet.append(list(row))
    for line in sheet.iter_rows():
        for cell in line:
            cell.data_type = "s" if cell.value is not None else "n"
    if settings:
        sheet = book.create_sheet("settings")
        sheet.append(list(settings))
        sheet.append(list(settings.values()))
    book.save(path)
    return path


pytestmark = pytest.mark.slow

COLUMNS = ("type", "name", "label::English (en)", "label::Korean (ko)", "required", "constraint", "relevant")


def imported(command: CommandLine, path: Path, epsilon: object = 2) -> tuple[dict[str, Any], list[str]]:
    """Return the survey file that the command prints, after `survey add` has taken it, and the lines of its notes."""
    done = command("survey", "import", path, "--epsilon", epsilon)
    (file := path.with_suffix(".toml")).write_text(done.stdout, encoding="utf-8")
    command("survey", "add", file)
    return tomllib.loads(done.stdout), [" ".join(line.split()) for line in done.stderr.splitlines()]


def test_import_of_choices_keeps_names_as_answers_and_labels_as_translations(
    command: CommandLine, tmp_path: Path
) -> None:
    rows = [
        ("select_one mood", "mood", "How are you?", "기분?", "yes"),
        ("select_one yn", "smoke", "Do you smoke?", "담배?", "yes"),
        ("select_multiple mood", "felt", "What did you feel?", "감정?", None, "count-selected(.) <= 1"),
    ]
    form = xlsform(tmp_path / "f.xlsx", COLUMNS, rows, settings={"form_title": "My form", "form_id": "my form"})
    found, notes = imported(command, form)
    assert found["survey"] == {"name": "my-form", "title": "My form", "epsilon": 2}
    mood, smoke, felt = found["question"]
    assert mood == {
        "name": "mood",
        "text": "How are you?",
        "categories": ["good", "bad"],
        "languages": {
            "en": {"text": "How are you?", "categories": ["Good", "Bad"]},
            "ko": {"text": "기분?", "categories": ["좋음", "나쁨"]},
        },
    }
    assert smoke["kind"] == "yes-no"
    assert smoke["languages"]["ko"]["categories"] == ["예", "아니오"]
    assert (felt["kind"], felt["categories"], felt["at_most"]) == ("tick", ["good", "bad"], 1)
    assert felt["optional"] is True
    assert [note for note in notes if not note.startswith("Next")] == []


def test_import_of_numbers_takes_both_bounds_also_below_zero(command: CommandLine, tmp_path: Path) -> None:
    rows = [
        ("decimal", "loss", "Loss", None, "yes", ". >= -20.5 and . <= -1"),
        ("integer", "age", "Age", None, "yes", "(. < 100) and (. > 17)"),
        ("decimal", "free", "Free", None, "yes", ". >= 0"),
        ("integer", "even", "Even", None, "yes", ". >= 0 and . <= 10 and . mod 2 = 0"),
        ("integer", "blank", "Blank", None, None, ". >= 0 and . <= 3"),
    ]
    found, notes = imported(command, xlsform(tmp_path / "f.xlsx", COLUMNS, rows))
    ends = {each["name"]: (each["lower"], each["upper"]) for each in found["question"]}
    assert ends == {"loss": (-20.5, -1), "age": (18, 99), "blank": (0, 3)}
    assert sum("a number needs both bounds and no other condition" in note for note in notes) == 2
    assert any(note.startswith("changed blank: must be answered") for note in notes)


def test_import_of_ranges_asks_few_steps_as_answers(command: CommandLine, tmp_path: Path) -> None:
    rows = [
        ("range", "pain", "Pain", "yes", "start=0 end=10 step=1"),
        ("range", "half", "Half", "yes", "start=0 end=2 step=0.5"),
        ("range", "fine", "Fine", "yes", "start=0 end=100 step=1"),
    ]
    columns = ("type", "name", "label", "required", "parameters")
    found, _ = imported(command, xlsform(tmp_path / "f.xlsx", columns, rows))
    pain, half, fine = found["question"]
    assert (pain["kind"], pain["lower"], pain["upper"]) == ("scale", 0, 10)
    assert half["categories"] == ["0.0", "0.5", "1.0", "1.5", "2.0"]
    assert (fine["kind"], fine["lower"], fine["upper"]) == ("number", 0, 100)


@pytest.mark.parametrize("appearance", ["table-list", "field-list"])
def test_import_of_a_list_in_a_table_makes_a_grid(command: CommandLine, tmp_path: Path, appearance: str) -> None:
    columns = ("type", "name", "label::English (en)", "required", "appearance")
    head = [("select_one mood", "head", " ", None, "label")] if appearance == "field-list" else []
    item = None if appearance == "table-list" else "list-nolabel"
    rows = [
        ("begin_group", "food", "How is our food?", None, appearance),
        *head,
        ("select_one mood", "soup", "The soup", "yes", item),
        ("select_one mood", "fish", "The fish", "yes", item),
        ("end_group",),
        ("select_one mood", "mood", "How are you?", "yes", None),
    ]
    found, _ = imported(command, xlsform(tmp_path / "f.xlsx", columns, rows))
    (grid,) = found["grid"]
    assert (grid["name"], grid["text"]) == ("food", "How is our food?")
    assert (grid["items"], grid["categories"]) == (["soup", "fish"], ["good", "bad"])
    assert grid["languages"]["en"]["items"] == ["The soup", "The fish"]
    assert [each["name"] for each in found["question"]] == ["mood"]


def test_import_of_a_question_that_may_be_blank_makes_it_optional(command: CommandLine, tmp_path: Path) -> None:
    rows = [("select_one mood", "mood", "Mood"), ("select_one yn", "smoke", "Smoke", None, "no")]
    found, _ = imported(command, xlsform(tmp_path / "f.xlsx", COLUMNS, rows))
    assert [each.get("optional") for each in found["question"]] == [True, True]


NOT_ASKED = [
    (("text", "why", "Why?"), "no mechanism randomizes the type text"),
    (("geopoint", "place", "Where?"), "no mechanism randomizes the type geopoint"),
    (("date", "born", "Born?"), "no mechanism randomizes the type date"),
    (("rank mood", "ranked", "Rank"), "no mechanism randomizes the type rank"),
    (("deviceid", "device"), "deviceid would identify the respondent"),
    (("select_one mood", "sad", "Sad?", None, "yes", None, "${mood} = 'bad'"), "shown only if ${mood} = 'bad'"),
    (("select_one_from_file a.csv", "far", "Far"), "in another file"),
]


@pytest.mark.parametrize(("row", "why"), NOT_ASKED)
def test_import_names_what_it_does_not_ask_and_why(
    command: CommandLine, tmp_path: Path, row: Sequence[str | None], why: str
) -> None:
    rows = [("select_one mood", "mood", "Mood", None, "yes"), row]
    found, notes = imported(command, xlsform(tmp_path / "f.xlsx", COLUMNS, rows))
    assert [each["name"] for each in found["question"]] == ["mood"]
    (note,) = [note for note in notes if note.startswith("not asked")]
    assert note.startswith(f"not asked {row[1]}: ")
    assert why in note


def test_import_does_not_ask_repeats_hidden_groups_and_random_numbers(command: CommandLine, tmp_path: Path) -> None:
    columns = (*COLUMNS, "calculation")
    rows = [
        ("select_one mood", "mood", "Mood", None, "yes"),
        ("begin_repeat", "children", "Children"),
        ("integer", "age", "Age", None, "yes", ". >= 0 and . <= 20"),
        ("end_repeat",),
        ("begin_group", "sad", "Sad", None, None, None, "${mood} = 'bad'"),
        ("select_one yn", "cry", "Do you cry?", None, "yes"),
        ("end_group",),
        ("calculate", "coin", None, None, None, None, None, "once(random())"),
    ]
    _, notes = imported(command, xlsform(tmp_path / "f.xlsx", columns, rows))
    refused = [note.split(":")[0] for note in notes if note.startswith("not asked")]
    assert refused == ["not asked children", "not asked sad", "not asked coin"]


def test_import_of_a_garbled_question_asks_with_noise_in_both_directions_and_says_the_one_sided_figure(
    command: CommandLine, tmp_path: Path
) -> None:
    columns = ("type", "name", "label", "required", "garbling::answer", "garbling::rate")
    rows = [
        ("select_one yn", "smoke", "Do you smoke?", "yes", "yes", "0.2"),
        ("select_one mood", "mood", "Mood", "yes", None, None),
        ("select_one mood", "odd", "Odd", "yes", "good", "often"),
    ]
    found, notes = imported(command, xlsform(tmp_path / "f.xlsx", columns, rows), epsilon=3)
    assert found["question"][0]["kind"] == "yes-no"
    smoke, odd = [note for note in notes if note.startswith("replaced")]
    assert "a recorded other answer is certain: ε = ∞" in smoke
    assert "η = ln(1/0.2) = 1.60944 for 'yes'" in smoke  # 1.609437…, rounded up
    assert smoke.endswith("at ε = 1")
    assert "its rate is no probability: often" in odd


def test_import_of_answers_with_commas_quotes_and_line_breaks_keeps_them(
    command: CommandLine, tmp_path: Path
) -> None:
    odd = ["a, b", 'say "no"', "two\nlines", "back\\slash", "it's '''", "=1+1"]
    choices = [("mood", f"n{place}", text, None) for place, text in enumerate(odd)]
    rows = [("select_one mood", "mood", 'How, "really"?\nToday', None, "yes"), (None,), ("note", "n", "Thanks")]
    found, _ = imported(command, xlsform(tmp_path / "f.xlsx", COLUMNS, rows, choices))
    (mood,) = found["question"]
    assert mood["text"] == 'How, "really"?\nToday'
    assert mood["languages"]["en"]["categories"] == odd


def test_import_of_labels_without_a_language_says_that_they_are_not_kept(
    command: CommandLine, tmp_path: Path
) -> None:
    rows = [("select_one mood", "mood", "Mood", "yes")]
    heading = ("list_name", "name", "label")
    choices = [("mood", "1", "Good"), ("mood", "2", "Bad")]
    columns = ("type", "name", "label", "required")
    _, notes = imported(command, xlsform(tmp_path / "f.xlsx", columns, rows, choices, heading=heading))
    assert any("not kept mood: labels without a language" in note for note in notes)
    settings = {"form_id": "other", "default_language": "English (en)"}
    found, notes = imported(command, xlsform(tmp_path / "g.xlsx", columns, rows, choices, settings, heading))
    assert found["question"][0]["languages"]["en"]["categories"] == ["Good", "Bad"]
    assert not any("not kept" in note for note in notes)


def test_import_of_too_many_answers_is_refused_with_the_reason(command: CommandLine, tmp_path: Path) -> None:
    choices = [("mood", f"n{place}", f"Answer {place}", None) for place in range(1_001)]
    rows = [("select_one mood", "mood", "Mood", None, "yes")]
    form = xlsform(tmp_path / "f.xlsx", COLUMNS, rows, choices)
    error = command.error("survey", "import", form, "--epsilon", 2)
    assert "no question of the form can be asked with noise" in error
    assert "not asked  mood: 1001 answers are too many, at most 1000" in error


def test_import_of_a_file_that_is_no_form_says_so(command: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "text.xlsx").write_text("type,name\n")
    assert "this is no XLSForm" in command.error("survey", "import", tmp_path / "text.xlsx", "--epsilon", 2)
    assert "the form cannot be read" in command.error("survey", "import", tmp_path / "none.xlsx", "--epsilon", 2)
    form = xlsform(tmp_path / "f.xlsx", COLUMNS, [("select_one nothing", "mood", "Mood")])
    assert "nothing" in command.error("survey", "import", form, "--epsilon", 2)


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "two"])
def test_import_refuses_an_epsilon_that_is_not_above_zero(command: CommandLine, epsilon: str) -> None:
    assert "is not a number above 0" in command.error("survey", "import", "f.xlsx", "--epsilon", epsilon, code=2)


def test_import_without_pyxform_names_the_extra(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyxform.errors", None)
    error = command.error("survey", "import", tmp_path / "f.xlsx", "--epsilon", 2)
    assert "pip install 'ldp-budget[xlsform]'" in error
