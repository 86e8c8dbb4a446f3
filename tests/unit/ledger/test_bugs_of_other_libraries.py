"""Regression tests for bugs of other libraries' budgets and ledgers; each names its source."""

from __future__ import annotations

import os
import sqlite3
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixed_clock import Clock
from ldp_budget import Accountant, LedgerError, Mechanism
from ldp_budget.composition import compose
from ldp_budget.errors import ReservationConflict
from ldp_budget.guarantees import Approximate, Gaussian, Laplace, Pure, Unbounded
from ledger_contract import CURVE, check, coin, in_threads, promising, spent
from ledger_inside import writer_of

# -- sums in floating point (diffprivlib's BudgetAccountant) ---------------------------------------------------


@pytest.mark.parametrize(
    ("each", "most", "count"), [(0.1, "0.3", 3), (0.1, "1", 10), (0.7, "4.9", 7), (1.1, "3.3", 3)]
)
def test_decimals_are_added_exactly(accountant: Accountant, each: float, most: str, count: int) -> None:
    """3 x 0.1 was refused at 0.3, and 10 x 0.1 accepted although the doubles add up to more."""
    accountant.set_policy("default", [f"lifetime={most}"])
    answers = [accountant.spend("alice", coin(each)).status for _ in range(count + 1)]
    assert answers == ["spent"] * count + ["refused"]
    assert accountant.spend("bob", coin(each), reports=count).status == "spent"
    assert accountant.spend_many(["carol"] * (count + 1), coin(each)).spent == count
    assert accountant.balance("bob").to_json()["limits"][0]["remaining"]["epsilon"] == 0


