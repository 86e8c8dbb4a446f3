"""Rows: the same in every form, safe to read back, and of many users at once."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine
from ldp_budget import Accountant
from ldp_budget_cli.output import cell

USERS = ["alice", "Bob, jr", '"quoted"', "=1+1", "-3", "+4", "@home", "'t Hooft", "two\nlines", "tab\there", "unseen"]

ROWS = [
    ["mechanisms"],
    ["compare", "--epsilon", "1", "--domain-size", "7", "--users", "100", "--lower", "0", "--upper", "1"],
    ["compose", "party", "--reports", "3"],
    ["plan", "oue", "--domain-size", "3", "--reports", "3", "--total-epsilon", "1"],
    ["policy", "list"],
    ["collection", "list"],
    ["history", "alice"],
    ["reservations"],
    ["reservations", "alice"],
    ["balance", "alice"],
    ["balance", "--all"],
    ["balance", "--users", "users.csv"],
    ["ledger", "export"],
    ["ledger", "export", "--users", "users.csv"],
    ["estimate", "party", "reports.bin"],
]
ONE_VALUE = ("compose", "plan", "estimate")
"""Their JSON is one object, in which the rows stand."""


def undone(text: str) -> str:
    """Return a cell without the apostrophe that was added."""
    return text.removeprefix("'")


def charged_party(command: CommandLine) -> None:
    folder = Path(command.ledger).parent
    with (folder / "users.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["user"], *([user] for user in USERS)])
    command("policy", "set", "default", "--limit", "lifetime=8,1e-6,zcdp", "--limit", "day=6")
    command("collection", "add", "party", "oue", "--epsilon", "0.5", "--categories", "=yes,-no")
    with Accountant(command.ledger) as accountant:
        for user in USERS[:-1]:
            accountant.spend(user, accountant.collection("party"), note=f"={user[0]}")
        accountant.reserve("alice", accountant.collection("party"), note="-1")
    (folder / "answers.csv").write_text("answer\n=yes\n-no\n")
    reports = folder / "reports.bin"
    command("randomize", "party", folder / "answers.csv", "--column", "answer", "--out", reports)


@pytest.fixture(autouse=True)
def ledger(command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: Any) -> None:
    monkeypatch.chdir(tmp_path)
    begun(charged_party, command)


@pytest.mark.slow
@pytest.mark.parametrize("words", ROWS, ids=" ".join)
def test_rows_are_equal_in_every_form(command: CommandLine, words: list[str]) -> None:
    lines = [json.loads(line) for line in command(*words, "--nl").stdout.splitlines()]
    assert [json.loads(line) for line in command(*words, "--json", "--nl").stdout.splitlines()] == lines
    whole = json.loads(command(*words, "--json").stdout)
    if words[0] in ONE_VALUE or words == ["balance", "alice"]:
        assert isinstance(whole, dict)
    else:
        assert whole == lines
    tables = []
    for form, delimiter in (("--csv", ","), ("--tsv", "\t")):
        text = command(*words, form).stdout
        table = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
        assert len(table) == len(lines) + 1
        assert {len(row) for row in table} == {len(table[0])}
        assert all(not text.startswith(("=", "@", "\t")) for row in table for text in row)
        tables.append(table)
    assert tables[0] == tables[1]
    header, *rows = tables[0]
    for line, row in zip(lines, rows, strict=True):
        for name, text in zip(header, row, strict=True):
            value = line.get(name)
            if isinstance(value, str):
                assert undone(text) == value
            elif isinstance(value, bool):
                assert text == str(value)
            elif value is not None:
                assert json.loads(text) == value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("=SUM(A1)", "'=SUM(A1)"),
        ("-3", "'-3"),
        (-3, "-3"),
        (-0.0, "0.0"),
        ("'t Hooft", "''t Hooft"),
        (None, ""),
        (float("inf"), ""),
        (True, "True"),
        (["=a"], '["=a"]'),
        ("＝1", "'＝1"),
        ("a=b", "a=b"),
    ],
)
def test_cell_that_starts_a_formula_gets_an_apostrophe(value: Any, shown: str) -> None:
    assert cell(value) == shown


# -- many balances -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_balance_of_a_list_equals_single_balances(command: CommandLine) -> None:
    command("erase", "+4", "--yes")
    rows = json.loads(command("balance", "--users", "users.csv", "--json").stdout)
    assert [row["user"] for row in rows] == USERS
    for user, row in zip(USERS, rows, strict=True):
        one = json.loads(command("balance", "--json", "--", user).stdout)
        del one["odometer"]
        assert row == one
    accounts = json.loads(command("balance", "--all", "--json").stdout)
    assert [row["account"] for row in accounts] == list(range(1, len(USERS)))
    assert [row["account"] for row in accounts if row.get("erased")] == [USERS.index("+4") + 1]
    cells = {cell for row in csv.reader(command("balance", "--all", "--csv").stdout.splitlines()) for cell in row}
    assert cells.isdisjoint(USERS)


# -- who is behind an account --------------------------------------------------------------------------------
