"""Success messages that name the next step, loud warnings, and questions before what cannot be undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import CommandLine

OUE = ["oue", "--epsilon", "0.5", "--domain-size", "3"]
MOOD = ["collection", "add", "mood", "oue", "--epsilon", "0.5", "--categories", "good,bad"]


@pytest.fixture
def budget(command: CommandLine) -> CommandLine:
    command("policy", "set", "default", "--limit", "lifetime=0.6")
    return command


# -- the next step ----------------------------------------------------------------------------------------------


# -- many users -------------------------------------------------------------------------------------------------


def test_spend_many_warns_loudly_if_all_were_refused(budget: CommandLine) -> None:
    words = ["spend-many", "-", "oue", "--epsilon", "0.7", "--domain-size", "3"]
    done = budget(*words, input="user\nann\nbob\n")
    assert done.stdout == "spent: 0, refused: 2, repeated: 0\n"
    assert "WARNING: all 2 users were REFUSED. No user was charged" in done.stderr
    assert "WARNING: the only user was REFUSED" in budget(*words, input="user\nann\n").stderr


@pytest.mark.slow
def test_spend_many_with_strict_exits_with_3_if_any_was_refused(budget: CommandLine, tmp_path: Path) -> None:
    budget("spend", "ann", *OUE)
    people = "user\nann\nbob\n"
    done = budget("spend-many", "-", *OUE, "--strict", input=people, code=3)
    assert done.stdout == "spent: 1, refused: 1, repeated: 0\n"
    assert "WARNING" not in done.stderr
    assert "add --refused-to FILE" in done.stderr
    budget("spend-many", "-", *OUE, input=people, code=0)
    budget("spend-many", "-", *OUE, "--strict", input="user\ncy\n", code=0)


@pytest.mark.slow
def test_randomize_with_strict_exits_with_3_if_any_was_refused(budget: CommandLine, tmp_path: Path) -> None:
    budget(*MOOD)
    budget("spend", "ann", "mood")
    (tmp_path / "a.csv").write_text("user,mood\nann,good\nbob,bad\n")
    words = ["randomize", "mood", tmp_path / "a.csv", "--column", "mood", "--out", tmp_path / "r", "--strict"]
    assert "--strict needs --spend" in budget.error(*words, code=2)
    done = budget(*words, "--spend", "--user-column", "user", code=3)
    assert "1 report written" in done.stderr


def test_inbox_take_of_invalid_lines_alone_fails(budget: CommandLine) -> None:
    budget(*MOOD)
    message = budget("inbox", "take", "mood", "-", input="no json\n", code=1).stderr
    assert "line 1: the line is not JSON" in message
    assert "Every line is invalid. Nothing was charged or stored." in message


# -- what cannot be undone --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["erase", "alice"],
        ["ledger", "rotate-key"],
        ["ledger", "move", "{ledger}", "{ledger}.new"],
        ["ledger", "repair-clock"],
        ["invite", "mood", "--revoke"],
        ["invite", "mood", "{folder}/users.csv", "--revoke"],
    ],
)
def test_command_that_cannot_be_undone_needs_yes_without_a_terminal(
    budget: CommandLine, tmp_path: Path, words: list[str]
) -> None:
    budget(*MOOD)
    (tmp_path / "users.csv").write_text("user\nalice\n")
    typed = [word.format(ledger=budget.ledger, folder=tmp_path) for word in words]
    message = budget.error(*typed, code=2)
    name = " ".join(typed[:2]) if typed[0] == "ledger" else typed[0]
    assert f"Error: {name} cannot be undone, and there is no terminal to confirm it. Add --yes" in message
    budget(*typed, "--yes", code=1 if typed[0] == "erase" else 0)


# -- the demo ---------------------------------------------------------------------------------------------------
