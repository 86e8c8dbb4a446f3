"""`ldp-budget regress`: outcomes and models, the table, the JSON and the chart."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from ldp_budget import Accountant
from ldp_budget.sampling import SeededStream, rng
from ldp_budget_cli.app import cli
from ldp_budget_surveys.designs.survey_estimates import DesignOptions
from ldp_budget_surveys.regression import regress

pytest.importorskip("formulaic")

SURVEY = """
[survey]
name = "health"
epsilon = 12

[[question]]
name = "smoke"
kind = "yes-no"

[[question]]
name = "mood"
categories = ["good", "fair", "bad"]

[[question]]
name = "transport"
kind = "tick"
categories = ["bus", "train", "car"]
at_most = 1

[[question]]
name = "hours"
kind = "number"
lower = 0
upper = 10
"""
PEOPLE = 900


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs a command in a folder with a survey and its reports, whose draws have a seed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDP_BUDGET_LEDGER", str(tmp_path / "budget.db"))
    seeds = count()
    monkeypatch.setattr(rng, "_cryptographic_stream", lambda: SeededStream(next(seeds)))
    Path("health.toml").write_text(SURVEY, encoding="utf-8")
    numbers = np.random.default_rng(3)
    lines = ["user,region,age,w,village,smoke,mood,transport,hours"]
    for place in range(PEOPLE):
        region, age = ("east", "north")[place % 2], 20 + place % 50
        smoke = "yes" if numbers.random() < (0.2 if region == "east" else 0.7) else "no"
        mood = "bad" if numbers.random() < 0.3 + 0.4 * (smoke == "yes") else ("good", "fair")[place % 3 > 0]
        cells = (f"u{place}", region, age, 1 + place % 3, f"v{place % 40}", smoke, mood)
        lines.append(",".join(map(str, (*cells, ("bus", "train", "none")[place % 3], place % 11))))
    Path("a.csv").write_text("\n".join(lines), encoding="utf-8")

    def command(*words: str) -> Result:
        return CliRunner().invoke(cli, list(words))

    assert command("survey", "add", "health.toml").exit_code == 0
    public = [word for name in ("region", "age", "w", "village") for word in ("--public", name)]
    done = command("randomize", "health", "a.csv", *public, "--out", "r.reports")
    assert done.exit_code == 0, done.output
    return command


def _json(run: Any, formula: str, *words: str) -> dict[str, Any]:
    done = run("regress", "health", "r.reports", formula, *words, "--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("formula", "model", "reference", "names"),
    [
        ("smoke ~ region", "logistic", "no", ["Intercept", "region[T.north]"]),
        ("mood.bad ~ region", "logistic", "not bad", ["Intercept", "region[T.north]"]),
        ("transport/bus ~ age", "logistic", "not bus", ["Intercept", "age"]),
        ("mood ~ age", "multinomial", "good", ["fair: Intercept", "fair: age", "bad: Intercept", "bad: age"]),
        ("hours ~ age", "linear", None, ["Intercept", "age"]),
        ("hours ~ smoke + age", "linear", None, ["smoke[T.yes]", "Intercept", "age"]),
        ("age ~ mood", "linear", None, ["mood[T.fair]", "mood[T.bad]", "Intercept"]),
    ],
)
def test_outcome_decides_the_model_and_the_reference(
    run: Any, formula: str, model: str, reference: str | None, names: list[str]
) -> None:
    found = _json(run, formula)
    assert (found["model"], found["reference"], found["reports"]) == (model, reference, PEOPLE)
    assert [each["name"] for each in found["coefficients"]] == names
    for each in found["coefficients"]:
        low, high = (
            (-np.inf if each["low"] is None else each["low"]),
            (np.inf if each["high"] is None else each["high"]),
        )
        assert low <= (each["estimate"] if each["estimate"] is not None else low) <= high
        assert 0 <= each["p_value"] <= 1


@pytest.mark.slow
def test_regress_finds_an_effect_and_prints_it_with_the_share_and_a_chart(run: Any) -> None:
    done = run("regress", "health", "r.reports", "smoke ~ region", "--plot", "c.png")
    assert done.exit_code == 0, done.output
    first, share, *_, row = done.stdout.splitlines()
    assert first == "logistic model of smoke = yes, in logits; 900 reports; 95 % confidence intervals"
    assert share.startswith("share of yes without a model: ")
    assert row.split()[0] == "region[T.north]"
    assert float(row.split()[1]) > 1
    assert row.split()[-1] == "<0.0001"
    assert Path("c.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_linear_model_of_groups_is_the_estimate_of_groups(run: Any) -> None:
    words = ("--weights", "w", "--strata", "age")
    found = _json(run, "smoke ~ region - 1", "--model", "linear", *words)
    done = run("estimate", "health", "r.reports", *words, "--by", "region", "--json")
    groups = {each["group"]: each["answers"][0] for each in json.loads(done.stdout)["smoke"]["groups"]}
    for each in found["coefficients"]:
        group = groups[each["term"].removeprefix("region[").removesuffix("]")]
        assert each["estimate"] == pytest.approx(group["share"], rel=1e-10)
        assert each["std_error"] == pytest.approx(group["share_std_error"], rel=1e-10)


@pytest.mark.slow
def test_regress_in_python_and_by_clusters_agrees_with_the_command(run: Any) -> None:
    by_command = _json(run, "mood.bad ~ region + age", "--clusters", "village", "--weights", "w")
    with Accountant("budget.db") as accountant:
        design = DesignOptions(weights="w", clusters="village")
        found = regress(accountant.collection("health"), ["r.reports"], "mood.bad ~ region + age", design=design)
    assert found.to_json() == by_command
    assert found.freedom == 40 - 1 + 1 - 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("formula", "words", "why"),
    [
        ("smok ~ age", (), "smoke"),
        ("smoke ~ agee", (), "FORMULA must be public columns and questions"),
        ("region ~ age", (), "a question as outcome or term"),
        ("region ~ smoke", (), "numbers in region, the outcome"),
        ("transport ~ age", (), "such as transport.bus"),
        ("smoke ~ transport", (), "of which each respondent holds one"),
        ("smoke ~ smoke", (), "an outcome that is not a term"),
        ("mood ~ age", ("--model", "logistic"), "multinomial or linear for 3 answers"),
        ("hours ~ age", ("--model", "logistic"), "linear with a number"),
        ("smoke ~ region + village + factor(village)", (), "depend on each other"),
        ("smoke ~ region", ("--strata", "regoin"), "not a public column"),
    ],
)
def test_regress_refuses_what_does_not_fit_with_the_reason(
    run: Any, formula: str, words: tuple[str, ...], why: str
) -> None:
    done = run("regress", "health", "r.reports", formula, *words)
    assert done.exit_code in (1, 2)
    assert why in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
def test_open_interval_is_null_and_said(run: Any) -> None:
    lines = Path("a.csv").read_text(encoding="utf-8").splitlines()
    Path("few.csv").write_text("\n".join(lines[:13]), encoding="utf-8")
    assert run("randomize", "health", "few.csv", "--public", "region", "--out", "few.reports").exit_code == 0
    done = run("regress", "health", "few.reports", "smoke ~ region", "--json")
    slope = json.loads(done.stdout)["coefficients"][1]
    assert None in (slope["low"], slope["high"])
    assert "Open intervals: " in done.stderr
    assert "region[T.north]" in done.stderr
