"""Faults of a ledger on a server, and of its users: see also `postgres_proxy`."""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from contract.acts import check, coin, in_threads, spent
from ldp_budget import Accountant, LedgerError
from ledger_inside import waiting_in
from postgres_servers import wait_until

NOTHING = "Nothing was charged"


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
    """Return the number of charges of a user in the journal."""
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
    """Every partition of a ledger, locked by another session."""

    def __init__(self, address: str) -> None:
        import psycopg

        self._connection = psycopg.connect(plain_url(address))

    def __enter__(self) -> None:
        self._connection.execute("SELECT partition FROM partitions ORDER BY partition FOR UPDATE")

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def queued(accountant: Accountant) -> int:
    """Return the number of callers that wait to share a commit."""
    return waiting_in(accountant)


def end_sessions(address: str, how: str, seconds: float) -> None:
    """End the ledger's sessions, or what they do, again and again."""
    dice, ends = random.Random(seconds), time.monotonic() + seconds
    while time.monotonic() < ends:
        time.sleep(dice.uniform(0, 0.03))
        signal_backends(address, how)


def spend_amid(accountant: Accountant, trouble: Callable[[], None], threads: int = 8) -> Counter[str]:
    """Threads spend while there is trouble, every other one with keys; then what they were told must be true.

    Granted charges are there, and of the rest at most the unknown ones. Returns the count of each outcome.
    """
    stop = threading.Event()

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

    def work(number: int) -> Any:
        if number < threads:
            return spend(number)
        try:
            trouble()
        finally:
            stop.set()

    *outcomes, troubled = in_threads(threads + 1, work)
    assert troubled is None, troubled
    for number, said in enumerate(outcomes):
        assert isinstance(said, Counter), said
        assert not said["contradicted"]
        found = entries(accountant, f"user {number}")
        unknown = 0 if number % 2 else said["unknown"]
        assert said["granted"] <= found <= said["granted"] + unknown, said
        assert spent(accountant, f"user {number}") == {"lifetime": found}
    check(accountant)
    return sum(outcomes, Counter())
