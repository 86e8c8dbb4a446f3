"""The roles of docs/guides/sql/roles.sql: the application does all that the library does, and can delete no entry."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ldp_budget
from contract import StoreContract
from contract.acts import CURVE, coin, promising
from contract.places import Now
from ldp_budget import Accountant, LedgerError
from ldp_budget.registry.collections import Collection
from ldp_budget_postgres.schema import PARTITIONED
from postgres_places import Empty, OnServer
from postgres_servers import Server, find_binaries, reason_for_none, standby_of, wait_until

psycopg = pytest.importorskip("psycopg")

pytestmark = pytest.mark.usefixtures("own_keys")

SQL = Path(__file__).resolve().parents[3] / "docs" / "guides" / "sql"
OWNER, APPLICATION = "ldp_budget_owner", "ldp_budget_app"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of our own: roles belong to all of its databases."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip(reason_for_none())
    with Server(tmp_path_factory.mktemp("roles"), binaries) as running:
        yield running


class WithRoles(OnServer):
    """A ledger that its owner has made, and that the application works on."""

    def __init__(self, server: Server, partitions: int) -> None:
        self.superuser = server.create_database()
        self._partitions = partitions
        self.run_script()
        self.address = f"{self._as(OWNER)}?partitions={partitions}"

    def _as(self, role: str) -> str:
        return self.superuser.replace("postgres@", f"{role}@")

    def run_script(self) -> None:
        with psycopg.connect(self.superuser, autocommit=True) as connection:
            connection.execute((SQL / "roles.sql").read_text(encoding="utf-8"))

    def execute(self, sql: str, role: str = APPLICATION) -> None:
        with psycopg.connect(self._as(role), autocommit=True) as connection:
            connection.execute(sql)

    def open(self, clock: Now | None = None) -> Accountant:
        Accountant(self.address).close()
        self.run_script()
        self.address = self._as(APPLICATION)
        return Accountant(self.address, create=False, **({} if clock is None else {"clock": clock}))


@functools.cache
def _of_application(server: Server) -> Empty:
    place = WithRoles(server, 4)
    place.open().close()
    return Empty(place.address, place.superuser)


class AsApplication(OnServer):
    """A ledger that the application works on, new each time."""

    def __init__(self, server: Server) -> None:
        empty = _of_application(server)
        empty.restore()
        self.address = empty.address

    def open(self, clock: Now) -> Accountant:
        return Accountant(self.address, create=False, clock=clock)


@pytest.mark.exhaustive
class TestAsTheApplication(StoreContract):
    @pytest.fixture
    def place(self, server: Server) -> AsApplication:
        return AsApplication(server)


@pytest.mark.exhaustive
def test_application_role_can_do_everything_but_delete_entries(server: Server) -> None:
    place = WithRoles(server, 4)
    with place.open() as accountant:
        accountant.set_policy("default", ["lifetime=100"])
        assert accountant.spend("alice", coin("0.5"), key="k")
        assert accountant.spend("alice", coin("0.5"), key="k").repeated
        assert accountant.spend("bob", promising(CURVE), label="home", key="m")
        assert accountant.spend("bob", promising(CURVE), label="home")
        reserved = accountant.reserve("alice", coin("0.5"), key="two steps")
        assert accountant.void(reserved.receipt).status == "voided"
        accountant.set_policy("daily", ["lifetime=100", "day=10"])
        users = [f"u{number}" for number in range(200)]
        assert accountant.spend_many(users, coin("0.5"), policy="daily", key="run").spent == 200
        assert accountant.spend_many(users, coin("0.5"), policy="daily").spent == 200
        plan = ldp_budget.Plan([(coin("0.25"), 3)], delta="1e-6")
        accountant.set_policy("planned", ["lifetime=100,1e-6"], plan=plan)
        assert accountant.spend("carol", coin("0.25"), policy="planned")
        assert accountant.spend("carol", coin("0.25"), policy="planned")
        accountant.add_collection(Collection("new", coin("0.5")))
        assert accountant.spend("bob", accountant.collection("new"), note="at the door")
        assert accountant.spend_many(["u7", "u8"], coin("0.5"), note="again").spent == 2
        head = accountant.checkpoint()
        assert accountant.erase("bob")
        assert accountant.erase("u7")
        assert not accountant.erase("unknown", unknown=True)
        assert not accountant.repair_clock()
        found = accountant.verify(head)
        assert found.ok, found.problems

    deleted = (
        "window_sums",
        "account_macs",
        "memoised_counts",
        "entry_labels",
        "notes",
        "idempotency_records",
    )  # by an erasure
    refused = [
        *(f"DELETE FROM {table}" for table in PARTITIONED if table not in deleted),
        *(f"TRUNCATE {table}" for table in PARTITIONED),
        *(f"DROP TABLE {table}" for table in PARTITIONED),
        *(f"UPDATE {table} SET partition = partition" for table in PARTITIONED if table != "partitions"),
        "UPDATE journal SET epsilon = 0",
        "UPDATE journal SET at = at",
        "UPDATE meta SET value = value",
        "INSERT INTO meta VALUES ('a', '')",
        "INSERT INTO partitions SELECT * FROM partitions",
        "CREATE TABLE mine (n int)",
        "CREATE TEMPORARY TABLE partitions (n int)",
        "ALTER TABLE journal ADD COLUMN n int",
    ]
    for sql in refused:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            place.execute(sql)
    place.execute("UPDATE journal SET chain_hash = chain_hash WHERE false")

    with Accountant(place.address, create=False) as accountant:
        assert accountant.verify(head).ok


def test_application_role_cannot_create_a_ledger(server: Server) -> None:
    place = WithRoles(server, 4)
    with pytest.raises(LedgerError, match="permission denied"):
        Accountant(place.address.replace(OWNER, APPLICATION))


def test_roles_script_can_run_again_while_the_ledger_is_open(server: Server) -> None:
    place = WithRoles(server, 4)
    with place.open() as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        place.run_script()
        assert accountant.spend("alice", coin("0.5"))
        assert accountant.verify().ok


@pytest.mark.exhaustive
def test_application_role_sees_a_standby(server: Server, tmp_path: Path) -> None:
    place = WithRoles(server, 4)
    place.open().close()
    with standby_of(server, tmp_path, "second"):
        wait_until(lambda: server.run("SELECT count(*) FROM pg_stat_replication") == [(1,)], "it does not follow")
        with pytest.raises(LedgerError, match="standbys, and the URL has no ha option"):
            Accountant(place.address, create=False)
        Accountant(f"{place.address}?ha=none", create=False).close()
    wait_until(lambda: server.run("SELECT count(*) FROM pg_stat_replication") == [(0,)], "it follows still")


def test_roles_script_names_every_table() -> None:
    roles = (SQL / "roles.sql").read_text(encoding="utf-8")
    [listed] = re.findall(r"tables CONSTANT text\[\] := ARRAY\[(.+?)\]", roles, flags=re.DOTALL)
    assert set(re.findall(r"'(\w+)'", listed)) == {"meta", *PARTITIONED}
