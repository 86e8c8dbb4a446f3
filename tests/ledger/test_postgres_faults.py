"""A ledger on PostgreSQL whose servers are killed, cut off, promoted and misconfigured.

An acknowledged spend is never lost and never counted twice, what is unknown is told as unknown, and "nothing was
charged" is said only where that is true.
"""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ldp_budget import Accountant, InvalidParameter, LedgerError
from ledger_contract import check, coin, in_threads, spent
from postgres_places import new_ledger
from postgres_servers import HOST, Server, find_binaries, reason_for_none, standby_of, wait_until

NOTHING = "nothing was charged"


@pytest.fixture(autouse=True)
def own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of ledgers lie in the user's folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LDP_BUDGET_KEY", raising=False)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server that a test may do to what it likes."""
    pytest.importorskip("psycopg")
    binaries = find_binaries()
    if binaries is None:
        pytest.skip(reason_for_none())
    with Server(tmp_path / "server", binaries) as made:
        yield made


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for a server that is gone."""
    from ldp_budget.ledger._postgres import connections, store

    monkeypatch.setattr(connections, "WAIT_SECONDS", 1.0)
    monkeypatch.setattr(store, "WAIT_SECONDS", 1.0)


def with_port(address: str, port: int | None) -> str:
    """An address by way of another port."""
    return re.sub(r"(@[^/:]*):\d+", rf"\1:{port}", address)


def plain_url(address: str) -> str:
    """The address without what only a ledger knows."""
    return address.partition("?")[0]


def ask(address: str, sql: str) -> list[tuple[Any, ...]]:
    """Rows of a statement in the database of a ledger."""
    import psycopg

    with psycopg.connect(plain_url(address), autocommit=True) as connection:
        cursor = connection.execute(sql)  # type: ignore[call-overload, unused-ignore]
        return cursor.fetchall() if cursor.description else []


def signal_backends(address: str, how: str, which: str = "true") -> int:
    """Cancel or terminate the ledger's sessions; how many there were."""
    mine = "datname = current_database() AND application_name = 'ldp-budget' AND pid <> pg_backend_pid()"
    return len(ask(address, f"SELECT {how}(pid) FROM pg_stat_activity WHERE {mine} AND {which}"))


def wait_for_sessions(address: str, count: int, event: str) -> None:
    """Wait until so many of the ledger's sessions wait for something."""
    sql = f"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = '{event}'"
    wait_until(lambda: ask(address, sql) == [(count,)], f"{count} sessions do not wait for {event}")


def entries(accountant: Accountant, user: str) -> int:
    """How many charges of a user are in the journal."""
    return len(accountant.history(user))


def settle(spend: Callable[[], Any]) -> Any:
    """Ask by the key until there is an answer."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return spend()
        except LedgerError:
            if time.monotonic() > deadline:
                raise


class In:
    """A thread, whose result or error is asked for later."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._result: Any = None
        self._thread = threading.Thread(target=self._run, args=(work,))
        self._thread.start()

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self._result = work()
        except Exception as error:
            self._result = error

    def runs(self) -> bool:
        return self._thread.is_alive()

    def result(self) -> Any:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self._result


class Lock:
    """Every lane of a ledger, locked by somebody else."""

    def __init__(self, address: str) -> None:
        import psycopg

        self._connection = psycopg.connect(plain_url(address))

    def __enter__(self) -> None:
        self._connection.execute("SELECT lane FROM lanes ORDER BY lane FOR UPDATE")

    def __exit__(self, *_: object) -> None:
        self._connection.close()


