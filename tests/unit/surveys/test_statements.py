"""Statement of a user: it relies on a verification of the last hour, and on entries that are confirmed again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from contract.acts import coin
from fixed_clock import Clock
from ldp_budget import Accountant, LedgerError
from ldp_budget.ledger.verification import Integrity
from ldp_budget_surveys.pages.statement import Statement, statement_page

pytestmark = pytest.mark.slow


@pytest.fixture
def path(tmp_path: Path, clock: Clock) -> Path:
    with Accountant(tmp_path / "budget.db", clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        accountant.spend("alice", coin(1))
        assert accountant.ledger.verify().ok
    return tmp_path / "budget.db"


def made(path: Path, clock: Clock) -> tuple[Statement, int]:
    """A statement of alice, and how many verifications it took."""
    with Accountant(path, create=False, clock=clock) as accountant:
        verifications = []

        def verify() -> Integrity:
            verifications.append(1)
            return accountant.ledger.verify()

        return Statement.of(accountant, "alice", verify=verify), len(verifications)


@pytest.mark.parametrize(("minutes", "verifications"), [(0, 0), (60, 0), (61, 1)])
def test_statement_relies_on_a_verification_of_the_last_hour(
    path: Path, clock: Clock, minutes: int, verifications: int
) -> None:
    clock.advance(minutes=minutes)
    found, count = made(path, clock)
    assert (count, found.verified, found.head) == (verifications, True, found.verified_head)


def test_statement_after_a_later_charge_names_both_heads(path: Path, clock: Clock) -> None:
    with Accountant(path, create=False, clock=clock) as accountant:
        verified = accountant.stats()["head"]
        accountant.spend("alice", coin(1))
        newest = accountant.stats()["head"]
    found, count = made(path, clock)
    assert (count, found.verified_head, found.head) == (0, verified, newest)
    assert len(found.charges) == 2
    page = statement_page(found)
    assert verified in page
    assert newest in page
    assert "each hash of the journal was computed again for this statement" in page


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        assert database.execute(statement).rowcount == 1


CHANGES = {
    "a charge": "update journal set epsilon = epsilon + 1 where entry = 2",
    "a time": "update journal set at = at - 60000000 where entry = 2",
    "an entry less": "delete from journal where entry = 2",
}


@pytest.mark.parametrize("changed", CHANGES)
def test_statement_of_a_ledger_that_was_changed_since_the_verification_is_not_verified(
    path: Path, clock: Clock, changed: str
) -> None:
    change(path, CHANGES[changed])
    found, count = made(path, clock)
    assert (found.verified, count) == (False, 1)
    assert "Do not rely on this statement." in statement_page(found)


def test_statement_under_a_changed_policy_is_refused(path: Path, clock: Clock) -> None:
    change(path, """update policies set definition = replace(definition, '"9"', '"90"')""")
    with pytest.raises(LedgerError, match="policies were changed"):
        made(path, clock)


@pytest.mark.parametrize(
    ("language", "said"), [("en", "inferred up to the total"), ("de", "Summe"), ("ko", "합계까지")]
)
def test_statement_page_shows_the_tags_of_charges_and_each_scope(language: str, said: str) -> None:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=9", "attribute:health:28d=2"])
        accountant.spend("alice", coin(1), tags=["attribute:health", "purpose:care"])
        found = Statement.of(accountant, "alice")
        page = statement_page(found, language)
    assert found.charges[0]["tags"] == ["attribute:health", "purpose:care"]
    assert [(row["period"], row.get("scope")) for row in found.limits] == [
        ("lifetime", None),
        ("28d", "attribute:health"),
    ]
    for part in ("attribute:health, 28d", "attribute:health, purpose:care", said):
        assert part in page


@pytest.mark.parametrize(
    ("limit", "unit"),
    [
        ("lifetime=9,1e-6", "ε: "),
        ("lifetime=9,1e-6,zcdp", "ρ: "),
        ("lifetime=9,1e-6,gdp", "μ²: "),
        ("lifetime=9,1e-6,renyi", "D: "),
    ],
)
@pytest.mark.parametrize("language", ["en", "ko", "de"])
def test_statement_page_under_each_rule_shows_its_unit_and_its_promise(limit: str, unit: str, language: str) -> None:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [limit])
        accountant.spend("alice", coin(1))
        page = statement_page(Statement.of(accountant, "alice"), language)
    assert unit in page
    assert ("(ε = 9, δ = 1e-06)" in page) == (not unit.startswith("ε"))
