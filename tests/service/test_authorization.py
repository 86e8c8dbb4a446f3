"""Who may do what: every route, by every scope, by no key, by one that is not good, and by one bound elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
from fastapi.testclient import TestClient

from conftest import Clock
from ldp_budget import Accountant, Collection, Limit, mechanism
from ldp_budget.accounting.access.approvals import Approvals
from ldp_budget.accounting.access.invitations import Invitations
from ldp_budget.accounting.access.keys import SCOPES, ApiKeys
from ldp_budget_service import Settings, create_app
from ldp_budget_service.app import ROUTERS
from ldp_budget_service.scopes import ANY, INVITED, OPEN
from ldp_budget_service.scopes import SCOPES as DESCRIBED

POLICY, COLLECTION = "policy", "collection"
"""A key that is bound to another one is turned away."""
BOTH, WHOLE, ROWS, NEITHER = "both", "whole", "rows", "neither"
"""By either of them; by any bound, as it is about the whole ledger; sees its own alone; is about neither."""

COIN = {"name": "randomized-response", "epsilon": "0.1"}
KEY = {"Idempotency-Key": "k"}


class Guard(NamedTuple):
    """What a route asks for, and a request that it answers."""

    scope: str
    bound: str
    path: str
    more: dict[str, Any] = {}  # noqa: RUF012 - it is never changed


def asks(scope: str, bound: str, path: str, json: Any = None, **more: Any) -> Guard:
    return Guard(scope, bound, path, more if json is None else {"json": json, **more})


GUARDS: dict[tuple[str, str], Guard] = {
    ("POST", "/v1/spends"): asks("spend", BOTH, "/v1/spends", {"user": "a", "collection": "party"}, headers=KEY),
    ("POST", "/v1/spends:batch"): asks(
        "spend", NEITHER, "/v1/spends:batch", headers=KEY, content=b'{"user": "a", "collection": "party"}'
    ),
    ("POST", "/v1/reservations"): asks(
        "spend", BOTH, "/v1/reservations", {"user": "b", "collection": "party"}, headers=KEY
    ),
    ("GET", "/v1/reservations"): asks("read", ROWS, "/v1/reservations"),
    ("POST", "/v1/reservations/{receipt}/commit"): asks("spend", BOTH, "/v1/reservations/RECEIPT/commit"),
    ("POST", "/v1/reservations/{receipt}/void"): asks("spend", BOTH, "/v1/reservations/RECEIPT/void"),
    ("GET", "/v1/users/{user}/balance"): asks("read", POLICY, "/v1/users/a/balance"),
    ("GET", "/v1/users/{user}/history"): asks("read", ROWS, "/v1/users/a/history"),
    ("GET", "/v1/users/{user}/remaining"): asks("read", POLICY, "/v1/users/a/remaining"),
    ("DELETE", "/v1/users/{user}"): asks("erase", WHOLE, "/v1/users/nobody"),
    ("POST", "/v1/users:balance"): asks("read", POLICY, "/v1/users:balance", {"user": "a"}),
    ("POST", "/v1/users:remaining"): asks("read", POLICY, "/v1/users:remaining", {"user": "a"}),
    ("POST", "/v1/users:history"): asks("read", ROWS, "/v1/users:history", {"user": "a"}),
    ("POST", "/v1/users:reservations"): asks("read", ROWS, "/v1/users:reservations", {"user": "a"}),
    ("POST", "/v1/users:reservation"): asks("read", BOTH, "/v1/users:reservation", {"receipt": "RECEIPT"}),
    ("POST", "/v1/users:erased"): asks("read", NEITHER, "/v1/users:erased", {"user": "a"}),
    ("POST", "/v1/users:erase"): asks("erase", WHOLE, "/v1/users:erase", {"user": "nobody"}),
    ("POST", "/v1/balances"): asks("read", POLICY, "/v1/balances", {"users": ["a"]}),
    ("GET", "/v1/policies"): asks("read", ROWS, "/v1/policies"),
    ("GET", "/v1/policies/{name}"): asks("read", POLICY, "/v1/policies/default"),
    ("PUT", "/v1/policies/{name}"): asks("policy", POLICY, "/v1/policies/default", {"limits": ["lifetime=4"]}),
    ("GET", "/v1/policies/{name}/simulation"): asks(
        "read", BOTH, "/v1/policies/default/simulation?every=day&collection=party"
    ),
    ("GET", "/v1/collections"): asks("read", ROWS, "/v1/collections"),
    ("POST", "/v1/collections"): asks("policy", COLLECTION, "/v1/collections", {"name": "party", "mechanism": COIN}),
    ("GET", "/v1/collections/{name}"): asks(OPEN, NEITHER, "/v1/collections/party"),
    ("POST", "/v1/collections/{name}/reports"): asks(
        "collect", BOTH, "/v1/collections/party/reports", headers={**KEY, "X-User": "c"}, content=b"\1"
    ),
    ("POST", "/v1/collections/{name}/rounds"): asks(
        "admin", COLLECTION, "/v1/collections/party/rounds", {"round": "1"}
    ),
    ("GET", "/v1/collections/{name}/estimate"): asks("read", COLLECTION, "/v1/collections/party/estimate"),
    ("GET", "/v1/mechanisms"): asks("read", NEITHER, "/v1/mechanisms"),
    ("POST", "/v1/calibrate"): asks("read", NEITHER, "/v1/calibrate", {"mechanism": {"name": "none"}}),
    ("POST", "/v1/compose"): asks("read", COLLECTION, "/v1/compose", {"collection": "party", "reports": 2}),
    ("POST", "/v1/plan"): asks(
        "read", COLLECTION, "/v1/plan", {"collection": "party", "reports": 2, "total_epsilon": "1"}
    ),
    ("POST", "/v1/compare"): asks("read", NEITHER, "/v1/compare", {"epsilon": "1"}),
    ("GET", "/v1/ledger"): asks(ANY, NEITHER, "/v1/ledger"),
    ("POST", "/v1/ledger/position"): asks("read", NEITHER, "/v1/ledger/position", {}),
    ("GET", "/v1/ledger/records"): asks("audit", WHOLE, "/v1/ledger/records"),
    ("POST", "/v1/ledger/records"): asks(
        "admin", WHOLE, "/v1/ledger/records", {"kind": "note", "name": "x", "body": {}, "expected": 0}
    ),
    ("GET", "/v1/ledger/stats"): asks("read", WHOLE, "/v1/ledger/stats"),
    ("GET", "/v1/ledger/verify"): asks("audit", WHOLE, "/v1/ledger/verify"),
    ("GET", "/v1/ledger/journal"): asks("audit", WHOLE, "/v1/ledger/journal"),
    ("POST", "/v1/ledger/journal"): asks("audit", WHOLE, "/v1/ledger/journal", {"users": ["a"]}),
    ("POST", "/v1/ledger/checkpoint"): asks("audit", WHOLE, "/v1/ledger/checkpoint"),
    ("POST", "/v1/ledger/repair-clock"): asks("admin", WHOLE, "/v1/ledger/repair-clock"),
    ("GET", "/v1/overview"): asks("read", WHOLE, "/v1/overview"),
    ("GET", "/v1/overview/activity"): asks("read", WHOLE, "/v1/overview/activity"),
    ("GET", "/v1/overview/refusals"): asks("read", WHOLE, "/v1/overview/refusals"),
    ("GET", "/v1/overview/limits"): asks("read", WHOLE, "/v1/overview/limits"),
    ("GET", "/v1/overview/mechanisms"): asks("read", WHOLE, "/v1/overview/mechanisms"),
    ("GET", "/v1/alerts"): asks("read", WHOLE, "/v1/alerts"),
    ("POST", "/v1/alerts:test"): asks("policy", WHOLE, "/v1/alerts:test"),
    ("GET", "/v1/proposals"): asks("policy", WHOLE, "/v1/proposals"),
    ("POST", "/v1/proposals"): asks("policy", POLICY, "/v1/proposals", {"name": "default", "limits": ["lifetime=4"]}),
    ("POST", "/v1/proposals/{number}/approve"): asks("policy", POLICY, "/v1/proposals/PROPOSAL/approve"),
    ("POST", "/v1/proposals/{number}/set"): asks("policy", POLICY, "/v1/proposals/PROPOSAL/set"),
    ("POST", "/v1/proposals/{number}/withdraw"): asks("policy", POLICY, "/v1/proposals/PROPOSAL/withdraw"),
    ("PUT", "/v1/approvals"): asks("policy", WHOLE, "/v1/approvals", {"demanded": True}),
    ("GET", "/v1/officer"): asks("policy", WHOLE, "/v1/officer"),
    ("GET", "/v1/officer/alerts"): asks("policy", WHOLE, "/v1/officer/alerts"),
    ("GET", "/v1/officer/policies"): asks("policy", WHOLE, "/v1/officer/policies"),
    ("GET", "/v1/officer/keys"): asks("policy", WHOLE, "/v1/officer/keys"),
    ("GET", "/v1/officer/records"): asks("policy", WHOLE, "/v1/officer/records"),
    ("POST", "/v1/ledger/verifications"): asks("audit", WHOLE, "/v1/ledger/verifications"),
    ("GET", "/v1/me"): asks(INVITED, NEITHER, "/v1/me"),
    ("GET", "/problems/{code}"): asks(OPEN, NEITHER, "/problems/forbidden"),
    ("GET", "/livez"): asks(OPEN, NEITHER, "/livez"),
    ("GET", "/readyz"): asks(OPEN, NEITHER, "/readyz"),
    ("GET", "/metrics"): asks("read", NEITHER, "/metrics"),
    ("GET", "/"): asks(OPEN, NEITHER, "/"),
    ("GET", "/officer"): asks(OPEN, NEITHER, "/officer"),
    ("GET", "/me"): asks(OPEN, NEITHER, "/me"),
    ("GET", "/s/{collection}"): asks(OPEN, NEITHER, "/s/party"),
    ("GET", "/static/{name}"): asks(OPEN, NEITHER, "/static/office.js"),
}

ROUTES = list(GUARDS)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("reports")) as made:
        yield made


class Site:
    """A service, with keys of every kind."""

    def __init__(self, reports: Any) -> None:
        self.clock = Clock()
        self.accountant = Accountant(":memory:", clock=self.clock)
        for name in ("default", "other"):
            self.accountant.set_policy(name, [Limit("lifetime", epsilon=100)])
        self.accountant.add_collection(Collection("party", mechanism("oue")(epsilon="1", domain_size=3)))
        self.client = TestClient(create_app(self.accountant, Settings(reports=reports, address_rate=0)))
        keys = ApiKeys(self.accountant)
        self.secrets = {scope: keys.create(scope, [scope])[1] for scope in SCOPES}
        self.secrets["policy-bound"] = keys.create("policy-bound", SCOPES, policies=["other"])[1]
        self.secrets["collection-bound"] = keys.create("collection-bound", SCOPES, collections=["other"])[1]
        self.secrets["revoked"] = keys.create("revoked", SCOPES)[1]
        keys.revoke("revoked")
        self.secrets["expired"] = keys.create("expired", SCOPES, expires=self.clock.now + timedelta(hours=1))[1]
        self.clock.now += timedelta(hours=2)
        self.secrets["pending"] = keys.create("pending", SCOPES, starts=self.clock.now + timedelta(days=1))[1]
        soon = self.clock.now + timedelta(days=1)
        [(_, self.secrets["invitation"])] = Invitations(self.accountant).invite("party", ["a"], soon)
        approvals = Approvals(self.accountant)
        self.proposal = str(approvals.propose("default", ["lifetime=200"]).number)
        self.receipt = str(self.accountant.reserve("a", mechanism("oue")(epsilon="1", domain_size=3)).receipt)

    def __enter__(self) -> Site:
        self.client.__enter__()  # one loop for all requests
        return self

    def __exit__(self, *_: object) -> None:
        self.client.__exit__()
        self.accountant.close()

    def ask(self, route: tuple[str, str], secret: str | None) -> Any:
        guard, (method, _) = GUARDS[route], route
        more = dict(guard.more)
        if "json" in more:
            more["json"] = {
                name: self.receipt if value == "RECEIPT" else value for name, value in more["json"].items()
            }
        bearer = {} if secret is None else {"Authorization": f"Bearer {self.secrets.get(secret, secret)}"}
        headers = {**more.pop("headers", {}), **bearer}
        return self.client.request(
            method,
            guard.path.replace("RECEIPT", self.receipt).replace("PROPOSAL", self.proposal),
            headers=headers,
            **more,
        )


def test_the_table_has_every_route_and_no_other() -> None:
    found = set()
    for router in ROUTERS:
        for route in router.routes:
            path = route.path.replace(":name}", "}").replace(":path}", "}")  # type: ignore[attr-defined]
            found |= {(method, path) for method in route.methods - {"HEAD"}}  # type: ignore[attr-defined]
    assert found == set(GUARDS)


def _may(guard: Guard, scope: str) -> set[int]:
    """The statuses that a key of one scope may see; what comes after it was let in is another test's."""
    if guard.scope == INVITED:
        return {401}
    return {200, 400, 409} if guard.scope in (OPEN, ANY, scope) or scope == "admin" else {403}


