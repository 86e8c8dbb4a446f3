"""`ldp-budget report` and clean input for a survey of several questions."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine

TOML = """
[survey]
name = "health"
title = "Health & <habits>"
organisation = "Example Institute"
contact = "https://example.org/health"
purpose = "To plan the clinics of the region."
epsilon = 2
answer = 1
policy = "default"

[[question]]
name = "mood"
text = "How do you feel today?"
categories = ["good", "fair", "bad"]

[[question]]
name = "smoke"
text = "Do you smoke?"
kind = "yes-no"

[[question]]
name = "sleep"
text = "How many hours did you sleep?"
kind = "number"
lower = 0
upper = 14
"""


def health(command: CommandLine) -> None:
    """A survey of 300 people, of whom each answers one of three questions."""
    folder = Path(command.ledger).parent
    (folder / "health.toml").write_text(TOML)
    command("policy", "set", "default", "--limit", "lifetime=4")
    command("survey", "add", folder / "health.toml")
    rows = "".join(
        f"u{at}, {'good' if at % 3 else 'BAD'} ,{'Yes' if at % 4 else 'no'},{at % 14}\n" for at in range(300)
    )
    (folder / "rows.csv").write_text(f"user,mood,smoke,sleep\n{rows}x,odd,odd,odd\n")


@pytest.fixture
def survey_line(command: CommandLine, begun: Callable[..., None]) -> CommandLine:
    begun(health, command)
    return command


def randomized(command: CommandLine, *options: object, code: int = 0) -> Any:
    folder = Path(command.ledger).parent
    words = ["--user-column", "user", "--spend", "--out", folder / "r"]
    return command("randomize", "health", folder / "rows.csv", *words, *options, code=code)


@pytest.mark.slow
def test_survey_report_shows_each_question_and_who_asks(survey_line: CommandLine, tmp_path: Path) -> None:
    randomized(survey_line, "--ignore-case", "--skip-invalid")
    found = survey_line.json("estimate", "health", tmp_path / "r", "--consistent")
    survey_line("report", "health", tmp_path / "r", "--invited", "400", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h1>Health &amp; &lt;habits&gt;</h1>" in page
    titles = re.findall(r"<h2[^>]*>([^<]*)</h2>", page)
    questions = ["How do you feel today?", "Do you smoke?", "How many hours did you sleep?"]
    assert titles == [*questions, *titles[3:]]
    for name in ("mood", "smoke", "sleep"):
        assert f"{found[name]['asked']} of the 300 who answered were asked this, chosen at random." in page
    for row in (*found["mood"]["answers"], *found["smoke"]["answers"]):
        assert f">{row['answer']}</th>" in page
        assert f">{100 * row['share']:.1f} %</td>" in page
    assert "each person answers 1 of 3, chosen at random" in page
    assert "Example Institute" in page
    assert '<a href="https://example.org/health">' in page
    assert re.findall(r"https?://[^\"<]*", page) == ["https://example.org/health"] * 2
    assert "300 (75.0 % of the invited)" in page
    assert "at most ε = 2" in page
    assert "300 accounts for 300 reports" in page


def test_survey_report_shows_the_loss_and_the_check_of_each_question(
    survey_line: CommandLine, tmp_path: Path
) -> None:
    text = TOML.replace('"health"', '"whole"').replace("epsilon = 2", "epsilon = 3").replace("answer = 1\n", "")
    (tmp_path / "whole.toml").write_text(text)
    survey_line("survey", "add", tmp_path / "whole.toml")
    page = survey_line("report", "whole", "--markdown").stdout
    assert "**All answers of a person together reveal much: an observer can be up to 95.3 % sure" in page
    exact = "computed exactly from the probabilities with which the program draws"
    assert f"| Do you smoke? | randomized-response | 1 | 73.2 % | {exact} |" in page
    assert "- **How it was checked:** Each question by itself" in page
    assert "does not check a survey as a whole" in page
    assert "One response reveals much" not in page
