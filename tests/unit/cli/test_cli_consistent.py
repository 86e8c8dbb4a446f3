"""`estimate --consistent`, the table that shows it by default, and `compare --margin` with the size of a report."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import ldp_budget
from command_line import CommandLine
from ldp_budget import Accountant
from ldp_budget.reports.report_file import ReportWriter
from ldp_budget_surveys.planning.ranking import rank_frequency

ANSWERS = tuple("abcdefgh")


@pytest.fixture
def poll(command: CommandLine, tmp_path: Path) -> Path:
    """A file of 200 reports of `poll`, where nearly all users hold the first answer."""
    made = ldp_budget.Collection("poll", ldp_budget.mechanism("oue")(epsilon=1, domain_size=8), ANSWERS)
    with Accountant(command.ledger) as accountant:
        accountant.add_collection(made)
    path = tmp_path / "poll.reports"
    with ReportWriter(path, made) as writer:
        writer.write(made.mechanism.randomize([0] * 190 + [1] * 10, rng=3))
    return path


def test_estimate_consistent_prints_both_counts_and_the_fake_margin(command: CommandLine, poll: Path) -> None:
    raw = command.json("estimate", "poll", poll)["answers"]
    found = command.json("estimate", "poll", poll, "--consistent")
    rows = found["answers"]
    assert min(row["count"] for row in raw) < 0, "else there is nothing to make consistent"
    assert found["consistent"] == "norm-sub"
    assert min(row["count"] for row in rows) >= 0
    assert math.fsum(row["count"] for row in rows) == pytest.approx(200)
    for row, other in zip(rows, raw, strict=True):
        assert row["raw_count"] == other["count"]
        assert row["share"] == pytest.approx(row["count"] / 200)
        assert 0 <= row["low"] <= row["count"] <= row["high"] <= 200
        assert row["fake_margin"] == other["fake_margin"]
        assert row["fake_margin"] == {
            "most": pytest.approx(3.164, abs=1e-3),
            "least": pytest.approx(-1.164, abs=1e-3),
        }


def test_estimate_table_shows_consistent_counts_unless_unbiased_ones_are_asked_for(
    command: CommandLine, poll: Path
) -> None:
    rows = command.json("estimate", "poll", poll, "--consistent")["answers"]
    label, header, *lines = command("estimate", "poll", poll).stdout.splitlines()[1:]
    assert label.startswith("Consistent counts: at least 0")
    assert header.split() == ["answer", "count", "share", "margin", "(95", "%)", "low", "high", "unbiased"]
    assert [line.split()[1] for line in lines] == [f"{row['count']:.0f}" for row in rows]
    assert [line.split()[-1] for line in lines] == [f"{row['raw_count']:.0f}" for row in rows]
    unbiased = command("estimate", "poll", poll, "--unbiased").stdout
    assert "consistent" not in unbiased
    assert [line.split()[1] for line in unbiased.splitlines()[2:]] == [f"{row['raw_count']:.0f}" for row in rows]


def test_estimate_consistent_of_a_mean_and_with_adjust_is_refused(command: CommandLine, poll: Path) -> None:
    command("collection", "add", "age", "laplace", "--epsilon", 1, "--lower", 0, "--upper", 1)
    with Accountant(command.ledger) as accountant:
        age = accountant.collection("age")
    with ReportWriter(poll.with_name("age.reports"), age) as writer:
        writer.write(age.mechanism.randomize([0.5] * 10, rng=1))
    assert "--consistent" in command.error("estimate", "age", poll.with_name("age.reports"), "--consistent", code=2)
    assert "mean" in command("estimate", "age", poll.with_name("age.reports")).stdout
    assert "--adjust" in command.error("estimate", "poll", poll, "--consistent", "--adjust", "simplex", code=2)


# -- compare ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_compare_margin_gives_the_least_number_of_respondents(command: CommandLine) -> None:
    asked = ("compare", "--epsilon", 1, "--domain-size", 7, "--users", 1000)
    rows = command.json(*asked, "--margin", "0.02")
    assert "respondents" not in command.json(*asked)[0]
    for row in rows:
        margins = [
            again["margin"]
            for users in (row["respondents"], row["respondents"] - 1)
            for again in rank_frequency(1, 7, users)
            if again["mechanism"] == row["mechanism"]
        ]
        assert margins[0] <= 0.02 * (1 + 1e-6), row
        assert margins[1] >= 0.02 * (1 - 1e-6), row
