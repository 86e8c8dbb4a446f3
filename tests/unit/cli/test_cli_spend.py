"""`policy`, `quote`, `spend` and `balance` on the command line: decisions, refusals and balances as text."""

from __future__ import annotations

import pytest

from command_line import CommandLine

OUE = ["oue", "--epsilon", "0.1", "--domain-size", "7"]


@pytest.fixture
def budget(command: CommandLine) -> CommandLine:
    """A ledger with a lifetime limit of 1."""
    command("policy", "set", "default", "--limit", "lifetime=1")
    return command


def files(command: CommandLine) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in command.ledger.parent.iterdir()}


# -- spending ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_eleventh_spend_of_a_tenth_is_refused_with_exit_code_3(budget: CommandLine) -> None:
    for _ in range(10):
        assert budget.json("spend", "alice", *OUE)["status"] == "spent"
    refused = budget.json("spend", "alice", *OUE, code=3)
    assert refused["status"] == "refused"
    assert refused["binding"] == ["lifetime"]
    assert refused["affordable_reports"] == 0
    assert refused["receipt"] is None
    [limit] = refused["limits"]
    assert limit["capacity"]["epsilon"] == limit["spent"]["epsilon"] == 1
    assert limit["remaining"]["epsilon"] == 0


def test_spend_json_has_the_documented_keys(budget: CommandLine) -> None:
    spent = budget.json("spend", "alice", *OUE, "--reports", "3", "--key", "k")
    assert set(spent) == {
        "status", "repeated", "receipt", "user", "policy", "cost", "limits", "binding", "affordable_reports",
        "checked",
    }  # fmt: skip
    assert (spent["user"], spent["policy"], spent["repeated"]) == ("alice", "default", False)
    assert spent["cost"] == {"epsilon": 0.3, "delta": 0}
    assert spent["affordable_reports"] == 7
    [limit] = spent["limits"]
    assert {"period", "rule", "capacity", "spent", "remaining", "resets_at"} <= set(limit)
    assert (limit["period"], limit["rule"], limit["resets_at"]) == ("lifetime", "basic", None)
    assert budget.json("spend", "alice", *OUE, "--reports", "3", "--key", "k") == {**spent, "repeated": True}


def test_refusal_text_has_request_limit_and_what_fits(command: CommandLine) -> None:
    command("policy", "set", "default", "--limit", "lifetime=1", "--limit", "day=0.5")
    command("spend", "alice", *OUE, "--reports", "3")
    message = command.error("spend", "alice", *OUE, "--reports", "3", code=3)
    for words in ("refused: alice, 3 reports, ε = 0.3", "day (basic): ε = 0.3 of 0.5 spent",
                  "spent, 0.2 left; resets at 20", "fits: 2 reports of this kind"):  # fmt: skip
        assert words in message
    assert "lifetime" not in message, "only the limits that bind are shown"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["alice", *OUE, "--reports", "0"], "--reports must be a whole number from 1 to 1000000000: got 0"),
        (["alice", *OUE, "--reports", "-1"], "--reports must be a whole number from 1 to 1000000000: got -1"),
        (["alice", *OUE, "--reports", "1.5"], "--reports must be a whole number >= 1: got 1.5"),
        (["alice", *OUE, "--key", ""], "--key must be a string of at least one character: got ''"),
        (["alice", *OUE, "--digest", "xyz"], "--digest must be hexadecimal digits, two for each byte: got 'xyz'"),
        (["", *OUE], "Error: USER must be a string of at least one character: got ''"),
        (["alice", "oue", "--epsilon", "0", "--domain-size", "7"], "--epsilon must be a number > 0"),
        (["alice", "oue", "--epsilon", "1", "--domain-size", "1"], "--domain-size must be a whole number from 2"),
        (["alice"], "Usage: ldp-budget spend USER MECHANISM"),
    ],
)
def test_spend_with_bad_input_charges_no_user(budget: CommandLine, arguments: list[str], said: str) -> None:
    before = files(budget)
    result = budget("spend", *arguments, code=2)
    assert said in result.output
    assert files(budget) == before


def test_spend_without_ledger_or_policy_says_what_to_type(command: CommandLine) -> None:
    assert (
        "Create one: ldp-budget policy set default --limit lifetime=EPSILON, or ldp-budget ledger init"
        in command.error("spend", "alice", *OUE)
    )
    assert "this ledger does not exist" in command.error("balance", "alice")
    assert files(command) == {}, "only policy set, ledger init and collection add make one"
    command("ledger", "init")
    assert "Set one: ldp-budget policy set default --limit" in command.error("spend", "alice", *OUE)
    assert "no policy is named 'mine'. There are no policies." in command.error(
        "balance", "alice", "--policy", "mine"
    )


# -- which ledger --------------------------------------------------------------------------------------------


def test_broken_ledger_is_an_error_of_every_command(budget: CommandLine) -> None:
    budget.ledger.write_bytes(b"no ledger" * 1000)
    before = files(budget)
    for arguments in (["balance", "alice"], ["spend", "alice", *OUE], ["policy", "list"], ["ledger", "init"],
                      ["policy", "set", "default", "--limit", "lifetime=9"]):  # fmt: skip
        assert "not a database" in budget.error(*arguments)
    assert files(budget) == before
    budget("calibrate", *OUE)


# -- in a process of its own ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_plan_admits_the_planned_reports_of_each_collection(command: CommandLine) -> None:
    for name, epsilon in (("poll", "0.5"), ("visits", "1")):
        command("collection", "add", name, "randomized-response", "--epsilon", epsilon)
    command("policy", "set", "default", "--plan", "poll=3", "--plan", "visits=1", "--plan-delta", "1e-6")
    assert [command.json("spend", "alice", "poll")["status"] for _ in range(3)] == ["spent"] * 3
    refused = command.json("spend", "alice", "poll", code=3)
    assert refused["binding"] == ["plan"]
    message = command.error("spend", "alice", "poll", "--reports", "2", code=3)
    assert "plan of policy default: 0 reports of this kind left" in message
    assert command.json("spend", "alice", "visits")["status"] == "spent"
    assert [quota["left"] for quota in command.json("balance", "alice")["quotas"]] == [0, 0]
    for words in (("--plan", "poll"), ("--plan", "poll=0"), ("--plan-delta", "1e-6")):
        assert "--plan" in command.error("policy", "set", "default", *words, code=2)
    assert "no collection is named 'nothing'" in command.error("policy", "set", "default", "--plan", "nothing=1")


HALF = ["oue", "--epsilon", "0.5", "--domain-size", "3"]


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


# -- one user ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "symbol"), [("zcdp", "ρ"), ("gdp", "μ²"), ("renyi", "D")])
def test_balance_shows_the_epsilon_spent_and_the_unit_of_the_rule(
    command: CommandLine, rule: str, symbol: str
) -> None:
    command("policy", "set", "default", "--limit", f"lifetime=8,1e-6,{rule}")
    command("spend", "alice", *HALF)
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
    command("spend", "alice", *HALF)
    lines = command.error("spend", "alice", *HALF, code=3).splitlines()
    assert lines[0] == "refused: alice, 1 report, ε = 0.5. Send no report"
    assert lines[1] == "  lifetime (basic): ε = 0.5 of 0.6 spent, 0.1 left"
    assert lines[2].startswith("  day (basic): ε = 0.5 of 0.5 spent, 0 left; resets at 20")
    assert lines[3:] == ["  fits: 0 reports of this kind"]
