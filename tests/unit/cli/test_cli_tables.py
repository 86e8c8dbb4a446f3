"""Tables and fields of text: no line is wider than the terminal, and nothing is broken within a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from case_files import case_table
from command_line import CommandLine
from ldp_budget_cli.tables import fitted

WIDTH = 80


# -- fitting ------------------------------------------------------------------------------------------------------


def test_fitted_table_breaks_no_number_and_no_word() -> None:
    rows = [("a-very-long-name-of-a-mechanism", 123456.789, "two words")]
    lines, _ = fitted(("name", "value", "text"), rows, 51)
    assert "a-very-long-name-of-a-mechanism" in lines[1]
    assert "123457" in lines[1]


# -- every command ------------------------------------------------------------------------------------------------

LONG = "a-collection-with-a-name-that-is-rather-long"
TABLES = tuple(case_table("cli_tables", "TABLES"))


@pytest.fixture
def used(command: CommandLine, begun: Any, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """A ledger in which everything is long: names, notes, policies, shares, numbers."""
    begun(much, command)
    monkeypatch.chdir(Path(command.ledger).parent)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    return command


def much(command: CommandLine) -> None:
    folder = Path(command.ledger).parent
    users, source = folder / "users.csv", folder / "answers.csv"
    users.write_text("user\n" + "".join(f"user-{number:09}\n" for number in range(3)))
    source.write_text("user,answer,age\nalice,a-first-answer,20\nbob,a-second-answer,30.25\n")
    answers = "a-first-answer,a-second-answer,an-answer-of-many-words-that-is-much-longer"
    for words in (
        "policy set default --limit lifetime=90.123456789,1e-6,zcdp --limit day=80.5,1e-5 --limit week=85,1.5e-7",
        "policy set shared --limit lifetime=90 --limit month=50,1e-6,renyi --limit day=9,1e-6,gdp "
        "--share a-team-with-a-long-name:day=1 --share b:lifetime=2",
        f"collection add {LONG} oue --epsilon 0.123456789 --categories {answers}",
        "collection add age laplace --epsilon 1 --lower 0 --upper 100",
        f"policy set plan --plan {LONG}=365 --plan age=12 --plan-delta 1e-6",
        f"spend alice {LONG} --note a-note-of-some-length --key k",
        "spend alice gaussian --epsilon 0.5 --delta 1e-9 --lower 0 --upper 1",
        f"spend bob {LONG} --policy plan",
        f"reserve alice {LONG} --note another-note",
        "reserve eve oue --epsilon 0.5 --domain-size 7",
        "api-key create a-key-with-a-long-name --scope spend --scope read --scope collect --policy default "
        f"--collection {LONG} --expires 30",
        f"randomize {LONG} {source} --column answer --out {folder}/{LONG}.reports",
        f"randomize age {source} --column age --out {folder}/age.reports",
    ):
        command(*words.split())
    receipt = command.json("reserve", "eve", "oue", "--epsilon", "0.5", "--domain-size", "7")["receipt"]
    command("void", receipt)


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("words", TABLES)
def test_no_line_of_a_table_is_wider_than_the_terminal(used: CommandLine, words: str) -> None:
    shown = used(*words.split()).stdout
    wide = [
        line for line in shown.splitlines() if len(line) > WIDTH and " " in line.strip().partition("  ")[2].strip()
    ]
    assert wide == [], "only a single word may be wider, so that it can be copied"
    assert len(shown.splitlines()) > 1
