"""Long commands that Ctrl-C stops: exit code 130, a sentence, and nothing half-written."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest

from case_files import case_table
from command_line import CommandLine
from ldp_budget_cli import progress

pytestmark = pytest.mark.slow


@pytest.fixture
def survey_line(command: CommandLine) -> CommandLine:
    folder = Path(command.ledger).parent
    rows = "".join(f"u{number},good\n" for number in range(60))
    (folder / "a.csv").write_text(f"user,answer\n{rows}")
    command("policy", "set", "default", "--limit", "lifetime=4")
    command("collection", "add", "mood", "grr", "--epsilon", "1", "--categories", "good,bad")
    randomize = ("randomize", "mood", folder / "a.csv", "--column", "answer", "--user-column", "user")
    command(*randomize, "--spend", "--out", folder / "mood.reports")
    return command


# What is interrupted, and the command.
COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = case_table("cli_stopping", "COMMANDS")


@pytest.mark.parametrize("name", COMMANDS)
def test_stopped_command_exits_with_130_and_writes_no_file(
    survey_line: CommandLine, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*given: Any, **more: Any) -> NoReturn:
        raise KeyboardInterrupt

    folder = Path(survey_line.ledger).parent
    target, words = COMMANDS[name]
    with monkeypatch.context() as patch:
        patch.setattr(target, stop)
        stopped = survey_line(*[word.format(f=folder) for word in words], code=130)
    assert "Stopped: " in stopped.stderr
    assert not list(folder.glob("new*"))
    if name == "move":
        survey_line("ledger", "move", folder / "budget.db", "--abort")
    if name == "rotate-key":
        survey_line("ledger", "rotate-key", "--yes")
    assert survey_line.json("ledger", "verify")["ok"]


def test_rows_are_followed_at_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def total() -> NoReturn:
        raise AssertionError("asked for a bar that is not shown")

    assert list(progress.followed(range(5), "reading", total)) == [0, 1, 2, 3, 4]
    monkeypatch.setattr(progress, "_is_shown", lambda: True)
    assert list(progress.followed(range(5), "reading", lambda: 5)) == [0, 1, 2, 3, 4]


def test_bar_begins_again_with_the_next_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_is_shown", lambda: True)
    with progress.progress("verifying") as on_progress:
        assert on_progress is not None
        for done in (3, 9, 9, 2, 4):
            on_progress(done, 9)
