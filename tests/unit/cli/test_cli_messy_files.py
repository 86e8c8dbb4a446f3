"""Files as people have them: from spreadsheets, in other encodings, with holes. Messages say where in the file."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
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


@pytest.mark.parametrize(
    ("content", "options", "code", "said"),
    [
        (
            PLAIN.encode("latin-1"),
            [],
            1,
            "is not a CSV file in UTF-8: line 2 has byte 0xf6. Name its encoding",
        ),
        (PLAIN.replace(",", ";").encode(), [], 2, "The first line is one cell: --delimiter ';' would split it"),
        (PLAIN.encode(), ["--delimiter", ";"], 2, "has no column 'answer'. Columns: user,town,answer"),
        (PLAIN.encode(), ["--delimiter", "::"], 2, "--delimiter must be one character or tab: got '::'"),
        (PLAIN.encode(), ["--delimiter", '"'], 2, "--delimiter must be one character or tab"),
        (PLAIN.encode(), ["--encoding", "utf-9"], 2, "--encoding must be a text encoding such as utf-8"),
        (PLAIN.encode(), ["--encoding", "hex"], 2, "--encoding must be a text encoding"),
        (PLAIN.encode(), ["--encoding", "utf-16"], 1, "is not a CSV file in UTF-16"),
        (b"user,town,answer\n", [], 1, "has no rows below its header. Nothing was written"),
        (b"user,answer,answer\nann,yes,no\n", [], 2, "has 2 columns named 'answer'"),
        (
            SPREADSHEET.encode(),
            ["--delimiter", ";", "--clip"],
            2,
            "--clip needs a collection of numbers",
        ),
    ],
)
def test_randomize_with_the_wrong_layout_names_the_mistake(
    randomize: Callable[..., Any], tmp_path: Path, content: bytes, options: list[str], code: int, said: str
) -> None:
    message = randomize(content, "poll", "answer", *options, code=code).stderr
    assert said in message
    assert not (tmp_path / "r").exists()


def test_error_counts_empty_lines_and_long_cells(randomize: Callable[..., Any]) -> None:
    text = 'user,answer\n\n"long\nname",yes\n\nbob,maybe\n'
    message = randomize(text, "poll", "answer", code=1).stderr
    assert (
        "answers.csv, line 6, column answer, row 2 below the header: 'maybe' is not an answer: the domain is one of yes, no"
        in message
    )


@pytest.mark.parametrize("later", [",yes", "cy", "cy,yes,no"])
@pytest.mark.parametrize("place", [0, 1])
def test_error_names_the_first_wrong_row(randomize: Callable[..., Any], later: str, place: int) -> None:
    lines = ["user,answer", *["ann,yes"] * place, "bob,maybe", later, "dan,perhaps"]
    message = randomize("\n".join(lines), "poll", "answer", "--user-column", "user", code=1).stderr
    assert f"answers.csv, line {place + 2}, column answer" in message
    assert "'maybe' is not an answer" in message


@pytest.mark.parametrize("first", [",yes", "cy", "cy,yes,no"])
def test_error_names_a_first_row_without_cells_or_user(randomize: Callable[..., Any], first: str) -> None:
    message = randomize(
        f"user,answer\n{first}\nbob,maybe\n", "poll", "answer", "--user-column", "user", code=1
    ).stderr
    assert "answers.csv, line 2" in message


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


def test_skipped_to_names_the_file_and_json_has_the_count(randomize: Callable[..., Any], tmp_path: Path) -> None:
    done = randomize(HOLES, "age", "age", "--skip-invalid", "--skipped-to", tmp_path / "s.csv", "--json")
    assert '"skipped": 6' in done.stdout
    assert len(rows(tmp_path / "s.csv")) == 7
    assert not (tmp_path / "r.skipped.csv").exists()
    message = randomize(HOLES, "age", "age", "--skipped-to", "s.csv", code=2).stderr
    assert "--skipped-to needs --skip-invalid" in message


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


def test_randomize_without_a_valid_row_names_the_first_reason(randomize: Callable[..., Any], tmp_path: Path) -> None:
    message = randomize("user,age\nann,x\nbob,y\n", "age", "age", "--skip-invalid", code=1).stderr
    assert "has no row with a valid answer. Nothing was written. The first problem: " in message
    assert (
        "line 2, column age, row 1 below the header: 'x' is not an answer: the domain is numbers from 18 to 70"
        in message
    )
    assert not (tmp_path / "r.skipped.csv").exists()


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


@pytest.mark.exhaustive
def test_skip_invalid_of_many_rows_keeps_the_valid_ones(
    survey_line: CommandLine, randomize: Callable[..., Any], tmp_path: Path
) -> None:
    lines = [f"u{number},{number % 100}" for number in range(100_000)]
    done = randomize("\n".join(["user,age", *lines]), "age", "age", "--skip-invalid", "--clip", "--missing", "99")
    assert "1000 rows left out" in done.stderr
    assert "46000 numbers outside the range" in done.stderr  # 0 to 17, and 71 to 98
    assert "99000 reports written" in done.stderr
    odd = [f"u{number},{number}x" for number in range(100_000)]
    done = randomize("\n".join(["user,age", *odd, "v,20"]), "age", "age", "--skip-invalid")
    assert "100000 rows skipped as invalid" in done.stderr
    assert "1 report written" in done.stderr