class Link:
    """A connection through a proxy: both of its ends."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.ends = client, server
        self.commits: set[bytes] = set()  # the names of prepared statements that commit
        self.answer: bytes | None = None  # what was kept from the client, once that has begun

    def cut(self) -> None:
        for end in self.ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Proxy:
    """A way to a server, which can be cut at a commit, and led to another server."""

    def __init__(self, port: int | None) -> None:
        self.target = port
        self.cuts: list[str] = []
        """How connections are cut, each once: `before` a COMMIT is sent on, or `after` it was answered."""
        self.stays_down = False
        """Whether nobody is let in once one was cut."""
        self.down = False
        self._links: list[Link] = []
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.down = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut_all()
        for thread in self._threads:
            thread.join(60)

    def cut_all(self) -> None:
        for link in self._links:
            link.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                if self.down:
                    raise OSError
                server = socket.create_connection((HOST, self.target or 0))
            except OSError:
                client.close()
                continue
            link = Link(client, server)
            self._links.append(link)
            thread = threading.Thread(target=self._carry_both, args=(link,))
            self._threads.append(thread)
            thread.start()

    def _carry_both(self, link: Link) -> None:
        client, server = link.ends
        back = threading.Thread(target=self._carry, args=(link, server, client, self._comes_back))
        back.start()
        self._carry(link, client, server, self._goes)
        back.join()
        client.close()
        server.close()

    def _carry(
        self, link: Link, source: socket.socket, sink: socket.socket, passes: Callable[[Link, bytes], bool]
    ) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if passes(link, data):
                    sink.sendall(data)
        link.cut()

    def _goes(self, link: Link, data: bytes) -> bool:
        link.commits |= set(re.findall(rb"P[^P]{4}(_pg3_\w+)\0COMMIT\0", data, re.DOTALL))
        commits = b"COMMIT\0" in data or any(b"\0" + name + b"\0" in data for name in link.commits)
        if commits and self.cuts:
            how = self.cuts.pop(0)
            self.down = self.stays_down
            if how == "before":
                link.cut()
                return False
            link.answer = b""
        return True

    def _comes_back(self, link: Link, data: bytes) -> bool:
        if link.answer is None:
            return True
        link.answer += data
        if b"COMMIT\0" in link.answer:
            link.cut()
        return False


@pytest.fixture
def proxied() -> Iterator[tuple[Proxy, str, str]]:
    """A proxy, the address of a ledger of four lanes behind it, and the address of that without it."""
    address = new_ledger(4)
    if not re.search(r"@[^/]*:\d+/", address):
        pytest.skip("the server's URL names no port")
    with Proxy(int(re.findall(r":(\d+)/", address)[0])) as proxy:
        yield proxy, with_port(address, proxy.port), address


# -- killed servers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_what_was_acknowledged_survives_a_killed_server(server: Server, kills: int) -> None:
    """Threads spend under keys while the server dies again and again; some ask again, some leave it at an error."""
    address = f"{server.create_database()}?lanes=4"
    limit = 30 * kills
    users = [f"user {number}" for number in range(8)]
    stop = threading.Event()

    with Accountant(address) as accountant:
        accountant.set_policy("default", [f"lifetime={limit}"])

        def spend(number: int) -> tuple[dict[str, Any], list[str], Counter[str]]:
            user = users[number % len(users)]
            granted: dict[str, Any] = {}
            unknown: list[str] = []
            said: Counter[str] = Counter()
            done = 0
            while not stop.is_set() and not said["refused"]:
                done += 1
                key = f"{number}/{done}"

                def once(user: str = user, key: str = key) -> Any:
                    return accountant.spend(user, coin(1), key=key)

                try:
                    receipt = once()
                except LedgerError as error:
                    said["contradicted"] += error.unknown == (NOTHING in str(error))
                    if error.unknown and number % 2:
                        unknown.append(key)
                        continue
                    receipt = settle(once)
                if receipt:
                    granted[key] = receipt.receipt
                else:
                    said["refused"] += 1
                time.sleep(0.01)
            return granted, unknown, said

        def kill(number: int) -> None:
            dice = random.Random(number)
            for _ in range(kills):
                time.sleep(dice.uniform(0.05, 0.5))
                server.kill()
                server.restart()
            time.sleep(0.2)
            stop.set()

        *outcomes, killed = in_threads(33, lambda number: kill(number) if number == 32 else spend(number))
    assert killed is None
    for outcome in outcomes:
        assert isinstance(outcome, tuple), outcome
    with Accountant(address, create=False) as after:
        check(after)
        for place, user in enumerate(users):
            mine = [outcome for number, outcome in enumerate(outcomes) if number % len(users) == place]
            granted = {key: receipt for keys, _, _ in mine for key, receipt in keys.items()}
            assert len(set(granted.values())) == len(granted)
            assert not any(said["contradicted"] for _, _, said in mine)
            unknown = [key for _, keys, _ in mine for key in keys]
            found = entries(after, user)
            assert len(granted) <= found <= min(limit, len(granted) + len(unknown))
            assert spent(after, user) == {"lifetime": found}
            for key, receipt in granted.items():
                again = after.spend(user, coin(1), key=key)
                assert (again.repeated, again.receipt) == (True, receipt)
            assert entries(after, user) == found
    assert sum(len(granted) for granted, _, _ in outcomes) > 32


@pytest.mark.slow
def test_a_server_that_does_not_come_back_is_told_and_charged_nothing(server: Server, short_patience: None) -> None:
    address = f"{server.create_database()}?lanes=4"
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        assert accountant.spend("alice", coin(1))
        server.kill()
        with pytest.raises(LedgerError, match=NOTHING) as told:
            accountant.spend("alice", coin(1))
        assert not told.value.unknown
        with pytest.raises(LedgerError):
            accountant.balance("alice")
        server.restart()
        assert settle(lambda: accountant.spend("alice", coin(1), key="k"))
        assert spent(accountant, "alice") == {"lifetime": 2}
        check(accountant)


# -- cut connections -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.slow), "after"])
@pytest.mark.parametrize("warm", [pytest.param(0, marks=pytest.mark.slow), 8])
def test_a_spend_with_a_key_settles_by_itself(proxied: tuple[Proxy, str, str], when: str, warm: int) -> None:
    proxy, address, _ = proxied
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=90"])
        for _ in range(warm):  # until statements are prepared by name
            accountant.spend("alice", coin(1))
        proxy.cuts = [when]
        receipt = accountant.spend("alice", coin(1), key="k")
        assert receipt.status == "spent"
        assert receipt.repeated == (when == "after")
        assert not proxy.cuts
        assert entries(accountant, "alice") == warm + 1
        assert accountant.spend("alice", coin(1), key="k").receipt == receipt.receipt
        check(accountant)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_spend_without_a_key_is_told_that_nobody_knows(proxied: tuple[Proxy, str, str], when: str) -> None:
    proxy, address, _ = proxied
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=90"])
        proxy.cuts = [when]
        with pytest.raises(LedgerError, match="is not known") as told:
            accountant.spend("alice", coin(1))
        assert told.value.unknown
        assert NOTHING not in str(told.value)
        assert entries(accountant, "alice") == (when == "after")
        check(accountant)


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.slow), "after"])
def test_of_a_group_that_was_cut_everybody_hears_the_truth(proxied: tuple[Proxy, str, str], when: str) -> None:
    proxy, address, direct = proxied
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=90"])
        accountant.spend("alice", coin(1))
        with Lock(direct):
            first = In(lambda: accountant.spend("alice", coin(1), key="first"))
            wait_for_sessions(direct, 1, "transactionid")
            keyed = [In(lambda n=n: accountant.spend("alice", coin(1), key=f"k{n}")) for n in range(4)]
            keyless = [In(lambda: accountant.spend("alice", coin(1))) for _ in range(4)]
            wait_until(lambda: _queued(accountant) == 8, "they do not queue up")
            proxy.cuts = [when]
        assert first.result().status == "spent"
        errors = [each.result() for each in keyless]
        for error in errors:
            assert isinstance(error, LedgerError)
            assert error.unknown
        assert [each.result().repeated for each in keyed] == [when == "after"] * 4
        lost = 0 if when == "before" else 4
        assert entries(accountant, "alice") == 6 + lost
        assert spent(accountant, "alice") == {"lifetime": 6 + lost}
        check(accountant)


def _queued(accountant: Accountant) -> int:
    return sum(len(group._queue) for group in accountant._ledger._groups)


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.slow), "after"])
def test_a_key_that_cannot_be_asked_for_leaves_it_unknown(
    proxied: tuple[Proxy, str, str], short_patience: None, when: str
) -> None:
    """The first commit went unanswered, and then the server is gone: nobody may say that nothing was charged."""
    proxy, address, direct = proxied
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        proxy.cuts, proxy.stays_down = [when], True
        with pytest.raises(LedgerError) as told:
            accountant.spend("alice", coin(1), key="k")
        assert told.value.unknown
        assert NOTHING not in str(told.value)
    with Accountant(direct) as again:
        assert entries(again, "alice") == (when == "after")
        assert again.spend("alice", coin(1), key="k").repeated == (when == "after")
        assert entries(again, "alice") == 1


def test_a_spend_that_waits_for_its_turn_is_done_once_however_often_it_is_cut() -> None:
    """Nothing was committed yet, so it is done again, and nobody hears of it."""
    address = new_ledger(4)
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        with Lock(address):
            spending = In(lambda: accountant.spend("alice", coin(1)))
            for _ in range(3):
                wait_for_sessions(address, 1, "transactionid")
                assert signal_backends(address, "pg_terminate_backend", "wait_event = 'transactionid'") == 1
            wait_for_sessions(address, 1, "transactionid")
        assert spending.result().status == "spent"
        with Lock(address):
            spending = In(lambda: accountant.spend("alice", coin(1)))
            wait_for_sessions(address, 1, "transactionid")
            signal_backends(address, "pg_cancel_backend", "wait_event = 'transactionid'")
            error = spending.result()
        assert isinstance(error, LedgerError)
        assert not error.unknown
        assert NOTHING in str(error)
        assert spent(accountant, "alice") == {"lifetime": 1}
        check(accountant)


@pytest.mark.parametrize("how", ["pg_terminate_backend", "pg_cancel_backend"])
@pytest.mark.parametrize("seconds", [0.5, pytest.param(20, marks=pytest.mark.slow)])
def test_sessions_that_end_at_any_moment(how: str, seconds: float) -> None:
    address = new_ledger(4)
    stop = threading.Event()

    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=1000000"])

        def spend(number: int) -> Counter[str]:
            said: Counter[str] = Counter()
            done = 0
            while not stop.is_set():
                done += 1
                key = f"{number}/{done}" if number % 2 else None
                try:
                    receipt = accountant.spend(f"user {number}", coin(1), key=key)
                except LedgerError as error:
                    said["unknown" if error.unknown else "nothing"] += 1
                    said["contradicted"] += error.unknown == (NOTHING in str(error))
                    if key is None:
                        continue
                    receipt = settle(lambda key=key: accountant.spend(f"user {number}", coin(1), key=key))
                assert receipt
                said["granted"] += 1
            return said

        def end(number: int) -> None:
            dice, ends = random.Random(seconds), time.monotonic() + seconds
            while time.monotonic() < ends:
                time.sleep(dice.uniform(0, 0.03))
                signal_backends(address, how)
            stop.set()

        *outcomes, _ = in_threads(9, lambda number: end(number) if number == 8 else spend(number))
        for number, said in enumerate(outcomes):
            assert isinstance(said, Counter), said
            assert not said["contradicted"]
            found = entries(accountant, f"user {number}")
            unknown = 0 if number % 2 else said["unknown"]
            assert said["granted"] <= found <= said["granted"] + unknown, said
            assert spent(accountant, f"user {number}") == {"lifetime": found}
        check(accountant)


def test_opening_a_ledger_through_a_cut_connection_is_an_error_of_the_ledger(
    proxied: tuple[Proxy, str, str],
) -> None:
    proxy, address, _ = proxied
    with Accountant(address):
        pass
    proxy.down = True
    with pytest.raises(LedgerError):
        Accountant(address)


@pytest.mark.slow
def test_a_reader_finds_the_server_again(server: Server) -> None:
    """Connections that died with the server are not read from for the first time."""
    address = f"{server.create_database()}?lanes=4"
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        in_threads(8, lambda number: accountant.balance(f"user {number}"))
        server.kill()
        server.restart()
        for number in range(8):
            assert spent(accountant, f"user {number}") == {"lifetime": 0}


# -- standbys ------------------------------------------------------------------------------------------------------


def wait_for_nobody(server: Server, name: str) -> None:
    """Let commits wait for a standby of that name; of none, for nobody."""
    server.run(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
    server.run("SELECT pg_reload_conf()")
    wait_until(lambda: server.run("SHOW synchronous_standby_names") == [(name,)], "no new settings")


def test_a_commit_that_no_standby_has_is_not_acknowledged(server: Server) -> None:
    address = f"{server.create_database()}?lanes=4"
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
        assert spent(accountant, "alice") == {"lifetime": 4}
        check(accountant)


@pytest.mark.slow
def test_whoever_shares_a_commit_that_was_interrupted_is_told_that_nobody_knows(server: Server) -> None:
    """Ctrl-C reaches the thread that leads while it waits for a commit; the others' answers go with it."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals reach the main thread alone")
    address = f"{server.create_database()}?lanes=1"
    with Accountant(f"{address}&ha=none") as accountant:
        accountant.set_policy("default", ["lifetime=9"])
    wait_for_nobody(server, "gone")

    def interrupt() -> None:
        wait_for_sessions(address, 1, "SyncRep")
        wait_until(lambda: _queued(accountant) == 3, "they do not queue up")
        signal_backends(address, "pg_cancel_backend")  # whoever led until now; then the main thread does
        wait_until(lambda: _queued(accountant) == 0, "nobody leads")
        wait_for_sessions(address, 1, "SyncRep")
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with Accountant(f"{address}&ha=quorum") as accountant:
        leader = In(lambda: accountant.spend("alice", coin(1)))
        wait_for_sessions(address, 1, "SyncRep")
        interrupting = In(interrupt)
        followers: list[In] = []

        def follow() -> None:
            wait_until(lambda: _queued(accountant) == 1, "the main thread does not queue up")
            for _ in range(2):
                followers.append(In(lambda: accountant.spend("bob", coin(1))))

        following = In(follow)
        with pytest.raises(KeyboardInterrupt):
            accountant.spend("alice", coin(1))
        for each in (leader, *followers):
            error = each.result()
            assert isinstance(error, LedgerError)
            assert error.unknown, error
            assert NOTHING not in str(error)
        assert following.result() is None
        assert interrupting.result() is None
        wait_for_nobody(server, "")
        check(accountant)


