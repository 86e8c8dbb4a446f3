"""A questionnaire of several questions: weighted estimates of each, and a two-way table of two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from ldp_budget_cli.app import cli

if "survey" not in cli.list_commands(None):  # type: ignore[arg-type]
    pytest.skip("there are no questionnaires", allow_module_level=True)

SURVEY = """
[survey]
name = "health"
title = "Health"
organisation = "Office"
contact = "office@example.org"
purpose = "a test"
policy = "default"
epsilon = 6
answer = 2
rounds = 1

[[question]]
name = "smokes"
text = "Do you smoke?"
kind = "choice"
categories = ["never", "some", "daily"]

[[question]]
name = "sport"
text = "Do you exercise?"
kind = "yes-no"

[[question]]
name = "hours"
text = "Hours of work"
kind = "number"
lower = 0
upper = 60
"""
TOTALS = "variable,value,total\nregion,north,30000\nregion,south,70000\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs a command in a folder with the reports of 3,000 respondents."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDP_BUDGET_LEDGER", str(tmp_path / "budget.db"))

    def command(*words: str) -> Result:
        return CliRunner().invoke(cli, list(words))

    rng = np.random.default_rng(1)
    lines = ["user,region,smokes,sport,hours"]
    for number in range(3000):
        smokes = int(rng.choice(3, p=[0.5, 0.3, 0.2]))
        sport = "yes" if rng.random() < (0.8, 0.4, 0.1)[smokes] else "no"
        region = ("north", "south")[number % 2]
        lines.append(f"u{number},{region},{('never', 'some', 'daily')[smokes]},{sport},{rng.uniform(20, 40):.1f}")
    Path("a.csv").write_text("\n".join(lines), encoding="utf-8")
    Path("s.toml").write_text(SURVEY, encoding="utf-8")
    Path("totals.csv").write_text(TOTALS, encoding="utf-8")
    for words in (
        ["policy", "set", "default", "--limit", "lifetime=6"],
        ["survey", "add", "s.toml"],
        [
            "randomize",
            "health",
            "a.csv",
            "--user-column",
            "user",
            "--public",
            "region",
            "--spend",
            "--out",
            "h.reports",
        ],
    ):
        done = command(*words)
        assert done.exit_code == 0, done.output
    return command


def _json(run: Any, *words: str) -> dict[str, Any]:
    result = run("estimate", "health", "h.reports", *words, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_estimate_of_a_questionnaire_has_weighted_estimates_of_each_question(run: Any) -> None:
    found = _json(run, "--rake", "totals.csv", "--strata", "region", "--by", "region")
    assert found["respondents"] == 3000
    assert found["design_effect"] > 1
    never = found["smokes"]["answers"][0]
    assert abs(never["share"] - 0.5) < 5 * never["share_std_error"]
    assert never["count"] == pytest.approx(100_000 * never["share"])
    assert 1900 < found["smokes"]["asked"] < 2100
    assert abs(found["hours"]["mean"] - 30) < 5 * found["hours"]["std_error"] + 1
    assert [group["group"] for group in found["sport"]["groups"]] == ["north", "south"]
    assert 0 < found["hours"]["differences"][0]["p_value"] <= 1


def test_estimate_of_a_table_has_cells_margins_and_a_test_of_independence(run: Any) -> None:
    found = _json(run, "--table", "smokes,sport", "--rake", "totals.csv")
    assert 900 < found["respondents"] < 1100
    assert len(found["cells"]) == 6
    assert {"smokes", "sport", "share", "low", "high"} <= set(found["cells"][0])
    assert sum(cell["share"] for cell in found["cells"]) == pytest.approx(1)
    assert len(found["margins"]) == 5
    assert found["p_value"] < 1e-6
    text = run("estimate", "health", "h.reports", "--table", "smokes,sport").stdout
    assert "Independence of smokes and sport" in text


def test_estimate_of_a_table_with_a_number_is_refused(run: Any) -> None:
    result = run("estimate", "health", "h.reports", "--table", "smokes,hours")
    assert "two different questions with categories" in result.output


def test_randomize_with_an_answer_as_public_column_is_refused(run: Any) -> None:
    done = run("randomize", "health", "a.csv", "--user-column", "user", "--public", "sport", "--out", "x.reports")
    assert "true answers" in done.output
