"""`ldp-budget report` of public columns, and public columns of `ldp-budget randomize`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import CommandLine


def regions(command: CommandLine) -> None:
    """A survey of 40 people in two regions, 3 of them in the south."""
    folder = Path(command.ledger).parent
    command("policy", "set", "default", "--limit", "lifetime=1")
    command("collection", "add", "mood", "grr", "--epsilon", "1", "--categories", "good,bad")
    rows = "".join(f"u{user},good,{'south' if user < 3 else 'north'}\n" for user in range(40))
    (folder / "rows.csv").write_text(f"user,mood,region\n{rows}")


@pytest.fixture
def regional(command: CommandLine, begun: Callable[..., None]) -> CommandLine:
    begun(regions, command)
    return command


WORDS = ("--column", "mood", "--user-column", "user", "--public", "region", "--spend", "--out")


@pytest.mark.slow
def test_report_of_public_column_names_it_and_its_smallest_group(regional: CommandLine, tmp_path: Path) -> None:
    regional("randomize", "mood", tmp_path / "rows.csv", *WORDS, tmp_path / "r")
    regional("report", "mood", tmp_path / "r", "--out", tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    for page in (html, regional("report", "mood", tmp_path / "r", "--markdown").stdout):
        assert "Each report also carries the public column region, without any noise." in page
        assert "the smallest group has 3 reports." in page
        assert "The public column region: ε does not count what it reveals." in page
    assert "also these, without noise" in regional("report", "mood", "--markdown").stdout


def odd_regions(folder: Path, *values: str) -> Path:
    rows = "".join(f"u{user},good,{value}\n" for user, value in enumerate(values))
    (folder / "odd.csv").write_text(f"user,mood,region\n{rows}")
    return folder / "odd.csv"


def test_randomize_of_public_values_that_differ_by_case_charges_no_user(
    regional: CommandLine, tmp_path: Path
) -> None:
    said = regional.error("randomize", "mood", odd_regions(tmp_path, "South", "south", ""), *WORDS, tmp_path / "r")
    assert "values of column region differ only by case or spaces: 'South', 'south'" in said
    assert "column region has empty values" in said
    assert "no user was charged" in said
    assert regional.json("ledger", "stats")["users"] == 0
    assert not (tmp_path / "r").exists()


@pytest.mark.slow
def test_randomize_ignore_case_joins_public_values(regional: CommandLine, tmp_path: Path) -> None:
    table = odd_regions(tmp_path, "South", "south", "south ")
    said = regional("randomize", "mood", table, *WORDS, tmp_path / "r", "--ignore-case").stderr
    assert "1 combination; the smallest, South, has 3 people" in said


def test_randomize_without_spend_warns_of_odd_public_values(regional: CommandLine, tmp_path: Path) -> None:
    table = odd_regions(tmp_path, "South", "south")
    said = regional("randomize", "mood", table, *WORDS[:-2], "--out", tmp_path / "r").stderr
    assert "Warning: --public: values of column region differ only by case or spaces" in said


@pytest.mark.slow
def test_randomize_counts_the_smallest_group_without_refused_users(regional: CommandLine, tmp_path: Path) -> None:
    first = odd_regions(tmp_path, "south", "south")
    regional("randomize", "mood", first, *WORDS, tmp_path / "first")
    said = regional("randomize", "mood", tmp_path / "rows.csv", *WORDS, tmp_path / "second").stderr
    assert "the smallest, south, has 1 person" in said
    assert "hides among 1 report" in said
