"""`policy set --override`: on the ledger's machine a policy is set without the approval of two, and says so."""

from __future__ import annotations

import pytest

from command_line import CommandLine
from ldp_budget import Accountant
from ldp_budget.accounting.approvals import Approvals


@pytest.mark.slow
def test_policy_set_without_the_demanded_approval_names_the_option(command: CommandLine) -> None:
    """`policy set` on the ledger's machine raised a limit without a word where approvals were demanded."""
    command("policy", "set", "default", "--limit", "lifetime=1")
    with Accountant(command.ledger, create=False) as accountant:
        Approvals(accountant).demand()
    raised = ("policy", "set", "default", "--limit", "lifetime=2")
    assert "add --override REASON" in command.error(*raised)
    done = command(*raised, "--override", "ben is on leave").stdout
    assert "set without the approval that this ledger demands: ben is on leave" in done
    assert done == command("policy", "show", "default").stdout + "raised: lifetime ε = 1 → ε = 2\n"
    assert command.json("policy", "show", "default")["override"] == "ben is on leave"
    command("policy", "set", "default", "--limit", "lifetime=1")
    assert "override" not in command.json("policy", "show", "default")