@pytest.mark.slow
def test_a_promoted_standby_that_lacks_what_was_told_is_refused_by_name(server: Server, tmp_path: Path) -> None:
    address = f"{server.create_database()}?lanes=4&ha=none"
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
                    with pytest.raises(LedgerError, match=rf"has gone back.*{NOTHING}") as told:
                        ask_for()
                    assert not told.value.unknown
                with pytest.raises(LedgerError, match="has gone back"):
                    accountant.balance(user)
            # Somebody who was told of nothing spends on it; it goes on from there, and stays refused.
            with Accountant(with_port(address, standby.port)) as other:
                for user in users:
                    for number in range(3):
                        assert other.spend(user, coin(1), key=f"other {number}")
                check(other)
            for user in users:
                with pytest.raises(LedgerError, match="has gone back"):
                    accountant.spend(user, coin(1))


@pytest.mark.slow
def test_a_promoted_standby_that_has_everything_goes_on(server: Server, tmp_path: Path) -> None:
    address = f"{server.create_database()}?lanes=4"
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
            with pytest.raises(LedgerError, match="expected synchronous_standby_names, for ha=quorum"):
                accountant.spend(users[0], coin(1), key="first")  # it has no standby of its own
        address = with_port(address, standby.port)
        with Accountant(f"{address}&ha=none", create=False) as accountant:
            for user in users:
                assert accountant.spend(user, coin(1), key="first").repeated
                assert accountant.spend(user, coin(1), key="second")
                assert spent(accountant, user) == {"lifetime": 2}
            check(accountant)


