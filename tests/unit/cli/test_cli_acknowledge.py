"""`ledger acknowledge`: a fault that is no overdraft is recorded, and the ledger verifies and moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import CommandLine
from contract.acts import coin
from ldp_budget import Accountant
from ldp_budget.accounting.charge_request import Principal

pytestmark = pytest.mark.slow
WHY = "Written by an early version"


@pytest.fixture
def faulty(tmp_path: Path) -> CommandLine:
    """A ledger with two entries that no key wrote, through the sub-limit of a key."""
    path = tmp_path / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=9"], shares={"team": ["lifetime=2"]})
        nobody = accountant.acting_for(Principal(0, "", "team"))
        for user in ("ada", "bob"):
            nobody.spend(user, coin("0.5"))
    return CommandLine(path)


def test_acknowledge_lets_a_ledger_verify_and_move(faulty: CommandLine, tmp_path: Path) -> None:
    told = faulty("ledger", "verify", code=1)
    assert "journal: entries 2-3 of policy 1 by no key have another share, 1" in told.stdout
    assert "ldp-budget ledger acknowledge 2-3 --reason TEXT" in told.stdout + told.stderr
    assert (
        "verification failed"
        in faulty("ledger", "move", tmp_path / "budget.db", tmp_path / "to.db", "--yes", code=1).stderr
    )
    assert faulty.json("ledger", "verify", code=1)["open_entries"] == ["2-3"]
    done = faulty("ledger", "acknowledge", "2", "3", "--reason", WHY)
    assert done.stdout.startswith("acknowledged: 2 entries")
    after = faulty("ledger", "verify")
    assert after.stdout.startswith("holds: 4 entries")
    assert "acknowledged: journal: entries 2-3 of policy 1" in after.stdout
    assert faulty.json("ledger", "verify")["acknowledged"]
    faulty("ledger", "move", tmp_path / "budget.db", tmp_path / "to.db", "--yes")
    assert faulty.json("--ledger", tmp_path / "to.db", "ledger", "verify")["ok"]


def test_acknowledge_prints_the_records(faulty: CommandLine) -> None:
    (record,) = faulty.json("ledger", "acknowledge", "2-3", "--reason", WHY)["records"]
    assert record["body"] == {"entries": {"2": ["share"], "3": ["share"]}, "reason": WHY}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--reason", WHY], 2, "ENTRY is missing"),
        (["2"], 2, "--reason is missing"),
        (["1", "--reason", WHY], 1, "entry 1 has no open problem. Nothing was acknowledged"),
        (["two", "--reason", WHY], 2, "two"),
        (["2", "--reason", " "], 2, "--reason"),
    ],
)
def test_acknowledge_of_anything_else_is_refused(
    faulty: CommandLine, arguments: list[str], code: int, said: str
) -> None:
    assert said in faulty("ledger", "acknowledge", *arguments, code=code).stderr
    assert not faulty.json("ledger", "verify", code=1)["ok"]
