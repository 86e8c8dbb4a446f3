"""Values and objects that someone changed in the tables by hand: refused with an error of ours, or found by verify."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import ldp_budget
from case_files import case_table
from contract.acts import CURVE, check, coin, made, promising, send
from ldp_budget import Accountant, LdpBudgetError, LedgerError, Limit
from ldp_budget.accounting.plans import Plan
from ldp_budget.registry.collections import Collection

pytestmark = pytest.mark.slow

VALUES = st.one_of(
    st.sampled_from(["", "x", "LIFETIME SHARE:1", "lifetime share:x", "day", "week", "{}", "[]", "null", '{"a": 1}']),
    st.sampled_from(
        [0, 1, -1, 2, 2**62, -(2**63), 2**63 - 1, 1.5, None, b"", bytes(16), "\N{LATIN SMALL LETTER E}\u0301"]
    ),
    st.integers(-(2**63), 2**63 - 1),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.binary(max_size=40),
)

USES: dict[str, Callable[[Accountant], object]] = {
    "balance": lambda ledger: ledger.balance("bob"),
    "planned balance": lambda ledger: ledger.balance("bob", "planned"),
    "quote": lambda ledger: ledger.quote("bob", coin(1)),
    "history": lambda ledger: list(ledger.history("bob")),
    "journal": lambda ledger: list(ledger.journal()),
    "spend": lambda ledger: ledger.spend("bob", coin("0.125")),
    "planned spend": lambda ledger: ledger.spend("bob", coin(1), policy="planned"),
    "labelled spend": lambda ledger: ledger.spend("bob", promising(CURVE), label="home"),
    "spend of a collection": lambda ledger: ledger.spend("bob", ledger.collection("poll")),
    "repeated spend": lambda ledger: ledger.spend("bob", coin("0.25"), key="k"),
    "repeated run": lambda ledger: ledger.spend_many(["alice", "bob"], coin("0.5"), key="run"),
    "stats": lambda ledger: ledger.stats(),
    "policy": lambda ledger: ledger.policy("planned"),
    "new policy": lambda ledger: ledger.set_policy("default", [Limit("lifetime", 31), Limit("week", 20)]),
    "collections": lambda ledger: ledger.collections(),
    "seal": lambda ledger: ledger.reports.seal("poll", "two"),
    "reserve": lambda ledger: ledger.void(ledger.reserve("bob", coin(1)).receipt or ""),
    "erase": lambda ledger: ledger.erase("bob"),
    "checkpoint": lambda ledger: ledger.checkpoint(),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with something in almost every table."""
    path = tmp_path_factory.mktemp("original") / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", [Limit("lifetime", 30), Limit("day", 20)])
        accountant.set_policy("planned", ["lifetime=9,1e-3"], plan=Plan(((coin(1), 2),), Decimal("1e-6")))
        poll = Collection("poll", ldp_budget.mechanism("oue")(epsilon=1, domain_size=2), ("a", "b"), minimum_group=1)
        accountant.add_collection(poll)
        made(accountant, "team")
        for user in ("alice", "bob", "carol"):
            accountant.spend(user, promising(CURVE), label="home", key="home")
            accountant.spend(user, coin(1), policy="planned")
            accountant.spend(user, coin("0.25"), key="k", note="at the door")
            accountant.spend(user, coin(100), key="refused")
            send(accountant, user, user.encode(), "report", poll)
        accountant.reserve("bob", coin(1), key="held")
        accountant.spend_many(["alice", "bob"], coin("0.5"), key="run")
        accountant.reports.seal("poll", "one")
        accountant.erase("carol")
        accountant.checkpoint()
    return path


def columns(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        filled = [name for name in names if connection.execute(f"SELECT 1 FROM {name}").fetchone()]
        return [(name, row[1]) for name in filled for row in connection.execute(f"PRAGMA table_info({name})")]


def copied(original: Path, folder: Path) -> Path:
    for ending in ("", ".key"):
        shutil.copy(f"{original}{ending}", folder / f"budget.db{ending}")
    return folder / "budget.db"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(
    data=st.data(), value=VALUES, uses=st.lists(st.sampled_from(sorted(USES)), min_size=6, max_size=6, unique=True)
)
def test_value_changed_by_hand_raises_no_raw_error(
    original: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, value: Any, uses: list[str]
) -> None:
    table, column = data.draw(st.sampled_from(columns(original)), "column")
    path = copied(original, tmp_path_factory.mktemp("changed"))
    with closing(sqlite3.connect(path)) as connection:
        old = [row[0] for row in connection.execute(f"SELECT DISTINCT {column} FROM {table}")]
        which = old[data.draw(st.integers(0, len(old) - 1), "row")]
        with suppress(sqlite3.IntegrityError):
            connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {column} IS ?", (value, which))
        assume(connection.total_changes)
        connection.commit()
    used(path, uses)


def used(path: Path, uses: list[str]) -> None:
    """Use a ledger that was changed: an error of ours, or none."""
    with suppress(LdpBudgetError), Accountant(path, create=False) as accountant:
        with suppress(LdpBudgetError):
            accountant.verify()
        for use in uses:
            with suppress(LdpBudgetError):
                USES[use](accountant)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE periods SET period = 'LIFETIME SHARE:1' WHERE period = 'lifetime'",
        "UPDATE periods SET period = 'lifetime share:x' WHERE period = 'day'",
        "UPDATE priced_mechanisms SET guarantee = ''",
        'UPDATE priced_mechanisms SET guarantee = \'{"kind": "pure"}\'',
        "UPDATE priced_mechanisms SET declared = ''",
        "UPDATE priced_mechanisms SET declared = '[1]'",
        "UPDATE priced_mechanisms SET mechanism = 'null'",
        "UPDATE policies SET definition = '7'",
        "UPDATE batch_runs SET response = '-1'",
        "UPDATE admin_log SET at = -9223372036854775808",
        "UPDATE journal SET priced_mechanism = 4611686018427387904",
        "UPDATE journal SET entry = 4611686018427387904 WHERE entry = 3",
    ],
)
def test_text_changed_by_hand_raises_no_raw_error(original: Path, tmp_path: Path, change: str) -> None:
    for use in USES:
        path = copied(original, tmp_path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(change)
            connection.commit()
        used(path, [use])
        for file in tmp_path.iterdir():
            file.unlink()


# -- objects and rows that no ledger has -------------------------------------------------------------------------

OBJECTS = case_table("changed_values", "OBJECTS")


@pytest.mark.parametrize("change", OBJECTS)
def test_verify_finds_objects_and_rows_that_no_ledger_has(original: Path, tmp_path: Path, change: str) -> None:
    path = copied(original, tmp_path)
    with Accountant(path, create=False) as accountant:
        check(accountant)
    with closing(sqlite3.connect(path)) as connection:
        if "INSTEAD OF" in change:
            connection.execute(OBJECTS[18])
        connection.execute(change)
        connection.commit()
    with suppress(LedgerError), Accountant(path, create=False) as accountant:
        found = accountant.verify()
        assert not found.ok
        assert any(
            "schema was changed" in line or "meta" in line or "_sqlite_migrations" in line for line in found.problems
        )
