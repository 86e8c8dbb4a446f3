"""`erase`, `history`, `balance` and `ledger repair-clock`: what cannot be undone is asked for first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from command_line import CommandLine
from contract.acts import coin
from ldp_budget import Accountant
from ldp_budget_cli import output


@pytest.fixture(autouse=True)
def ledger(command: CommandLine) -> None:
    command("policy", "set", "default", "--limit", "lifetime=4")
    command("spend", "alice", "rr", "--epsilon", "0.5")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let standard input look like a terminal."""

    class Terminal:
        @staticmethod
        def isatty() -> bool:
            return True

    monkeypatch.setattr(output, "sys", type("Sys", (), {"stdin": Terminal, "stdout": None}))


def test_erase_asks_at_a_terminal(command: CommandLine, terminal: None) -> None:
    no = command("erase", "alice", input="n\n", code=1)
    assert "Erase alice? This cannot be undone. [y/N]" in no.stderr
    assert no.stderr.endswith("Aborted: nothing was changed.\n")
    assert command.json("balance", "alice")["limits"][0]["spent"]["epsilon"] == 0.5
    yes = command("erase", "alice", "--json", input="y\n")
    assert yes.stdout == '{\n  "user": "alice",\n  "erased": true\n}\n', "the question is no part of the answer"


@pytest.mark.slow
def test_erase_of_an_unknown_user_needs_unknown(command: CommandLine) -> None:
    told = command.error("erase", "alcie", "--yes")
    assert "no user is named 'alcie'. Nothing was erased. To block the name all the same, add --unknown." in told
    assert command.json("erase", "alcie", "--yes", "--unknown") == {"user": "alcie", "erased": False}
    assert command("erase", "dave", "--yes", "--unknown").stdout.startswith(
        "dave was unknown, and is blocked from now on"
    )
    command("spend", "dave", "rr", "--epsilon", "0.5", code=3)


@pytest.mark.slow
def test_balance_and_history_say_that_a_user_was_erased(command: CommandLine) -> None:
    command("erase", "alice", "--yes")
    assert command("balance", "alice").stdout == "alice, policy default\nerased: this user gets no budget\n"
    assert command.json("balance", "alice")["erased"] is True
    for form in ((), ("--json",), ("--nl",)):
        assert command.error("history", "alice", *form).startswith("Error: user 'alice' was erased")
    assert command.json("history", "never-seen") == []
    assert command("history", "bob").stdout == ""


@pytest.mark.slow
def test_repair_clock_accepts_the_present_clock(command: CommandLine) -> None:
    assert command("ledger", "repair-clock", "--yes").stdout.startswith("nothing to repair")
    ahead = datetime.now(UTC) + timedelta(days=9)
    with Accountant(command.ledger, clock=lambda: ahead) as accountant:
        accountant.spend("alice", coin(1))
    refused = command.error("spend", "alice", "rr", "--epsilon", "0.5")
    assert "Nothing was charged" in refused
    assert refused.endswith("When the clock is right again: ldp-budget ledger repair-clock\n")
    command("quote", "alice", "rr", "--epsilon", "0.5", code=1)
    for reading in (("balance", "alice"), ("history", "alice"), ("ledger", "verify"), ("ledger", "stats")):
        command(*reading)
    assert command.json("ledger", "repair-clock", "--yes") == {"repaired": True}
    command("spend", "alice", "rr", "--epsilon", "0.5")
    assert command.json("balance", "alice")["limits"][0]["spent"]["epsilon"] == 2
    assert command.json("ledger", "stats")["entries_by_kind"]["clock"] == 1
    command("ledger", "verify")
