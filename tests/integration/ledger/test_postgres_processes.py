"""Several processes on one PostgreSQL: they spend, fork, are killed, and make the same ledger at the same time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from contract.acts import check, coin, spent
from ldp_budget import Accountant, LedgerError
from ldp_budget_postgres import schema
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
        (ledger,) = ask(address, "SELECT value FROM meta WHERE name = 'identity'")[0]
        if not named:
            assert (tmp_path / "config" / "ldp-budget" / "keys" / f"{ledger.decode()}.key").exists()


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
