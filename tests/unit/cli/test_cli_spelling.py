"""Commands as people type them, and answers that say what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import CommandLine

OUE = ["oue", "--epsilon", "0.5", "--domain-size", "3"]


@pytest.fixture
def budget(command: CommandLine) -> CommandLine:
    """A ledger with a lifetime limit of 1 and a poll that costs half of it."""
    command("policy", "set", "default", "--limit", "lifetime=1")
    command("collection", "add", "Poll", "oue", "--epsilon", "0.5", "--categories", "yes,no")
    return command


# -- where options and names stand ------------------------------------------------------------------------------


@pytest.mark.slow
def test_ledger_option_after_the_command_is_used(budget: CommandLine, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    budget("policy", "set", "default", "--limit", "lifetime=1", "--ledger", other)
    budget("spend", "ann", *OUE, f"--ledger={other}")
    for words in (["balance", "ann", "--ledger", other], ["--ledger", other, "balance", "ann"]):
        assert budget.json(*words)["limits"][0]["spent"]["epsilon"] == 0.5
    assert budget.json("balance", "ann")["limits"][0]["spent"]["epsilon"] == 0
    assert budget.json("policy", "--ledger", other, "list")[0]["name"] == "default"
    message = budget.error("balance", "ann", "--ledger", code=2)
    assert "--ledger has no value. Write: --ledger budget.db" in message
    budget("erase", "--unknown", "--yes", "--", "--ledger")
    assert "May also follow the command" in " ".join(budget("--help").stdout.split())


# -- answers that say what they are -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("how", ["commit", "void"])
def test_commit_of_an_unknown_receipt_lists_the_open_reservations(budget: CommandLine, how: str) -> None:
    none = "No reservation is named 'x'. No reservation is open. Make one: ldp-budget reserve USER MECHANISM\n"
    assert none in budget.error(how, "x")
    receipts = [budget.json("reserve", user, *OUE)["receipt"] for user in ("ann", "bob", "cy", "dan")]
    budget("commit", receipts[0])
    budget("void", receipts[1])
    late = budget.json("reserve", "eve", *OUE, "--expires", "0.000001")["receipt"]
    spent = budget.json("spend", "fay", *OUE)["receipt"]
    for unknown in ("x", spent):
        message = budget.error(how, unknown)
        assert f"No reservation is named '{unknown}'. Open reservations, newest first:" in message
        listed = [line.split()[0] for line in message.splitlines()[1:]]
        assert listed == [receipts[3], receipts[2]]
        assert late not in message
    assert "oue, 1 report, ε = 0.5, until 20" in message


# -- policies ---------------------------------------------------------------------------------------------------
