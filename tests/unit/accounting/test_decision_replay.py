"""Replay of decisions by `verify`: it finds overdrafts by an attacker who has the database but not its key."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import ldp_budget
from contract.acts import CURVE, check, coin, made, promising
from contract.rotation import exchange as rotate
from contract.toy_store import ToyStore
from fixed_clock import Clock
from ldp_budget import Accountant, LedgerError, ReservationConflict
from ldp_budget.accounting.plans import Plan
from ldp_budget.guarantees import Memoised
from ldp_budget.guarantees.fixed_point import ZERO, Costs
from ldp_budget.ledger.calendar import name_at, to_micros
from ldp_budget.ledger.models import AccountMacState
from ldp_budget.ledger.row_macs import AccountMacMaker, AccountMacs
from ldp_budget.ledger.snapshot import Account, Reading
from postgres_places import new_ledger

Row = tuple[Any, ...]


class Database:
    """A ledger whose database an attacker can write to, in the SQL of SQLite."""

    def __init__(self, ledger: Path | str, connect: Callable[[], Any]) -> None:
        self.ledger, self._connect = ledger, connect

    def open(self, clock: Clock) -> Accountant:
        return Accountant(self.ledger, clock=clock)

    def run(self, sql: str, *values: Any) -> list[Row]:
        if self.is_server:
            sql = sql.replace("?", "%s")
        with contextlib.closing(self._connect()) as connection:
            found = connection.execute(sql, values)
            rows = found.fetchall() if found.description else []
            connection.commit()
        return rows

    @property
    def is_server(self) -> bool:
        return isinstance(self.ledger, str)

    @contextlib.contextmanager
    def emptied(self, where: str) -> Iterator[None]:
        """Set the sums to 0 for a while, then add the old sums to the charges made meanwhile."""
        rows = self.run(
            f"SELECT account, window_name, epsilon, delta, rho, mu_squared FROM window_sums WHERE {where}"
        )
        assert rows
        self.run(f"UPDATE window_sums SET epsilon = 0, delta = 0, rho = 0, mu_squared = 0 WHERE {where}")
        yield
        for account, window, *amounts in rows:
            self.run(
                "UPDATE window_sums SET epsilon = epsilon + ?, delta = delta + ?, rho = rho + ?,"
                " mu_squared = mu_squared + ? WHERE account = ? AND window_name = ?",
                *amounts,
                account,
                window,
            )


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.exhaustive)])
def database(request: pytest.FixtureRequest, tmp_path: Path, own_keys: None) -> Database:
    if request.param == "sqlite":
        path = tmp_path / "budget.db"
        return Database(path, lambda: sqlite3.connect(path))
    psycopg = pytest.importorskip("psycopg")
    address = new_ledger(1)
    return Database(address, lambda: psycopg.connect(address.partition("?")[0]))


def _trust(self: AccountMacs, account: int, state: AccountMacState, sums: Any, counts: Any, *more: object) -> None:
    spent = {gauge: Costs._make(sums.get(code, ZERO)) for code, gauge in self._open_windows()}
    self.accounts[account] = Account(account, spent, user=state.user, newest=state.newest, counts=counts)


class _AnyMac(bytes):
    """A MAC that equals every other one."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = bytes.__hash__


