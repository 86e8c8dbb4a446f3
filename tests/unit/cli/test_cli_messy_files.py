"""Files as people have them: from spreadsheets, in other encodings, with holes. Messages say where in the file."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine

PLAIN = "user,town,answer\nann,Köln,yes\nbob,Ulm,no\ncy,Bonn,no\n"
SPREADSHEET = (
    '\ufeffuser;town;answer\r\n"ann";Köln;yes\r\n\r\nbob;"Ulm; Donau";no\r\n\r\n"c""y";"two\r\nlines";no\r\n\r\n'
)


def poll_and_age(command: CommandLine) -> None:
    command("policy", "set", "default", "--limit", "lifetime=1")
    command("collection", "add", "poll", "oue", "--epsilon", "1", "--categories", "yes,no")
    command("collection", "add", "age", "laplace", "--epsilon", "1", "--lower", "18", "--upper", "70")


@pytest.fixture
def survey_line(command: CommandLine, begun: Any) -> CommandLine:
    """A ledger with a poll and a range of ages."""
    begun(poll_and_age, command)
    return command


@pytest.fixture
def randomize(survey_line: CommandLine, tmp_path: Path) -> Callable[..., Any]:
    """Randomize `answers.csv` of these bytes; what it printed."""

    def run(content: str | bytes, collection: str, column: str, *options: object, code: int = 0) -> Any:
        source = tmp_path / "answers.csv"
        source.write_bytes(content if isinstance(content, bytes) else content.encode())
        words = ["randomize", collection, source, "--column", column, "--out", tmp_path / "r", *options]
        words += [] if "--spend" in options else ["--overwrite"]
        return survey_line(*words, code=code)

    return run


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


# -- how a file is written down ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "options"),
    [
        (PLAIN.encode(), []),
        (PLAIN.encode("utf-8-sig"), []),
        (PLAIN.replace("\n", "\r\n").encode(), []),
        (PLAIN.replace("\n", "\r").encode(), []),
        (PLAIN.replace("\n", "\n\n").encode(), []),
        (PLAIN.removesuffix("\n").encode(), []),
        (PLAIN.replace(",", ";").encode(), ["--delimiter", ";"]),
        (PLAIN.replace(",", "\t").encode(), ["--delimiter", "tab"]),
        (PLAIN.replace(",", "|").encode("latin-1"), ["--delimiter", "|", "--encoding", "latin-1"]),
        (PLAIN.encode("cp1252"), ["--encoding", "cp1252"]),
        (PLAIN.encode("utf-16"), ["--encoding", "utf-16"]),
        (SPREADSHEET.encode(), ["--delimiter", ";"]),
        (PLAIN.partition("\n")[2].replace("ann", "user").encode(), ["--no-header"]),
    ],
)
def test_randomize_reads_a_file_in_the_given_layout(
    survey_line: CommandLine, randomize: Callable[..., Any], tmp_path: Path, content: bytes, options: list[str]
) -> None:
    answer, user = ("3", "1") if "--no-header" in options else ("answer", "user")
    done = randomize(content, "poll", answer, "--spend", "--user-column", user, *options)
    assert "3 reports written" in done.stderr
    assert survey_line.json("balance", "bob")["limits"][0]["spent"]["epsilon"] == 1
    listed = survey_line("spend-many", tmp_path / "answers.csv", "poll", *options)
    assert listed.stdout == "spent: 0, refused: 3, repeated: 0\n"
    with (tmp_path / "answers.csv").open("rb") as file:
        piped = survey_line("spend-many", "-", "poll", *options, input=file.read())
    assert piped.stdout == listed.stdout


# -- rows that are wrong ----------------------------------------------------------------------------------------

HOLES = "user,age\nann,20\nbob,\n,30\ncy,old\ndan\neve,200\nfay,NA\ngil,inf\nhal,40\n"


def test_skip_invalid_counts_and_writes_the_skipped_rows(
    survey_line: CommandLine, randomize: Callable[..., Any], tmp_path: Path
) -> None:
    options = ["--user-column", "user", "--spend", "--skip-invalid", "--missing", "NA"]
    done = randomize(HOLES, "age", "age", *options)
    assert "6 rows skipped as invalid: see" in done.stderr
    assert "1 row left out: the answer is missing" in done.stderr
    assert "2 reports written" in done.stderr
    spent = [survey_line.json("balance", user)["limits"][0]["spent"]["epsilon"] for user in ("ann", "bob", "eve")]
    assert spent == [1, 0, 0]
    header, *skipped = rows(tmp_path / "r.skipped.csv")
    assert header == ["line", "row", "column", "reason"]
    assert skipped == [
        ["3", "2", "age", "the answer is empty: the domain is numbers from 18 to 70"],
        ["4", "3", "user", "the user is missing"],
        ["5", "4", "age", "'old' is not an answer: the domain is numbers from 18 to 70"],
        ["6", "5", "", "1 cell instead of 2, as in the header"],
        ["7", "6", "age", "'200' is not an answer: the domain is numbers from 18 to 70"],
        ["8", "7", "age", "missing: 'NA'"],
        ["9", "8", "age", "'inf' is not an answer: the domain is numbers from 18 to 70"],
    ]


@pytest.mark.slow
def test_clip_counts_numbers_beyond_the_range(
    survey_line: CommandLine, randomize: Callable[..., Any], tmp_path: Path
) -> None:
    survey_line("collection", "add", "exact", "laplace", "--epsilon", "1000", "--lower", "18", "--upper", "70")
    done = randomize("age\n17.9\n1e9\n-5\n70\n18\n", "exact", "age", "--clip")
    assert "3 numbers outside the range: replaced by the nearest end" in done.stderr
    mean = survey_line.json("estimate", "exact", tmp_path / "r")["mean"]
    assert mean == pytest.approx((18 + 70 + 18 + 70 + 18) / 5, abs=0.5)
    for bad in ("old", "nan", "inf", ""):
        message = randomize(f'age,x\n20,1\n"{bad}",1\n', "exact", "age", "--clip", code=1).stderr
        what = f"'{bad}' is not an answer" if bad else "the answer is empty"
        assert f"line 3, column age, row 2 below the header: {what}: the domain is numbers from 18 to 70" in message


def test_missing_answer_is_an_error_unless_named(randomize: Callable[..., Any]) -> None:
    text = "user,age\nann,20\nbob,\ncy,-9\n"
    assert "line 3, column age" in randomize(text, "age", "age", code=1).stderr
    assert "line 4, column age" in randomize(text, "age", "age", "--missing", "", code=1).stderr
    done = randomize(text, "age", "age", "--missing", "", "--missing", "-9")
    assert "2 rows left out: the answer is missing\n" in done.stderr
    assert "1 report written" in done.stderr


def test_spend_many_skips_invalid_users(survey_line: CommandLine, tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    people.write_text('user,town\nann,Ulm\n"",Bonn\nbob\nn/a,Ulm\ncy,Köln\n', encoding="utf-8")
    skipped = tmp_path / "skipped.csv"
    options = ["--skip-invalid", "--skipped-to", skipped, "--missing", "n/a"]
    for source, piped in ((people, None), ("-", people.read_bytes())):
        done = survey_line("spend-many", source, "poll", *options, "--json", input=piped)
        assert '"skipped": 2' in done.stdout
        assert f"2 rows skipped as invalid: see {skipped}" in done.stderr
        assert rows(skipped)[1:] == [
            ["3", "2", "user", "the user is missing"],
            ["4", "3", "", "1 cell instead of 2, as in the header"],
            ["5", "4", "user", "missing: 'n/a'"],
        ]
    message = survey_line.error("spend-many", people, "poll", "--skip-invalid", code=2)
    assert "--skip-invalid needs --skipped-to" in message
