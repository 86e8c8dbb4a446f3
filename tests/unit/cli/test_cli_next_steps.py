"""Success messages that name the next step, loud warnings, and questions before what cannot be undone."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from command_line import CommandLine

OUE = ["oue", "--epsilon", "0.5", "--domain-size", "3"]
MOOD = ["collection", "add", "mood", "oue", "--epsilon", "0.5", "--categories", "good,bad"]


@pytest.fixture
def budget(command: CommandLine) -> CommandLine:
    command("policy", "set", "default", "--limit", "lifetime=0.6")
    return command


# -- the next step ----------------------------------------------------------------------------------------------


def test_ledger_init_names_the_key_file_and_the_next_step(command: CommandLine) -> None:
    done = command("ledger", "init")
    assert done.stdout == (
        f"created {command.ledger} and its key file {command.ledger}.key. Back up both, in different places\n"
    )
    assert done.stderr == "Next: ldp-budget policy set default --limit lifetime=EPSILON\n"


def test_policy_set_names_the_next_step(command: CommandLine) -> None:
    assert (
        "Next: ldp-budget spend USER MECHANISM,"
        in command("policy", "set", "default", "--limit", "day=1", "--unbounded").stderr
    )
    other = command("policy", "set", "other", "--limit", "lifetime=1").stderr
    assert "Next: ldp-budget spend USER MECHANISM --policy other," in other


def test_collection_add_twice_says_that_it_exists(command: CommandLine) -> None:
    first, second = command(*MOOD), command(*MOOD)
    assert first.stdout.startswith("added: collection mood\n")
    assert second.stdout.startswith("exists, unchanged: collection mood\n")
    assert "Next: ldp-budget randomize mood FILE --column COLUMN --out mood.reports" in first.stderr
    message = command.error(*MOOD[:-1], "good,bad,fair")
    assert "Collection 'mood' exists with another definition. It was not changed." in message


@pytest.mark.slow
def test_plan_prints_the_policy_command_that_enforces_it(command: CommandLine) -> None:
    words = ["plan", "oue", "--domain-size", "7", "--reports", "50", "--total-epsilon", "8", "--total-delta", "1e-6"]
    notes = command(*words).stderr
    [typed] = re.findall(r"Next: ldp-budget (.*)", notes)
    command(*shlex.split(typed))
    best = max(row["epsilon_per_report"] for row in command.json(*words)["rules"].values() if row and row["filter"])
    report = ["oue", "--epsilon", str(best), "--domain-size", "7", "--reports", "50"]
    assert command.json("quote", "alice", *report)["affordable_reports"] == 50, "exactly the planned reports fit"
    assert "--plan COLLECTION=50 --plan-delta 1e-6" in notes


def test_randomize_names_the_command_that_estimates(command: CommandLine, tmp_path: Path) -> None:
    command(*MOOD)
    (tmp_path / "a.csv").write_text("mood\ngood\n")
    done = command("randomize", "mood", tmp_path / "a.csv", "--column", "mood", "--out", tmp_path / "r")
    [typed] = re.findall(r"Next: ldp-budget (.*)", done.stderr)
    assert command(*shlex.split(typed)).stdout.startswith("1 report")


def test_reserve_names_commit_and_void(budget: CommandLine) -> None:
    [typed] = re.findall(r"Next: ldp-budget (.*?), or", budget("reserve", "alice", *OUE).stderr)
    assert budget(*shlex.split(typed)).stdout.startswith("committed: ")


def test_compose_names_the_mechanism_as_typed_and_the_missing_delta_once(command: CommandLine) -> None:
    shown = command("compose", "OUE", "--epsilon", "0.50", "--domain-size", "7", "--reports", "50").stdout
    assert shown.startswith("50 reports of OUE --domain-size 7 --epsilon 0.50; total δ = 0\n")
    assert shown.count("--total-delta 1e-6") == 1


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


def test_demo_with_a_wrong_epsilon_prints_only_the_error(command: CommandLine, tmp_path: Path) -> None:
    message = command.error("demo", "--epsilon", "0", "--out", tmp_path / "demo", code=2)
    assert message == "Error: --epsilon must be a number > 0 and <= 1000000: got 0\n"
    assert not (tmp_path / "demo").exists()


@pytest.mark.slow
def test_demo_shows_commands_that_work_in_their_order(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = command("demo").stdout.replace("\\\n", " ")
    typed = [shlex.split(line)[1:] for line in re.findall(r"^   \$ (.*)$", shown, re.M)]
    assert typed.pop(0) == ["LDP_BUDGET_LEDGER=ldp-budget-demo/budget.db"]
    for words in typed:
        command(*words, code=3 if words[0] == "spend" else 0)
    assert len(typed) == 7
    assert shown.rstrip().splitlines()[-1].startswith("Next: type the commands above")
