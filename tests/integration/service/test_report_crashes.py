"""Reports under load, two instances on PostgreSQL without a shared folder, and instances that are killed.

The test holds the promise of the inbox: charged = acknowledged = reports kept.
"""

from __future__ import annotations

import http.client
import random
import threading
import time
from urllib.parse import quote

import pytest

pytest.importorskip("uvicorn", reason="no service: pip install 'ldp-budget[service]'")
from ldp_budget import Accountant, Collection, mechanism
from ldp_budget_service.api_keys import ApiKeys
from postgres_places import new_ledger as new_postgres
from service_farm import PATIENCE, Caller, Farm

SMOKING = Collection("smoking", mechanism("rr")(epsilon="0.001"), ("no", "yes"), minimum_group=1)
CLIENTS = 8
USERS = 50


class Respondents:
    """Clients that send report after report, each until it is acknowledged, to one of several instances."""

    def __init__(self, secret: str, ports: list[int]) -> None:
        self.receipts: dict[str, str] = {}
        self.repeated = 0
        self._secret, self._ports = secret, ports
        self._stop = threading.Event()
        self._failed: list[BaseException] = []
        self._threads = [threading.Thread(target=self._send_all, args=(number,)) for number in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _send_all(self, number: int) -> None:
        caller, count = Caller(self._ports[number % len(self._ports)], self._secret), 0
        try:
            while not self._stop.is_set():
                key = f"{number}/{count}"
                self.receipts[key] = self._send(caller, f"user-{count % USERS}", key)
                count += 1
        except BaseException as error:
            self._failed.append(error)
        finally:
            caller.close()

    def _send(self, caller: Caller, user: str, key: str) -> str:
        """Send a report under one key until an instance acknowledges it; return the receipt."""
        headers = {
            "X_User": quote(user),
            "Idempotency_Key": key,
            "X_Collection": SMOKING.definition()["digest"],
            "Content_Type": "application/octet-stream",
        }
        deadline, tries = time.monotonic() + PATIENCE, 0
        while time.monotonic() < deadline:
            try:
                answer = caller.ask("POST", "/v1/collections/smoking/reports", b"\1", **headers)
                if answer.status == 200:
                    self.repeated += answer.headers["Idempotency-Replayed"] == "true"
                    return str(answer.json()["receipt"])
                assert answer.status in (409, 503), answer.body
            except (OSError, http.client.HTTPException):
                tries += 1
                caller.port = self._ports[tries % len(self._ports)]
            time.sleep(0.005)
        raise TimeoutError(f"no answer to {key}")

    def stop(self) -> None:
        """Let every client finish its report."""
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        assert not self._failed, self._failed


@pytest.mark.parametrize("kills", [3, pytest.param(100, marks=pytest.mark.exhaustive)])
def test_reports_with_instances_killed_under_load_are_kept_once_per_charge(farm: Farm, kills: int) -> None:
    place = new_postgres(8)
    with Accountant(place) as accountant:
        accountant.set_policy("default", ["lifetime=1000000"])
        accountant.add_collection(SMOKING)
        secret = ApiKeys(accountant).create("devices", ["collect", "read"])[1]
    ports, moments = [farm.listen(), farm.listen()], random.Random(kills)
    servers = [farm.start(place, port) for port in ports]
    respondents = Respondents(secret, ports)
    for kill in range(kills):
        before = len(respondents.receipts)
        while len(respondents.receipts) == before:
            time.sleep(0.001)
        time.sleep(moments.uniform(0, 0.08))
        victim = kill % 2
        servers[victim].kill()
        servers[victim] = farm.start(place, ports[victim])
    respondents.stop()
    for server in servers:
        with Caller(server.port, None) as caller:
            while caller.ask("GET", "/livez").status != 200:
                time.sleep(0.01)
        assert server.end() == 0

    acknowledged = list(respondents.receipts.values())
    assert len(set(acknowledged)) == len(acknowledged) > kills
    with Accountant(place, create=False) as accountant:
        assert accountant.verify().ok
        assert sum(row["kind"] == "spent" for row in accountant.journal()) == len(acknowledged)
        assert accountant.reports.waiting("smoking") == len(acknowledged)
        assert accountant.reports.seal("smoking", "round 1") == len(acknowledged)
        kept = b"".join(part.content for part in accountant.reports.round("smoking", "round 1"))
    assert len(kept) == 17 * len(acknowledged)
    assert kept[16::17] == b"\1" * len(acknowledged)  # each after its mark
