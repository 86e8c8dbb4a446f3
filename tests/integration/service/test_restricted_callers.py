"""What a restricted caller learns of others: the same requests, on a ledger where others charge and on one where not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from typing import Any, NamedTuple

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from fixed_clock import Clock
from ldp_budget import Accountant, Collection, Limit, mechanism
from ldp_budget.accounting.receipts import receipt_of
from ldp_budget.ledger.hash_chain import Name
from ldp_budget.ledger.keyed_hashing import Key
from ldp_budget_service import Settings, create_app, responses
from ldp_budget_service.api_keys import SCOPES, ApiKeys
from ldp_budget_service.invitations import Invitations
from ldp_budget_service.visibility import hidden, revealed

KEYED = re.compile(r"\b[0-9a-f]{52}\b|\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b")
"""Hidden receipts, digests and request ids: keyed by the ledger's own key, or random."""
BINDINGS = {
    "policy": {"policies": ["default"]},
    "collection": {"collections": ["party"]},
    "both": {"policies": ["default"], "collections": ["party"]},
}
COIN = {"name": "randomized-response", "epsilon": "0.1"}


class Place:
    """A service whose ledger others use as well, or nobody else does."""

    def __init__(self, *, busy: bool) -> None:
        self.accountant = Accountant(":memory:", clock=Clock())
        for name in ("default", "other"):
            self.accountant.set_policy(name, [Limit("lifetime", epsilon=10**6), Limit("day", epsilon=10**6)])
        for name in ("party", "health"):
            self.accountant.add_collection(Collection(name, mechanism("oue")(epsilon="1", domain_size=3)))
        keys = ApiKeys(self.accountant)
        self.secrets = {name: keys.create(name, SCOPES, **bound)[1] for name, bound in BINDINGS.items()}
        soon = self.accountant.now() + timedelta(days=1)
        [(_, self.secrets["invited"])] = Invitations(self.accountant).invite("party", ["guest"], soon)
        self._others = count()
        self._busy = busy
        self.client = TestClient(create_app(self.accountant, Settings(address_rate=0)))
        self.client.__enter__()

    def close(self) -> None:
        self.client.__exit__(None, None, None)
        self.accountant.close()

    def others(self) -> None:
        """What other keys do between two requests: charges of the same user, too, under what the caller may not see."""
        if not self._busy:
            return
        health = self.accountant.collection("health")
        for user in ("alice", f"stranger {next(self._others)}"):
            self.accountant.spend(user, health, policy="other")
            self.accountant.reserve(user, health, policy="other", expires=1000)

    def ask(self, caller: str, asked: Asked) -> tuple[Any, ...]:
        self.others()
        headers = {"Authorization": f"Bearer {self.secrets[caller]}", **asked.headers}
        answer = self.client.request(asked.method, asked.path, headers=headers, content=asked.body)
        said = sorted((name, value) for name, value in answer.headers.items() if name != "content-length")
        return answer.status_code, KEYED.sub("HEX", str(said)), KEYED.sub("HEX", answer.text), len(answer.content)


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    body: bytes | None = None
    headers: dict[str, str] = {}  # noqa: RUF012 - it is never changed


def post(path: str, body: Any, **headers: str) -> Asked:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return Asked("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json", **sent})


def charge(number: int, **more: Any) -> dict[str, Any]:
    return {"user": "alice", "collection": "party", **more}


KEYED_LINES = b"".join(json.dumps(charge(0, key=f"line {n}")).encode() + b"\n" for n in range(2))
REQUESTS: tuple[Callable[[int], Asked], ...] = (
    lambda n: post("/v1/spends", charge(n), Idempotency_Key=f"s{n}"),
    lambda n: post("/v1/spends", charge(n), Idempotency_Key="the same"),
    lambda n: post("/v1/spends", charge(n, reports=10**7), Idempotency_Key=f"large{n}"),
    lambda n: post("/v1/spends", charge(n, dry_run=True)),
    lambda n: post("/v1/spends", charge(n, policy="other"), Idempotency_Key=f"o{n}"),
    lambda n: post("/v1/reservations", charge(n), Idempotency_Key=f"r{n}"),
    lambda n: Asked("POST", "/v1/spends:batch", json.dumps(charge(n)).encode(), {"Idempotency-Key": f"b{n}"}),
    lambda n: Asked(
        "POST", "/v1/spends:batch", json.dumps(charge(n, reports=10**7)).encode(), {"Idempotency-Key": f"t{n}"}
    ),
    lambda n: Asked("POST", "/v1/spends:batch", KEYED_LINES),
    lambda n: Asked("POST", "/v1/collections/party/reports", b"\1", {"Idempotency-Key": f"p{n}", "X-User": "bob"}),
    lambda n: Asked("GET", "/v1/users/alice/history"),
    lambda n: Asked("GET", "/v1/users/alice/history?most=1"),
    lambda n: post("/v1/users:history", {"user": "alice", "first": 2, "most": 2}),
    lambda n: Asked("GET", "/v1/users/alice/balance"),
    lambda n: Asked("GET", "/v1/users/alice/remaining"),
    lambda n: post("/v1/users:balance", {"user": "alice"}),
    lambda n: Asked("GET", "/v1/reservations?most=1"),
    lambda n: post("/v1/users:reservations", {"user": "alice", "most": 2}),
    lambda n: post("/v1/users:reservation", {"receipt": f"{n}-0123456789abcdef0123"}),
    lambda n: Asked("POST", f"/v1/reservations/{n}-0123456789abcdef0123/commit"),
    lambda n: post("/v1/ledger/position", {}),
    lambda n: Asked("GET", "/v1/ledger"),
    lambda n: Asked("GET", f"/v1/policies?min_position=0:{n}"),
    lambda n: Asked("GET", "/v1/policies"),
    lambda n: Asked("GET", "/v1/collections"),
    lambda n: Asked("GET", "/v1/collections/party"),
    lambda n: Asked("GET", "/v1/collections/party/estimate"),
    lambda n: Asked("POST", f"/v1/proposals/{n + 1}/approve"),
    lambda n: Asked("GET", "/v1/ledger/stats"),
    lambda n: Asked("GET", "/metrics"),
    lambda n: Asked("GET", "/v1/me"),
    lambda n: Asked("GET", "/v1/overview"),
    lambda n: Asked("GET", "/readyz"),
)


