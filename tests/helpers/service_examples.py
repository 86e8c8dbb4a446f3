"""The examples of the HTTP API: requests in order against a fresh ledger, and their responses.

They are part of the service's description of itself. `python tests/helpers/service_examples.py` records the answers again.
"""

from __future__ import annotations

import json
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from fastapi.testclient import TestClient

from ldp_budget import Accountant
from ldp_budget.ledger.sqlite import SqliteStore
from ldp_budget.reports.inbox import Inbox, Marks
from ldp_budget_service import Settings, create_app
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_service.invitations import Invitations
from ldp_budget_service.publications import publication_for
from ldp_budget_surveys.publication.publisher import Publisher

FILE = Path(__file__).parents[2] / "service" / "ldp_budget_service" / "examples.json"

NOW = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
OUE = {"name": "oue", "epsilon": "1", "domain_size": 3}
COSTLY = {**OUE, "epsilon": "3"}
PARTY = {
    "name": "party",
    "mechanism": {"name": "oue", "epsilon": "1"},
    "categories": ["left", "right", "neither"],
    "title": "Which party?",
    "question": "Which party would you vote for today?",
}


RECORD = {"kind": "note", "name": "officer", "body": {"text": "looked through"}, "expected": 2}
NEW_KEY = {"name": "monitoring", "scopes": ["read"], "policies": ["default"], "hash": "5a" * 32, "expected": 3}
BOB = {"user": "bob", "collection": "party"}
CAROL = {"user": "carol", "collection": "party"}
MARKS = {name: mark.hex() for name, mark in zip(("Report-Mark", "Charge-Mark"), Marks.of(bytes(16)), strict=True)}


class Step(NamedTuple):
    """A request by its route, and what it is called; `masked` are members of the answer that depend on the machine.

    A `{name}` of the route is in `path`; `take` names the members of the response that later requests use.
    """

    title: str
    method: str
    route: str
    path: dict[str, str] = {}  # noqa: RUF012 - never changed
    query: dict[str, Any] = {}  # noqa: RUF012
    headers: dict[str, str] = {}  # noqa: RUF012
    body: Any = None
    masked: tuple[str, ...] = ()
    few: int | None = None
    repeat: int = 1
    by: str = "example"

    @property
    def operation(self) -> tuple[str, str]:
        return self.method, self.route


def key(name: str) -> dict[str, str]:
    return {"Idempotency-Key": name}


AS_JSON = {"Accept": "application/json"}
_SOME = [bytes([report]) for report in (1, 2, 2, 4, 3, 6, 2, 0)]
"""Reports as devices might have drawn them."""


