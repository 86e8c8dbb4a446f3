"""`ldp-budget contributions`: rows of reports for programs of statistics."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from ldp_budget_cli.app import cli

SURVEY = """
[survey]
name = "health"
epsilon = 6
answer = 2

[[question]]
name = "smoke"
kind = "yes-no"
optional = true

[[question]]
name = "transport"
kind = "tick"
categories = ["bus", "train", "car", "bicycle", "on foot"]
at_most = 2

[[question]]
name = "age"
kind = "number"
lower = 18
upper = 98

[[question]]
name = "income"
kind = "quantile"
lower = 0
upper = 1000
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDP_BUDGET_LEDGER", str(tmp_path / "budget.db"))
    return lambda *words: CliRunner().invoke(cli, list(words))


def _made(run: Any, *words: str) -> Result:
    done: Result = run(*words)
    assert done.exit_code == 0, done.output
    return done


def _rows(path: str = "x.csv") -> tuple[list[str], list[list[str]]]:
    with open(path, newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    return head, rows


def _collected(run: Any, name: str, mechanism: str, categories: str, answers: list[str], public: list[str]) -> None:
    """Collect answers with the public column `region`."""
    _made(run, "collection", "add", name, *mechanism.split(), "--categories", categories)
    with open("a.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("user", "region", name)])
        csv.writer(file).writerows(
            (f"u{place}", *each) for place, each in enumerate(zip(public, answers, strict=True))
        )
    _made(run, "randomize", name, "a.csv", "--column", name, "--public", "region", "--out", "r.reports")


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", ["grr --epsilon 2", "oue --epsilon 1", "subset-selection --epsilon 1", "sue --epsilon 2"]
)
def test_contributions_of_a_choice_average_to_its_estimate_and_raw_columns_to_p_and_q(
    run: Any, mechanism: str
) -> None:
    _collected(run, "mood", mechanism, "good,fair,bad", ["good", "fair", "bad", "bad"] * 50, ["n", "s"] * 100)
    said = json.loads(_made(run, "contributions", "mood", "r.reports", "--out", "x.csv", "--raw", "--json").stdout)
    head, rows = _rows()
    assert head == ["region", "good", "fair", "bad", "raw.good", "raw.fair", "raw.bad"]
    assert said["reports"] == len(rows) == 200
    values = np.array([list(map(float, row[1:])) for row in rows])
    shares = [
        each["share"] for each in json.loads(_made(run, "estimate", "mood", "r.reports", "--json").stdout)["answers"]
    ]
    assert values[:, :3].mean(axis=0) == pytest.approx(shares, rel=1e-10, abs=1e-12)
    assert values[:, :3].min() < 0
    assert set(values[:, 3:].ravel()) == {0, 1}
    for place, each in enumerate(said["columns"]):
        assert (each["column"], each["answer"], each["lower"], each["upper"]) == (
            head[place + 1],
            each["answer"],
            0,
            1,
        )
        raw = values[:, 3 + place]
        assert (raw - each["q"]) / (each["p"] - each["q"]) == pytest.approx(values[:, place], abs=1e-9)


@pytest.mark.slow
def test_contributions_of_a_questionnaire_leave_cells_of_unasked_questions_empty(run: Any) -> None:
    Path("health.toml").write_text(SURVEY, encoding="utf-8")
    _made(run, "survey", "add", "health.toml")
    people = [
        f"u{each},{'yes' if each % 3 else ''},{'bus; car' if each % 2 else 'none'},{18 + each % 80},{each % 900}"
        for each in range(400)
    ]
    Path("a.csv").write_text("\n".join(["user,smoke,transport,age,income", *people]), encoding="utf-8")
    _made(run, "randomize", "health", "a.csv", "--out", "r.reports")
    done = _made(run, "contributions", "health", "r.reports", "--out", "x.csv", "--json")
    head, rows = _rows()
    assert head[0] == "smoke.yes"
    assert {"smoke.no", "smoke.no answer", "transport.on foot", "age", "income"} <= set(head)
    asked = {name: [row[place] for row in rows if row[place]] for place, name in enumerate(head)}
    assert all(
        sum(bool(row[head.index(name)]) for name in ("smoke.yes", "transport.bus", "age", "income")) == 2
        for row in rows
    )
    estimate = json.loads(_made(run, "estimate", "health", "r.reports", "--json").stdout)
    assert np.mean([float(cell) for cell in asked["age"]]) == pytest.approx(estimate["age"]["mean"], rel=1e-10)
    bus = next(each for each in estimate["transport"]["answers"] if each["answer"] == "bus")
    assert np.mean([float(cell) for cell in asked["transport.bus"]]) == pytest.approx(bus["share"], rel=1e-9)
    columns = {each["column"]: each for each in json.loads(done.stdout)["columns"]}
    assert (columns["age"]["answer"], columns["age"]["lower"], columns["age"]["upper"]) == (None, 18, 98)
    assert "age: in the unit of the question, asked from 18 to 98" in done.stderr


@pytest.mark.slow
def test_contributions_of_texts_that_tables_could_take_for_more_are_written_as_texts(run: Any) -> None:
    answers = ['say "hi", please', "two\tcells", "=cmd", "-5"]
    Path("names.txt").write_text("\n".join(answers), encoding="utf-8")
    _collected(run, "odd", "grr --epsilon 2", "names.txt", answers * 5, ["=1+1", "-2.5", "a,b", "north"] * 5)
    said = json.loads(_made(run, "contributions", "odd", "r.reports", "--out", "x.csv", "--json").stdout)
    head, rows = _rows()
    assert head == ["region", 'say "hi", please', "two\tcells", "'=cmd", "-5"]
    assert [row[0] for row in rows[:4]] == ["'=1+1", "-2.5", "a,b", "north"]
    assert [each["answer"] for each in said["columns"]] == answers
    assert [each["column"] for each in said["columns"]] == head[1:]


@pytest.mark.slow
def test_contributions_without_a_public_column_or_a_single_bit_are_refused_or_written_plainly(run: Any) -> None:
    _collected(run, "seen", "random-substitution --epsilon 3 --draws 3", "a,b,c", ["a", "b", "c"] * 9, ["n"] * 27)
    assert _rows_of(run, "seen")[0] == ["region", "a", "b", "c"]
    refused = run("contributions", "seen", "r.reports", "--out", "y.csv", "--raw")
    assert refused.exit_code == 2
    assert "says more of an answer than 0 or 1" in refused.stderr
    assert not Path("y.csv").exists()


def _rows_of(run: Any, name: str) -> tuple[list[str], list[list[str]]]:
    _made(run, "contributions", name, "r.reports", "--out", "x.csv")
    return _rows()


@pytest.mark.slow
def test_contributions_of_too_many_answers_or_of_one_name_twice_are_refused_with_the_reason(run: Any) -> None:
    _made(run, "collection", "add", "many", "grr", "--epsilon", "1", "--domain-size", str(1 << 20))
    Path("a.csv").write_text("user,many\nu1,5\nu2,7\n", encoding="utf-8")
    _made(run, "randomize", "many", "a.csv", "--column", "many", "--out", "m.reports")
    refused = run("contributions", "many", "m.reports", "--out", "x.csv")
    assert refused.exit_code == 1
    assert "many has 1048576 answers" in refused.stderr
    _collected(run, "mood", "grr --epsilon 2", "good,region", ["good", "region"] * 5, ["n"] * 10)
    refused = run("contributions", "mood", "r.reports", "--out", "x.csv")
    assert "two columns would have the name 'region'" in refused.stderr
    assert not Path("x.csv").exists()
