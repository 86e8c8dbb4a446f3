"""A ledger on PostgreSQL behind pgbouncer: each transaction gets one of a few sessions, which others get next."""

from __future__ import annotations

import atexit
import random
import re
import shutil
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from contract import StoreContract
from contract.acts import check, coin, in_threads, spent
from ldp_budget import Accountant, LedgerError
from ledger_scripts import outputs, start
from postgres_faults import entries, plain_url, settle, spend_amid
from postgres_places import Emptied
from postgres_servers import (
    HOST,
    PATIENCE,
    dismiss,
    folder_for_programs,
    free_port,
    in_this_process,
    start_guarded,
    wait_until,
)


def find_pgbouncer() -> str | None:
    """The program, if it is here."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")


class Pooler:
    """A pgbouncer of our own, with `sessions` on the server for each database, for which one waits some seconds."""

    def __init__(self, folder: Path, port: int | None, sessions: int = 3, patience: int = 120) -> None:
        self.sessions, self.patience = sessions, patience
        self.target = port
        self.port = free_port()
        self.data = folder_for_programs(folder)
        self.log = folder / "pgbouncer.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._at_exit = in_this_process(self.close)
        atexit.register(self._at_exit)

    def __enter__(self) -> Pooler:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def address(self, url: str) -> str:
        """The same URL by way of the pooler."""
        return re.sub(r"(@[^/:]*):\d+", rf"\1:{self.port}", url)

    def start(self) -> None:
        """Start it and wait until it takes connections; after `kill` once more, on the same port."""
        self._write()
        program = find_pgbouncer()
        assert program is not None
        process, self._guard = start_guarded([program, self.data / "pgbouncer.ini"], self.log, self.data)
        self._process = process
        wait_until(lambda: process.poll() is not None or self._answers(), f"no start; see {self.log}")
        if process.poll() is not None:
            raise RuntimeError(f"pgbouncer does not start: {self.log.read_text()}")

    def lead_to(self, port: int | None) -> None:
        """Use another server from now on; clients stay connected."""
        self.target = port
        self._write()
        assert self._process is not None
        before = self._reloads()
        self._process.send_signal(signal.SIGHUP)
        wait_until(lambda: self._reloads() > before, "it does not read its settings again")

    def kill(self) -> None:
        """Drop all clients in the midst of their work."""
        if self._process is None or self._guard is None:
            return
        self._process.kill()
        self._process.wait(PATIENCE)
        dismiss(self._guard)
        self._process = self._guard = None

    def close(self) -> None:
        """End it and remove its folder; the log stays."""
        self.kill()
        shutil.rmtree(self.data, ignore_errors=True)
        atexit.unregister(self._at_exit)

    def _write(self) -> None:
        settings = {
            "listen_addr": HOST,
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "any",
            "pool_mode": "transaction",
            "default_pool_size": self.sessions,
            "max_client_conn": 300,
            "server_login_retry": 1,
            "query_wait_timeout": self.patience,
        }
        lines = ["[databases]", f"* = host={HOST} port={self.target} user=postgres", "[pgbouncer]"]
        lines += [f"{name} = {value}" for name, value in settings.items()]
        file = self.data / "pgbouncer.ini"
        file.write_text("\n".join(lines) + "\n")
        file.chmod(0o644)

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection((HOST, self.port)):
            return True
        return False

    def _reloads(self) -> int:
        return self.log.read_text().count("SIGHUP")


pytestmark = [
    pytest.mark.usefixtures("own_keys"),
    pytest.mark.skipif(find_pgbouncer() is None, reason="no pgbouncer, such as Debian's package of that name"),
]


class BehindPooler(Emptied):
    """A ledger of four partitions on the shared server."""

    def __init__(self, folder: Path) -> None:
        super().__init__(4)
        self.direct = self.address
        found = re.search(r"//postgres@127\.0\.0\.1:(\d+)/", self.address)
        if found is None:
            pytest.skip("the server is not one of our own")
        self.pooler = Pooler(folder, int(found[1]))
        self.address = self.pooler.address(self.direct)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[BehindPooler]:
    made = BehindPooler(tmp_path / "pooler")
    with made.pooler:
        yield made


class TestCentral:
    """Of the contract, what is done in one transaction, in several, and in bulk."""

    threads_with_one_key = 8
    test_keys = StoreContract.test_refusal_under_a_key_is_permanent
    test_reservations = StoreContract.test_reservation_ends_once
    test_bulk = StoreContract.test_batch_under_a_key_is_charged_once
    test_threads = StoreContract.test_threads_with_one_key_get_one_charge
    test_closing = StoreContract.test_close_and_reopen_loses_nothing


@pytest.mark.exhaustive
class TestContract(StoreContract):
    @pytest.fixture
    def place(self, place: BehindPooler) -> BehindPooler:
        return place


# -- many at a time ------------------------------------------------------------------------------------------------


@pytest.mark.policy("lifetime=1000000")
@pytest.mark.exhaustive
def test_threads_with_keys_exceed_no_limit_and_charge_nothing_twice(accountant: Accountant) -> None:
    accountant.set_policy("tight", ["lifetime=7"])

    def spend(number: int) -> dict[str, list[Any]]:
        """Each key is asked for by two threads, and twice by each."""
        keys = [f"{number // 2}/{n}" for n in range(8)]
        user = f"user {number // 2 % 8}"
        answers: dict[str, list[Any]] = {key: [] for key in keys}
        for key in keys * 2:
            receipt = accountant.spend(user, coin(1), key=key, policy="tight")
            answers[key].append((receipt.status, receipt.receipt))
        return answers

    outcomes = in_threads(32, spend)
    told: dict[str, set[Any]] = {}
    for outcome in outcomes:
        assert isinstance(outcome, dict), outcome
        for key, answers in outcome.items():
            told.setdefault(key, set()).update(answers)
    assert all(len(answers) == 1 for answers in told.values())
    assert Counter(status for ((status, _),) in told.values()) == {"spent": 8 * 7, "refused": 8 * 9}
    for number in range(8):
        assert entries(accountant, f"user {number}") == 7
        assert spent(accountant, f"user {number}", "tight") == {"lifetime": 7}
    check(accountant)


@pytest.mark.policy("lifetime=1000000")
@pytest.mark.exhaustive
def test_batches_checkpoints_and_readers_do_not_block_each_other(accountant: Accountant) -> None:
    users = [f"many {number}" for number in range(100)]

    def work(number: int) -> Any:
        if number == 0:
            return [accountant.spend_many(users, coin(1), key=f"run {n}").spent for n in range(4)]
        if number == 1:
            return [accountant.checkpoint() for _ in range(6)]
        if number < 4:
            return [sum(1 for _ in accountant.journal()) for _ in range(5)]
        return [accountant.spend(f"user {number}", coin(1), key=str(n)).status for n in range(25)]

    runs, heads, *others = in_threads(8, work)
    assert runs == [100] * 4
    assert len(heads) == 6
    for counts in others[:2]:
        assert counts == sorted(counts)
    assert others[2:] == [["spent"] * 25] * 4
    assert sum(1 for row in accountant.journal() if row["kind"] == "spent") == 4 * 100 + 4 * 25
    for head in heads:
        check(accountant, head)


MIXED = """
    accountant, who = Accountant(address, create=False), words[0]

    def work(number):
        user = f"user {number}"
        for n in range(int(words[1])):
            assert accountant.spend(user, coin, key=f"{who}/{number}/{n}", label=str(n % 3))
            assert accountant.commit(accountant.reserve(user, coin).receipt)
            accountant.balance(user)
            accountant.history(user)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    ready()
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    accountant.verify()
    print(dict(accountant._ledger._store.repeated))
    accountant.close()
    """


@pytest.mark.exhaustive
def test_processes_share_sessions_and_never_statements(place: BehindPooler) -> None:
    """Each does the same in another order; a statement that one has prepared by name would be done for another."""
    count = 25
    with Accountant(place.address) as accountant:
        accountant.set_policy("default", ["lifetime=1000000"])
        assert outputs([start(MIXED, place.address, who, count) for who in "abc"]) == ["{}"] * 3
        assert [entries(accountant, f"user {number}") for number in range(4)] == [9 * count] * 4
        check(accountant)


# -- trouble -------------------------------------------------------------------------------------------------------


@pytest.mark.policy("lifetime=1000000")
@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.exhaustive)])
@pytest.mark.exhaustive
def test_killed_pooler_loses_nothing(place: BehindPooler, accountant: Accountant, kills: int) -> None:
    def trouble() -> None:
        dice = random.Random(kills)
        for _ in range(kills):
            time.sleep(dice.uniform(0.1, 0.4))
            place.pooler.kill()
            time.sleep(dice.uniform(0, 0.2))
            place.pooler.start()
        time.sleep(0.2)

    assert spend_amid(accountant, trouble)["granted"] > 8
    settle(lambda: check(accountant))


# -- what it promises ----------------------------------------------------------------------------------------------


FORGETFUL = r"must have synchronous_commit = on or .*got off"


def in_every_session(place: BehindPooler, sql: str) -> None:
    """As many transactions at the same time as there are sessions, so that none is left out."""
    import psycopg

    with ExitStack() as stack:
        for _ in range(place.pooler.sessions):
            connection = stack.enter_context(psycopg.connect(plain_url(place.address)))
            connection.execute(sql)  # type: ignore[call-overload, unused-ignore]


@pytest.mark.policy("lifetime=1000000")
def test_sessions_without_durability_are_refused_by_name(place: BehindPooler, accountant: Accountant) -> None:
    """Settings of a session stay with it, and the next client of the session gets them."""
    accountant.spend("alice", coin(1))
    in_every_session(place, "SET synchronous_commit = off")
    with pytest.raises(LedgerError, match=FORGETFUL) as told:
        accountant.spend("alice", coin(1))
    assert not told.value.unknown
    with pytest.raises(LedgerError, match=FORGETFUL):
        accountant.set_policy("default", ["lifetime=1"])
    in_every_session(place, "SET synchronous_commit = on")
    assert accountant.spend("alice", coin(1))
    assert spent(accountant, "alice") == {"lifetime": 2}
    assert [policy.version for policy in accountant.policies()] == [1]
    check(accountant)


def test_hidden_pooler_is_detected_by_lost_settings(place: BehindPooler, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that shows the number of a session of the server, as the server does, and gives out others."""
    from ldp_budget_postgres import pool

    check_settings = pool.check_settings

    def unseen(*arguments: Any) -> bool:
        return check_settings(*arguments) and False

    monkeypatch.setattr(pool, "check_settings", unseen)
    with Accountant(place.address) as one, Accountant(place.address) as other:
        one.set_policy("default", ["lifetime=90"])
        for _ in range(10):
            for each in (one, other):
                assert each.spend("alice", coin(1))
        assert sum(each.repeated.get(code, 0) for each in (one, other) for code in ("26000", "42P05"))
        assert {code for each in (one, other) for code in each.repeated} <= {"26000", "42P05"}
        assert spent(one, "alice") == {"lifetime": 20}
        check(other)