@pytest.mark.slow
def test_standbys_of_which_nobody_spoke_are_refused(server: Server, tmp_path: Path) -> None:
    address = f"{server.create_database()}?lanes=4"
    with pytest.raises(LedgerError, match="expected synchronous_standby_names, for ha=quorum"):
        Accountant(f"{address}&ha=quorum")
    with standby_of(server, tmp_path / "standby", "silent") as standby:
        for create in (True, False):
            with pytest.raises(LedgerError, match=r"has standbys.*ha=quorum.*ha=none"):
                Accountant(address, create=create) if create else Accountant(_made(address), create=False)
        with Accountant(f"{address}&ha=none") as accountant:
            accountant.set_policy("default", ["lifetime=9"])
            assert accountant.spend("alice", coin(1))
        # A standby itself can be read by nobody who wants to charge.
        wait_until(lambda: bool(ask(with_port(address, standby.port), "SELECT to_regclass('journal')")[0][0]), "late")
        with pytest.raises(LedgerError):
            Accountant(with_port(address, standby.port), create=False)


def _made(address: str) -> str:
    """The same address, once there is a ledger."""
    Accountant(f"{address}&ha=none").close()
    return address


# -- settings ------------------------------------------------------------------------------------------------------


def test_a_server_that_forgets_is_refused(server: Server) -> None:
    address = f"{server.create_database()}?lanes=4"
    for made in (False, True):
        for setting in ("fsync", "full_page_writes"):
            server.run(f"ALTER SYSTEM SET {setting} = off")
            server.run("SELECT pg_reload_conf()")
            wait_until(lambda setting=setting: server.run(f"SHOW {setting}") == [("off",)], "no new settings")
            with pytest.raises(LedgerError, match=f"expected {setting} = on; found off"):
                Accountant(address)
            assert (ask(address, "SELECT to_regclass('lanes')") != [(None,)]) == made
            server.run(f"ALTER SYSTEM RESET {setting}")
            server.run("SELECT pg_reload_conf()")
            wait_until(lambda setting=setting: server.run(f"SHOW {setting}") == [("on",)], "no new settings")
        Accountant(address).close()


