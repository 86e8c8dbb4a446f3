"""`randomize --garbled`: answers that another survey garbled become reports as they are, and are never charged."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import CommandLine

pytestmark = pytest.mark.slow


@pytest.fixture
def harassed(command: CommandLine, tmp_path: Path) -> CommandLine:
    command("policy", "set", "default", "--limit", "lifetime=4")
    command("collection", "add", "harassed", "one-sided", "--g", "0.3", "--categories", "no,yes")
    rows = [f"m{number},{'yes' if number < 37 else 'no'}" for number in range(100)]
    (tmp_path / "form.csv").write_text("\n".join(["user,harassed", *rows]) + "\n", encoding="utf-8")
    return command


def test_garbled_answers_are_estimated_with_their_interval(harassed: CommandLine, tmp_path: Path) -> None:
    given = tmp_path / "form.csv", "--column", "harassed", "--out", tmp_path / "h.reports", "--garbled"
    said = harassed("randomize", "harassed", *given).stderr
    assert 'no user was charged, and no limit can count them: "no" is not protected' in said
    rows = harassed.json("estimate", "harassed", tmp_path / "h.reports")["answers"]
    yes = next(row for row in rows if row["answer"] == "yes")
    assert yes["share"] == pytest.approx((0.37 - 0.3) / 0.7)
    assert (yes["low"], yes["high"]) == (0, 21)


def test_garbled_answers_are_neither_charged_nor_of_another_mechanism(harassed: CommandLine, tmp_path: Path) -> None:
    given = tmp_path / "form.csv", "--column", "harassed", "--out", tmp_path / "h.reports", "--garbled"
    said = harassed.error("randomize", "harassed", *given, "--spend", "--user-column", "user", code=2)
    assert "--garbled is for a collection with the mechanism one-sided, without --spend" in said
    harassed("collection", "add", "mood", "randomized-response", "--epsilon", 1, "--categories", "no,yes")
    assert "--garbled is for a collection with the mechanism one-sided" in harassed.error(
        "randomize", "mood", *given, code=2
    )