@pytest.fixture(scope="module")
def places() -> Iterator[tuple[Place, Place]]:
    found = Place(busy=False), Place(busy=True)
    yield found
    for each in found:
        each.close()


@settings(deadline=None)
@given(
    caller=st.sampled_from([*BINDINGS, "invited"]),
    chosen=st.lists(st.sampled_from(REQUESTS), min_size=1, max_size=12),
)
def test_restricted_caller_gets_the_same_bytes_however_much_others_charge(
    places: tuple[Place, Place], caller: str, chosen: list[Callable[[int], Asked]]
) -> None:
    """`Next-Entry` dated the charges of any user, and numbered receipts told respondents how many took part."""
    quiet, busy = places
    for number, asked in enumerate(chosen):
        assert quiet.ask(caller, asked(number)) == busy.ask(caller, asked(number)), asked(number)


def test_restricted_caller_gets_the_same_bytes_for_every_request(places: tuple[Place, Place]) -> None:
    quiet, busy = places
    for caller in (*BINDINGS, "invited"):
        for number, asked in enumerate(REQUESTS, 100):
            assert quiet.ask(caller, asked(number)) == busy.ask(caller, asked(number)), (caller, asked(number))


def test_bound_key_commits_a_reservation_by_its_hidden_receipt(places: tuple[Place, Place]) -> None:
    _, busy = places
    bearer = {"Authorization": f"Bearer {busy.secrets['both']}"}
    made = busy.client.post("/v1/reservations", json=charge(0), headers={**bearer, "Idempotency-Key": "hold"})
    receipt = made.json()["receipt"]
    assert "-" not in receipt
    seen = busy.client.post("/v1/users:reservation", json={"receipt": receipt}, headers=bearer).json()
    assert (seen["state"], seen["entry"], seen["account"]) == ("reserved", None, None)
    listed = busy.client.get("/v1/reservations?most=1", headers=bearer).json()
    assert [row["receipt"] for row in listed] == [receipt]
    ended = busy.client.post(f"/v1/reservations/{receipt}/commit", headers=bearer)
    assert (ended.status_code, ended.json()["receipt"], ended.json()["limits"]) == (200, receipt, [])
    wrong = busy.client.post(f"/v1/reservations/{receipt}/void", headers=bearer)
    assert (wrong.status_code, wrong.json()["receipt"]) == (409, receipt)


def test_parts_of_a_history_are_the_rows_of_the_whole(
    places: tuple[Place, Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses, "_ROWS_AT_ONCE", 2)
    _, busy = places
    bearer = {"Authorization": f"Bearer {busy.secrets['both']}"}
    for number in range(7):
        busy.others()
        made = busy.client.post("/v1/spends", json=charge(0), headers={**bearer, "Idempotency-Key": f"part {number}"})
        assert made.status_code == 200
    whole = busy.client.get("/v1/users/alice/history", headers=bearer).json()
    assert [row["entry"] for row in whole] == list(range(1, len(whole) + 1))
    parts, first = [], "1"
    while first is not None:
        part = busy.client.get("/v1/users/alice/history", params={"first": first, "most": 3}, headers=bearer)
        parts, first = parts + part.json(), part.headers.get("Next-Entry")
    assert parts == whole


@given(
    secret=st.binary(min_size=32, max_size=32),
    name=st.builds(Name, st.integers(0, 99), st.integers(0, 9999), st.integers(1, 10**18 - 1)),
)
def test_hidden_receipt_of_any_entry_reveals_the_receipt_with_the_key_alone(secret: bytes, name: Name) -> None:
    key, other = Key(secret), Key(bytes(32) if any(secret) else b"\1" * 32)
    keyed, guessed = (lambda data, each=each: each.hash_outside(b"data", data.hex()).hex() for each in (key, other))
    receipt = receipt_of(key, name)
    shown = hidden(keyed, receipt)
    assert re.fullmatch("[0-9a-f]{52}", shown)
    assert hidden(keyed, shown) == shown
    assert revealed(keyed, shown) == receipt
    assert revealed(guessed, shown) != receipt
