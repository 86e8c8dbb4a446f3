"""Tables as people have them: one form of texts and numbers, rows that are no people, and hints that lead on."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_budget._numbers import value_of
from ldp_budget_cli.missing_values import MissingValues
from ldp_budget_cli.people import Footers, why_no_user
from ldp_budget_cli.text_lists import read_names, split_names

if TYPE_CHECKING:
    from command_line import CommandLine

CAFE = "café"


def collections(command: CommandLine) -> None:
    command("policy", "set", "default", "--limit", "lifetime=20")
    command("collection", "add", "poll", "grr", "--epsilon", "1", "--categories", f"yes,no,{CAFE}")
    command("collection", "add", "score", "laplace", "--epsilon", "1", "--lower", "0", "--upper", "10")
    command("collection", "add", "word", "cms", "--epsilon", "1", "--hashes", "4", "--width", "16")


@pytest.fixture
def polls(command: CommandLine, begun: Callable[..., None]) -> CommandLine:
    begun(collections, command)
    return command


@pytest.fixture
def randomize(polls: CommandLine, tmp_path: Path) -> Callable[..., Any]:
    """Charge and randomize the text of a CSV file; without `code` 0 the run must fail."""

    def run(text: str, *options: object, name: str = "poll", column: str = "answer", code: int = 0) -> str:
        source = tmp_path / "answers.csv"
        source.write_text(text, encoding="utf-8", newline="")
        words = ["--column", column, "--user-column", "user", "--spend", "--out", tmp_path / "r"]
        found: str = polls("randomize", name, source, *words, *options, code=code).stderr
        return found

    return run


@pytest.fixture
def spend_many(polls: CommandLine, tmp_path: Path) -> Callable[..., Any]:
    def run(text: str, *options: object, code: int = 0) -> str:
        source = tmp_path / "users.csv"
        source.write_text(text, encoding="utf-8", newline="")
        found = polls("spend-many", source, "poll", "--key", "k", *options, code=code)
        return str(found.stdout + found.stderr)

    return run


# -- lists -----------------------------------------------------------------------------------------------------


@given(st.lists(st.text("ab ,;'é", min_size=1).filter(lambda each: each.strip()), min_size=1, max_size=4))
def test_split_names_of_quoted_names_returns_them(names: list[str]) -> None:
    text = ",".join(f'"{each}"' for each in names)
    try:
        assert split_names("--categories", text) == tuple(each.strip() for each in names)
    except click.UsageError:
        assert any("'" in each for each in names)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('"black, matte",red', ("black, matte", "red")),
        ('red, "black, matte"', ("red", "black, matte")),
        (unicodedata.normalize("NFD", CAFE) + ", tea\u200b", (CAFE, "tea")),
        ('5" pipe,6" pipe', ('5" pipe', '6" pipe')),
        ("don't know,yes", ("don't know", "yes")),
    ],
)
def test_split_names_parses_a_list_once(text: str, names: tuple[str, ...]) -> None:
    assert split_names("--categories", text) == names


@pytest.mark.parametrize("text", ['"black, matte,red', "'black, matte',red", "“black, matte”,red", '"a"b,c', "a\nb"])
def test_split_names_of_unmatched_quotes_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match=r"quotes .*double quotes around a name with a comma"):
        split_names("--categories", text)


def test_read_names_of_a_file_takes_the_quotes_off_a_line(tmp_path: Path) -> None:
    place = tmp_path / "names.txt"
    place.write_text('\ufeff"black, matte"\nsilver, shiny\n\n"say ""hi"""\n', encoding="utf-8")
    assert read_names("categories", str(place)) == ("black, matte", "silver, shiny", 'say "hi"')
    place.write_text('a\n"b", c\n', encoding="utf-8")
    with pytest.raises(click.UsageError, match="line 2: the quotes"):
        read_names("categories", str(place))


# -- one number ------------------------------------------------------------------------------------------------


@given(st.decimals(-1000, 1000, places=2))
def test_missing_number_is_missing_in_every_notation(number: Any) -> None:
    missing = MissingValues([f"{number:f}"])
    assert all(each in missing for each in (f"{number:f}00", f" {number:f}", f"{number:E}"))
    assert f"{number + 1:f}" not in missing
    assert "x" not in missing
    assert value_of("x") is None


