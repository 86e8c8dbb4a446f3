"""Excel files in place of tables: every command that reads a table reads a sheet."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from command_line import CommandLine

openpyxl = pytest.importorskip("openpyxl", reason="the extra excel is not installed")

ROWS = [["user", "region", "mood"], ["007", "north", "good"], [8, "south", "bad"], ["cy", "north", "good"]]
TEXT = "user,region,mood\n007,north,good\n8,south,bad\ncy,north,good\n"


def save(place: Path, *rows: list[Any], **sheets: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for title, cells in sheets.items():
        book.create_sheet(title)
        for row in cells:
            book[title].append(row)
    book.save(place)
    return place


def begin(command: CommandLine) -> None:
    command("policy", "set", "default", "--limit", "lifetime=20")
    command("collection", "add", "mood", "grr", "--epsilon", "1", "--categories", "good,bad")


@pytest.fixture
def moods(command: CommandLine, begun: Callable[..., None]) -> CommandLine:
    begun(begin, command)
    return command


def test_sheet_charges_the_users_that_the_csv_file_charged(moods: CommandLine, tmp_path: Path) -> None:
    people, text = save(tmp_path / "people.xlsx", *ROWS), tmp_path / "people.csv"
    text.write_text(TEXT, encoding="utf-8")
    assert moods.json("spend-many", text, "mood", "--key", "k")["spent"] == 3
    assert moods.json("spend-many", people, "mood", "--key", "k") == {"spent": 0, "refused": 0, "repeated": 3}
    shown = [moods("balance", "--users", place, "--csv").stdout for place in (people, text)]
    assert shown[0] == shown[1]
    users = [row["user"] for row in moods.json("balance", "--users", people)]
    assert users == ["007", "8", "cy"]


def test_randomize_reads_answers_and_public_columns_of_a_sheet(moods: CommandLine, tmp_path: Path) -> None:
    people, out = save(tmp_path / "people.xlsx", [], others=ROWS), tmp_path / "r"
    words = ("--column", "mood", "--user-column", "user", "--public", "region", "--spend", "--out", out)
    moods("randomize", "mood", people, "--sheet", "others", *words)
    found = moods.json("estimate", "mood", out, "--by", "region")
    assert (found["respondents"], found["public"]["smallest"]) == (3, 1)


def test_invalid_answer_is_named_by_its_cell(moods: CommandLine, tmp_path: Path) -> None:
    people = save(tmp_path / "people.xlsx", *ROWS, ["di", "north", True])
    words = ("randomize", "mood", people, "--column", "mood", "--out", tmp_path / "r")
    assert "people.xlsx, cell C5, column mood: 'true' is not an answer" in moods.error(*words)
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("word", ["Total", "합계", "Grand total:"])
def test_row_of_totals_is_refused_by_its_cell_and_nobody_is_charged(
    moods: CommandLine, tmp_path: Path, word: str
) -> None:
    people = save(tmp_path / "people.xlsx", *ROWS, [word, None, 3])
    for words in (("spend-many", people, "mood"), ("spend-many", people, "mood", "--user-column", "region")):
        assert f"cell A5, column user: {word!r} begins a row of totals" in moods.error(*words)
    assert moods.json("ledger", "stats")["users"] == 0


def test_estimate_weights_come_from_a_sheet(moods: CommandLine, tmp_path: Path) -> None:
    text, out = tmp_path / "people.csv", tmp_path / "r"
    text.write_text(TEXT, encoding="utf-8")
    moods("randomize", "mood", text, "--column", "mood", "--public", "region", "--out", out)
    rows: list[list[Any]] = [["region", "weight"], ["north", 1.5], ["south", 0.5]]
    book, plain = save(tmp_path / "w.xlsx", ["notes"], weights=rows), tmp_path / "w.csv"
    plain.write_text("region,weight\nnorth,1.5\nsouth,0.5\n", encoding="utf-8")
    found = moods.json("estimate", "mood", out, "--weights", book, "--sheet", "weights")
    assert found == moods.json("estimate", "mood", out, "--weights", plain)
    assert "there are 2 sheets: Sheet, weights" in moods.error("estimate", "mood", out, "--weights", book)


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("people.xlsx", ("--delimiter", ";"), "--delimiter is for CSV files, and"),
        ("people.csv", ("--sheet", "a"), "--sheet is for Excel files, and"),
    ],
)
def test_option_for_files_of_another_kind_is_refused(
    moods: CommandLine, tmp_path: Path, name: str, options: tuple[str, ...], why: str
) -> None:
    save(tmp_path / "people.xlsx", *ROWS)
    (tmp_path / "people.csv").write_text(TEXT, encoding="utf-8")
    assert why in moods.error("spend-many", tmp_path / name, "mood", *options, code=2)


def test_sheet_without_headings_names_its_columns_by_numbers(moods: CommandLine, tmp_path: Path) -> None:
    people = save(tmp_path / "people.xlsx", *ROWS[1:])
    words = ("spend-many", people, "mood", "--no-header", "--user-column", "1")
    assert moods.json(*words)["spent"] == 3


def test_percentages_are_read_as_they_are_held_with_a_note(moods: CommandLine, tmp_path: Path) -> None:
    moods("collection", "add", "part", "laplace", "--epsilon", "1", "--lower", "0", "--upper", "1")
    people = save(tmp_path / "people.xlsx", ["user", "part"], ["ada", 0.5])
    book = openpyxl.load_workbook(people)
    book.active["B2"].number_format = "0%"
    book.save(people)
    shown = moods("randomize", "part", people, "--column", "part", "--out", tmp_path / "r").stderr
    assert "cell B2 is shown in the format 0%, and holds 0.5, which is read" in shown


def test_excel_file_without_openpyxl_says_what_to_install(
    moods: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = save(tmp_path / "people.xlsx", *ROWS)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert "Install it: pip install 'ldp-budget[excel]'" in moods.error("spend-many", people, "mood")


# -- files of figures ----------------------------------------------------------------------------------------


def cells_of(place: Path) -> list[tuple[Any, ...]]:
    return [tuple(cell.value for cell in row) for row in openpyxl.load_workbook(place)["Figures"].iter_rows()]


@pytest.fixture
def reports(moods: CommandLine, tmp_path: Path) -> Path:
    text, out = tmp_path / "people.csv", tmp_path / "r"
    text.write_text(TEXT, encoding="utf-8")
    moods("randomize", "mood", text, "--column", "mood", "--public", "region", "--out", out)
    return out


@pytest.mark.parametrize("options", [(), ("--weights", "region"), ("--by-round",)])
def test_estimate_writes_the_figures_of_its_json(
    moods: CommandLine, reports: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    if "--weights" in options:
        (tmp_path / "w.csv").write_text("region,weight\nnorth,1.5\nsouth,0.5\n", encoding="utf-8")
        options = ("--weights", str(tmp_path / "w.csv"))
    place = tmp_path / "figures.xlsx"
    found = moods.json("estimate", "mood", reports, *options, "--xlsx", place)
    (whole,) = found.get("rounds", (found,))
    header, *rows = cells_of(place)
    saved = [dict(zip(header, row, strict=True)) for row in rows]
    assert [row["answer"] for row in saved] == ["good", "bad"]
    assert [row["estimate"] for row in saved] == pytest.approx([row["share"] for row in whole["answers"]], rel=1e-12)


def test_balance_writes_the_printed_amounts_as_numbers(moods: CommandLine, tmp_path: Path) -> None:
    moods("policy", "set", "both", "--limit", "lifetime=20", "--limit", "day=10,1e-6,zcdp")
    moods("spend", "=ada", "mood", "--policy", "both")
    moods("balance", "=ada", "--policy", "both", "--xlsx", tmp_path / "b.xlsx")
    assert cells_of(tmp_path / "b.xlsx") == [
        ("user", "limit", "rule", "amount", "of", "spent", "left", "resets"),
        ("=ada", "lifetime", "basic", "ε", 20, 1, 19, "never"),
        ("=ada", "day", "zcdp", "ε at δ = 1e-06", 10, ANY, None, ANY),
        ("=ada", "day", "zcdp", "ρ", 1.53927, 0.462118, 1.07716, None),
    ]
    moods("spend", "bob", "mood")
    moods("balance", "--all", "--xlsx", tmp_path / "all.xlsx")
    assert [row[0] for row in cells_of(tmp_path / "all.xlsx")[1:]] == ["1", "2"]


SURVEY = """
[survey]
name = "health"
epsilon = 3
rounds = 2
answer = "all"
[[question]]
name = "mood"
text = "How are you?"
kind = "choice"
categories = ["good", "bad"]
[[question]]
name = "age"
text = "How old are you?"
kind = "number"
lower = 0
upper = 100
"""


@pytest.mark.parametrize(
    ("words", "first", "rows"),
    [
        (("plan", "oue", "--domain-size", "5", "--reports", "10", "--total-epsilon", "4"), "basic", 2),
        (("plan", "--answers", "6", "--respondents", "3000", "--epsilon", "1"), "subset-selection", 13),
        (("plan", "--collection", "mood", "--respondents", "900"), "random-substitution", 1),
        (("plan", "--survey", "health.toml", "--respondents", "900"), "1", 4),
        (("plan", "--survey", "health.toml", "--panel", "900"), "mood", 6),
        (("survey", "plan", "health.toml", "--respondents", "900"), "1", 4),
    ],
)
def test_plans_write_their_rows(
    moods: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], first: str, rows: int
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "health.toml").write_text(SURVEY, encoding="utf-8")
    moods(*words, "--xlsx", "plan.xlsx")
    found = cells_of(tmp_path / "plan.xlsx")
    assert (found[1][0], len(found) - 1) == (first, rows)


def test_file_of_figures_replaces_no_file_and_ends_in_xlsx(moods: CommandLine, tmp_path: Path) -> None:
    place = tmp_path / "plan.xlsx"
    place.write_text("mine", encoding="utf-8")
    words = ("plan", "--answers", "6", "--respondents", "3000", "--epsilon", "1", "--xlsx")
    assert "plan.xlsx exists. Nothing was written. Name another file." in moods.error(*words, place)
    assert place.read_text(encoding="utf-8") == "mine"
    assert "--xlsx must end in .xlsx" in moods.error(*words, tmp_path / "plan.csv", code=2)
