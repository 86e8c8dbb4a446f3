"""A ledger on PostgreSQL whose server has standbys, of which one is promoted, or settings that lose commits."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from contract.acts import check, coin, spent
from ldp_budget import Accountant, LedgerError
from ldp_budget.accounting.batch import Spend
from postgres_faults import NOTHING, In, ask, signal_backends, wait_for_sessions, with_port
from postgres_places import new_ledger
from postgres_proxy import Proxy
from postgres_servers import Server, standby_of, wait_until

pytestmark = pytest.mark.usefixtures("own_keys")


# -- standbys ------------------------------------------------------------------------------------------------------


def wait_for_nobody(server: Server, name: str) -> None:
    """Let commits wait for a standby of that name; with None, for no standby."""
    server.run(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
    server.run("SELECT pg_reload_conf()")
    wait_until(lambda: server.run("SHOW synchronous_standby_names") == [(name,)], "no new settings")


def test_commit_that_no_standby_has_is_not_acknowledged(server: Server) -> None:
    address = f"{server.create_database()}?partitions=4"
    with Accountant(f"{address}&ha=none") as accountant:
        accountant.set_policy("default", ["lifetime=9"])
    wait_for_nobody(server, "gone")
    with Accountant(f"{address}&ha=quorum") as accountant:
        keyless = In(lambda: accountant.spend("alice", coin(1)))
        for how in ("pg_cancel_backend", "pg_terminate_backend"):
            wait_for_sessions(address, 1, "SyncRep")
            signal_backends(address, how)
            error = keyless.result()
            assert isinstance(error, LedgerError)
            assert error.unknown
            assert NOTHING not in str(error)
            keyless = In(lambda: accountant.spend("alice", coin(1)))
        wait_for_sessions(address, 1, "SyncRep")
        signal_backends(address, "pg_cancel_backend")
        keyless.result()
        # By its key it finds that it is charged already, and has to wait for the standby all the same.
        keyed = In(lambda: accountant.spend("alice", coin(1), key="k"))
        cancelled = 0
        while keyed.runs():
            cancelled += signal_backends(address, "pg_cancel_backend", "wait_event = 'SyncRep'")
            time.sleep(0.02)
        assert cancelled > 1
        error = keyed.result()
        assert isinstance(error, LedgerError)
        assert error.unknown
        again = In(lambda: accountant.spend("alice", coin(1), key="k"))
        wait_for_sessions(address, 1, "SyncRep")
        wait_for_nobody(server, "")
        receipt = again.result()
        assert receipt.repeated
        # A reload took the standbys away that the address promises.
        with pytest.raises(LedgerError, match="with ha=quorum its server must set synchronous_standby_names"):
            accountant.spend("alice", coin(1))
    with Accountant(f"{address}&ha=none") as accountant:
        assert spent(accountant, "alice") == {"lifetime": 4}
        check(accountant)


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("verb", ["batch of one", "batch", "run"])
def test_repeat_of_a_batch_that_no_standby_has_is_not_acknowledged(
    server: Server, verb: str, partitions: int
) -> None:
    address = f"{server.create_database()}?partitions={partitions}"
    with Accountant(f"{address}&ha=none") as accountant:
        accountant.set_policy("default", ["lifetime=9"])
    wait_for_nobody(server, "gone")
    users = ["alice"] if verb == "batch of one" else ["alice", *(f"user {number}" for number in range(9))]

    def attempt(accountant: Accountant) -> object:
        if verb == "run":
            return accountant.spend_many(users, coin(1), key="k")
        return accountant.spend_batch([Spend(user, coin(1)) for user in users], key="k")

    with Accountant(f"{address}&ha=quorum") as accountant:
        for _ in range(3):
            asked = In(lambda: attempt(accountant))
            cancelled = 0
            while asked.runs():
                cancelled += signal_backends(address, "pg_cancel_backend", "wait_event = 'SyncRep'")
                time.sleep(0.02)
            error = asked.result()
            assert isinstance(error, LedgerError)
            assert error.unknown
            assert cancelled
        wait_for_nobody(server, "")
    with Accountant(f"{address}&ha=none") as accountant:
        attempt(accountant)
        assert {spent(accountant, user)["lifetime"] for user in users} == {1}
        check(accountant)


@pytest.mark.exhaustive
def test_promoted_standby_that_lacks_acknowledged_charges_is_refused(server: Server, tmp_path: Path) -> None:
    address = f"{server.create_database()}?partitions=4&ha=none"
    users = [f"user {number}" for number in range(12)]
    with Proxy(server.port) as proxy, Accountant(with_port(address, proxy.port)) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        for user in users:
            accountant.spend(user, coin(1), key="first")
        with standby_of(server, tmp_path / "standby", "late") as standby:
            standby.kill()
            for user in users:
                assert accountant.spend(user, coin(1), key="second")
            server.kill()
            standby.restart()
            standby.promote()
            proxy.target = standby.port
            proxy.cut_all()
            for user in users:
                for ask_for in (
                    lambda user=user: accountant.spend(user, coin(1)),
                    lambda user=user: accountant.spend(user, coin(1), key="second"),
                    lambda user=user: accountant.reserve(user, coin(1)),
                ):
                    with pytest.raises(LedgerError, match=rf"was rolled back.*{NOTHING}") as told:
                        ask_for()
                    assert not told.value.unknown
                with pytest.raises(LedgerError, match="was rolled back"):
                    accountant.balance(user)
            # A new client spends on it; it continues from there, and stays refused.
            with Accountant(with_port(address, standby.port)) as other:
                for user in users:
                    for number in range(3):
                        assert other.spend(user, coin(1), key=f"other {number}")
                check(other)
            for user in users:
                with pytest.raises(LedgerError, match="was rolled back"):
                    accountant.spend(user, coin(1))


@pytest.mark.exhaustive
def test_promoted_standby_that_has_everything_is_accepted(server: Server, tmp_path: Path) -> None:
    address = f"{server.create_database()}?partitions=4"
    users = [f"user {number}" for number in range(12)]
    with standby_of(server, tmp_path / "standby", "twin", synchronous=True) as standby, Proxy(server.port) as proxy:
        accountant = Accountant(f"{with_port(address, proxy.port)}&ha=quorum")
        with accountant:
            accountant.set_policy("default", ["lifetime=9"])
            for user in users:
                assert accountant.spend(user, coin(1), key="first")
            server.kill()
            standby.promote()
            proxy.target = standby.port
            proxy.cut_all()
            with pytest.raises(LedgerError, match="with ha=quorum its server must set synchronous_standby_names"):
                accountant.spend(users[0], coin(1), key="first")  # it has no standby of its own
            address = with_port(address, standby.port)
            wait_for_nobody(standby, "twin")  # itself
            late = In(lambda: accountant.spend("late", coin(1)))
            wait_for_sessions(address, 1, "SyncRep")
            signal_backends(address, "pg_cancel_backend")
            error = late.result()
            assert isinstance(error, LedgerError)
            assert error.unknown
            wait_for_nobody(standby, "")
        with Accountant(f"{address}&ha=none", create=False) as accountant:
            for user in users:
                assert accountant.spend(user, coin(1), key="first").repeated
                assert accountant.spend(user, coin(1), key="second")
                assert spent(accountant, user) == {"lifetime": 2}
            check(accountant)


@pytest.mark.exhaustive
def test_undeclared_standbys_are_refused(server: Server, tmp_path: Path) -> None:
    address = f"{server.create_database()}?partitions=4"
    with pytest.raises(LedgerError, match="with ha=quorum its server must set synchronous_standby_names"):
        Accountant(f"{address}&ha=quorum")
    with standby_of(server, tmp_path / "standby", "silent") as standby:
        for create in (True, False):
            with pytest.raises(LedgerError, match=r"has standbys.*ha=quorum.*ha=none"):
                Accountant(address, create=create) if create else Accountant(_made(address), create=False)
        with Accountant(f"{address}&ha=none") as accountant:
            accountant.set_policy("default", ["lifetime=9"])
            assert accountant.spend("alice", coin(1))
        # A standby itself refuses a client that wants to charge.
        wait_until(lambda: bool(ask(with_port(address, standby.port), "SELECT to_regclass('journal')")[0][0]), "late")
        with pytest.raises(LedgerError):
            Accountant(with_port(address, standby.port), create=False)


def _made(address: str) -> str:
    """The same address, once there is a ledger."""
    Accountant(f"{address}&ha=none").close()
    return address


# -- settings ------------------------------------------------------------------------------------------------------


def test_server_without_durability_is_refused(server: Server) -> None:
    address = f"{server.create_database()}?partitions=4"
    for made in (False, True):
        for setting in ("fsync", "full_page_writes"):
            server.run(f"ALTER SYSTEM SET {setting} = off")
            server.run("SELECT pg_reload_conf()")
            wait_until(lambda setting=setting: server.run(f"SHOW {setting}") == [("off",)], "no new settings")
            with pytest.raises(LedgerError, match=f"must have {setting} = on: got off"):
                Accountant(address)
            assert (ask(address, "SELECT to_regclass('partitions')") != [(None,)]) == made
            server.run(f"ALTER SYSTEM RESET {setting}")
            server.run("SELECT pg_reload_conf()")
            wait_until(lambda setting=setting: server.run(f"SHOW {setting}") == [("on",)], "no new settings")
        Accountant(address).close()


@pytest.mark.some(3)
@pytest.mark.parametrize("value", ["off", "local", "remote_write"])
def test_asynchronous_commits_are_refused(value: str) -> None:
    address = new_ledger(4)
    refused = pytest.raises(LedgerError, match=f"must have synchronous_commit = on.*got {value}")
    with refused:
        Accountant(f"{address}&options=-c%20synchronous_commit%3D{value}")
    Accountant(address).close()
    (name,) = ask(address, "SELECT current_database()")[0]
    ask(address, f"ALTER DATABASE {name} SET synchronous_commit = {value}")
    with refused:
        Accountant(address, create=False)
    with Accountant(f"{address}&options=-c%20synchronous_commit%3Don") as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        assert accountant.spend("alice", coin(1))
