"""A PostgreSQL server that vanishes silently: packets are dropped, and no connection is reset."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from contract.acts import check, coin, spent
from ldp_budget import Accountant, LedgerError
from ldp_budget_postgres import pool, store
from postgres_faults import with_port
from postgres_places import new_ledger
from postgres_proxy import Link, Proxy

pytestmark = pytest.mark.usefixtures("own_keys")


class Hole(Proxy):
    """A way to a server on which nothing arrives any more, while each end believes that it is connected."""

    def __init__(self, port: int) -> None:
        self.swallows = threading.Event()
        self.swallows_answer = False
        super().__init__(port)

    def _goes(self, link: Link, data: bytes) -> bool:
        if self.swallows.is_set():
            return False
        passes = super()._goes(link, data)
        if self.swallows_answer and (
            b"COMMIT\0" in data or any(b"\0" + name + b"\0" in data for name in link.commits)
        ):
            self.swallows.set()
        return passes

    def _comes_back(self, link: Link, data: bytes) -> bool:
        return not self.swallows.is_set() and super()._comes_back(link, data)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are waited for a second."""
    monkeypatch.setattr(pool, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(pool, "WAIT_SECONDS", 2.0)
    monkeypatch.setattr(store, "WAIT_SECONDS", 0.5)
    monkeypatch.setattr(store, "_LOOK_SECONDS", 0.5)


def test_silent_server_is_reported_and_found_again(impatient: None) -> None:
    """A firewall dropped the packets: spends never returned, the service never recovered, and readyz said ready."""
    ledger = new_ledger(2)
    with Hole(port_of(ledger)) as hole:
        with Accountant(f"{with_port(ledger, hole.port)}&connect_timeout=2") as accountant:
            accountant.set_policy("default", ["lifetime=9"])
            assert accountant.spend("alice", coin(1))
            assert set(accountant.ledger.check_up().values()) == {None}
            hole.swallows.set()
            with pytest.raises(LedgerError, match=r"has not answered for 1 s.*Nothing was charged"):
                accountant.spend("alice", coin(1), key="k")
            assert accountant.ledger.check_up()["schema"] is not None
            hole.swallows.clear()
            assert accountant.spend("alice", coin(1), key="k")
            assert set(accountant.ledger.check_up().values()) == {None}
            assert spent(accountant, "alice") == {"lifetime": 2}
            check(accountant)
        hole.cut_all()


def test_commit_without_an_answer_leaves_the_charge_unknown(impatient: None) -> None:
    """The server had committed; the spend waited for its answer until the process was killed."""
    ledger = new_ledger(1)
    with Hole(port_of(ledger)) as hole:
        with Accountant(f"{with_port(ledger, hole.port)}&connect_timeout=2") as accountant:
            accountant.set_policy("default", ["lifetime=9"])
            accountant.spend("alice", coin(1))
            hole.swallows_answer = True
            with pytest.raises(LedgerError) as told:
                accountant.spend("alice", coin(1))
            hole.swallows_answer = False
            hole.swallows.clear()
            assert told.value.unknown
            assert spent(accountant, "alice") == {"lifetime": 2}
        hole.cut_all()


def port_of(ledger: str) -> int:
    from urllib.parse import urlsplit

    port = urlsplit(ledger).port
    assert port is not None
    return port


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", {"keepalives": 1, "keepalives_idle": 10, "tcp_user_timeout": 30_000, "connect_timeout": 10}),
        ("?tcp_user_timeout=5000&keepalives_idle=60", {"keepalives": 1, "connect_timeout": 10}),
        ("?keepalives=0&connect_timeout=3", {"keepalives_idle": 10, "tcp_user_timeout": 30_000}),
    ],
)
def test_keepalive_settings_of_the_url_win(options: str, expected: dict[str, Any]) -> None:
    pytest.importorskip("psycopg")
    found = pool.probes(pool.read(f"postgresql://localhost/ledger{options}"))
    assert {name: value for name, value in found.items() if name in expected} == expected
    assert not {each.partition("=")[0] for each in options[1:].split("&")} & found.keys()
