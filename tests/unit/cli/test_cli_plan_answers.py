"""`ldp-budget plan --answers`: a margin before a mechanism or a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import CommandLine


def test_plan_answers_says_the_margin_the_mechanism_and_the_next_command(command: CommandLine) -> None:
    result = command("plan", "--answers", 6, "--respondents", 3000, "--epsilon", 1)
    first, second = result.stdout.splitlines()[:2]
    assert first == (
        "3,000 people at ε = 1: each share of 6 answers is known to ± 6.1 points (margin, 95 %), with subset-selection."
    )
    assert second.startswith("Next best: pgr, ± 6.5 points")
    next_command = result.stderr.strip().removeprefix("Next: ldp-budget ").replace("NAME", "mood").split()
    command(*next_command)


@pytest.mark.parametrize(
    "given",
    [
        ("--epsilon", "1", "--margin", "4%"),
        ("--respondents", "3000", "--margin", "4%"),
        ("--respondents", "3000", "--margin", "4%", "--deff", "1.5", "--population", "11400", "--groups", "4"),
        ("--respondents", "3000", "--margin", "4%", "--weights-cv", "0.6"),
    ],
)
def test_plan_answers_in_json_keeps_the_margin_when_it_is_typed_back(
    command: CommandLine, given: tuple[str, ...]
) -> None:
    found = json.loads(command("plan", "--answers", 6, *given, "--json").stdout)
    assert found["margin"] <= 0.04
    assert {"epsilon", "respondents", "margin", "mechanism", "runner_up", "table"} <= set(found)
    assert ("group_margin" in found) == ("--groups" in given)
    rest = given[given.index("--margin") + 2 :]
    typed = ("--epsilon", found["epsilon"], "--respondents", found["respondents"])
    assert json.loads(command("plan", "--answers", 6, *typed, *rest, "--json").stdout) == found


def test_plan_answers_out_of_reach_says_what_to_change(command: CommandLine) -> None:
    said = command("plan", "--answers", 6, "--respondents", 300, "--margin", "1%").stdout
    assert said == "No ε up to 20 gives 300 people this margin: sampling alone has a larger one. Ask more people\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--respondents", "300"), "give two of --respondents N, --epsilon E and --margin SHARE"),
        (("--respondents", "300", "--epsilon", "1", "--margin", "4%"), "give two of"),
        (("--respondents", "300", "--epsilon", "1", "--deff", "2", "--weights-cv", "1"), "--deff does not go with"),
        (("--respondents", "300", "--epsilon", "1", "--total-epsilon", "1"), "--total-epsilon needs --survey"),
        (("--respondents", "300", "--epsilon", "0.5.5"), "--epsilon must be"),
    ],
)
def test_plan_answers_of_options_that_do_not_go_together_is_an_error(
    command: CommandLine, arguments: tuple[str, ...], message: str
) -> None:
    assert message in command("plan", "--answers", 6, *arguments, code=2).stderr


def test_plan_without_a_question_asks_for_one(command: CommandLine) -> None:
    assert (
        "Give one of --answers, --survey and --collection"
        in command("plan", "--respondents", 300, "--epsilon", 1, code=2).stderr
    )
    assert (
        "--deff needs --answers"
        in command("plan", "--survey", "no.toml", "--respondents", 300, "--deff", 2, code=2).stderr
    )


def test_plan_answers_draws_the_margins(command: CommandLine, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "margins.svg"
    command("plan", "--answers", 6, "--respondents", 3000, "--epsilon", 1, "--plot", file)
    text = file.read_text(encoding="utf-8")
    assert all(each in text for each in ("ε = 0.5", "ε = 1", "ε = 2", "± 6.1 points with 3,000 people"))


@pytest.mark.parametrize("option", ["--answers", "--survey"])
def test_help_that_usage_errors_name_shows_all_options(command: CommandLine, option: str) -> None:
    """The option took `--help` for its value."""
    shown = command("plan", option, "--help").stdout
    assert shown.startswith("Usage: ldp-budget plan --answers [OPTIONS]")
    assert "--total-epsilon" in shown