def lines(*rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


STEPS = (
    Step("A policy", "PUT", "/v1/policies/{name}", {"name": "default"}, body={"limits": ["lifetime=4", "day=2"]}),
    Step("Every policy", "GET", "/v1/policies"),
    Step("One policy", "GET", "/v1/policies/{name}", {"name": "default"}),
    Step("A collection", "POST", "/v1/collections", body=PARTY),
    Step("Every collection", "GET", "/v1/collections"),
    Step("What devices need", "GET", "/v1/collections/{name}", {"name": "party"}),
    Step(
        "When the limits bind",
        "GET",
        "/v1/policies/{name}/simulation",
        {"name": "default"},
        {"every": "day", "collection": "party"},
    ),
    Step("What there is", "GET", "/v1/mechanisms", few=2),
    Step("A target", "POST", "/v1/calibrate", body={"mechanism": OUE, "users": 1000}),
    Step("Many reports", "POST", "/v1/compose", body={"collection": "party", "reports": 50, "total_delta": "1e-6"}),
    Step("A total", "POST", "/v1/plan", body={"collection": "party", "reports": 4, "total_epsilon": "2"}),
    Step("A choice", "POST", "/v1/compare", body={"epsilon": "1", "domain_size": 3, "users": 1000}, few=2),
    Step("What it would cost", "POST", "/v1/spends", body={"user": "alice", "collection": "party", "dry_run": True}),
    Step("A charge", "POST", "/v1/spends", headers=key("alice/1"), body={"user": "alice", "collection": "party"}),
    Step("A retry", "POST", "/v1/spends", headers=key("alice/1"), body={"user": "alice", "collection": "party"}),
    Step("A refusal", "POST", "/v1/spends", headers=key("alice/2"), body={"user": "alice", "mechanism": COSTLY}),
    Step(
        "A batch",
        "POST",
        "/v1/spends:batch",
        headers=key("party/1"),
        body=lines({"user": "bob", "collection": "party"}, {"user": "alice", "mechanism": COSTLY}, {"user": "carol"}),
    ),
    Step("A reservation", "POST", "/v1/reservations", headers=key("r/1"), body=BOB),
    Step("What is open", "GET", "/v1/reservations", query={"user": "bob"}),
    Step("To keep it", "POST", "/v1/reservations/{receipt}/commit", {"receipt": "$receipt"}),
    Step("Another one", "POST", "/v1/reservations", headers=key("r/2"), body=CAROL),
    Step("To give it back", "POST", "/v1/reservations/{receipt}/void", {"receipt": "$receipt"}),
    Step("A reservation by its receipt", "POST", "/v1/users:reservation", body={"receipt": "$receipt"}),
    Step("A balance", "GET", "/v1/users/{user}/balance", {"user": "alice"}),
    Step("A history", "GET", "/v1/users/{user}/history", {"user": "alice"}),
    Step("What was left", "GET", "/v1/users/{user}/remaining", {"user": "alice"}),
    Step("A balance in whole units", "POST", "/v1/users:balance", body={"user": "alice"}),
    Step("A history by a name in the body", "POST", "/v1/users:history", body={"user": "alice"}),
    Step("What was left, in whole units", "POST", "/v1/users:remaining", body={"user": "alice"}),
    Step("The open reservations of a user", "POST", "/v1/users:reservations", body={"user": "bob"}),
    Step("Many balances", "POST", "/v1/balances", body={"users": ["alice", "bob"]}),
    Step(
        "A report",
        "POST",
        "/v1/collections/{name}/reports",
        {"name": "party"},
        headers={**key("carol/party"), "X-User": "carol", "X-Collection": "$digest", **MARKS},
        body=b"\2",
    ),
    Step(
        "A report with public attributes",
        "POST",
        "/v1/collections/{name}/reports",
        {"name": "party"},
        headers={**key("erin/party"), "X-User": "erin", "X-Collection": "$digest"},
        body={"report": "02", "public": {"region": "north", "age": "18-49"}},
    ),
    Step("Too few for an estimate", "GET", "/v1/collections/{name}/estimate", {"name": "party"}),
    Step(
        "More reports",
        "POST",
        "/v1/collections/{name}/reports",
        {"name": "party"},
        headers={**key("party"), "X-User": "user-$n", "X-Collection": "$digest"},
        body=b"$",
        repeat=40,
    ),
    Step("A round", "POST", "/v1/collections/{name}/rounds", {"name": "party"}, body={"round": "2026-W47"}),
    Step("An estimate", "GET", "/v1/collections/{name}/estimate", {"name": "party"}),
    Step("What an invitation is for", "GET", "/v1/me"),
    Step("A proof in a publication", "GET", "/v1/me/proof", headers={"Charge-Mark": MARKS["Charge-Mark"]}),
    Step(
        "A proof for a receipt",
        "GET",
        "/v1/collections/{name}/proof",
        {"name": "party"},
        headers={"Charge-Mark": MARKS["Charge-Mark"], "Proof-Token": "$proof"},
    ),
    Step("The ledger", "GET", "/v1/ledger"),
    Step("Where the journal ends", "POST", "/v1/ledger/position", body={"user": "alice"}),
    Step("Counts", "GET", "/v1/ledger/stats", masked=("engine", "engine_version", "sqlite", "version", "schema")),
    Step("A record", "POST", "/v1/ledger/records", body=RECORD),
    Step("Every record", "GET", "/v1/ledger/records"),
    Step("A key", "POST", "/v1/ledger/keys", body=NEW_KEY),
    Step("The end of a key", "POST", "/v1/ledger/keys:revoke", body={"name": NEW_KEY["name"], "expected": 4}),
    Step("A verification", "GET", "/v1/ledger/verify"),
    Step("A head to note", "POST", "/v1/ledger/checkpoint"),
    Step("A clock that is right", "POST", "/v1/ledger/repair-clock"),
    Step("The journal", "GET", "/v1/ledger/journal", few=3),
    Step("The journal, with a name", "POST", "/v1/ledger/journal", body={"users": ["alice"]}, few=3),
    Step("The ledger at a glance", "GET", "/v1/overview"),
    Step("By day", "GET", "/v1/overview/activity", query={"days": 2}),
    Step("Refusals", "GET", "/v1/overview/refusals", query={"days": 2}),
    Step("How full limits are", "GET", "/v1/overview/limits"),
    Step("What was charged", "GET", "/v1/overview/mechanisms"),
    Step("Whether all is as it was, on record", "POST", "/v1/ledger/verifications"),
    Step("A statement", "GET", "/v1/users/{user}/statement", {"user": "alice"}, headers=AS_JSON),
    Step(
        "A statement, by a name in the body", "POST", "/v1/users:statement", body={"user": "alice"}, headers=AS_JSON
    ),
    Step("What waits for the officer", "GET", "/v1/officer"),
    Step("Who set what", "GET", "/v1/officer/policies"),
    Step("Who has keys", "GET", "/v1/officer/keys"),
    Step("What is on record", "GET", "/v1/officer/records"),
    Step("Approvals from now on", "PUT", "/v1/approvals", body={"demanded": True}),
    Step("A proposal", "POST", "/v1/proposals", body={"name": "default", "limits": ["lifetime=6", "day=2"]}),
    Step("Every proposal", "GET", "/v1/proposals"),
    Step("An approval", "POST", "/v1/proposals/{number}/approve", {"number": "$number"}, by="officer"),
    Step("To set it", "POST", "/v1/proposals/{number}/set", {"number": "$number"}),
    Step("Another proposal", "POST", "/v1/proposals", body={"name": "default", "limits": ["lifetime=9", "day=2"]}),
    Step("To withdraw it", "POST", "/v1/proposals/{number}/withdraw", {"number": "$number"}),
    Step("To be forgotten", "DELETE", "/v1/users/{user}", {"user": "bob"}),
    Step("To be forgotten, by a name in the body", "POST", "/v1/users:erase", body={"user": "carol"}),
    Step("Who is forgotten", "POST", "/v1/users:erased", body={"user": "carol"}),
    Step("A type of problem", "GET", "/problems/{code}", {"code": "budget-exceeded"}),
    Step("Alive", "GET", "/livez"),
    Step("Ready", "GET", "/readyz"),
    Step("Figures", "GET", "/metrics", masked=("*",)),
)


def play() -> list[dict[str, Any]]:
    """Every step with its answer, in order, against a fresh ledger of a fixed key."""
    store = SqliteStore(":memory:", create=True, secret=bytes(range(32)), sandbox=False, ledger_id="0" * 16)
    with Accountant(store, clock=lambda: NOW) as accountant:
        keys = ApiKeys(accountant)
        with mock.patch(
            "ldp_budget_service.api_keys.secrets.token_urlsafe", side_effect=("one-example", "another-example")
        ):
            secrets = {name: keys.create(name, ["admin"])[1] for name in ("example", "officer")}
        app = create_app(accountant, Settings(usage_seconds=0, question_seconds=120))
        client = TestClient(app)
        known = {"digest": "", "receipt": "", "number": "", "invitation": "", **secrets}
        told = []
        for step in STEPS:
            if step.route == "/v1/me":
                soon = NOW + timedelta(days=7)
                [(_, known["invitation"])] = Invitations(accountant).invite("party", ["dave"], soon)
            told.append(_proved(step, known) if step.route.endswith("/proof") else _played(client, step, known))
    return told


def _proved(step: Step, known: dict[str, str]) -> dict[str, Any]:
    """Play a step against a ledger in a file, whose survey is published with a fixed secret."""
    with tempfile.TemporaryDirectory() as folder, Accountant(f"{folder}/budget.db", clock=lambda: NOW) as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        client = TestClient(create_app(accountant))
        known = {**known, "invitation": ""}
        keys = ApiKeys(accountant)
        admin = {"Authorization": f"Bearer {keys.create('example', ['admin'])[1]}"}
        client.post("/v1/collections", json=PARTY, headers=admin).raise_for_status()
        party = accountant.collection("party")
        for place in range(party.minimum_group):
            Inbox(accountant, party).take(f"user-{place}", "party", b"\2", marks=Marks.of(bytes([place] * 16)))
        publisher = Publisher(accountant)
        publisher.new_key("example")
        with mock.patch("os.urandom", side_effect=bytes):
            publisher.publish(party, f"{folder}/site")
        soon = NOW + timedelta(days=7)
        [(_, known["invitation"])] = Invitations(accountant).invite("party", ["user-0"], soon)
        known["proof"] = publication_for(accountant, "party", Marks.of(bytes(16)).charge, has_folder=False)["proof"]
        found = _played(client, step, known)
        if "Proof-Token" in found["headers"]:  # the key of this ledger is another one each time
            found["headers"]["Proof-Token"] = "0" * 32
        return found


def _played(client: TestClient, step: Step, known: dict[str, str]) -> dict[str, Any]:
    headers = {name: _filled(value, known) for name, value in step.headers.items()}
    headers["Authorization"] = (
        f"Bearer {known['invitation' if step.route in ('/v1/me', '/v1/me/proof') else step.by]}"
    )
    path = step.route
    for name, value in step.path.items():
        path = path.replace("{" + name + "}", _filled(value, known))
    body = step.body
    sent: dict[str, Any] = {}
    if isinstance(body, bytes):
        sent = {"content": body}
    elif body is not None:
        body = {name: _filled(value, known) for name, value in body.items()}
        sent = {"json": body}
    for number in range(step.repeat):
        if body == b"$":
            sent = {"content": _SOME[number % len(_SOME)]}
        numbered = {name: value.replace("$n", str(number)) for name, value in headers.items()}
        answer = client.request(step.method, path, params=step.query, headers=numbered, **sent)
    content = _content(answer, step)
    if isinstance(content, dict):
        known.update({name: str(content[name]) for name in ("digest", "receipt", "number") if content.get(name)})
    shown = sent["content"].decode("latin-1") if isinstance(body, bytes) else body
    places: dict[str, Any] = {name: _filled(value, known) for name, value in step.path.items()}
    if "number" in places:
        places["number"] = int(places["number"])
    return {
        "title": step.title,
        "method": step.method,
        "route": step.route,
        "path": places,
        "query": step.query,
        "headers": {name: value for name, value in numbered.items() if name != "Authorization"},
        "body": shown,
        "status": answer.status_code,
        "position": answer.headers.get("Journal-Position"),
        "answer": content,
    }


def _filled(value: Any, known: dict[str, str]) -> Any:
    return known[value[1:]] if isinstance(value, str) and value[:1] == "$" and value != "$n" else value


def _content(answer: Any, step: Step) -> Any:
    if step.masked == ("*",):
        return None
    if "json" not in answer.headers.get("Content-Type", "").replace("ndjson", ""):
        return "".join(answer.text.splitlines(keepends=True)[: step.few])
    content = answer.json()
    if isinstance(content, dict):
        return {name: value for name, value in content.items() if name not in step.masked}
    return content[: step.few] if isinstance(content, list) else content


def main() -> None:
    FILE.write_text(json.dumps(play(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
