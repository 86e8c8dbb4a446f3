"""Clean input: users and answers are trimmed and in NFC; what differs only by case or spaces is counted and said."""

from __future__ import annotations

import csv
import stat
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine

CAFE = "café"
MESSY = (
    "user,answer\n"
    f"ann, yes \nbob,{unicodedata.normalize('NFD', CAFE)}\ncy,\u200byes\n"
    "dan,YES\neve,maybe\nfay,\n ,yes\ngil,yes,no\n"
)


def polls(command: CommandLine) -> None:
    command("policy", "set", "default", "--limit", "lifetime=2")
    command("collection", "add", "poll", "grr", "--epsilon", "1", "--categories", f"yes,no,{CAFE}")
    command("collection", "add", "word", "cms", "--epsilon", "1", "--hashes", "4", "--width", "16")


@pytest.fixture
def survey_line(command: CommandLine, begun: Callable[..., None]) -> CommandLine:
    begun(polls, command)
    return command


@pytest.fixture
def randomize(survey_line: CommandLine, tmp_path: Path) -> Callable[..., Any]:
    """Charge and randomize the text of a CSV file, or an Arrow file of its columns, as a collection's reports."""

    def run(text: str, *options: object, name: str = "poll", code: int = 0, kind: str = "csv") -> Any:
        source = tmp_path / f"answers.{kind}"
        if kind == "csv":
            source.write_text(text, encoding="utf-8")
        else:
            pyarrow = pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'ldp-budget[interop]'")
            pytest.importorskip("pyarrow.feather", reason="no pyarrow: pip install 'ldp-budget[interop]'")
            header, *rows = [line.split(",")[:2] for line in text.splitlines()]
            columns = {title: [row[at] for row in rows] for at, title in enumerate(header)}
            pyarrow.feather.write_feather(pyarrow.table(columns), str(source))
        words = ["--column", "answer", "--user-column", "user", "--spend", "--out", tmp_path / "r"]
        return survey_line("randomize", name, source, *words, *options, code=code)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "arrow"])
def test_randomize_trims_and_normalizes_answers(randomize: Callable[..., Any], kind: str) -> None:
    text = "\n".join(MESSY.splitlines()[:4]) + "\n"
    assert "3 reports written" in randomize(text, kind=kind).stderr


def test_randomize_says_the_skipped_rows_by_reason(randomize: Callable[..., Any], tmp_path: Path) -> None:
    said = randomize(MESSY, "--skip-invalid").stderr
    place = tmp_path / "r.skipped.csv"
    assert f"5 rows skipped as invalid: see {place}, which has true answers\n" in said
    for reason in (
        "1 row: only case or spaces differ from an answer (--ignore-case accepts it)",
        "1 row: not an answer",
        "1 row: the answer is empty",
        "1 row: the user is missing",
        "1 row: another number of cells than columns",
    ):
        assert f"\n  {reason}\n" in said
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    with place.open(newline="", encoding="utf-8") as file:
        assert [row["row"] for row in csv.DictReader(file)] == ["4", "5", "6", "7", "8"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "arrow"])
def test_randomize_ignore_case_joins_answers(randomize: Callable[..., Any], kind: str) -> None:
    text = "user,answer\nann,YES\nbob,No\ncy,  no \n"
    message = randomize(text, code=1, kind=kind).stderr
    assert "'YES' is not an answer" in message
    assert "with --ignore-case it counts as 'yes'" in message
    assert "3 reports written" in randomize(text, "--ignore-case", kind=kind).stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "arrow"])
def test_exact_users_rejects_names_that_would_be_trimmed(
    randomize: Callable[..., Any], survey_line: CommandLine, tmp_path: Path, kind: str
) -> None:
    text = f"user,answer\nann,yes\n bob ,no\n{unicodedata.normalize('NFD', CAFE)},no\n"
    said = randomize(text, "--exact-users", "--skip-invalid", kind=kind).stderr
    assert "2 rows: the user has spaces or invisible characters at an end" in said
    assert "1 report written" in said
    words = ["--exact-users", "--skip-invalid", "--skipped-to", tmp_path / "s.csv"]
    assert survey_line.json("spend-many", tmp_path / f"answers.{kind}", "poll", *words) == {
        **{"spent": 1, "refused": 0, "repeated": 0, "skipped": 2}
    }
    assert survey_line.json("spend-many", tmp_path / f"answers.{kind}", "poll")["spent"] == 2


def test_repeated_run_of_trimmed_users_is_charged_once(survey_line: CommandLine, tmp_path: Path) -> None:
    for text in ("user\nann\nbob\n", "user\n ann\nbob \n"):
        (tmp_path / "users.csv").write_text(text)
        said = survey_line.json("spend-many", tmp_path / "users.csv", "poll", "--key", "run")
    assert said == {"spent": 0, "refused": 0, "repeated": 2}


@pytest.mark.slow
def test_empty_round_breaks_no_trend(randomize: Callable[..., Any], survey_line: CommandLine, tmp_path: Path) -> None:
    rows = "".join(f"u{at},{'yes' if at % 3 else 'no'}\n" for at in range(60))
    for name, code in (("one", 0), ("two", 0), ("none", 0)):
        randomize(f"user,answer\n{rows}", code=code)
        (tmp_path / "r").rename(tmp_path / name)
    rounds = [tmp_path / "one", tmp_path / "none", tmp_path / "two"]
    found = survey_line.json("estimate", "poll", *rounds, "--by-round")["rounds"]
    assert [(each["round"], each["reports"], len(each["answers"])) for each in found] == [
        ("one", 60, 3),
        ("none", 0, 0),
        ("two", 60, 3),
    ]
    done = survey_line("estimate", "poll", *rounds, "--by-round")
    assert "Note: none has no reports, so it has no estimate" in done.stderr
    assert "3 rounds" in done.stdout
    rows_of = list(
        csv.DictReader(survey_line("estimate", "poll", *rounds, "--by-round", "--csv").stdout.splitlines())
    )
    assert [row["round"] for row in rows_of] == ["one"] * 3 + ["two"] * 3
    assert "there are no reports" in survey_line.error("estimate", "poll", tmp_path / "none", "--by-round")


# -- the texts that count as answers -------------------------------------------------------------------------------