@pytest.mark.parametrize("value", ["off", "local", "remote_write"])
def test_commits_that_do_not_wait_are_refused(value: str) -> None:
    address = new_ledger(4)
    refused = pytest.raises(LedgerError, match=f"expected synchronous_commit = on.*found {value}")
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


# -- processes -----------------------------------------------------------------------------------------------------


def start(script: str, address: str, *words: object) -> subprocess.Popen[str]:
    """A process of its own that runs a script on a ledger; `ready()` says so and waits for the others."""
    beginning = """
        import os, sys, threading, time
        import ldp_budget
        from ldp_budget import Accountant
        address, words = sys.argv[1], sys.argv[2:]
        coin = ldp_budget.mechanism("randomized-response")(epsilon=1)

        def ready():
            print("ready", flush=True)
            sys.stdin.readline()

        """
    code = textwrap.dedent(beginning) + textwrap.dedent(script)
    return subprocess.Popen(
        [sys.executable, "-c", code, address, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def outputs(processes: list[subprocess.Popen[str]], waits: bool = True) -> list[str]:
    """Let them go at the same time, and return what each printed."""
    if waits:
        for process in processes:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said == "ready\n", process.communicate()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
    printed = []
    try:
        for process in processes:
            out, errors = process.communicate(timeout=60)
            assert process.returncode == 0, errors
            assert errors == ""
            printed.append(out.strip())
    finally:
        for process in processes:
            process.kill()  # one that hangs
            process.communicate()
    return printed


@pytest.mark.parametrize("lanes", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_processes_are_granted_exactly_what_fits(lanes: int) -> None:
    address = new_ledger(lanes)
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=37", "day=90"])
        script = """
            accountant, granted = Accountant(address), []

            def spend(number):
                for n in range(8):
                    granted.append(bool(accountant.spend("alice", coin, key=f"{words[0]}/{number}/{n}")))

            threads = [threading.Thread(target=spend, args=(number,)) for number in range(8)]
            ready()
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            accountant.close()
            print(sum(granted), len(granted))
            """
        printed = [out.split() for out in outputs([start(script, address, number) for number in range(2)])]
        assert [asked for _, asked in printed] == ["64", "64"]
        assert sum(int(granted) for granted, _ in printed) == 37
        assert entries(accountant, "alice") == 37
        assert spent(accountant, "alice") == {"lifetime": 37, "day": 37}
        check(accountant)


@pytest.mark.slow
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


@pytest.mark.slow
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
            assert process.stdout is not None
            assert process.stdin is not None
            assert process.stdout.readline() == "ready\n"
            before = entries(accountant, "alice")
            process.stdin.write("go\n")
            process.stdin.flush()
            time.sleep(0.1 + seed / 20)
            process.kill()
            out, _ = process.communicate()
            acknowledged = out.count(".")
            # The session on the server may still be at its last commit.
            wait_until(lambda: accountant.spend("bob", coin(1)).status == "spent", "a lock was left")
            assert before + acknowledged <= entries(accountant, "alice") <= before + acknowledged + 1
        check(accountant)


# -- forks ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_after_a_fork_parent_and_child_spend() -> None:
    address = new_ledger(4)
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=100000"])
        script = """
            accountant = Accountant(address)
            accountant.spend("alice", coin)
            for exits in (os._exit, sys.exit) * 3:
                child = os.fork()
                if child == 0:
                    assert accountant.spend("child", coin)
                    assert len(accountant.history("alice")) >= 1
                    if exits is sys.exit:
                        accountant.close()
                    exits(0)
                assert accountant.spend("alice", coin)
                assert os.waitpid(child, 0)[1] == 0
                assert accountant.spend("alice", coin)
            accountant.close()
            """
        outputs([start(script, address)], waits=False)
        assert (entries(accountant, "alice"), entries(accountant, "child")) == (13, 6)
        check(accountant)


@pytest.mark.slow
def test_a_fork_in_the_midst_of_other_threads_spends_hangs_nobody() -> None:
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
                    for number in range(8):
                        accountant.spend(f"child {number}", coin)
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


@pytest.mark.parametrize("named", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["in the folder", "named"])
@pytest.mark.parametrize("rounds", [1, pytest.param(30, marks=pytest.mark.slow)])
def test_processes_that_make_the_same_ledger_share_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool, rounds: int
) -> None:
    """Each works with the key of the ledger that came to be, wherever that lies."""
    for _ in range(rounds):
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


def test_threads_that_make_the_same_ledger_share_it() -> None:
    address = new_ledger(4)

    def make(number: int) -> bool:
        with Accountant(address) as accountant:
            accountant.set_policy("default", ["lifetime=99"])
            return bool(accountant.spend("alice", coin(1)))

    assert in_threads(6, make) == [True] * 6
    with Accountant(address, create=False) as accountant:
        assert entries(accountant, "alice") == 6
        check(accountant)


def test_without_its_key_a_ledger_is_refused_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


# -- passwords -----------------------------------------------------------------------------------------------------


def told_of(error: BaseException) -> str:
    """All that is shown of an error, and of those it came from."""
    shown = "".join(traceback.format_exception(type(error), error, None))
    return shown + repr(error) + repr(vars(error))


def test_a_password_is_in_no_message(server: Server, short_patience: None, caplog: pytest.LogCaptureFixture) -> None:
    address = server.create_database().replace("postgres@", "joe:PASSWORD@")
    (name,) = re.findall(r"/(\w+)$", address)
    server.run("CREATE ROLE joe LOGIN PASSWORD 'right-one'")
    server.run(f"ALTER DATABASE {name} OWNER TO joe")
    hba = server.data / "pg_hba.conf"
    hba.write_text(f"host all joe 127.0.0.1/32 scram-sha-256\n{hba.read_text()}")
    server.run("SELECT pg_reload_conf()")

    def refused(text: str, create: bool = True) -> None:
        for each in (f"{text}?lanes=4", f"{text}?lanes=4&application_name=x"):
            with pytest.raises((LedgerError, InvalidParameter)) as told:
                Accountant(each, create=create)
            assert "s3cret" not in told_of(told.value)

    wrong = address.replace("PASSWORD", "s3cret")
    with pytest.raises(LedgerError, match="password authentication failed"):
        Accountant(f"{wrong}?lanes=4")
    refused(wrong)
    refused(wrong, create=False)
    refused(with_port(wrong, 1))  # nobody is there
    refused(wrong.replace(HOST, "nowhere.invalid"))
    refused(re.sub(r":\d+/", ":s99/", wrong))
    refused(f"{wrong}?lanes=0")
    refused(f"{wrong}?ha=maybe")
    refused(f"{wrong}?no_such_option=1")
    refused(address.replace("joe:PASSWORD@", "joe@") + "?password=s3cret")
    # Characters that ought to have been escaped.
    for password in ("s3cret#x", "x#s3cret", "s3cret?x", "x?s3cret", "s3cret/x", "x/s3cret", "x@s3cret", "x[s3cret"):
        refused(address.replace("PASSWORD", password))
        refused(address.replace("PASSWORD", password + "@x/y"))
    # And where it was right, until it was changed.
    server.run("ALTER ROLE joe PASSWORD 's3cret'")
    with Accountant(f"{wrong}?lanes=4") as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        assert accountant.spend("alice", coin(1))
        server.run("ALTER ROLE joe PASSWORD 'other'")
        signal_backends(server.url(name), "pg_terminate_backend")
        with pytest.raises(LedgerError, match="password authentication failed") as told:
            accountant.spend("alice", coin(1))
        assert "s3cret" not in told_of(told.value)
        with pytest.raises(LedgerError) as told:
            accountant.balance("alice")
        assert "s3cret" not in told_of(told.value)
        with pytest.raises(Exception, match="pg_basebackup") as backed:
            accountant.backup("x")
        assert "s3cret" not in told_of(backed.value)
    assert "s3cret" not in caplog.text


@pytest.mark.slow
def test_an_escaped_password_is_understood(server: Server) -> None:
    """And so is whatever else of libpq stands in the address."""
    address = server.create_database()
    (name,) = re.findall(r"/(\w+)$", address)
    server.run("CREATE ROLE joe LOGIN PASSWORD 'a b+c/d@e#f?g%h'")
    server.run(f"ALTER DATABASE {name} OWNER TO joe")
    hba = server.data / "pg_hba.conf"
    hba.write_text(f"host all joe 127.0.0.1/32 scram-sha-256\n{hba.read_text()}")
    server.run("SELECT pg_reload_conf()")
    escaped = "a%20b+c%2Fd%40e%23f%3Fg%25h"
    for text in (
        address.replace("postgres@", f"joe:{escaped}@") + "?lanes=4",
        address.replace("postgres@", "joe@") + f"?lanes=4&password={escaped}&application_name=a%20b",
    ):
        with Accountant(text) as accountant:
            accountant.set_policy("default", ["lifetime=9"])
            assert accountant.spend("alice", coin(1), key=text)