def test_the_description_says_which_scope_each_operation_asks_for(site: Site) -> None:
    for path, methods in site.client.app.openapi()["paths"].items():  # type: ignore[attr-defined]
        for method, operation in methods.items():
            route = method.upper(), path
            assert operation["x-scope"] == DESCRIBED[route] == GUARDS[route].scope, route


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.some(3)
def test_a_scope_opens_what_it_is_for_and_nothing_else(site: Site, scope: str) -> None:
    found = {route: site.ask(route, scope).status_code for route in ROUTES}
    missing = {("DELETE", "/v1/users/{user}"), ("POST", "/v1/users:erase"), ("POST", "/v1/calibrate")}
    wrong = {
        route: status
        for route, status in found.items()
        if status not in _may(GUARDS[route], scope) and not (status == 404 and route in missing)
    }
    assert not wrong


@pytest.mark.parametrize("secret", [None, "", "ldpb_nonsense", "revoked", "expired", "pending"])
@pytest.mark.some(3)
def test_without_a_key_that_is_good_now_only_what_is_open_answers(site: Site, secret: str | None) -> None:
    for route in ROUTES:
        answer = site.ask(route, secret)
        if GUARDS[route].scope == OPEN:
            assert answer.status_code == 200, route
        else:
            assert (answer.status_code, answer.json()["type"]) == (401, "/problems/unauthorized"), route
            assert answer.headers["WWW-Authenticate"] == "Bearer", route


