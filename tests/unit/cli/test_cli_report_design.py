"""`ldp-budget report` with the options of a design: its estimates are those of `estimate` with the same options."""

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
title = "Health"
epsilon = 8
answer = 2

[[question]]
name = "smokes"
text = "Do you <smoke>?"
categories = ["never", "some", "daily <b>"]

[[question]]
name = "sport"
text = "Do you exercise?"
kind = "yes-no"

[[question]]
name = "work"
text = "How much do you work?"
kind = "number"
lower = 0
upper = 60
unit = "hours <i>"
"""
TOTALS = "variable,value,total\nregion,<north>,3000\nregion,south,7000\n"


def health(command: CommandLine) -> None:
    """A survey of 400 people in two regions, of whom each answers two of three questions."""
    folder = Path(command.ledger).parent
    (folder / "health.toml").write_text(TOML)
    (folder / "totals.csv").write_text(TOTALS)
    (folder / "weights.csv").write_text("region,weight\n<north>,15\nsouth,35\n")
    rows = "".join(
        f"u{at},{'<north>' if at % 2 else 'south'},{1 + at % 3},{('never', 'some', 'daily <b>')[at % 3]},"
        f"{'yes' if at % 5 else 'no'},{20 + at % 25}\n"
        for at in range(400)
    )
    (folder / "rows.csv").write_text(f"user,region,w,smokes,sport,work\n{rows}")
    command("policy", "set", "default", "--limit", "lifetime=8")
    command("survey", "add", folder / "health.toml")
    public = ("--public", "region", "--public", "w")
    words = ("--user-column", "user", *public, "--spend", "--out", folder / "r")
    command("randomize", "health", folder / "rows.csv", *words)


@pytest.fixture
def survey_line(command: CommandLine, begun: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    begun(health, command)
    monkeypatch.chdir(Path(command.ledger).parent)
    return command


RAKED = ("--rake", "totals.csv", "--strata", "region")


def pages(command: CommandLine, *options: str) -> tuple[str, str]:
    """The page as HTML, and as Markdown without the marks before special characters."""
    command("report", "health", "r", *options, "--no-verify", "--out", "page.html", "--overwrite")
    text = command("report", "health", "r", *options, "--no-verify", "--markdown").stdout
    return Path("page.html").read_text(encoding="utf-8"), re.sub(r"\\(.)", r"\1", text)


def shown(share: float) -> str:
    """A share as the page rounds it; ends of intervals are within 0 and 100 %."""
    return f"{100 * min(1.0, max(0.0, share)):.1f} %"


def inside(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with a share within 0 and 1: the page moves the others, and the draw decides which they are."""
    return [row for row in rows if 0 <= row["share"] <= 1]


@pytest.mark.slow
def test_report_with_weights_shows_the_estimates_of_estimate(survey_line: CommandLine) -> None:
    for options in (RAKED, ("--weights", "weights.csv"), ("--weights", "w", "--clusters", "region")):
        found = survey_line.json("estimate", "health", "r", *options)
        html, text = pages(survey_line, *options)
        for question in ("smokes", "sport"):
            for row in inside(found[question]["answers"]):
                ends = f"{shown(row['share_low'])} to {shown(row['share_high'])}"
                margin = max(row["share_high"] - row["share"], row["share"] - row["share_low"])
                assert f"| {row['answer']} | {shown(row['share'])} | ± {100 * margin:.1f} | {ends} |" in text
                assert f">{shown(row['share'])}</td>" in html
                assert f">{ends}</td>" in html


@pytest.mark.slow
def test_population_lowers_the_errors_and_is_named(survey_line: CommandLine) -> None:
    plain, corrected, all_asked = (
        [row["share_std_error"] for row in survey_line.json("estimate", "health", "r", *more)["smokes"]["answers"]]
        for more in (("--strata", "region"), ("--population", "800"), ("--population", "400"))
    )
    # About 267 people are asked, of 800 or of 400. At ε = 4 an answer varies more than its noise.
    assert all(0 < third < second < first for first, second, third in zip(plain, corrected, all_asked, strict=True))
    said = survey_line("estimate", "health", "r", "--population", "800").stdout
    assert "400 respondents of 800 people; 95 % confidence intervals" in said
    for page in pages(survey_line, "--population", "800", "--table", "smokes,sport"):
        assert "The sample was drawn from 800 people" in page
        assert "The results describe the population of 800 people." in page
