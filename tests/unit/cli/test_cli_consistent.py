"""`estimate --consistent`, the table that shows it by default, and `compare --margin` with the size of a report."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ldp_budget
from command_line import CommandLine
from ldp_budget import Accountant
from ldp_budget.registry.ranking import rank_frequency
from ldp_budget.reports.report_file import ReportWriter

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
    assert header.split() == ["answer", "count", "share", "low", "high", "unbiased"]
    assert [line.split()[1] for line in lines] == [f"{row['count']:.0f}" for row in rows]
    assert [line.split()[-1] for line in lines] == [f"{row['raw_count']:.0f}" for row in rows]
    unbiased = command("estimate", "poll", poll, "--unbiased").stdout
    assert "consistent" not in unbiased
    assert [line.split()[1] for line in unbiased.splitlines()[2:]] == [f"{row['raw_count']:.0f}" for row in rows]


def test_estimate_rows_are_unbiased_and_hold_the_margin_in_two_columns(command: CommandLine, poll: Path) -> None:
    raw = command.json("estimate", "poll", poll)["answers"]
    rows = list(csv.DictReader(io.StringIO(command("estimate", "poll", poll, "--csv").stdout)))
    assert [float(row["count"]) for row in rows] == [row["count"] for row in raw]
    assert [float(row["fake_most"]) for row in rows] == [row["fake_margin"]["most"] for row in raw]
    assert "fake_margin" not in rows[0]


def test_estimate_consistent_of_rounds_makes_each_round_consistent(command: CommandLine, poll: Path) -> None:
    other = poll.with_name("other.reports")
    other.write_bytes(poll.read_bytes())
    rounds = command.json("estimate", "poll", poll, other, "--by-round", "--consistent")["rounds"]
    assert [math.fsum(row["count"] for row in each["answers"]) for each in rounds] == pytest.approx([200, 200])


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
            1.959964 * again["worst_std_error"]
            for users in (row["respondents"], row["respondents"] - 1)
            for again in rank_frequency(1, 7, users)
            if again["mechanism"] == row["mechanism"]
        ]
        assert margins[0] <= 0.02 * (1 + 1e-6), row
        assert margins[1] >= 0.02 * (1 - 1e-6), row


@pytest.mark.slow
def test_compare_margin_below_the_collisions_of_a_sketch_is_never_reached(command: CommandLine) -> None:
    asked = ("compare", "--epsilon", 1, "--domain-size", 7, "--users", 1000, "--margin", "0.0001")
    found = {row["mechanism"]: row["respondents"] for row in command.json(*asked)}
    assert found["cms"] is None
    assert found["oue"] > 10**9


def test_compare_margin_without_answers_or_out_of_range_is_refused(command: CommandLine) -> None:
    numbers = ("compare", "--epsilon", 1, "--lower", 0, "--upper", 1)
    assert "--domain-size" in command.error(*numbers, "--margin", "0.1", code=2)
    answers = ("compare", "--epsilon", 1, "--domain-size", 7, "--users", 10)
    assert "margin" in command.error(*answers, "--margin", "2", code=2)


BITS: list[tuple[str, dict[str, Any], int]] = [
    ("oue", {"epsilon": 1, "domain_size": 1024}, 1024),
    ("grr", {"epsilon": 1, "domain_size": 1024}, 10),
    ("grr", {"epsilon": 1, "domain_size": 5, "draws": 2}, 6),
    ("subset-selection", {"epsilon": 1, "domain_size": 1024}, 855),
    ("subset-selection", {"epsilon": 1, "domain_size": 2}, 1),
    ("subset-selection", {"epsilon": 1, "domain_size": 4, "draws": 2, "ordered": True}, 4),
    ("randomized-response", {"epsilon": 1}, 1),
    ("d-bit-flip", {"epsilon": 1, "buckets": 10, "bits": 10}, 10),
    ("d-bit-flip", {"epsilon": 1, "buckets": 10, "bits": 1}, 5),
    ("cms", {"epsilon": 1, "hashes": 1024, "width": 1024, "domain_size": 7}, 1034),
    ("hcms", {"epsilon": 1, "hashes": 1024, "width": 1024, "domain_size": 7}, 21),
    ("matrix-substitution", {"matrix": [[0.6, 0.2], [0.2, 0.2], [0.2, 0.6]]}, 2),
    ("matrix-substitution", {"matrix": [[0.7, 0.1], [0.1, 0.1], [0.1, 0.1], [0.1, 0.7]]}, 2),
    ("pgr", {"epsilon": 1, "domain_size": 100}, 11),
    ("loloha", {"epsilon_lifetime": 2, "epsilon_first": 1, "domain_size": 7, "hashes": 5}, 5),
    ("d-bit-flip", {"epsilon": 1, "buckets": 10, "bits": 3, "memoize": True}, 10),
]


@pytest.mark.parametrize(("name", "parameters", "bits"), BITS)
def test_report_bits_number_all_possible_reports(name: str, parameters: dict[str, Any], bits: int) -> None:
    assert ldp_budget.mechanism(name)(**parameters).report_bits == bits


@pytest.mark.slow
def test_compare_shows_the_bits_of_every_frequency_mechanism(command: CommandLine) -> None:
    rows = command.json("compare", "--epsilon", 1, "--domain-size", 7, "--users", 1000)
    assert all(isinstance(row["bits"], int) for row in rows)
    printed = command("compare", "--epsilon", 1, "--domain-size", 7, "--users", 1000, "--margin", "0.02").stdout
    assert "bits" in printed
    assert "respondents" in printed
    assert np.all([str(row["bits"]) in printed for row in rows])