def test_missing_code_leaves_out_every_notation(randomize: Callable[..., Any]) -> None:
    text = "user,answer\na,99\nb,99.0\nc,5\nd,9.9e1\n"
    assert "3 rows left out: the answer is missing" in randomize(text, "--missing", "99", name="score")


def test_missing_code_of_yes_no_is_not_an_answer(polls: CommandLine, tmp_path: Path) -> None:
    polls("collection", "add", "yn", "grr", "--epsilon", "1", "--categories", "no,yes")
    (tmp_path / "a.csv").write_text("user,answer\na,1\nb,0\nc,true\n", encoding="utf-8")
    words = ["randomize", "yn", tmp_path / "a.csv", "--column", "answer", "--out", tmp_path / "r"]
    assert "1 row left out" in polls(*words, "--missing", "0").stderr
    assert "3 reports written" in polls(*words, "--overwrite").stderr


@pytest.mark.parametrize("cell", ["1_000", "１", "0x1", "inf", "1,5"])
def test_cell_that_is_no_number_is_refused(randomize: Callable[..., Any], cell: str) -> None:
    message = randomize(f'user,answer\na,5\nb,"{cell}"\n', name="score", code=1)
    assert f"line 3, column answer, row 2 below the header: {cell!r} is not an answer" in message


# -- users -----------------------------------------------------------------------------------------------------

NO_PEOPLE = [
    "101.0", "7.", "1.23457E+11", "nan", "NaN", "NULL", "null", "None", "N/A", "#N/A", "#REF!", "-", "?", "Total", "total:",
    "Grand Total", "Summe", "합계", "Exported on 2026-11-28", "Generated by Qualtrics", "Exportiert am 28.11.2026",
    '{"ImportId":"_recordId"}', "(300 rows affected)", "Page 1 of 3", "End of report", "Source: census", "\u3164", "\u2800",
    "\u200b", " ", "\u00a0",
]  # fmt: skip
PEOPLE = [
    "101",
    "007",
    "u1",
    "Anna Null",
    "Null",
    "Nan",
    "Tom Total",
    "NA",
    "a.b",
    "1.5",
    "12e4",
    "한국",
    "p-7",
    "Exporter",
]


@pytest.mark.parametrize("text", NO_PEOPLE)
def test_cell_that_is_no_person_has_a_reason(text: str) -> None:
    assert why_no_user(text, exact=False)


@pytest.mark.parametrize("text", PEOPLE)
def test_name_of_a_person_has_no_reason(text: str) -> None:
    assert why_no_user(text, exact=False) == ""


def test_footers_are_rows_with_a_sentence_alone_or_the_header_again() -> None:
    footers = Footers(["user", "a", "b"], 0)
    assert not footers.why(["u1", "x", ""])
    assert not footers.why(["u2", "", ""])
    assert "no other cell" in footers.why(["Stand vom 28. November", "", " "])
    assert "the header again" in footers.why(["user", "a", "b"])
    named = Footers(["user", "a", "b"], 0)
    assert not named.why(["Anna Schmidt", "x", ""])
    assert not named.why(["Bo Li", "", ""])


@pytest.mark.parametrize("text", ["u1\nExported on 2026-11-28\n", "u1\nTotal\n", "u1\n101.0\n101\n", "u1\nnull\n"])
def test_spend_many_charges_no_row_that_is_no_person(
    spend_many: Callable[..., Any], polls: CommandLine, text: str
) -> None:
    message = spend_many(f"user\n{text}", code=1)
    assert "line 3" in message
    assert "No charge of a user 'u1' yet" in polls("balance", "u1").stderr


def test_qualtrics_headers_are_not_charged(spend_many: Callable[..., Any], randomize: Callable[..., Any]) -> None:
    head = 'user,answer\nResponse ID,Your answer?\n"{""ImportId"":""_recordId""}","{""ImportId"":""QID1""}"\n'
    said = spend_many(f"{head}R_1,yes\nR_2,no\n")
    assert "spent: 2" in said
    assert "lines 2 and 3 are further headers (Qualtrics)" in said
    assert "2 reports written" in randomize(f"{head}R_3,yes\nR_4,no\n", name="word")
    said = spend_many(f"{head}R_1,yes\n", "--no-header", "--user-column", "1", "--key", "another")
    assert "spent: 1" in said
    assert "lines 1 and 2 and 3 are further headers (Qualtrics)" in said