@pytest.fixture
def past_macs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the seals of sums and of policies, which a decision checks."""
    monkeypatch.setattr(AccountMacs, "_check", _trust)
    mac = AccountMacMaker.mac
    monkeypatch.setattr(AccountMacMaker, "mac", lambda *arguments: _AnyMac(mac(*arguments)))
    monkeypatch.setattr(
        Reading, "_checked_policies", lambda self, count: {each.name: each for each in self.rows.policies()}
    )


def problems(database: Database, clock: Clock) -> list[str]:
    """The decisions that verify finds wrong; that seals do not hold is another matter."""
    with database.open(clock) as accountant:
        found = accountant.verify()
        assert not found.ok
        return [problem for problem in found.problems if problem.startswith("journal: entry")]


@pytest.mark.slow
def test_decide_with_changed_sums_refuses(database: Database, clock: Clock) -> None:
    """Sums were set to 0, charged on and written back: 8.0 charged under lifetime=2."""
    with database.open(clock) as accountant:
        accountant.set_policy("default", ["lifetime=2"])
        assert accountant.spend("alice", coin(2))
        head = check(accountant)
    said = r"sums of account 1 were changed. Nothing was charged\. Run: ldp-budget ledger verify"
    with database.emptied("window_name = 'lifetime'"), database.open(clock) as accountant:
        for charge in (
            lambda: accountant.spend("alice", coin(1)),
            lambda: accountant.reserve("alice", coin(1)),
            lambda: accountant.spend_many(["alice", "bob"], coin(1)),
            # Many users are checked and charged by statements over all of them.
            lambda: accountant.spend_many(["alice", *map(str, range(20))], coin(1)),
        ):
            with pytest.raises(LedgerError, match=said):
                charge()
        assert not accountant.verify().ok
    with database.open(clock) as accountant:
        assert not accountant.spend("alice", coin(1))
        assert check(accountant, head) == head


@pytest.mark.slow
@pytest.mark.parametrize("days", [0, 1])
def test_decide_with_older_sums_and_their_seal_refuses(database: Database, clock: Clock, days: int) -> None:
    """The rows of an account were put back as they stood before the newest charge, with their seal."""
    with database.open(clock) as accountant:
        accountant.set_policy("default", ["lifetime=2", "day=2"])
        assert accountant.spend("alice", coin(1))
        before = {table: database.run(f"SELECT * FROM {table}") for table in ("window_sums", "account_macs")}
        assert accountant.spend("alice", coin(1))
        check(accountant)
    for table, rows in before.items():
        database.run(f"DELETE FROM {table}")
        for row in rows:
            database.run(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", *row)
    clock.advance(days=days)
    with database.open(clock) as accountant:
        for charge in (lambda: accountant.spend("alice", coin(1)), lambda: accountant.spend_many(["alice"], coin(1))):
            with pytest.raises(LedgerError, match="sums of account 1 were changed"):
                charge()


def test_decide_without_the_rows_of_a_window_refuses(database: Database, clock: Clock) -> None:
    """The row of a day was deleted: a day of 1.0 began again."""
    with database.open(clock) as accountant:
        accountant.set_policy("default", ["lifetime=8", "day=1"])
        assert accountant.spend("alice", coin(1))
    database.run("DELETE FROM window_sums WHERE window_name <> 'lifetime'")
    for _ in range(2):
        with database.open(clock) as accountant, pytest.raises(LedgerError, match="sums of account 1 were changed"):
            accountant.spend("alice", coin(1))
        clock.advance(days=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE memoised_counts SET reports = reports + 5",
        "UPDATE memoised_counts SET reports = reports + 5 WHERE window_name <> 'lifetime'",
        "DELETE FROM memoised_counts",
    ],
)
def test_decide_with_changed_label_counts_refuses(database: Database, clock: Clock, change: str) -> None:
    """The count of a label was raised, so that the next report cost less, or a row was deleted: both were charged."""
    with database.open(clock) as accountant:
        accountant.set_policy("default", ["lifetime=40", "day=20"])
        assert accountant.spend("alice", promising(CURVE), label="home")
        held = accountant.reserve("alice", promising(CURVE), label="home").receipt
        head = check(accountant)
    before = database.run("SELECT * FROM memoised_counts")
    database.run(change)
    with database.open(clock) as accountant:
        for charge in (
            lambda: accountant.spend("alice", promising(CURVE), label="home"),
            lambda: accountant.reserve("alice", coin(1)),
            lambda: accountant.spend_many(["alice"], coin(1)),
            lambda: accountant.void(held or ""),
        ):
            with pytest.raises(LedgerError, match=r"sums of account 1 were changed. Nothing was charged."):
                charge()
        assert not accountant.verify().ok
    clock.advance(days=1)
    with database.open(clock) as accountant, pytest.raises(LedgerError, match="sums of account 1 were changed"):
        accountant.spend("alice", coin(1))
    put_back(database, "memoised_counts", before)
    with database.open(clock) as accountant:
        assert check(accountant, head) == head
        assert accountant.spend("alice", promising(CURVE), label="home")
        assert accountant.spend_many(["alice"], coin("0.25")).spent == 1
        assert accountant.spend("alice", promising(CURVE), label="work")
        check(accountant)


def put_back(database: Database, table: str, rows: list[tuple[Any, ...]]) -> None:
    database.run(f"DELETE FROM {table}")
    for row in rows:
        database.run(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", *row)


@pytest.mark.slow
def test_decide_with_older_label_counts_and_their_seal_refuses(database: Database, clock: Clock) -> None:
    """The rows of an account were put back as they stood before the newest report, with their seal."""
    with database.open(clock) as accountant:
        accountant.set_policy("default", ["lifetime=8"])
        assert accountant.spend("alice", promising(CURVE), label="home", reports=2)
        held = accountant.reserve("alice", promising(CURVE), label="home").receipt
        before = {
            table: database.run(f"SELECT * FROM {table}")
            for table in ("window_sums", "account_macs", "memoised_counts")
        }
        accountant.void(held or "")
        check(accountant)
    for table, rows in before.items():
        put_back(database, table, rows)
    with database.open(clock) as accountant, pytest.raises(LedgerError, match="sums of account 1 were changed"):
        accountant.spend("alice", promising(CURVE), label="home")


@pytest.mark.slow
@pytest.mark.parametrize("change", ["UPDATE quotas SET used = 0", "DELETE FROM quotas"])
def test_decide_with_a_changed_quota_refuses(database: Database, clock: Clock, change: str) -> None:
    """The used quota of a plan was set to 0: 4 reports of a plan of 2, found by verify alone."""
    with database.open(clock) as accountant:
        accountant.set_policy("default", [], plan=Plan(((coin(1), 2),), Decimal("1e-6")))
        accountant.set_policy("plain", ["lifetime=8"])
        assert accountant.spend("alice", coin(1))
        held = accountant.reserve("alice", coin(1)).receipt
        head = check(accountant)
    before = database.run("SELECT * FROM quotas")
    database.run(change)
    with database.open(clock) as accountant:
        for charge in (
            lambda: accountant.spend("alice", coin(1)),
            lambda: accountant.reserve("alice", coin(1)),
            lambda: accountant.spend_many(["alice"], coin(1), policy="plain"),
            lambda: accountant.void(held or ""),
        ):
            with pytest.raises(LedgerError, match=r"sums of account 1 were changed. Nothing was charged."):
                charge()
        assert not accountant.verify().ok
    put_back(database, "quotas", before)
    with database.open(clock) as accountant:
        assert check(accountant, head) == head
        accountant.void(held or "")
        assert accountant.spend("alice", coin(1))
        assert not accountant.spend("alice", coin(1))
        check(accountant)


def test_decide_with_the_account_of_another_user_refuses(database: Database, clock: Clock) -> None:
    """Two users changed accounts: the one who had spent all was charged on the account of the other."""
    with database.open(clock) as accountant:
        accountant.set_policy("default", ["lifetime=2"])
        assert accountant.spend("alice", coin(2))
        assert accountant.spend("bob", coin("0.25"))
    (one, first), (other, second) = database.run("SELECT account, user_hash FROM users ORDER BY account")
    for account, hashed in ((one, None), (other, first), (one, second)):
        database.run("UPDATE users SET user_hash = ? WHERE account = ?", hashed, account)
    with database.open(clock) as accountant:
        for charge in (lambda: accountant.spend("alice", coin(1)), lambda: accountant.spend_many(["alice"], coin(1))):
            with pytest.raises(LedgerError, match="sums of account 2 were changed"):
                charge()


@pytest.mark.slow
def test_verify_with_journal_entries_hidden_while_charging_finds_it(database: Database, clock: Clock) -> None:
    """The newest entry was hidden, its account's older rows and seal put back: 3.0 charged under lifetime=2."""
    with database.open(clock) as accountant:
        accountant.set_policy("default", ["lifetime=2"])
        assert accountant.spend("bob", coin(1))
        assert accountant.spend("alice", coin(1))
        tables = ("window_sums", "account_macs")
        older = {table: database.run(f"SELECT * FROM {table} WHERE account = 2") for table in tables}
        assert accountant.spend("alice", coin(1))
        assert accountant.spend("bob", coin("0.25"))  # so that the end of the journal stays where it is
        check(accountant)
    where = "FROM journal WHERE entry = (SELECT max(entry) FROM journal WHERE account = 2)"
    [hidden] = database.run(f"SELECT * {where}")
    database.run(f"DELETE {where}")
    for table, rows in older.items():
        database.run(f"DELETE FROM {table} WHERE account = 2")
        for row in rows:
            database.run(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", *row)
    with database.open(clock) as accountant:
        assert accountant.spend("alice", coin(1))
    database.run(f"INSERT INTO journal VALUES ({', '.join('?' * len(hidden))})", *hidden)
    [problem] = problems(database, clock)
    assert "overdraws limit lifetime=2 of policy default" in problem


def exchange(database: Database, table: str, column: str, number: str) -> None:
    """Exchange the values of a column between the rows 1 and 2 of a table."""
    values = dict(database.run(f"SELECT {number}, {column} FROM {table} WHERE {number} IN (1, 2)"))
    hole = b"" if isinstance(values[1], bytes) else "hole"
    for row, value in ((1, hole), (2, values[1]), (1, values[2])):
        database.run(f"UPDATE {table} SET {column} = ? WHERE {number} = ?", value, row)


@pytest.mark.slow
@pytest.mark.parametrize("days", [0, 1])
@pytest.mark.parametrize("rekeyed", [False, True])
def test_decide_with_exchanged_users_refuses(database: Database, clock: Clock, days: int, rekeyed: bool) -> None:
    """The accounts of two users were exchanged for a while: 3.9 charged under lifetime=2, and verify said "holds"."""
    with database.open(clock) as accountant:
        accountant.set_policy("default", ["lifetime=2", "day=2"])
        assert accountant.spend("alice", coin(2))
        assert accountant.spend("bob", coin("0.25"))
        if rekeyed:
            rotate(accountant)
        check(accountant)
    exchange(database, "users", "user_hash", "account")
    clock.advance(days=days)
    with database.open(clock) as accountant:
        for charge in (
            lambda: accountant.spend("alice", coin(1)),
            lambda: accountant.reserve("alice", coin(1)),
            lambda: accountant.spend_many(["alice"], coin(1)),
            lambda: accountant.quote("alice", coin(1)),
            lambda: accountant.balance("alice"),
            lambda: list(accountant.balances(["alice"])),
        ):
            with pytest.raises(LedgerError, match="sums of account 2 were changed"):
                charge()
    exchange(database, "users", "user_hash", "account")
    with database.open(clock) as accountant:
        assert not accountant.spend("alice", coin(1))
        check(accountant)


@pytest.mark.slow
@pytest.mark.parametrize("rekeyed", [False, True])
def test_spend_with_renamed_policies_refuses(database: Database, clock: Clock, rekeyed: bool) -> None:
    """The names of two policies were exchanged for a while: 11 charged under lifetime=2, and verify said "holds"."""
    with database.open(clock) as accountant:
        accountant.set_policy("default", ["lifetime=2"])
        accountant.set_policy("pilot", ["lifetime=100"])
        assert accountant.spend("alice", coin(2))
        if rekeyed:
            rotate(accountant)
        check(accountant)
    exchange(database, "policies", "name", "policy")
    with database.open(clock) as accountant:
        for charge in (
            lambda: accountant.spend("alice", coin(9)),
            lambda: accountant.spend_many(["alice"], coin(9)),
            lambda: accountant.quote("alice", coin(9)),
            lambda: accountant.balance("alice"),
            lambda: accountant.policy("default"),
            lambda: accountant.policies(),
        ):
            with pytest.raises(
                LedgerError, match=r"its policies were changed. Nothing was charged\. Run: ldp-budget"
            ):
                charge()
    exchange(database, "policies", "name", "policy")
    with database.open(clock) as accountant:
        assert not accountant.spend("alice", coin(9))
        check(accountant)


def test_spend_with_the_newest_policy_hidden_refuses(database: Database, clock: Clock) -> None:
    """The row of version 2 was taken out: charges went by version 1, until verify found them."""
    with database.open(clock) as accountant:
        accountant.set_policy("default", ["lifetime=8"])
        accountant.set_policy("default", ["lifetime=2"])
    database.run("DELETE FROM policies WHERE version = 2")
    with database.open(clock) as accountant:
        for call in (lambda: accountant.spend("alice", coin(8)), lambda: accountant.policy("default")):
            with pytest.raises(LedgerError, match="its policies were changed"):
                call()


@pytest.mark.parametrize("days", [0, 1])
def test_balance_with_a_lowered_sum_refuses(database: Database, clock: Clock, days: int) -> None:
    """The sums of a user were set to zero: the balance and the quote showed that nothing was spent."""
    with database.open(clock) as accountant:
        accountant.set_policy("default", ["lifetime=2"])
        assert accountant.spend("alice", coin(2))
        assert accountant.spend("bob", coin(1))
    database.run("UPDATE window_sums SET epsilon = 0 WHERE account = 1")
    clock.advance(days=days)
    with database.open(clock) as accountant:
        for read in (
            lambda: accountant.balance("alice"),
            lambda: accountant.quote("alice", coin(1)),
            lambda: list(accountant.balances(None)),
        ):
            with pytest.raises(LedgerError, match="sums of account 1 were changed"):
                read()
        [bob] = accountant.balances(["bob"])
        assert bob.limits[0].spent_units == coin(1).guarantee.costs()


@pytest.mark.slow
def test_spend_with_exchanged_charges_refuses(database: Database, clock: Clock) -> None:
    """Two memoised mechanisms were exchanged for a while: a label at the cap of one made the other cost nothing."""
    small, large = promising(Memoised((1,), 1)), promising(CURVE)
    with database.open(clock) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        assert accountant.spend("alice", small, label="home", reports=5)
        assert accountant.spend("bob", large, label="home")
        check(accountant)
    exchange(database, "priced_mechanisms", "guarantee", "priced_mechanism")
    exchange(database, "priced_mechanisms", "fingerprint", "priced_mechanism")
    with (
        database.open(clock) as accountant,
        pytest.raises(LedgerError, match=r"priced mechanism 1 was changed\. Nothing was"),
    ):
        accountant.spend("alice", large, label="home")


def test_spend_with_a_changed_stored_answer_refuses(database: Database, clock: Clock) -> None:
    """The stored refusal of a key was replaced by another user's grant: "spent" for a report that nothing charged."""
    with database.open(clock) as accountant:
        accountant.set_policy("default", ["lifetime=2"])
        assert accountant.spend("alice", coin(2), key="first")
        assert not accountant.spend("bob", coin(3), key="second")
        assert accountant.spend_many(["carl"], coin(3), key="run").refused == 1
    [(entry, response)] = database.run("SELECT entry, response FROM idempotency_records WHERE number IS NULL")
    database.run("UPDATE batch_runs SET response = ?", '{"refused":[]}')
    database.run(
        "UPDATE idempotency_records SET entry = ?, number = NULL, response = ? WHERE number IS NOT NULL",
        entry,
        response,
    )
    with database.open(clock) as accountant:
        for charge in (
            lambda: accountant.spend("bob", coin(3), key="second"),
            lambda: accountant.spend_many(["carl"], coin(3), key="run"),
        ):
            with pytest.raises(
                LedgerError, match=r"(the idempotency record of a key|a row of batch_runs) was changed"
            ):
                charge()


def test_collection_with_a_changed_row_refuses(database: Database, clock: Clock) -> None:
    """The names of two collections were exchanged for a while: reports of ε = 4 were charged 0.25."""
    oue = ldp_budget.mechanism("oue")
    with database.open(clock) as accountant:
        for name, epsilon in (("mood", "4"), ("diet", "0.25")):
            accountant.add_collection(ldp_budget.Collection(name, oue.calibrate(epsilon=epsilon, domain_size=3)))
        check(accountant)
    exchange(database, "collections", "name", "number")
    with database.open(clock) as accountant:
        for read in (lambda: accountant.collection("mood"), accountant.collections):
            with pytest.raises(LedgerError, match=r"collection \w+ was changed. Run: ldp-budget ledger verify"):
                read()
    exchange(database, "collections", "name", "number")
    with database.open(clock) as accountant:
        assert accountant.collection("mood").mechanism.guarantee.epsilon == 4


@pytest.mark.slow
def test_verify_of_a_moved_ledger_that_was_opened_by_an_older_row_finds_it(
    database: Database, clock: Clock, tmp_path: Path
) -> None:
    """The counters from before a move were put back: one budget in two ledgers, and verify held."""
    with database.open(clock) as accountant:
        accountant.set_policy("default", ["lifetime=2"])
        assert accountant.spend("alice", coin(1))
    [row] = database.run("SELECT state, changes, numbered_rows, row_mac FROM partitions")
    with database.open(clock) as accountant:
        accountant.ledger.move_to(tmp_path / "copy.db")
        check(accountant)
    database.run("UPDATE partitions SET state = ?, changes = ?, numbered_rows = ?, row_mac = ?", *row)
    database.run("DELETE FROM closings")
    with database.open(clock) as accountant:
        assert accountant.spend("alice", coin(1))
        found = accountant.verify().problems
    assert found == ("partitions: the ledger can be written to, and entry 3 says that it was moved",)


@pytest.mark.slow
def test_verify_with_sums_changed_and_put_back_finds_the_overdraft(
    database: Database, clock: Clock, past_macs: None
) -> None:
    """Sums were set to 0, charged on and written back: 8.0 charged under lifetime=2, and verify said "holds"."""
    with database.open(clock) as accountant:
        accountant.set_policy("default", ["lifetime=2"])
        assert accountant.spend("alice", coin(2))
        check(accountant)
    for _ in range(3):
        with database.emptied("window_name = 'lifetime'"), database.open(clock) as accountant:
            assert accountant.spend("alice", coin(2))
    found = problems(database, clock)
    assert len(found) == 3
    assert all("overdraws limit lifetime=2 of policy default" in problem for problem in found)


def test_verify_with_the_newest_policy_hidden_finds_the_older_one(
    database: Database, clock: Clock, past_macs: None
) -> None:
    """The row of version 2 was taken out while the service charged under version 1, and put back."""
    with database.open(clock) as accountant:
        accountant.set_policy("default", ["lifetime=8"])
        accountant.set_policy("default", ["lifetime=2"])
    where = "FROM policies WHERE version = 2"
    [row] = database.run(f"SELECT * {where}")
    database.run(f"DELETE {where}")
    with database.open(clock) as accountant:
        assert accountant.spend("alice", coin(1))
    database.run(f"INSERT INTO policies VALUES ({', '.join('?' * len(row))})", *row)
    [problem] = problems(database, clock)
    assert "under version 1 of policy default, which was not its newest one" in problem


@pytest.mark.slow
def test_verify_with_a_share_ignored_finds_the_overdraft(database: Database, clock: Clock, past_macs: None) -> None:
    """The sum of a share was set to 0 for a while: 2.0 charged through a share of 1.0."""
    with database.open(clock) as accountant:
        accountant.set_policy("default", ["lifetime=4"], shares={"team-a": ["lifetime=1"]})
        caller = made(accountant, "team-a", "team-a")
        assert accountant.acting_for(caller).spend("alice", coin(1))
        check(accountant)
    with database.emptied("window_name <> 'lifetime'"), database.open(clock) as accountant:
        assert accountant.acting_for(caller).spend("alice", coin(1))
    [problem] = problems(database, clock)
    assert "overdraws limit team-a:lifetime=1" in problem


@pytest.mark.slow
def test_verify_with_a_quota_exceeded_finds_it(database: Database, clock: Clock, past_macs: None) -> None:
    """The used quota of a plan was set to 0 for a while: 4 reports of a plan of 2."""
    with database.open(clock) as accountant:
        accountant.set_policy("default", [], plan=Plan(((coin(1), 2),), Decimal("1e-6")))
        assert accountant.spend("alice", coin(1), reports=2)
        check(accountant)
    database.run("UPDATE quotas SET used = 0")
    with database.open(clock) as accountant:
        assert accountant.spend("alice", coin(1), reports=2)
    database.run("UPDATE quotas SET used = 4")
    [problem] = problems(database, clock)
    assert "exceeds a quota of the plan of policy default: 4 of 2" in problem


@pytest.mark.slow
def test_verify_with_a_window_refilled_finds_the_overdraft(database: Database, clock: Clock, past_macs: None) -> None:
    """The sum of a day was set to 0 for a while: 2.0 charged on a day of 1.0, within the lifetime."""
    with database.open(clock) as accountant:
        accountant.set_policy("default", ["lifetime=8", "day=1"])
        assert accountant.spend("alice", coin(1))
        check(accountant)
    day = name_at("day", to_micros(clock.now))
    with database.emptied(f"window_name = '{day}'"), database.open(clock) as accountant:
        assert accountant.spend("alice", coin(1))
    [problem] = problems(database, clock)
    assert "overdraws limit day=1" in problem


def test_verify_with_five_reports_at_the_price_of_one_finds_it(
    database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed program with the key of the ledger did not multiply the cost by the number of reports."""
    with database.open(clock) as accountant, monkeypatch.context() as changed:
        accountant.set_policy("default", ["lifetime=2"])
        changed.setattr(Costs, "times", lambda self, count: self)
        assert accountant.spend("alice", coin(1), reports=5)
    [problem] = problems(database, clock)
    assert "charges less than its guarantee costs" in problem


# -- no false alarms ------------------------------------------------------------------------------------------------


def live(accountant: Accountant, clock: Clock, seed: int, entries: int) -> None:
    """A random history of everything that a decision depends on, of at least so many entries."""
    draw = random.Random(seed)
    users = [f"user{number}" for number in range(entries // 5)]
    limits = (["lifetime=6", "day=2"], ["lifetime=5,1e-6,zcdp"], ["lifetime=9", "week=4", "month=6"], ["lifetime=3"])
    memoised, plain, plan = promising(CURVE), [coin("0.25"), coin(1)], Plan(((coin("0.5"), 3),), Decimal("1e-6"))
    accountant.set_policy("a", limits[0])
    accountant.set_policy("b", limits[2], shares={"team": ["lifetime=2", "week=1"]})
    accountant.set_policy("planned", ["lifetime=9,1e-3"], plan=plan)
    team = accountant.acting_for(made(accountant, "team", "team"))
    reserved: list[str] = []

    def spend() -> None:
        by, policy = draw.choice([(accountant, "a"), (accountant, "b"), (team, "b"), (accountant, "planned")])
        label = draw.choice([None, "home", "work"])
        what = coin("0.5") if policy == "planned" else memoised if label else draw.choice(plain)
        ask = draw.choice([by.spend, by.spend, by.spend, by.reserve])
        receipt = ask(draw.choice(users), what, reports=draw.choice([1, 1, 2]), policy=policy, label=label)
        if receipt.status == "reserved" and receipt.receipt:
            reserved.append(receipt.receipt)

    def end() -> None:
        if reserved:
            receipt = reserved.pop(draw.randrange(len(reserved)))
            with contextlib.suppress(ReservationConflict):
                draw.choice([accountant.commit, accountant.void])(receipt)

    def many() -> None:
        by, policy = draw.choice([(accountant, "a"), (team, "b")])
        by.spend_many(draw.sample(users, min(30, len(users))), draw.choice(plain), policy=policy)

    def set_policy() -> None:
        lifetime = draw.choice(["lifetime=9", "lifetime=4"])
        if draw.random() < 0.5:
            accountant.set_policy("a", [lifetime, *draw.choice([[], ["day=2"], ["week=3", "month=6"]])])
        else:
            accountant.set_policy("b", [lifetime, draw.choice(["week=4", "week=2"]), *draw.choice([[], ["day=2"]])])

    def repair() -> None:
        clock.advance(hours=-draw.choice([1, 30, 800]))
        accountant.repair_clock()

    def erase() -> None:
        accountant.erase(draw.choice(users), unknown=True)

    def wait() -> None:
        clock.advance(hours=draw.choice([1, 7, 30]))

    acts = [spend, end, wait, set_policy, many, erase, repair]
    while accountant.stats()["entries"] < entries:
        for act in draw.choices(acts, [100, 20, 8, 0.5, 1, 0.3, 0.2], k=200):
            act()
            clock.advance(seconds=draw.choice([0, 1, 600]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "entries"),
    [(99, 2_000), *(pytest.param(seed, 10_000, marks=pytest.mark.exhaustive) for seed in range(20))],
)
def test_verify_with_a_random_history_finds_nothing(clock: Clock, seed: int, entries: int) -> None:
    with Accountant(":memory:", clock=clock) as accountant:
        live(accountant, clock, seed, entries)
        check(accountant)


@pytest.mark.exhaustive
def test_verify_of_a_moved_ledger_with_a_new_key_passes(tmp_path: Path, clock: Clock) -> None:
    with Accountant(tmp_path / "first.db", clock=clock) as accountant:
        live(accountant, clock, 5, 300)
        rotate(accountant)
        accountant.spend("user1", coin("0.25"), policy="b")
        check(accountant)
        accountant.ledger.move_to(tmp_path / "second.db")
    with Accountant(tmp_path / "second.db", create=False, clock=clock) as copy:
        copy.spend("user2", coin("0.25"), policy="b")
        check(copy)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [3, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(10, 20))])
def test_verify_with_partitions_copied_into_one_finds_nothing(tmp_path: Path, clock: Clock, seed: int) -> None:
    """Equal times, and repairs of the clock in some partitions alone, put entries of several partitions in one order."""
    with Accountant(ToyStore(3), clock=clock) as accountant:
        live(accountant, clock, seed, 100)
        check(accountant)
        accountant.ledger.move_to(tmp_path / "copy.db")
    with Accountant(tmp_path / "copy.db", create=False, clock=clock) as copy:
        copy.spend("user2", coin("0.25"), policy="b")
        check(copy)
