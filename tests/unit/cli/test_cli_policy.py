"""`ldp-budget policy`: zones, simulations, and a policy that is set without the approval of two."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import CommandLine
from ldp_budget import Accountant
from ldp_budget_service.approvals import Approvals

SET = ("policy", "set", "default", "--limit", "lifetime=4", "--limit", "day=1")


@pytest.mark.slow
def test_policy_set_with_a_zone_is_shown_kept_and_changed(command: CommandLine) -> None:
    assert "days of Asia/Seoul" in command(*SET, "--zone", "Asia/Seoul").stdout
    assert "days of Asia/Seoul" in command("policy", "show", "default").stdout
    assert "days of Asia/Seoul" in command(*SET).stdout
    shown = command.json("policy", "show", "default")
    assert (shown["version"], shown["zone"]) == (2, "Asia/Seoul")
    assert "zone_rules" not in shown
    assert command.json("policy", "list")[0]["zone"] == "Asia/Seoul"
    assert "Asia/Seoul" in command("policy", "list").stdout
    changed = command(*SET, "--zone", "UTC").stdout
    assert "changed: days of Asia/Seoul → days of UTC" in changed
    assert command.json("policy", "show", "default")["zone"] == "UTC"
    assert [row["zone"] for row in command.json("policy", "show", "default", "--versions")] == [
        "UTC",
        "Asia/Seoul",
        "Asia/Seoul",
    ]
    assert command("ledger", "verify").stdout.startswith("holds")


def test_policy_set_with_an_unknown_zone_names_a_similar_one_and_creates_no_ledger(command: CommandLine) -> None:
    assert "Did you mean Asia/Seoul?" in command.error(*SET, "--zone", "seoul", code=2)
    assert not Path(command.ledger).exists()


OUE = ("oue", "--epsilon", "1", "--domain-size", "3")


@pytest.fixture
def planned(command: CommandLine) -> CommandLine:
    command("policy", "set", "default", "--limit", "lifetime=4", "--limit", "week=2")
    return command


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("default", *OUE), 2, "Missing option '--every'"),
        (("default", *OUE, "--every", "year"), 2, "'--every': 'year' is not one of 'day', 'week', 'month'"),
        (("default", *OUE, "--every", "day", "--from", "soon"), 2, "--from must be an ISO time from 1970"),
        (("default", *OUE, "--every", "day", "--reports", "0"), 2, "--reports must be a whole number from 1"),
        (("survey", *OUE, "--every", "day"), 1, "no policy is named 'survey'"),
        (("default", "nothing", "--every", "day"), 2, "No mechanism or collection is named 'nothing'"),
    ],
)
def test_simulate_with_wrong_arguments_names_the_mistake(
    planned: CommandLine, words: tuple[str, ...], code: int, told: str
) -> None:
    assert told in planned.error("policy", "simulate", *words, code=code)


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


@pytest.mark.slow
def test_policy_set_prints_each_limit_and_condition_that_the_new_version_lacks(command: CommandLine) -> None:
    """`policy set` replaces the whole policy. It named removed limits, but no removed share, plan or condition."""
    command("policy", "set", "default", "--limit", "lifetime=4")
    command("collection", "add", "mood", *OUE)
    command(
        *SET,
        *("--limit", "week=2", "--share", "a:lifetime=1", "--share", "b:lifetime=1", "--plan", "mood=2"),
        *("--checked", "--relation", "any"),
    )
    done = command("policy", "set", "default", "--limit", "lifetime=4", "--share", "b:lifetime=1").stdout
    assert done.splitlines()[-6:] == [
        "removed: day ε = 1 (basic)",
        "removed: week ε = 2 (basic)",
        "removed: share a: lifetime ε = 1 (basic)",
        "removed: a plan of 2 reports",
        "removed: only guarantees for any two inputs",
        "removed: only checked mechanisms",
    ]
    assert "removed" not in command("policy", "set", "default", "--limit", "lifetime=4").stdout
    done = command("policy", "set", "default", "--limit", "lifetime=4", "--no-shares").stdout
    assert done.endswith("\nremoved: share b: lifetime ε = 1 (basic)\n")
