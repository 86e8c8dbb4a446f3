"""`survey`, and `randomize`, `estimate` and `plan` of a survey: from TOML to the estimate, or a clear error."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine
from ldp_budget.registry.collections import Collection
from ldp_budget.reports.report_file import read_reports
from ldp_budget.sampling import SeededStream, rng

TOML = """
[survey]
name = "health"
title = "Health and habits"
epsilon = 2
answer = 1
rounds = 2

[[question]]
name = "mood"
text = "How do you feel?"
categories = ["good", "fair", "bad"]

[[question]]
name = "smoke"
kind = "yes-no"

[[question]]
name = "sleep"
lower = 0
upper = 14
"""


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    source: Iterator[int] = iter(range(10_000))
    monkeypatch.setattr(rng, "_cryptographic_stream", lambda: SeededStream(next(source)))


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    (tmp_path / "health.toml").write_text(TOML)
    return tmp_path / "health.toml"


@pytest.fixture
def health(command: CommandLine, toml: Path) -> CommandLine:
    command("policy", "set", "default", "--limit", "lifetime=4")
    command("survey", "add", toml)
    return command


def answers(folder: Path, rows: int, **changes: str) -> Path:
    """A table of answers: 60 % good, 30 % smoke, about 7 hours of sleep."""
    chance = random.Random(1)
    lines = ["user,mood,smoke,sleep"]
    for number in range(rows):
        mood = "good" if number % 10 < 6 else "fair" if number % 10 < 9 else "bad"
        row = {
            "mood": mood,
            "smoke": "yes" if number % 10 in (1, 4, 7) else "no",
            "sleep": f"{chance.gauss(7, 1):.2f}",
        }
        lines.append(",".join([f"u{number}", *(changes.get(name, value) for name, value in row.items())]))
    (folder / "answers.csv").write_text("\n".join(lines) + "\n")
    return folder / "answers.csv"


# -- survey -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_survey_add_show_and_list_print_the_definition(health: CommandLine, toml: Path) -> None:
    shown = health.json("survey", "show", "health")
    assert (shown["name"], shown["answer"], shown["epsilon"]) == ("health", 1, "2")
    assert [each["name"] for each in shown["questions"]] == ["mood", "smoke", "sleep"]
    assert all(each["epsilon"] == 2 and each["mechanism"] for each in shown["questions"])
    assert health.json("survey", "add", toml) == shown
    [row] = health.json("survey", "list")
    assert row == {
        **{"name": "health", "title": "Health and habits", "questions": 3, "answer": 1},
        **{"epsilon": "2", "rounds": 2, "policy": "default"},
    }
    assert "exists, unchanged" in health("survey", "add", toml).stdout
    assert "How do you feel?" in health("survey", "show", "health").stdout
    assert "questions=mood, smoke, sleep" in health("collection", "list").stdout


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("lifetime=1", "no person could answer it"),
        ("lifetime=3", "its 2 rounds cost ε = 4"),
        ("lifetime=9 day=1", "day"),
    ],
)
def test_survey_add_refuses_what_its_policy_never_allows(
    command: CommandLine, toml: Path, limit: str, message: str
) -> None:
    options = [word for each in limit.split() for word in ("--limit", each)]
    command("policy", "set", "default", *options)
    error = command.error("survey", "add", toml)
    assert message in error
    assert "was not added" in error
    assert command.json("survey", "list") == []


# -- randomize and estimate ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("seeded")
def test_answers_become_estimates_of_each_question(health: CommandLine, tmp_path: Path) -> None:
    table, out = answers(tmp_path, 3000), tmp_path / "health.reports"
    done = health.json("randomize", "health", table, "--user-column", "user", "--spend", "--out", out)
    assert (done["reports"], done["refused"]) == (3000, 0)
    found = health.json("estimate", "health", out)
    assert found["respondents"] == 3000
    assert sum(found[name]["asked"] for name in ("mood", "smoke", "sleep")) == 3000
    for name, truth in (("mood", {"good": 1800, "fair": 900, "bad": 300}), ("smoke", {"yes": 900, "no": 2100})):
        for row in found[name]["answers"]:
            assert abs(row["count"] - truth[row["answer"]]) < 4 * row["std_error"]
            assert row["low"] < row["count"] < row["high"]
            assert row["share"] == pytest.approx(row["count"] / 3000)
    assert abs(found["sleep"]["mean"] - 7) < 4 * found["sleep"]["std_error"]
    text = health("estimate", "health", out).stdout
    assert "mood: How do you feel?" in text
    assert f"({found['mood']['asked']} of 3000 answered)" in text


@pytest.mark.slow
def test_respondents_keep_their_questions_and_the_ledger_charges_once_a_round(
    health: CommandLine, tmp_path: Path
) -> None:
    table, masks = answers(tmp_path, 40), []
    collection = Collection.from_json(health.json("collection", "show", "health"))
    for number in range(3):
        out = tmp_path / f"{number}.reports"
        done = health.json("randomize", "health", table, "--user-column", "user", "--spend", "--out", out)
        assert (done["reports"], done["refused"]) == ((40, 0) if number < 2 else (0, 40))
        masks.append([row[0] for block in read_reports(out, collection) for row in block])
    assert masks[0] == masks[1] == collection.masks([f"u{number}" for number in range(40)])
    rounds = health.json("estimate", "health", tmp_path / "0.reports", tmp_path / "1.reports", "--by-round")["rounds"]
    assert [(each["round"], each["respondents"]) for each in rounds] == [("0.reports", 40), ("1.reports", 40)]


def test_only_asked_questions_need_an_answer(health: CommandLine, tmp_path: Path) -> None:
    collection = Collection.from_json(health.json("collection", "show", "health"))
    users = [f"u{number}" for number in range(30)]
    lines = ["user,mood,smoke,sleep"]
    for user, mask in zip(users, collection.masks(users), strict=True):
        cells = [text if mask >> place & 1 else "" for place, text in enumerate(("fair", "no", "8"))]
        lines.append(",".join([user, *cells]))
    (tmp_path / "part.csv").write_text("\n".join(lines))
    options = ("--user-column", "user", "--out", tmp_path / "part.reports")
    assert health.json("randomize", "health", tmp_path / "part.csv", *options)["reports"] == 30


# -- plan ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_plan_of_a_survey_prints_designs_and_recommends(health: CommandLine, toml: Path) -> None:
    plan = health.json("plan", "--survey", toml, "--respondents", "3000")
    assert (plan["recommended"], plan["total_epsilon"]) == (1, "4")
    assert health.json("plan", "--survey", "health", "--respondents", "3000") == plan
    text = health("plan", "--survey", toml, "--respondents", "3000").stdout
    assert "Recommended: answer = 1" in text
    needed = health.json("plan", "--survey", toml, "--margin", "3%")["designs"][0]["respondents"]
    assert needed == health.json("plan", "--survey", toml, "--margin", "0.03")["designs"][0]["respondents"]


@pytest.mark.slow
def test_survey_plan_is_plan_of_a_survey_with_the_cheapest_design_first(health: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    grid = '[[grid]]\nname = "good"\nitems = ["staff", "price"]\nlower = 1\nupper = 5\n'
    file.write_text(f"{TOML.replace('epsilon = 2', 'epsilon = 8')}\n{grid}")
    own = health("survey", "plan", file, "--respondents", "1000").stdout
    assert own == health("plan", "--survey", file, "--respondents", "1000").stdout
    lines = own.splitlines()
    margins = [float(line.split("%")[0].split()[-1]) for line in lines[2:6]]
    assert margins == sorted(margins)
    assert "good" in own


def test_plan_of_a_collection_prints_sample_size_and_power(health: CommandLine) -> None:
    health("collection", "add", "mood", "oue", "--epsilon", "1", "--categories", "a,b,c")
    by_compare: Any = health.json("compare", "--epsilon", "1", "--domain-size", "3", "--users", "1", "--margin", "3%")
    [oue] = [row for row in by_compare if row["mechanism"] == "oue"]
    plan = health.json("plan", "--collection", "mood", "--margin", "3%")
    assert plan["respondents"] == oue["respondents"]
    assert "groups" in health("plan", "--collection", "mood", "--respondents", "500").stdout


# -- translations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("added", "warned"),
    [
        ("", []),
        ('languages.de = { title = "Gesundheit" }', ["languages.de has no text of mood, categories of mood:"]),
        ('languages.ko = { purpose = "x" }', ["languages.ko has no title, text of mood, categories of mood:"]),
        (
            'languages.de = { title = "x" }\nlanguages.ko = { title = "y" }',
            ["languages.de has no", "languages.ko has no"],
        ),
    ],
)
def test_survey_add_with_missing_translations_names_them(
    command: CommandLine, tmp_path: Path, added: str, warned: list[str]
) -> None:
    command("policy", "set", "default", "--limit", "lifetime=4")
    (tmp_path / "health.toml").write_text(TOML.replace("rounds = 2", f"rounds = 2\n{added}"))
    said = command("survey", "add", tmp_path / "health.toml").stderr
    assert said.count("Warning: languages.") == len(warned)
    assert all(each in said for each in warned)


def test_survey_add_with_complete_translations_does_not_warn(command: CommandLine, tmp_path: Path) -> None:
    command("policy", "set", "default", "--limit", "lifetime=4")
    whole = TOML.replace("rounds = 2", 'rounds = 2\nlanguages.de = { title = "Gesundheit" }').replace(
        'categories = ["good", "fair", "bad"]',
        'categories = ["good", "fair", "bad"]\nlanguages.de = { text = "?", categories = ["gut", "so", "schlecht"] }',
    )
    (tmp_path / "health.toml").write_text(whole)
    assert "Warning" not in command("survey", "add", tmp_path / "health.toml").stderr