@pytest.mark.parametrize("bound", ["policy-bound", "collection-bound"])
@pytest.mark.some(2)
def test_a_key_bound_elsewhere_reaches_nothing_of_this(site: Site, bound: str) -> None:
    for route in ROUTES:
        guard = GUARDS[route]
        if guard.scope not in (OPEN, INVITED):
            status = site.ask(route, bound).status_code
            refused = guard.bound in (BOTH, WHOLE, bound.removesuffix("-bound"))
            assert (status == 403) == refused, (route, status)
            assert status < 500, route


@pytest.mark.parametrize("bound", ["policy-bound", "collection-bound"])
def test_a_key_bound_elsewhere_sees_no_rows_of_this(site: Site, bound: str) -> None:
    for route in ROUTES:
        if GUARDS[route].bound == ROWS:
            rows = site.ask(route, bound).json()
            told = {row.get("name", row.get("policy")) for row in rows}
            assert told <= {"other", "party"} if bound == "policy-bound" else not told - {"default", "other"}, route


@pytest.mark.parametrize("bound", ["policy-bound", "collection-bound"])
def test_each_line_of_a_batch_is_held_against_the_bounds(site: Site, bound: str) -> None:
    [line] = site.ask(("POST", "/v1/spends:batch"), bound).text.splitlines()
    assert '"/problems/forbidden"' in line


def test_an_invitation_opens_its_own_report_and_page_and_nothing_else(site: Site) -> None:
    for route in ROUTES:
        status = site.ask(route, "invitation").status_code
        if GUARDS[route].scope in (OPEN, INVITED):
            assert status == 200, route
        elif route == ("POST", "/v1/collections/{name}/reports"):
            assert status == 403  # under another key than the invitation's
        else:
            assert status == 401, route