def test_delta_sum_is_exact(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=10,3e-7"])
    mechanism = promising(Approximate("0.1", 1e-7))
    assert [accountant.spend("alice", mechanism).status for _ in range(4)] == ["spent"] * 3 + ["refused"]


# -- too small to see, once nothing is left --------------------------------------------------------------------


@pytest.mark.parametrize("tiny", [5e-324, "1e-310", "1e-30", "1e-10", "1e-9"])
def test_subnormal_spend_after_exhaustion_is_refused(accountant: Accountant, tiny: Any) -> None:
    """It was lost in the sum, and so free for ever."""
    accountant.set_policy("default", ["lifetime=1", "lifetime=4,1e-6,zcdp", "day=4,1e-6,gdp"])
    mechanism = promising(Pure(tiny))
    costs = mechanism.guarantee.costs()
    assert all(amount for amount in (costs.epsilon, costs.rho, costs.mu_squared))
    assert accountant.spend("alice", coin("0.05"), reports=20).status == "spent"
    assert accountant.quote("alice", mechanism).affordable_reports == 0
    assert accountant.spend("alice", mechanism).status == "refused"
    assert accountant.reserve("alice", mechanism).status == "refused"
    assert accountant.spend_many(["alice"], mechanism).refused == 1
    assert spent(accountant, "alice")["lifetime"] == 1


def test_subnormal_delta_after_exhaustion_is_refused(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=9,1e-9"])
    assert accountant.spend("alice", promising(Approximate(1, "1e-9")))
    assert accountant.spend("alice", promising(Approximate("0.1", 5e-324))).binding == ("lifetime",)
    assert accountant.spend("alice", promising(Approximate("0.1", 0))).status == "spent"


# -- check, then act (diffprivlib: eight threads spent 207 of 200) ---------------------------------------------


@pytest.mark.slow
def test_spend_by_eight_threads_reaches_exactly_the_limit(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=200"])
    granted = in_threads(8, lambda number: sum(bool(accountant.spend("alice", coin(1))) for _ in range(40)))
    assert (sum(granted), spent(accountant, "alice")) == (200, {"lifetime": 200})


# -- work that grows with the past (diffprivlib 22 µs to 5.7 ms, opendp 102 µs to 7 ms) -------------------------


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("limit", ["lifetime=1000", "lifetime=1000,1e-6,zcdp", "lifetime=1000,1e-6,gdp"])
def test_spend_work_does_not_grow_with_the_history(accountant: Accountant, clock: Clock, limit: str) -> None:
    """Counted in steps of SQLite's machine, which do not depend on how busy this one is."""
    accountant.set_policy("default", [limit, "day=900"])
    connection = writer_of(accountant)
    assert connection is not None

    def steps() -> int:
        count = 0

        def step() -> None:
            nonlocal count
            count += 1

        connection.set_progress_handler(step, 1)
        accountant.spend("alice", coin("0.01"), key=str(clock.now))
        accountant.spend("alice", promising(CURVE), label="home")
        connection.set_progress_handler(None, 1)
        return count

    def pass_time(spends: int) -> int:
        for _ in range(spends):
            clock.advance(minutes=1)
            accountant.spend("alice", coin("0.01"), key=str(clock.now))
        clock.advance(minutes=1)
        return steps()

    early = pass_time(10)
    assert early > 100
    assert pass_time(1000) <= 1.1 * early


# -- one refusal kills it for ever (opendp's filter) -----------------------------------------------------------


def test_refusal_does_not_end_the_budget(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=1"])
    for epsilon, status in (
        (2, "refused"),
        ("0.6", "spent"),
        ("0.6", "refused"),
        ("0.4", "spent"),
        ("0.1", "refused"),
    ):
        assert accountant.spend("alice", coin(epsilon)).status == status


# -- a count that is not counted (dp-accounting: 100 x RR(1) reported as 1.0) -----------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["basic", "zcdp", "gdp"])
@pytest.mark.parametrize(
    "mechanism",
    [coin(1), promising(Laplace(1)), promising(Gaussian(1, 4, "1e-12"))],
    ids=["rr", "laplace", "gaussian"],
)
def test_spend_of_a_hundred_reports_costs_a_hundred_times_one(
    accountant: Accountant, rule: str, mechanism: Mechanism
) -> None:
    accountant.set_policy("default", [f"lifetime=1000,0.1,{rule}"])
    assert accountant.spend("alice", mechanism, reports=100)
    assert all(accountant.spend("bob", mechanism) for _ in range(100))
    sums = {accountant.balance(user).limits[0].spent_units for user in ("alice", "bob")}
    assert sums == {mechanism.guarantee.costs().times(100)}


# -- rounded to the unsafe side (dp-accounting, autodp, diffprivlib) ---------------------------------------------


@pytest.mark.slow
@settings(max_examples=40)
@given(
    epsilon=st.decimals("0.001", "1.5", places=4),
    most=st.decimals("0.5", "6", places=3),
    delta=st.sampled_from(("1e-3", "1e-6", "1e-12", "1e-20")),
    rule=st.sampled_from(("zcdp", "gdp")),
    gaussian=st.booleans(),
)
def test_granted_charges_compose_to_at_most_the_limit(
    epsilon: Decimal, most: Decimal, delta: str, rule: str, gaussian: bool
) -> None:
    """And one report more would not: nothing is granted by rounding, and next to nothing lost."""
    guarantee = Gaussian(epsilon) if gaussian else Pure(epsilon)
    mechanism = promising(guarantee)
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [f"lifetime={most},{delta},{rule}"])
        fits = accountant.quote("alice", mechanism).affordable_reports
        if fits:
            assert accountant.spend("alice", mechanism, reports=fits).status == "spent"
            assert Decimal(compose([(guarantee, fits)], delta=delta, rule=rule).epsilon) <= most
        assert accountant.spend("alice", mechanism).status == "refused"
        over = compose([(guarantee, fits + 1)], delta=delta, rule=rule).epsilon
        assert Decimal(over) > most * (1 - Decimal("1e-6"))


def test_capacity_is_computed_once_and_stored(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later version that computes more tightly, or less so, changes no limit that was set."""
    path = tmp_path / "budget.db"
    with Accountant(path, clock=clock) as accountant:
        limits = accountant.set_policy("default", ["lifetime=2,1e-6,gdp", "day=1,1e-6,zcdp"]).limits
        capacities = [limit.capacity for limit in limits]
    monkeypatch.setattr("ldp_budget.accounting.limits.capacity", lambda *limit: pytest.fail("computed again"))
    with Accountant(path, create=False, clock=clock) as accountant:
        assert [limit.capacity for limit in accountant.policy().limits] == capacities
        assert accountant.spend("alice", coin("0.01")).status == "spent"
        check(accountant)


# -- holds that run out ------------------------------------------------------------------------------------------


def test_expired_reservation_is_charged_and_not_shown_as_open(accountant: Accountant, clock: Clock) -> None:
    accountant.set_policy("default", ["lifetime=2"])
    held = [accountant.reserve("alice", coin("0.5"), expires=60).receipt or "" for _ in range(4)]
    accountant.commit(held[1])
    accountant.void(held[2])

    def states() -> list[str]:
        return [row["state"] for row in accountant.history("alice") if row["kind"] == "reserved"]

    clock.advance(seconds=59.999999)
    assert states() == ["reserved", "committed", "voided", "reserved"]
    clock.advance(seconds=0.000001)
    assert states() == ["expired", "committed", "voided", "expired"]
    assert spent(accountant, "alice") == {"lifetime": Decimal("1.5")}
    assert not accountant.spend("alice", coin("0.6"))
    with pytest.raises(ReservationConflict, match="expired"):
        accountant.void(held[0])
    assert accountant.commit(held[0]).status == "expired"
    assert states() == ["expired", "committed", "voided", "expired"]
    assert spent(accountant, "alice") == {"lifetime": Decimal("1.5")}
    check(accountant)


def test_reservation_expires_without_any_read(accountant: Accountant, clock: Clock) -> None:
    """It is a time, not a sweep: the first commit a year later still finds it expired."""
    accountant.set_policy("default", ["lifetime=2", "day=2"])
    held = accountant.reserve("alice", coin(1), expires=1).receipt or ""
    clock.now += timedelta(days=365)
    assert accountant.commit(held).status == "expired"
    assert spent(accountant, "alice") == {"lifetime": 1, "day": 0}
    check(accountant)


# -- a failed open answered by a new file --------------------------------------------------------------------------


def _spoil_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"not a database\0\0")


def _spoil_page(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(100)
        file.write(os.urandom(200))


def _drop_table(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE meta")
    connection.close()


SPOILS = {
    "nothing in it": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "no database": _spoil_header,
    "garbage in its schema": _spoil_page,
    "a table lost": _drop_table,
    "no key": lambda path: path.with_name(path.name + ".key").unlink(),
    "another key": lambda path: path.with_name(path.name + ".key").write_bytes(bytes(32)),
    "no ledger": lambda path: path.unlink(),
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_failed_open_makes_no_new_ledger(tmp_path: Path, spoil: str) -> None:
    path = tmp_path / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        accountant.spend("alice", coin(1))
    SPOILS[spoil](path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for create in (True, False):
        with pytest.raises(LedgerError, match=r"budget\.db"):
            Accountant(path, create=create)
    after = {file.name: file.read_bytes() for file in tmp_path.iterdir() if not file.name.endswith(("-wal", "-shm"))}
    assert after == before


# -- a client that sends the value as it is (pure-ldp) ---------------------------------------------------------------


@pytest.mark.parametrize("rule", ["basic", "zcdp", "gdp"])
def test_mechanism_without_guarantee_is_refused_under_every_rule(accountant: Accountant, rule: str) -> None:
    accountant.set_policy("default", [f"lifetime=1e6,0.5,{rule}"])
    refused = accountant.spend("alice", promising(Unbounded()))
    assert (refused.status, refused.epsilon, refused.affordable_reports) == ("refused", None, 0)
