"""Balances and refusals as text: the ε of the promise that is spent, quotas of a plan, one line for each limit."""

from __future__ import annotations

import pytest

from command_line import CommandLine

OUE = ["oue", "--epsilon", "0.5", "--domain-size", "3"]


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


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