@pytest.mark.slow
def test_parquet_with_qualtrics_headers_is_refused(polls: CommandLine, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'ldp-budget[interop]'")
    parquet = pytest.importorskip("pyarrow.parquet", reason="no pyarrow: pip install 'ldp-budget[interop]'")
    users = {"user": ["Response ID", '{"ImportId":"_recordId"}', "R_1"]}
    parquet.write_table(pyarrow.table(users), tmp_path / "u.parquet")
    assert "Qualtrics" in polls.error("spend-many", tmp_path / "u.parquet", "poll", code=1)
    parquet.write_table(pyarrow.table({"user": ["101", "101.0"]}), tmp_path / "u.parquet")
    assert "may be the user '101'" in polls.error("spend-many", tmp_path / "u.parquet", "poll", code=1)


def test_users_that_look_alike_are_counted(spend_many: Callable[..., Any]) -> None:
    said = spend_many("user\nann\nаnn\n007\n7\n")
    assert "4 names differ from another name only by case or spaces" in said
    assert "Characters that look alike, and one number in two notations, count too" in said


# -- columns ---------------------------------------------------------------------------------------------------


def test_column_is_found_in_every_form(randomize: Callable[..., Any]) -> None:
    header = f"user, {unicodedata.normalize('NFD', CAFE)}\u200b"
    assert "1 report written" in randomize(f"{header}\na,yes\n", column=CAFE)


@pytest.mark.parametrize(
    ("header", "column", "why"),
    [("Answer", "answer", "Did you mean 'Answer'?"), ("аnswer", "answer", "U+0430 CYRILLIC SMALL LETTER A")],
)
def test_unknown_column_names_the_one_that_was_meant(
    randomize: Callable[..., Any], header: str, column: str, why: str
) -> None:
    assert why in randomize(f"user,{header}\na,yes\n", column=column, code=2)


def test_answer_that_differs_by_an_invisible_character_shows_its_code_point(randomize: Callable[..., Any]) -> None:
    message = randomize("user,answer\na,y\u00ades\n", code=1)
    assert "has U+00AD SOFT HYPHEN where 'yes' has nothing" in message


def test_file_with_another_separator_is_told_which_one(randomize: Callable[..., Any]) -> None:
    message = randomize("user;answer\na;yes\n", code=2)
    assert "--delimiter ';' would split it" in message
    assert "Did you mean" not in message


def test_answer_that_looks_like_one_shows_its_code_points(randomize: Callable[..., Any]) -> None:
    assert "U+0443 CYRILLIC SMALL LETTER U where 'yes'" in randomize("user,answer\na,уes\n", code=1)


def test_public_column_is_found_in_every_form(polls: CommandLine, tmp_path: Path) -> None:
    header = unicodedata.normalize("NFD", f"user,answer,{CAFE}")
    rows = "".join(f"u{number},yes,north\u200b\n" for number in range(60))
    (tmp_path / "p.csv").write_text(f"{header}\n{rows}", encoding="utf-8")
    words = ["randomize", "poll", tmp_path / "p.csv", "--column", "answer", "--out", tmp_path / "p"]
    assert f"Public: {CAFE} travels" in polls(*words, "--public", unicodedata.normalize("NFD", CAFE)).stderr
    found = polls.json("estimate", "poll", tmp_path / "p", "--by", unicodedata.normalize("NFD", CAFE))
    assert [each["group"] for each in found["groups"]] == ["north"]


@pytest.mark.slow
def test_parquet_of_truth_values_is_read_as_yes_and_no(polls: CommandLine, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'ldp-budget[interop]'")
    parquet = pytest.importorskip("pyarrow.parquet", reason="no pyarrow: pip install 'ldp-budget[interop]'")
    polls("collection", "add", "yn", "grr", "--epsilon", "1", "--categories", "no,yes")
    for values in ([True, False, None], [1.0, 0.0, None], [1, 0, None]):
        parquet.write_table(pyarrow.table({"user": ["a", "b", "c"], "x": values}), tmp_path / "a.parquet")
        words = ["--column", "x", "--missing", "", "--out", tmp_path / "r", "--overwrite"]
        said = polls("randomize", "yn", tmp_path / "a.parquet", *words).stderr
        assert "2 reports written" in said
        assert "1 row left out: the answer is missing" in said
    parquet.write_table(pyarrow.table({"user": ["a"], "x": [True]}), tmp_path / "a.parquet")
    assert "got the type bool" in polls.error(
        "randomize", "poll", tmp_path / "a.parquet", "--column", "x", "--out", tmp_path / "q", code=1
    )


# -- CSV -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["sep=;", "SEP=;", '"sep=;"', "\ufeffsep=;"])
def test_separator_line_is_used(randomize: Callable[..., Any], line: str) -> None:
    assert "2 reports written" in randomize(f"{line}\r\nuser;answer\r\na;yes\r\nb;no\r\n")


def test_separator_line_keeps_line_numbers_and_refuses_another_delimiter(randomize: Callable[..., Any]) -> None:
    text = "sep=;\nuser;answer\na;maybe\n"
    assert "line 3, column answer" in randomize(text, code=1)
    assert "the first line of" in randomize(text, "--delimiter", "tab", code=2)
    assert "1 report written" in randomize(text.replace("maybe", "yes"), "--delimiter", ";")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            'a,"open,yes\nb,x,no\nc,"z",no\n',
            "line 2: the row begins a cell with a quote, and the next quote, first in line 4",
        ),
        ('a,x,yes\nb,"y"z,no\n', "line 3: the row begins a cell with a quote, and the next quote, in the same line"),
        ('a,x,yes\nb,"y,no\n', "line 3: unclosed quote"),
        ('a,"x,yes\nb,y,no\nc,z",no\n', "line 2: a quote closes too late"),
    ],
)
def test_quote_that_does_not_close_names_its_line(randomize: Callable[..., Any], text: str, why: str) -> None:
    assert why in randomize(f"user,note,answer\n{text}", code=1)


