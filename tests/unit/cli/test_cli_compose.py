"""`calibrate`, `compose`, `plan` and `compare`: what reports cost, what each may cost, and which mechanism errs least."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import ldp_budget
from case_files import case_table
from command_line import CommandLine
from ldp_budget import Accountant, Collection, Limit


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["basic", "zcdp", "gdp", "exact"])
def test_plan_fits_the_total_and_hardly_more_would(command: CommandLine, rule: str) -> None:
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


@pytest.mark.slow
def test_compose_memoized_reports_cost_at_most_all_their_values(command: CommandLine) -> None:
    """The two bits of a range that is one cell wide, the kept buckets, and the declared answers of RAPPOR."""
    bit = ("one-bit-mean", "--maximum", 10, "--rounding", 10)
    kept = ("d-bit-flip", "--buckets", 10, "--bits", 4, "--memoize")
    answers = ("rappor", "--bits", 16, "--hashes", 2, "--cohorts", 4, "--epsilon-lifetime", 4)
    for words, most in (
        ((*bit, "--epsilon", 0.5), 1),
        ((*kept, "--epsilon", 0.5), 2),
        ((*answers, "--epsilon", 0.5, "--domain-size", 5), 20),
    ):
        rules = command.json("compose", *words, "--reports", 365, "--total-delta", "1e-6")["rules"]
        assert rules["basic"]["epsilon"] == most
        assert 0.999 * most < rules["exact"]["epsilon"] <= most
        assert rules["renyi"]["epsilon"] <= most
    alone = command.json("compose", *answers, "--epsilon", 0.5, "--reports", 365)["rules"]["basic"]["epsilon"]
    assert alone == 182.5, "without a domain there may be any number of answers"
    labelled = command.json("plan", *kept, "--reports", 365, "--total-epsilon", 2)["rules"]["basic"]
    assert labelled["epsilon_per_report"] == 0.2, "a ledger charges each of the ten buckets by its label"
    planned = command.json("plan", *bit, "--reports", 365, "--total-epsilon", 1)["rules"]
    assert planned["basic"]["epsilon_per_report"] == 0.5
    assert planned["exact"]["epsilon_per_report"] == pytest.approx(1 / 365, rel=1e-5), "as a policy's plan prices it"
    shown = command("compose", *bit, "--epsilon", 0.5, "--reports", 365).stdout
    assert "at most 2 times the cap of one memoized value, ε = 0.5" in shown


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["basic", "zcdp", "gdp"])
def test_ledger_admits_exactly_the_planned_reports(command: CommandLine, rule: str) -> None:
    rules = command.json(
        "plan", "sue", "--domain-size", 4, "--reports", 7, "--total-epsilon", 3, "--total-delta", "1e-5"
    )["rules"]
    report = ldp_budget.mechanism("sue")(epsilon=rules[rule]["epsilon_per_report"], domain_size=4)
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", Decimal(3), Decimal("1e-5"), rule)])
        statuses = [accountant.spend("alice", report).status for _ in range(8)]
    assert statuses == ["spent"] * 7 + ["refused"]


@pytest.mark.parametrize(
    ("arguments", "message", "code"), case_table("cli_compose", "test_compose_and_plan_with_bad_input_name_it")
)
def test_compose_and_plan_with_bad_input_name_it(
    command: CommandLine, arguments: tuple[object, ...], message: str, code: int
) -> None:
    assert message in command.error(*arguments, code=code)


@pytest.mark.slow
def test_demo_where_some_are_refused_randomizes_the_others_alone(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receipts were dropped: refused respondents were in the report file."""
    spend, randomized = Accountant.spend, list[int]()

    def poor(accountant: Accountant, user: str, *arguments: Any, **options: Any) -> Any:
        if user == "r0000":  # whose budget another poll has spent
            spend(accountant, user, ldp_budget.mechanism("rr")(epsilon=2))
        return spend(accountant, user, *arguments, **options)

    def counted(collection: Collection, texts: Any, *arguments: Any) -> Any:
        randomized.append(len(texts))
        return read_values(collection, texts, *arguments)

    read_values = Collection.read_values
    monkeypatch.setattr(Accountant, "spend", poor)
    monkeypatch.setattr(Collection, "read_values", counted)
    shown = command("demo", "--out", tmp_path / "demo").stdout
    assert "Charged 943 users, refused 1" in shown
    assert "943 reports in" in shown
    assert "A retry of r0001 with the same key: spent, repeated = True" in shown
    assert randomized == [943], "the answer of the refused user is not even read"


@pytest.mark.slow
def test_policy_set_for_expected_reports_takes_their_best_order(command: CommandLine) -> None:
    command("policy", "set", "default", "--limit", "lifetime=40")
    command("collection", "add", "poll", "random-substitution", "--epsilon", 1, "--domain-size", 100)
    best = command.json("compose", "collection:poll", "--reports", 52, "--total-delta", "1e-6")["rules"]["renyi"]
    limit = ("--limit", "lifetime=10.6,1e-6,renyi")
    [plain] = command.json("policy", "set", "plain", *limit)["limits"]
    [chosen] = command.json("policy", "set", "chosen", *limit, "--for", "poll=52")["limits"]
    assert chosen["rule"] == f"renyi:{best['order']:g}" == "renyi:3.2"
    assert plain["rule"] == "renyi:4"
    assert command.json("quote", "alice", "poll", "--policy", "chosen")["affordable_reports"] >= 52
    assert command.json("quote", "alice", "poll", "--policy", "plain")["affordable_reports"] < 52
    wrong = command("policy", "set", "other", *limit, "--for", "poll", code=2)
    assert "--for must be COLLECTION=COUNT" in wrong.stderr


# -- calibrate -----------------------------------------------------------------------------------------------


def test_calibrate_json_equals_the_python_result(command: CommandLine) -> None:
    printed = command.json("calibrate", "oue", "--epsilon", "1", "--domain-size", "7", "--users", "944")
    oue = ldp_budget.mechanism("oue").calibrate(epsilon=1, domain_size=7)
    assert printed == json.loads(json.dumps(oue.describe(944)))
    assert printed["mechanism"] == "oue"
    assert printed["parameters"] == {"p": 0.5, "q": pytest.approx(1 / (math.e + 1))}
    assert (printed["guarantee"]["epsilon"], printed["guarantee"]["delta"]) == (1, 0)
    assert printed["utility"]["std_error"] > 0
