"""`--quiet`: no notes and no progress; results, warnings and errors stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import CommandLine

OUE = ("oue", "--epsilon", "0.5", "--domain-size", "4")


@pytest.fixture
def line(command: CommandLine) -> CommandLine:
    command("policy", "set", "default", "--limit", "lifetime=4")
    return command


@pytest.mark.parametrize("before", [True, False])
def test_quiet_command_prints_its_result_only(command: CommandLine, before: bool) -> None:
    words = ["policy", "set", "default", "--limit", "lifetime=4"]
    assert "Next: " in command(*words).stderr
    quiet = command("--quiet", *words) if before else command(*words, "--quiet")
    assert quiet.stderr == ""
    assert quiet.stdout


def test_quiet_bulk_run_prints_no_progress_and_no_hint(line: CommandLine, tmp_path: Path) -> None:
    users = tmp_path / "users.csv"
    users.write_text("user\na\nb\n")
    done = line("spend-many", users, *OUE, "--quiet")
    assert (done.stdout, done.stderr) == ("spent: 2, refused: 0, repeated: 0\n", "")


def test_quiet_command_still_prints_warnings_and_errors(line: CommandLine, tmp_path: Path) -> None:
    assert "--domain-size is missing" in line.error("--quiet", "spend", "alice", "oue", "--epsilon", "1", code=2)
    line("collection", "add", "mood", "oue", "--epsilon", "1", "--categories", "good,bad")
    answers, reports = tmp_path / "a.csv", tmp_path / "a.reports"
    answers.write_text("user,mood\na,good\nb,bad\n")
    line("--quiet", "randomize", "mood", answers, "--column", "mood", "--out", reports)
    twin = tmp_path / "b.reports"
    twin.write_bytes(reports.read_bytes())
    assert "Warning: " in line("--quiet", "estimate", "mood", reports, twin).stderr