def test_cell_of_several_lines_is_one_cell(randomize: Callable[..., Any]) -> None:
    assert "2 reports written" in randomize('user,note,answer\na,"one\ntwo, three\nfour",yes\nb,"x\r\ny",no\n')


# -- inputs that cannot work -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("service", "why"),
    [
        ("https://host/path", "without a path, because the service has its pages at /s/NAME"),
        ("https://", "with a host"),
        ("https://user:secret@host", "without a user"),
        ("https://host:99999", "with a host"),
        ("https://[::1", "with a host"),
        ("host", "begins with https://"),
    ],
)
def test_invite_to_a_url_that_cannot_work_is_refused(
    polls: CommandLine, tmp_path: Path, service: str, why: str
) -> None:
    (tmp_path / "u.csv").write_text("user\nann\n", encoding="utf-8")
    assert why in polls.error("invite", "poll", tmp_path / "u.csv", "--service", service, code=2)


def test_invite_to_the_root_of_a_host_prints_links(polls: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text("user\nann\n", encoding="utf-8")
    words = ("invite", "poll", tmp_path / "u.csv", "--service")
    for service in ("https://host", "https://host:8443/", "http://127.0.0.1:8000"):
        assert f"{service.rstrip('/')}/s/poll#" in polls(*words, service).stdout


def test_empty_ledger_file_is_refused_with_what_to_do(command: CommandLine, tmp_path: Path) -> None:
    empty = tmp_path / "empty.db"
    empty.touch()
    for words in (("policy", "list"), ("policy", "set", "default", "--limit", "lifetime=1"), ("ledger", "init")):
        message = command.error("--ledger", empty, *words, code=1)
        assert "the file is empty, and no ledger. If it never was a ledger, delete it" in message
    assert empty.stat().st_size == 0


@pytest.mark.parametrize("name", ["poll.reports.skipped.csv", "poll.reports.partial", "answers.csv"])
def test_estimate_of_a_side_file_names_the_report_file(polls: CommandLine, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("user,answer\nann,yes\n", encoding="utf-8")
    message = polls.error("estimate", "poll", tmp_path / name, code=1)
    assert (f"The reports are in {tmp_path / 'poll.reports'}" in message) == name.startswith("poll")
    assert "ldp-budget randomize NAME FILE" in message or name.startswith("poll")
