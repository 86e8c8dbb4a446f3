"""`compose`, `plan` and `compare`: what many reports cost, what each may cost, and which mechanism errs least."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ldp_budget
from ldp_budget import Accountant, Limit

if TYPE_CHECKING:
    from conftest import CommandLine

PNG = b"\x89PNG\r\n\x1a\n"


def test_fifty_reports_cost_what_the_rules_say(command: CommandLine) -> None:
    for words, exact in (
        (("oue", "--domain-size", 10), 13.85),
        (("sue", "--domain-size", 10), 13.93),
        (("random-substitution", "--domain-size", 10), 9.49),
        (("randomized-response",), 20.30),
    ):
        result = command.json("compose", *words, "--epsilon", 0.5, "--reports", 50, "--total-delta", "1e-6")
        rules = result["rules"]
        assert (result["reports"], result["delta"]) == (50, 1e-6)
        assert rules["basic"] == {"epsilon": 25, "delta": 0, "filter": True}
        assert rules["zcdp"]["epsilon"] == pytest.approx(23.4, abs=0.05)
        assert rules["zcdp"]["filter"]
        assert rules["gdp"]["filter"]
        assert rules["exact"]["epsilon"] == pytest.approx(exact, abs=0.01)
        assert rules["exact"]["lower"] <= rules["exact"]["epsilon"]
        assert not rules["exact"]["filter"]


def test_a_rule_that_does_not_apply_is_null_and_says_why(command: CommandLine) -> None:
    arguments = ("compose", "oue", "--epsilon", 1, "--domain-size", 4, "--reports", 3)
    rules = command.json(*arguments)["rules"]
    assert rules["zcdp"] is None
    assert rules["gdp"] is None
    assert rules["basic"]["epsilon"] == rules["exact"]["epsilon"] == 3
    shown = command(*arguments).stdout
    assert "not shown: " in shown
    assert "delta" in shown


def test_the_delta_of_gaussian_reports_is_theirs_unless_another_is_asked_for(command: CommandLine) -> None:
    arguments = ("compose", "gaussian", "--epsilon", 1, "--delta", "1e-8", "--reports", 20)
    own = command.json(*arguments)
    assert own["delta"] == pytest.approx(2e-7)
    assert own["rules"]["basic"] == {"epsilon": 20, "delta": pytest.approx(2e-7), "filter": True}
    more = command.json(*arguments, "--total-delta", "1e-6")
    assert more["rules"]["exact"]["epsilon"] < own["rules"]["exact"]["epsilon"] < 20


def test_a_collection_stands_in_a_mechanisms_place(command: CommandLine) -> None:
    command("collection", "add", "poll", "oue", "--epsilon", 0.5, "--domain-size", 10)
    by_name = command.json("compose", "poll", "--reports", 50, "--total-delta", "1e-6")
    in_full = command.json(
        "compose", "oue", "--epsilon", 0.5, "--domain-size", 10, "--reports", 50, "--total-delta", "1e-6"
    )
    assert by_name == in_full
    planned = command.json("plan", "poll", "--reports", 50, "--total-epsilon", 4, "--total-delta", "1e-6")
    assert planned["rules"]["basic"]["epsilon_per_report"] == 0.08


@pytest.mark.parametrize("rule", ["basic", "zcdp", "gdp", "exact"])
def test_what_is_planned_fits_and_hardly_more_would(command: CommandLine, rule: str) -> None:
    result = command.json(
        "plan", "oue", "--domain-size", 10, "--reports", 50, "--total-epsilon", 4, "--total-delta", "1e-6"
    )
    row = result["rules"][rule]
    oue = ldp_budget.mechanism("oue")
    for epsilon, fits in ((row["epsilon_per_report"], True), (row["epsilon_per_report"] + 2e-9, False)):
        guarantee = oue(epsilon=epsilon, domain_size=10).guarantee
        total = ldp_budget.compose([(guarantee, 50)], delta="1e-6", rule=rule)
        assert (total.epsilon <= 4) == fits
    assert row["epsilon"] <= 4
    assert row["variance_per_user"] == pytest.approx(
        oue(epsilon=row["epsilon_per_report"], domain_size=10).utility()["variance_per_user"]
    )


@pytest.mark.parametrize("rule", ["basic", "zcdp", "gdp"])
def test_a_ledger_admits_exactly_what_was_planned(command: CommandLine, rule: str) -> None:
    rules = command.json(
        "plan", "sue", "--domain-size", 4, "--reports", 7, "--total-epsilon", 3, "--total-delta", "1e-5"
    )["rules"]
    report = ldp_budget.mechanism("sue")(epsilon=rules[rule]["epsilon_per_report"], domain_size=4)
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", Decimal(3), Decimal("1e-5"), rule)])
        statuses = [accountant.spend("alice", report).status for _ in range(8)]
    assert statuses == ["spent"] * 7 + ["refused"]


def test_plan_offers_no_option_that_states_the_loss(command: CommandLine) -> None:
    shown = command("plan", "random-substitution", "--help").stdout
    assert "--domain-size" in shown
    for option in ("--epsilon ", "--gamma", "--rho1", "--rho2"):
        assert option not in shown


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (("compose", "oue", "--epsilon", 1, "--domain-size", 4, "--reports", "two"), "--reports", 2),
        (("compose", "rr", "--epsilon", 1, "--reports", 2, "--total-delta", 1), "--total-delta", 2),
        (("plan", "oue", "--domain-size", 4, "--reports", 2, "--total-epsilon", 0), "--total-epsilon", 2),
        (("plan", "oue", "--domain-size", 1, "--reports", 2, "--total-epsilon", 1), "--domain-size", 2),
        (("plan", "unary-encoding", "--domain-size", 4, "--reports", 2, "--total-epsilon", 1), "nothing to plan", 1),
        (("compare", "--epsilon", 1), "--domain-size", 2),
        (("compare", "--epsilon", 1, "--domain-size", 4), "--users", 2),
        (("compare", "--epsilon", 0, "--domain-size", 4, "--users", 9), "--epsilon", 2),
        (("compare", "--epsilon", 1, "--lower", 3, "--upper", 3), "--upper", 2),
    ],
)
def test_bad_input_is_named(command: CommandLine, arguments: tuple[object, ...], message: str, code: int) -> None:
    assert message in command.error(*arguments, code=code)


def test_compare_ranks_frequency_mechanisms_by_their_own_predictions(command: CommandLine) -> None:
    rows = command.json("compare", "--epsilon", 1, "--domain-size", 7, "--users", 944)
    errors = [row["mean_std_error"] for row in rows]
    assert errors == sorted(errors)
    assert {"oue", "sue", "random-substitution", "subset-selection"} <= {row["mechanism"] for row in rows}
    for row in rows:
        assert row["mean_std_error"] <= row["worst_std_error"]
        mechanism = ldp_budget.mechanism(row["mechanism"]).calibrate(epsilon=1, domain_size=7)
        mean = math.sqrt(mechanism.utility()["total_variance_per_user"] / 7 / 944)
        assert row["mean_std_error"] == pytest.approx(mean)


def test_two_answers_bring_in_randomized_response(command: CommandLine) -> None:
    rows = command.json("compare", "--epsilon", 1, "--domain-size", 2, "--users", 100)
    assert "randomized-response" in {row["mechanism"] for row in rows}


def test_compare_puts_the_constant_output_among_the_numeric_mechanisms(command: CommandLine) -> None:
    """On the heights of document 001 nothing beats a constant at ε = 1, and everything bounded does at ε = 10."""
    rows = command.json("compare", "--epsilon", 1, "--lower", 1.67, "--upper", 1.85)
    assert rows[0]["mechanism"] == "constant-output"
    assert rows[0]["mse_uniform_prior"] == pytest.approx(0.18**2 / 12)
    rows = command.json("compare", "--epsilon", 10, "--lower", 1.67, "--upper", 1.85)
    names = [row["mechanism"] for row in rows]
    assert names.index("bounded-staircase") < names.index("constant-output")
    assert names.index("bounded-laplace") < names.index("constant-output")


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "--epsilon", 1, "--domain-size", 7, "--users", 944, "--lower", 0, "--upper", 1),
        ("calibrate", "bounded-staircase", "--epsilon", 1, "--lower", 10, "--upper", 20, "--gamma", 0.3),
        ("calibrate", "laplace", "--epsilon", 1, "--lower", 0, "--upper", 1),
        ("calibrate", "gaussian", "--epsilon", 1, "--delta", "1e-5", "--lower", 0, "--upper", 1),
        ("calibrate", "oue", "--epsilon", 1, "--domain-size", 7),
        ("calibrate", "random-substitution", "--gamma", 10, "--domain-size", 50),
    ],
)
def test_pictures_are_drawn(command: CommandLine, tmp_path: Path, arguments: tuple[object, ...]) -> None:
    pytest.importorskip("matplotlib")
    command(*arguments, "--plot", tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(PNG)


def test_a_picture_without_its_library_says_how_to_get_it(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    message = command.error("calibrate", "oue", "--epsilon", 1, "--domain-size", 7, "--plot", tmp_path / "x.png")
    assert "pip install 'ldp-budget[plot]'" in message
    assert not (tmp_path / "x.png").exists()


def test_the_demo_tells_the_whole_story_in_an_empty_directory(command: CommandLine, tmp_path: Path) -> None:
    shown = command("demo", "--out", tmp_path / "demo").stdout
    for step in range(1, 8):
        assert f"{step}. " in shown
    assert "Charged 944 users, refused 0" in shown
    assert "repeated = True" in shown
    assert "refused: r0000" in shown
    assert (tmp_path / "demo" / "party.reports").exists()
    assert not command.ledger.exists(), "the demo leaves nobody's ledger behind"
