"""`randomize --public`, and `estimate` with weights, totals, strata, groups and rounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from ldp_budget_cli.app import cli

PEOPLE = 1200


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs a command in a folder with a collection, a table of answers and report files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDP_BUDGET_LEDGER", str(tmp_path / "budget.db"))

    def command(*words: str) -> Result:
        return CliRunner().invoke(cli, list(words))

    rng = np.random.default_rng(1)
    lines = ["user,region,age,school,weight,mood,hours"]
    for number in range(PEOPLE):
        region = "north" if number % 3 == 0 else "south"
        mood = rng.choice(["good", "bad"], p=[0.8, 0.2] if region == "north" else [0.3, 0.7])
        weight = 10 if region == "north" else 20
        lines.append(f"u{number},{region},{('old', 'young')[number % 2]},s{number % 30},{weight},{mood},{number % 9}")
    Path("a.csv").write_text("\n".join(lines), encoding="utf-8")
    Path("totals.csv").write_text(
        "variable,value,total\nregion,north,3000\nregion,south,3000\nage,old,2000\nage,young,4000\n", encoding="utf-8"
    )
    Path("weights.csv").write_text("region,weight\nnorth,5\nsouth,2.5\n", encoding="utf-8")
    assert command("collection", "add", "mood", "grr", "--epsilon", "4", "--categories", "good,bad").exit_code == 0
    public = [word for name in ("region", "age", "school", "weight") for word in ("--public", name)]
    done = command("randomize", "mood", "a.csv", "--column", "mood", *public, "--out", "m.reports")
    assert done.exit_code == 0, done.output
    return command


def _json(run: Any, *words: str) -> dict[str, Any]:
    result = run("estimate", "mood", "m.reports", *words, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_randomize_with_public_columns_says_what_they_reveal(run: Any) -> None:
    done = run(
        "randomize", "mood", "a.csv", "--column", "mood", "--public", "region", "--public", "school", "--out", "n"
    )
    assert "region, school travel with each report, without noise" in done.stderr
    assert "has 40 people" in done.stderr
    assert "hides among 40 reports" in done.stderr


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--public", "mood"], "true answers"),
        (["--public", "user", "--user-column", "user"], "users' names"),
        (["--public", "region", "--public", "region"], "distinct columns"),
        (["--public", "town"], "has no column 'town'"),
    ],
)
def test_randomize_with_an_invalid_public_column_is_refused(run: Any, words: list[str], named: str) -> None:
    done = run("randomize", "mood", "a.csv", "--column", "mood", "--out", "n.reports", *words)
    assert done.exit_code != 0
    assert named in done.output
    assert not Path("n.reports").exists()


@pytest.mark.parametrize("charging", [(), ("--spend", "--user-column", "user")], ids=["uncharged", "charged"])
def test_partition_with_public_columns_is_estimated_by_group(run: Any, charging: tuple[str, ...]) -> None:
    pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'ldp-budget[interop]'")
    from pyarrow import parquet

    run("policy", "set", "default", "--limit", "lifetime=4")
    run("spend", "u0", "grr", "--epsilon", "1", "--domain-size", "2")
    public = ("--public", "region", "--public", "age")
    done = run("randomize", "mood", "a.csv", "--column", "mood", *public, *charging, "--out", "n.parquet")
    assert done.exit_code == 0, done.output
    assert "region, age travel with each report, without noise. 4 combinations" in done.stderr
    reports = PEOPLE - bool(charging)
    found = parquet.read_table("n.parquet")
    assert (found.column_names, len(found)) == (["report", "region", "age"], reports)
    by = run("estimate", "mood", "n.parquet", "--by", "region", "--weights", "weights.csv", "--json")
    assert by.exit_code == 0, by.output
    groups = {each["group"]: each for each in json.loads(by.stdout)["groups"]}
    assert [groups[name]["respondents"] for name in ("north", "south")] == [400 - bool(charging), 800]
    assert groups["north"]["answers"][0]["share"] > 0.7 > 0.4 > groups["south"]["answers"][0]["share"]
    assert json.loads(run("estimate", "mood", "n.parquet", "--json").stdout)["reports"] == reports
    page = run("report", "mood", "n.parquet", "--markdown")
    assert "public columns region, age" in page.output


def test_randomize_that_charges_stores_the_attributes_of_accepted_users(run: Any) -> None:
    run("policy", "set", "default", "--limit", "lifetime=4")
    run("spend", "u0", "grr", "--epsilon", "1", "--domain-size", "2")
    words = ("--column", "mood", "--user-column", "user", "--spend", "--public", "school")
    done = run("randomize", "mood", "a.csv", *words, "--out", "c.reports")
    assert done.exit_code == 0, done.output
    rows = json.loads(run("estimate", "mood", "c.reports", "--strata", "school", "--json").stdout)
    assert rows["respondents"] == PEOPLE - 1
    assert rows["public"] == {"columns": ["school"], "combinations": 30, "smallest": 39}


def test_estimate_with_weights_of_a_table_or_a_column_gives_population_counts(run: Any) -> None:
    table = _json(run, "--weights", "weights.csv", "--strata", "region")
    assert table["weighted"] == pytest.approx(400 * 5 + 800 * 2.5)
    good = table["answers"][0]
    assert abs(good["share"] - 0.55) < 5 * good["share_std_error"] + 0.05
    assert good["count"] == pytest.approx(4000 * good["share"])
    assert good["share_low"] < good["share"] < good["share_high"]
    column = _json(run, "--weights", "weight")
    assert column["weighted"] == 400 * 10 + 800 * 20
    assert column["kish_design_effect"] > 1


def test_estimate_with_raked_weights_meets_the_totals(run: Any) -> None:
    found = _json(run, "--rake", "totals.csv", "--by", "region")
    assert found["weighted"] == pytest.approx(6000)
    sizes = [sum(row["count"] for row in group["answers"]) for group in found["groups"]]
    assert sizes == pytest.approx([3000, 3000])


def test_estimate_by_group_compares_the_groups(run: Any) -> None:
    found = _json(run, "--by", "region", "--clusters", "school")
    assert [group["group"] for group in found["groups"]] == ["north", "south"]
    gap = found["differences"][0]
    assert (gap["group"], gap["other"], gap["answer"]) == ("north", "south", "good")
    assert abs(gap["difference"] - 0.5) < 5 * gap["std_error"] + 0.05
    assert gap["p_value"] < 1e-6
    assert 1e-4 < _json(run, "--by", "age")["differences"][0]["p_value"] <= 1


def test_estimate_by_round_compares_the_rounds(run: Any) -> None:
    words = ("--column", "mood", "--public", "region", "--public", "age", "--out")
    for name in ("first", "second"):
        assert run("randomize", "mood", "a.csv", *words, name).exit_code == 0
    result = run("estimate", "mood", "first", "second", "--by-round", "--rake", "totals.csv", "--json")
    found = json.loads(result.stdout)
    assert [group["group"] for group in found["groups"]] == ["first", "second"]
    assert sum(row["count"] for row in found["groups"][0]["answers"]) == pytest.approx(6000)
    assert 0 < found["differences"][0]["p_value"] <= 1
    assert "rounds of the same people" in result.stderr
    apart = run(
        "estimate", "mood", "first", "second", "--by-round", "--rake", "totals.csv", "--json", "--independent"
    )
    assert "rounds of the same people" not in apart.stderr
    error, independent = (row["answers"][0]["std_error"] for row in (found, json.loads(apart.stdout)))
    assert error == pytest.approx(2**0.5 * independent, rel=0.1)


def test_estimate_of_numbers_has_weighted_means_and_quantiles(run: Any) -> None:
    add = run("collection", "add", "hours", "square-wave", "--epsilon", "4", "--lower", "0", "--upper", "8")
    assert add.exit_code == 0
    run("randomize", "hours", "a.csv", "--column", "hours", "--public", "region", "--out", "h.reports")
    result = run("estimate", "hours", "h.reports", "--weights", "weights.csv", "--by", "region", "--json")
    found = json.loads(result.stdout)
    # The mean is 3 in the north and 4.5 in the south, and the weights of both have the same sum.
    assert abs(found["mean"] - 3.75) < 5 * found["std_error"]
    assert abs(found["groups"][1]["mean"] - 4.5) < 5 * found["groups"][1]["std_error"]
    assert found["quantiles"]["0.5"] == pytest.approx(3.75, abs=1)
    assert found["groups"][1]["quantile_intervals"]["0.5"][0] < 5
    assert found["differences"][0]["group"] == "north"
    text = run("estimate", "hours", "h.reports", "--by", "region").stdout
    assert "quantile" in text
    assert "p-value" in text


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (
            ["--by", "town"],
            "'town' is not a public column. Public columns of the reports: region, age, school, weight",
        ),
        (["--weights", "town"], "'town' is not a file or a public column"),
        (["--weights", "totals.csv"], "columns for public attributes and a column weight"),
        (["--rake", "weights.csv"], "the columns variable, value and total"),
        (["--rake", "missing.csv"], "missing.csv"),
        (["--by", "age", "--top", "1"], "--top cannot be used with --by"),
        (["--by", "age", "--by-round"], "exclude each other"),
        (["--table", "mood"], "two different questions"),
        (["--table", "mood,work"], "no question is named 'work'"),
        (["--by", "school"], "at most 20 groups"),
    ],
)
def test_estimate_with_a_wrong_option_names_it(run: Any, words: list[str], named: str) -> None:
    result = run("estimate", "mood", "m.reports", *words)
    assert result.exit_code != 0
    assert named in result.output
