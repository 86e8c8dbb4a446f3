"""Several processes on one PostgreSQL: they spend, fork, are killed, and make the same ledger at the same time."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from ldp_budget import Accountant, LedgerError
from ldp_budget_postgres import schema, store
from ledger_contract import check, coin, in_threads, spent
from ledger_scripts import let_go, outputs, start, wait_until_ready
from postgres_faults import ask, entries
from postgres_places import new_ledger
from postgres_servers import wait_until

pytestmark = pytest.mark.usefixtures("own_keys")


# -- processes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.exhaustive), 4])
def test_processes_together_grant_one_user_exactly_the_limit(partitions: int) -> None:
    address = new_ledger(partitions)
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=37", "day=90"])
        script = """
            accountant, granted = Accountant(address), []

            def spend(number):
                for n in range(5):
                    granted.append(bool(accountant.spend("alice", coin, key=f"{words[0]}/{number}/{n}")))

            threads = [threading.Thread(target=spend, args=(number,)) for number in range(8)]
            ready()
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            accountant.close()
            print(sum(granted), len(granted))
            """
        printed = [out.split() for out in outputs([start(script, address, number) for number in range(2)])]
        assert [asked for _, asked in printed] == ["40", "40"]
        assert sum(int(granted) for granted, _ in printed) == 37
        assert entries(accountant, "alice") == 37
        assert spent(accountant, "alice") == {"lifetime": 37, "day": 37}
        check(accountant)


@pytest.mark.exhaustive
def test_processes_with_one_key_get_one_charge() -> None:
    address = new_ledger(4)
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=90"])
        script = """
            accountant, receipts = Accountant(address), []
            ready()
            for n in range(20):
                receipts.append(accountant.spend("alice", coin, key=str(n)).receipt)
            print(*receipts)
            accountant.close()
            """
        first, *others = outputs([start(script, address) for _ in range(3)])
        assert others == [first] * 2
        assert entries(accountant, "alice") == 20
        check(accountant)


@pytest.mark.exhaustive
def test_killed_processes_leave_nothing_behind() -> None:
    address = new_ledger(4)
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=1000000"])
        script = """
            accountant = Accountant(address)
            ready()
            for n in range(1_000_000):
                accountant.spend("alice", coin)
                os.write(1, b".")
            """
        for seed in range(3):
            process = start(script, address)
            wait_until_ready(process)
            before = entries(accountant, "alice")
            let_go(process)
            time.sleep(0.1 + seed / 20)
            process.kill()
            out, _ = process.communicate()
            acknowledged = out.count(".")
            # The session on the server may still be at its last commit.
            wait_until(lambda: accountant.spend("bob", coin(1)).status == "spent", "a lock was left")
            assert before + acknowledged <= entries(accountant, "alice") <= before + acknowledged + 1
        check(accountant)


# -- forks ---------------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_fork_lets_parent_and_child_spend() -> None:
    address = new_ledger(4)
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=100000"])
        script = """
            accountant = Accountant(address)
            accountant.spend("alice", coin)
            for exits in (os._exit, sys.exit) * 3:
                child = os.fork()
                if child == 0:
                    try:
                        accountant.spend("child", coin)
                    except ldp_budget.LedgerError as error:
                        assert "before this process was forked" in str(error)
                    own = Accountant(address, create=False)
                    assert own.spend("child", coin)
                    assert len(own.history("alice")) >= 1
                    if exits is sys.exit:
                        own.close()
                    exits(0)
                assert accountant.spend("alice", coin)
                assert os.waitpid(child, 0)[1] == 0
                assert accountant.spend("alice", coin)
            accountant.close()
            """
        outputs([start(script, address)], waits=False)
        assert (entries(accountant, "alice"), entries(accountant, "child")) == (13, 6)
        check(accountant)


def test_open_ledger_imports_only_while_forks_wait() -> None:
    """A child that was forked while another thread imported something would wait for that for ever."""
    script = """
        from ldp_budget._later import IMPORTING

        class Watch:
            free = []

            @classmethod
            def find_spec(cls, name, path=None, target=None):
                if not IMPORTING._is_owned():
                    cls.free.append(name)

        accountant = Accountant(address)
        sys.meta_path.insert(0, Watch)
        accountant.set_policy("default", ["lifetime=9"])
        assert accountant.spend("alice", coin, key="k")
        assert accountant.commit(accountant.reserve("alice", coin).receipt)
        accountant.balance("alice")
        accountant.verify()
        print(*sorted(set(Watch.free)))
        accountant.close()
        """
    assert outputs([start(script, new_ledger(4))], waits=False) == [""]


@pytest.mark.exhaustive
def test_fork_during_spends_of_threads_does_not_hang() -> None:
    address = new_ledger(4)
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=100000"])
        script = """
            accountant, stop, done = Accountant(address), threading.Event(), []

            def spend(number):
                while not stop.is_set():
                    done.append(bool(accountant.spend(f"user {number}", coin)))

            threads = [threading.Thread(target=spend, args=(number,)) for number in range(4)]
            for thread in threads: thread.start()
            for number in range(10):
                time.sleep(0.01)
                child = os.fork()
                if child == 0:
                    own = Accountant(address, create=False)
                    for number in range(8):
                        own.spend(f"child {number}", coin)
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
            stop.set()
            for thread in threads: thread.join()
            accountant.close()
            print(len(done))
            """
        (printed,) = outputs([start(script, address)], waits=False)
        assert sum(entries(accountant, f"user {number}") for number in range(4)) == int(printed)
        assert [entries(accountant, f"child {number}") for number in range(8)] == [10] * 8
        check(accountant)


# -- making a ledger -----------------------------------------------------------------------------------------------

MAKE = """
    def make(address):
        with Accountant(address) as accountant:
            accountant.set_policy("default", ["lifetime=9"])
            assert accountant.spend("alice", coin)

    for address in (address, *words):
        ready()
        make(address)
    """


@pytest.mark.exhaustive
@pytest.mark.parametrize("named", [False, True], ids=["in the folder", "named"])
def test_create_by_processes_at_once_makes_one_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """Each works with the key of the ledger that came to be, wherever that lies."""
    for _ in range(4):
        if named:
            monkeypatch.setenv("LDP_BUDGET_KEY", str(tmp_path / os.urandom(4).hex()))
        address = new_ledger(4)
        outputs([start(MAKE, address) for _ in range(3)])
        with Accountant(address, create=False) as accountant:
            assert entries(accountant, "alice") == 3
            check(accountant)
        (ledger,) = ask(address, "SELECT value FROM meta WHERE name = 'ledger'")[0]
        if not named:
            assert (tmp_path / "config" / "ldp-budget" / "keys" / f"{ledger.decode()}.key").exists()


def test_create_by_threads_at_once_makes_one_ledger() -> None:
    address = new_ledger(4)

    def make(number: int) -> bool:
        with Accountant(address) as accountant:
            accountant.set_policy("default", ["lifetime=99"])
            return bool(accountant.spend("alice", coin(1)))

    assert in_threads(6, make) == [True] * 6
    with Accountant(address, create=False) as accountant:
        assert entries(accountant, "alice") == 6
        check(accountant)


@pytest.mark.some(3)
@pytest.mark.parametrize("code", ["42P07", "42710", "23505"], ids=["table", "type", "row of a catalogue"])
def test_create_second_finds_the_ledger_after_any_server_error(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    address = new_ledger(4)
    make = store.make

    def overtaken(*arguments: Any) -> Any:
        key = make(*arguments)
        monkeypatch.setattr(store, "make", make)
        with Accountant(address) as first:
            first.set_policy("default", ["lifetime=9"])
        error = f"DO $$ BEGIN RAISE EXCEPTION 'already exists' USING ERRCODE = '{code}'; END $$"
        monkeypatch.setattr(schema, "TABLES", [error])
        return key

    monkeypatch.setattr(store, "make", overtaken)
    with Accountant(address) as accountant:
        assert accountant.spend("alice", coin(1))
        check(accountant)


def test_create_without_rights_reports_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "TABLES", ["CREATE TYPE meta", "CREATE TYPE meta"])
    with pytest.raises(LedgerError, match=r"its tables cannot be created: .*already exists"):
        Accountant(new_ledger(4))


def test_open_without_the_key_is_refused_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = new_ledger(4)
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=99"])
        accountant.spend("alice", coin(1))
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("XDG_CONFIG_HOME", str(tmp_path / "elsewhere"))
        with pytest.raises(LedgerError, match=r"its key .* cannot be read"):
            Accountant(address)
        assert not (tmp_path / "elsewhere").exists()
    with Accountant(address) as accountant:
        assert entries(accountant, "alice") == 1
