"""Connections that are cut between a service and its clients: every charge is made exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.acts import coin, spent
from fixed_clock import Clock
from ldp_budget import Accountant, LedgerError
from ldp_budget.accounting.charge_request import LOCAL
from ldp_budget_service.client import Client
from postgres_proxy import Link, Proxy
from service_places import HOST, Keys, shared_service


class Cable(Proxy):
    """A way to the service that is cut at writing requests: `before` one is sent on, `after` it was answered, or
    `amid` the answer."""

    def _goes(self, link: Link, data: bytes) -> bool:
        if self.cuts and data.startswith((b"POST ", b"PUT ")):
            how = self.cuts.pop(0)
            self.down = self.stays_down
            if how == "before":
                link.cut()
                return False
            link.answer = how.encode() if how != "not" else None
        return True

    def _comes_back(self, link: Link, data: bytes) -> bool:
        if link.answer is None:
            return True
        if link.answer == b"amid":
            link.ends[0].sendall(data[: len(data) // 2])
        link.cut()
        return False


class Behind:
    """A ledger behind the service, and a client of it that goes by the cable."""

    def __init__(self, ledger: Accountant, cable: Cable) -> None:
        self.ledger, self.cable = ledger, cable
        keys = Keys()
        self._secret = keys.secret_of(LOCAL)
        shared_service().serve(ledger, keys)

    def client(self, patience: float = 20.0) -> Client:
        return Client(f"http://{HOST}:{self.cable.port}", self._secret, patience=patience, timeout=10.0)


@pytest.fixture
def behind(tmp_path: Path, clock: Clock) -> Iterator[Behind]:
    with Accountant(tmp_path / "budget.db", clock=clock) as ledger, Cable(shared_service().port) as cable:
        ledger.set_policy("default", ["lifetime=900"])
        yield Behind(ledger, cable)


def charges(ledger: Accountant) -> Counter[Any]:
    """Return the number of journal entries of each kind."""
    return Counter(row["kind"] for row in ledger.journal() if row["kind"] not in ("policy", "recorded"))


CUTS = ["before", "after", "amid"]


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("key", [None, "of the caller's"])
def test_spend_over_a_cut_connection_is_charged_once(behind: Behind, how: str, key: str | None) -> None:
    behind.cable.cuts = [how]
    with behind.client() as accountant:
        receipt = accountant.spend("alice", coin(1), key=key)
        assert (receipt.status, receipt.repeated) == ("spent", how != "before")
        assert accountant.repeated == {"connection": 1}
    assert charges(behind.ledger) == {"spent": 1}
    assert spent(behind.ledger, "alice") == {"lifetime": 1}


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.some(3)
def test_reservation_over_cut_connections_does_both_steps_once(behind: Behind, how: str) -> None:
    with behind.client() as accountant:
        behind.cable.cuts = [how]
        held = [accountant.reserve("alice", coin(1)).receipt or ""]
        held.append(accountant.reserve("alice", coin(1)).receipt or "")
        behind.cable.cuts = [how, how]
        assert accountant.commit(held[0]).status == "committed"
        assert accountant.void(held[1]).status == "voided"
    assert charges(behind.ledger) == {"reserved": 2, "committed": 1, "voided": 1}
    assert spent(behind.ledger, "alice") == {"lifetime": 1}


@pytest.mark.parametrize("how", CUTS)
def test_request_without_a_key_over_a_cut_connection_can_be_repeated(behind: Behind, how: str) -> None:
    with behind.client() as accountant:
        behind.cable.cuts = [how]
        record = accountant.record("note", "x", {"a": 1}, expected=0)
        assert (record.number, behind.ledger.records()) == (1, [record])
        behind.cable.cuts = [how]
        assert str(accountant.set_policy("other", ["lifetime=5"]).limits[0]) == "lifetime=5"
        accountant.spend("alice", coin(1))
        behind.cable.cuts = [how]
        accountant.erase("alice")
    assert behind.ledger.is_erased("alice")
    assert charges(behind.ledger) == {"spent": 1, "erased": 1}


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", CUTS)
def test_connection_that_stays_cut_raises_with_the_known_state(behind: Behind, how: str) -> None:
    behind.cable.cuts, behind.cable.stays_down = [how], True
    with behind.client(patience=0.6) as accountant, pytest.raises(LedgerError) as lost:
        accountant.spend("alice", coin(1))
    key = vars(lost.value)["key"]
    assert lost.value.unknown
    assert f"Repeat the request with the key {key!r} to find out." in str(lost.value)
    behind.cable.down = behind.cable.stays_down = False
    with behind.client() as accountant:
        assert accountant.spend("alice", coin(1), key=key).repeated == (how != "before")
    assert charges(behind.ledger) == {"spent": 1}


def test_request_never_sent_is_reported_as_not_done(behind: Behind) -> None:
    behind.cable.__exit__()
    with behind.client(patience=0.3) as accountant:
        with pytest.raises(
            LedgerError, match=r"cannot connect to the service. Nothing was changed. Check the URL"
        ) as lost:
            accountant.spend("alice", coin(1))
        assert not lost.value.unknown
        with pytest.raises(LedgerError, match="cannot connect to the service") as lost:
            accountant.balance("alice")
        assert not lost.value.unknown
    assert charges(behind.ledger) == {}
