"""A ledger on PostgreSQL whose server is killed and whose connections are cut.

An acknowledged spend is never lost and never counted twice, an unknown outcome is reported as unknown, and "nothing was
charged" is said only where that is true.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from contract.acts import check, coin, in_threads, spent
from ldp_budget import Accountant, LedgerError
from postgres_faults import (
    NOTHING,
    In,
    Lock,
    end_sessions,
    entries,
    queued,
    settle,
    spend_amid,
    wait_for_sessions,
    with_port,
)
from postgres_places import new_ledger
from postgres_proxy import Proxy
from postgres_servers import Server, wait_until

pytestmark = pytest.mark.usefixtures("own_keys")


@pytest.fixture
def proxied() -> Iterator[tuple[Proxy, str, str]]:
    """A proxy, the address of a ledger of four partitions behind it, and the address of that without it."""
    address = new_ledger(4)
    if not re.search(r"@[^/]*:\d+/", address):
        pytest.skip("the server's URL names no port")
    with Proxy(int(re.findall(r":(\d+)/", address)[0])) as proxy:
        yield proxy, with_port(address, proxy.port), address


# -- killed servers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.exhaustive)])
def test_acknowledged_spend_survives_a_killed_server(server: Server, kills: int) -> None:
    """Threads spend under keys while the server dies again and again; some ask again, some leave it at an error."""
    address = f"{server.create_database()}?partitions=4"
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
    assert sum(len(granted) for granted, _, _ in outcomes) >= 32


# -- cut connections -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.exhaustive), "after"])
@pytest.mark.parametrize("warm", [pytest.param(0, marks=pytest.mark.exhaustive), 8])
@pytest.mark.some(4)
def test_spend_with_a_key_and_a_lost_commit_is_settled(proxied: tuple[Proxy, str, str], when: str, warm: int) -> None:
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


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.exhaustive), "after"])
@pytest.mark.some(2)
def test_group_commit_over_a_cut_connection_reports_each_outcome(proxied: tuple[Proxy, str, str], when: str) -> None:
    proxy, address, direct = proxied
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=90"])
        accountant.spend("alice", coin(1))
        with Lock(direct):
            first = In(lambda: accountant.spend("alice", coin(1), key="first"))
            wait_for_sessions(direct, 1, "transactionid")
            keyed = [In(lambda n=n: accountant.spend("alice", coin(1), key=f"k{n}")) for n in range(4)]
            keyless = [In(lambda: accountant.spend("alice", coin(1))) for _ in range(4)]
            wait_until(lambda: queued(accountant) == 8, "they do not queue up")
            proxy.cuts = ["not", when]  # the first commit is that of the spend before them
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


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.exhaustive), "after"])
@pytest.mark.exhaustive
def test_spend_whose_key_cannot_be_looked_up_is_unknown(
    proxied: tuple[Proxy, str, str], short_patience: None, when: str
) -> None:
    """The first commit got no answer, and then the server is gone: no error may say that nothing was charged."""
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


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", ["pg_terminate_backend", "pg_cancel_backend"])
def test_sessions_ended_at_any_moment_lose_nothing(how: str) -> None:
    address = new_ledger(4)
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=1000000"])
        spend_amid(accountant, lambda: end_sessions(address, how, 6))


@pytest.mark.parametrize("statement", ["COMMIT", "BEGIN"])
def test_failure_of_the_driver_counts_as_a_lost_session(statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does at times where a session ends amid a pipeline: "pop from an empty deque"."""
    psycopg = pytest.importorskip("psycopg")
    inside: dict[str, Any] = {"__name__": "psycopg.pretended"}
    exec("def fail():\n    raise IndexError('pop from an empty deque')", inside)
    execute, left = psycopg.Connection.execute, 0

    def failing(self: Any, query: str, *more: Any, **options: Any) -> Any:
        nonlocal left
        if left and query.startswith(statement):
            left -= 1
            inside["fail"]()
        return execute(self, query, *more, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", failing)
    with Accountant(new_ledger(4)) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        left = 1
        if statement == "COMMIT":
            with pytest.raises(LedgerError, match="the session ended amid its answers") as told:
                accountant.spend("alice", coin(1))
            assert told.value.unknown, "nothing without a key is tried again whose commit was sent"
            assert entries(accountant, "alice") == 0
        assert accountant.spend("alice", coin(1), key="k").status == "spent"
        assert entries(accountant, "alice") == 1
        left = 1
        with pytest.raises(LedgerError, match="the session ended amid its answers"):
            accountant.balance("alice")
        check(accountant)
