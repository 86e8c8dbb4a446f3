"""Balances and refusals as text: the ε of the promise that is spent, quotas of a plan, one line for each limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ldp_budget import Accountant, Limit, mechanism
from ldp_budget.composition import compose

if TYPE_CHECKING:
    from command_line import CommandLine

OUE = ["oue", "--epsilon", "0.5", "--domain-size", "3"]


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


# -- the conversion ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["basic", "zcdp", "gdp", "renyi", "renyi:7.5"])
def test_epsilon_of_a_limit_is_the_bound_of_composition(rule: str) -> None:
    report = mechanism("oue")(epsilon="0.1", domain_size=7)
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", 4, "1e-6", rule)])
        for _ in range(5):
            assert accountant.spend("alice", report)
        [state] = accountant.balance("alice").limits
    expected = compose([(report.guarantee, 5)], delta="1e-6", rule=state.limit.rule).epsilon
    spent = state.limit.epsilon_of(state.spent_units)
    assert expected * (1 - 1e-9) <= spent <= expected * (1 + 1e-6), "units are rounded up, never down"


@pytest.mark.parametrize("rule", ["zcdp", "gdp", "renyi"])
def test_epsilon_of_a_full_limit_is_its_epsilon(rule: str) -> None:
    limit = Limit("lifetime", 4, "1e-6", rule)
    assert limit.epsilon_of(limit.capacity) == pytest.approx(4, abs=1e-6)
    assert limit.epsilon_of(limit.capacity) <= 4


def test_epsilon_of_a_limit_is_infinite_where_nothing_is_guaranteed() -> None:
    unbounded = Limit("lifetime", 4).capacity._replace(epsilon=None, rho=None, mu_squared=None)
    for limit in (Limit("lifetime", 4), Limit("lifetime", 4, "1e-6", "zcdp"), Limit("lifetime", 4, "1e-6", "gdp")):
        assert limit.epsilon_of(unbounded) == float("inf")
    aside = Limit("lifetime", 4, "1e-6", "zcdp", "5e-7")
    assert aside.epsilon_of(aside.capacity._replace(delta=10**15)) == float("inf"), "δ above the part set aside"


# -- one user ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "symbol"), [("zcdp", "ρ"), ("gdp", "μ²"), ("renyi", "D")])
def test_balance_shows_the_epsilon_spent_and_the_unit_of_the_rule(
    command: CommandLine, rule: str, symbol: str
) -> None:
    command("policy", "set", "default", "--limit", f"lifetime=8,1e-6,{rule}")
    command("spend", "alice", *OUE)
    _, header, epsilon, own, *_ = rows(command("balance", "alice").stdout)
    assert header == ["limit", "rule", "amount", "of", "spent", "left", "resets", "(UTC)"]
    assert epsilon[2:8] == ["ε", "at", "δ", "=", "1e-06", "8"]
    assert 0.5 < float(epsilon[8]) < 8
    assert own[0] == symbol
    assert float(own[2]) + float(own[3]) == pytest.approx(float(own[1]), rel=1e-4)


def test_balance_under_rule_basic_has_one_row_without_a_delta_of_zero(command: CommandLine) -> None:
    command("policy", "set", "default", "--limit", "lifetime=8", "--limit", "day=1,1e-6")
    command("spend", "alice", *OUE)
    shown = rows(command("balance", "alice").stdout)
    assert shown[2] == ["lifetime", "basic", "ε", "8", "0.5", "7.5", "never"]
    assert shown[3][:-1] == ["day", "basic", "ε", "at", "δ", "=", "1e-06", "1", "0.5", "0.5"][:2] + shown[3][2:-1]
    assert shown[4] == ["δ", "1e-06", "0", "1e-06"]


@pytest.mark.slow
def test_balance_under_a_plan_shows_the_quotas_used_and_left(command: CommandLine) -> None:
    command("policy", "set", "default", "--limit", "lifetime=1")
    command("collection", "add", "mood", "oue", "--epsilon", "0.5", "--categories", "good,bad")
    command("collection", "add", "diet", "oue", "--epsilon", "0.25", "--categories", "meat,none,fish")
    command("policy", "set", "year", "--plan", "mood=365", "--plan", "diet=12", "--plan-delta", "1e-6")
    command("spend", "alice", "mood", "--policy", "year")
    shown = command("balance", "alice", "--policy", "year").stdout
    assert "Plan: all its reports together cost ε = " in shown
    assert ["reports", "of", "used", "left"] in rows(shown)
    assert ["mood", "1", "364"] in rows(shown)
    assert ["diet", "0", "12"] in rows(shown)
    assert rows(command("balance", "--all", "--policy", "year").stdout)[1] == ["1", "1", "376"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--limit", "day=0.1"], "No lifetime limit: a year can cost ε = 36.6"),
        (["--limit", "day=1,1e-6,zcdp"], "No lifetime limit: no bound is known for the cost of a year"),
        (["--plan", "mood=365", "--plan-delta", "1e-6"], "No lifetime limit: the total is bounded by the plan"),
    ],
)
def test_unbounded_policy_says_what_a_year_can_cost(command: CommandLine, options: list[str], said: str) -> None:
    command("collection", "add", "mood", "oue", "--epsilon", "0.5", "--categories", "good,bad")
    for words in (["policy", "set", "p", *options, "--unbounded"], ["policy", "show", "p"]):
        shown = command(*words).stdout
        assert said in shown
        assert "epsilon -" not in shown
    assert said in command("balance", "alice", "--policy", "p").stdout


# -- refusals ---------------------------------------------------------------------------------------------------


def test_refusal_has_a_line_for_each_limit_that_binds(command: CommandLine) -> None:
    command(
        "policy", "set", "default", "--limit", "lifetime=0.6", "--limit", "day=0.5", "--limit", "month=9,1e-6,gdp"
    )
    command("spend", "alice", *OUE)
    lines = command.error("spend", "alice", *OUE, code=3).splitlines()
    assert lines[0] == "refused: alice, 1 report, ε = 0.5. Send no report"
    assert lines[1] == "  lifetime (basic): ε = 0.5 of 0.6 spent, 0.1 left"
    assert lines[2].startswith("  day (basic): ε = 0.5 of 0.5 spent, 0 left; resets at 20")
    assert lines[3:] == ["  fits: 0 reports of this kind"]


@pytest.mark.slow
def test_refusal_under_zcdp_shows_the_epsilon_of_the_promise(command: CommandLine) -> None:
    command("policy", "set", "default", "--limit", "lifetime=3,1e-6,zcdp")
    while (done := command.json("quote", "alice", *OUE, code=0))["affordable_reports"] > 1:
        command("spend", "alice", *OUE)
    assert done["status"] == "quoted"
    command("spend", "alice", *OUE)
    message = command.error("spend", "alice", *OUE, code=3)
    assert " of 3 spent at δ = 1e-06; ρ = " in message


def test_quote_that_does_not_fit_exits_with_3(command: CommandLine) -> None:
    command("policy", "set", "default", "--limit", "lifetime=0.6")
    assert command("quote", "alice", *OUE).stdout.startswith("quoted: alice, 1 report, ε = 0.5: it fits\n")
    refused = command("quote", "alice", *OUE, "--reports", "2", code=3).stdout
    assert refused.startswith("quoted: alice, 2 reports, ε = 1: it does not fit\n")


@pytest.mark.parametrize("rule", ["zcdp", "gdp", "renyi"])
def test_balance_json_of_every_rule_has_the_epsilon_of_the_promise(command: CommandLine, rule: str) -> None:
    command("policy", "set", "default", "--limit", f"lifetime=8,1e-6,{rule}")
    command("spend", "alice", *OUE)
    [limit] = command.json("balance", "alice")["limits"]
    assert limit["capacity"]["epsilon"] == 8
    shown = float(rows(command("balance", "alice").stdout)[2][8])
    assert limit["spent"]["epsilon"] == pytest.approx(shown, rel=1e-5)
    assert len(limit["spent"]) > 1, "and the amount in the unit of the rule"
