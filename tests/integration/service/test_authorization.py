"""Authorization: every route with every scope, every binding, and without a key, against the table of access."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
from fastapi.testclient import TestClient

from fixed_clock import Clock
from ldp_budget import Accountant, Collection, Limit, mechanism
from ldp_budget_service import Settings, create_app
from ldp_budget_service.api_keys import SCOPES, ApiKeys
from ldp_budget_service.app import ROUTERS
from ldp_budget_service.approvals import Approvals
from ldp_budget_service.auth import ACCESS, ANY, FREE, INVITED, NAMED, NO, OPEN, ROWS, router_of
from ldp_budget_service.invitations import Invitations

COIN = {"name": "randomized-response", "epsilon": "0.1"}
KEY = {"Idempotency-Key": "k"}
NEW_KEY = {"name": "new", "scopes": ["read"], "hash": "0" * 64, "expected": 0}


class Asked(NamedTuple):
    """A request that a route answers."""

    path: str
    more: dict[str, Any] = {}  # noqa: RUF012 - it is never changed


def asks(path: str, json: Any = None, **more: Any) -> Asked:
    return Asked(path, more if json is None else {"json": json, **more})


REQUESTS: dict[tuple[str, str], Asked] = {
    ("POST", "/v1/spends"): asks("/v1/spends", {"user": "a", "collection": "party"}, headers=KEY),
    ("POST", "/v1/spends:batch"): asks(
        "/v1/spends:batch", headers=KEY, content=b'{"user": "a", "collection": "party"}'
    ),
    ("POST", "/v1/reservations"): asks("/v1/reservations", {"user": "b", "collection": "party"}, headers=KEY),
    ("GET", "/v1/reservations"): asks("/v1/reservations"),
    ("POST", "/v1/reservations/{receipt}/commit"): asks("/v1/reservations/RECEIPT/commit"),
    ("POST", "/v1/reservations/{receipt}/void"): asks("/v1/reservations/RECEIPT/void"),
    ("GET", "/v1/users/{user}/balance"): asks("/v1/users/a/balance"),
    ("GET", "/v1/users/{user}/history"): asks("/v1/users/a/history"),
    ("GET", "/v1/users/{user}/remaining"): asks("/v1/users/a/remaining"),
    ("GET", "/v1/users/{user}/statement"): asks("/v1/users/a/statement"),
    ("POST", "/v1/users:statement"): asks("/v1/users:statement", {"user": "a"}),
    ("DELETE", "/v1/users/{user}"): asks("/v1/users/unknown"),
    ("POST", "/v1/users:balance"): asks("/v1/users:balance", {"user": "a"}),
    ("POST", "/v1/users:remaining"): asks("/v1/users:remaining", {"user": "a"}),
    ("POST", "/v1/users:history"): asks("/v1/users:history", {"user": "a"}),
    ("POST", "/v1/users:reservations"): asks("/v1/users:reservations", {"user": "a"}),
    ("POST", "/v1/users:reservation"): asks("/v1/users:reservation", {"receipt": "RECEIPT"}),
    ("POST", "/v1/users:erased"): asks("/v1/users:erased", {"user": "a"}),
    ("POST", "/v1/users:erase"): asks("/v1/users:erase", {"user": "unknown"}),
    ("POST", "/v1/balances"): asks("/v1/balances", {"users": ["a"]}),
    ("GET", "/v1/policies"): asks("/v1/policies"),
    ("GET", "/v1/policies/{name}"): asks("/v1/policies/default"),
    ("PUT", "/v1/policies/{name}"): asks("/v1/policies/default", {"limits": ["lifetime=4"]}),
    ("GET", "/v1/policies/{name}/simulation"): asks("/v1/policies/default/simulation?every=day&collection=party"),
    ("GET", "/v1/collections"): asks("/v1/collections"),
    ("POST", "/v1/collections"): asks("/v1/collections", {"name": "party", "mechanism": COIN}),
    ("GET", "/v1/collections/{name}"): asks("/v1/collections/party"),
    ("POST", "/v1/collections/{name}/reports"): asks(
        "/v1/collections/party/reports", headers={**KEY, "X-User": "c"}, content=b"\1"
    ),
    ("POST", "/v1/collections/{name}/rounds"): asks("/v1/collections/party/rounds", {"round": "1"}),
    ("GET", "/v1/collections/{name}/estimate"): asks("/v1/collections/party/estimate"),
    ("GET", "/v1/mechanisms"): asks("/v1/mechanisms"),
    ("POST", "/v1/calibrate"): asks("/v1/calibrate", {"mechanism": {"name": "none"}}),
    ("POST", "/v1/compose"): asks("/v1/compose", {"collection": "party", "reports": 2}),
    ("POST", "/v1/plan"): asks("/v1/plan", {"collection": "party", "reports": 2, "total_epsilon": "1"}),
    ("POST", "/v1/compare"): asks("/v1/compare", {"epsilon": "1"}),
    ("GET", "/v1/ledger"): asks("/v1/ledger"),
    ("POST", "/v1/ledger/position"): asks("/v1/ledger/position", {}),
    ("GET", "/v1/ledger/records"): asks("/v1/ledger/records"),
    ("POST", "/v1/ledger/records"): asks(
        "/v1/ledger/records", {"kind": "note", "name": "x", "body": {}, "expected": 0}
    ),
    ("POST", "/v1/ledger/keys"): asks("/v1/ledger/keys", NEW_KEY),
    ("POST", "/v1/ledger/keys:revoke"): asks("/v1/ledger/keys:revoke", {"name": "revoked", "expected": 0}),
    ("GET", "/v1/ledger/stats"): asks("/v1/ledger/stats"),
    ("GET", "/v1/ledger/verify"): asks("/v1/ledger/verify"),
    ("GET", "/v1/ledger/journal"): asks("/v1/ledger/journal"),
    ("POST", "/v1/ledger/journal"): asks("/v1/ledger/journal", {"users": ["a"]}),
    ("POST", "/v1/ledger/checkpoint"): asks("/v1/ledger/checkpoint"),
    ("POST", "/v1/ledger/repair-clock"): asks("/v1/ledger/repair-clock"),
    ("GET", "/v1/overview"): asks("/v1/overview"),
    ("GET", "/v1/overview/activity"): asks("/v1/overview/activity"),
    ("GET", "/v1/overview/refusals"): asks("/v1/overview/refusals"),
    ("GET", "/v1/overview/limits"): asks("/v1/overview/limits"),
    ("GET", "/v1/overview/mechanisms"): asks("/v1/overview/mechanisms"),
    ("GET", "/v1/proposals"): asks("/v1/proposals"),
    ("POST", "/v1/proposals"): asks("/v1/proposals", {"name": "default", "limits": ["lifetime=4"]}),
    ("POST", "/v1/proposals/{number}/approve"): asks("/v1/proposals/PROPOSAL/approve"),
    ("POST", "/v1/proposals/{number}/set"): asks("/v1/proposals/PROPOSAL/set"),
    ("POST", "/v1/proposals/{number}/withdraw"): asks("/v1/proposals/PROPOSAL/withdraw"),
    ("PUT", "/v1/approvals"): asks("/v1/approvals", {"demanded": True}),
    ("GET", "/v1/officer"): asks("/v1/officer"),
    ("GET", "/v1/officer/policies"): asks("/v1/officer/policies"),
    ("GET", "/v1/officer/keys"): asks("/v1/officer/keys"),
    ("GET", "/v1/officer/records"): asks("/v1/officer/records"),
    ("POST", "/v1/ledger/verifications"): asks("/v1/ledger/verifications"),
    ("GET", "/v1/me"): asks("/v1/me"),
    ("GET", "/v1/me/proof"): asks("/v1/me/proof", headers={"Charge-Mark": "0" * 32}),
    ("GET", "/v1/collections/{name}/proof"): asks("/v1/collections/party/proof", headers={"Charge-Mark": "0" * 32}),
    ("GET", "/publications/{collection}/{file}"): asks("/publications/party/checkpoint"),
    ("GET", "/problems/{code}"): asks("/problems/forbidden"),
    ("GET", "/livez"): asks("/livez"),
    ("GET", "/readyz"): asks("/readyz"),
    ("GET", "/metrics"): asks("/metrics"),
    ("GET", "/"): asks("/"),
    ("GET", "/officer"): asks("/officer"),
    ("GET", "/me"): asks("/me"),
    ("GET", "/check"): asks("/check"),
    ("GET", "/s/{collection}"): asks("/s/party"),
    ("GET", "/static/{name}"): asks("/static/office.js"),
}

ROUTES = list(REQUESTS)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


class Site:
    """A service, with keys of every kind."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.accountant = Accountant(":memory:", clock=self.clock)
        for name in ("default", "other"):
            self.accountant.set_policy(name, [Limit("lifetime", epsilon=100)])
        self.accountant.add_collection(Collection("party", mechanism("oue")(epsilon="1", domain_size=3)))
        self.client = TestClient(create_app(self.accountant, Settings(address_rate=0)))
        keys = ApiKeys(self.accountant)
        self.secrets = {scope: keys.create(scope, [scope])[1] for scope in SCOPES}
        for scope in SCOPES:
            for to, policy, collection in (("here", "default", "party"), ("other", "other", "other")):
                for binding, bound in (
                    ("policy", {"policies": [policy]}),
                    ("collection", {"collections": [collection]}),
                ):
                    name = f"{scope}-{binding}-{to}"
                    self.secrets[name] = keys.create(name, [scope], **bound)[1]
        self.secrets["revoked"] = keys.create("revoked", SCOPES)[1]
        keys.revoke("revoked")
        self.secrets["expired"] = keys.create("expired", SCOPES, expires=self.clock.now + timedelta(hours=1))[1]
        self.clock.now += timedelta(hours=2)
        self.secrets["pending"] = keys.create("pending", SCOPES, starts=self.clock.now + timedelta(days=1))[1]
        soon = self.clock.now + timedelta(days=1)
        [(_, self.secrets["invitation"])] = Invitations(self.accountant).invite("party", ["a"], soon)
        approvals = Approvals(self.accountant)
        self.proposal = str(approvals.propose("default", ["lifetime=200"]).number)
        self.receipt = str(self.accountant.reserve("a", self.accountant.collection("party")).receipt)

    def __enter__(self) -> Site:
        self.client.__enter__()  # one loop for all requests
        return self

    def __exit__(self, *_: object) -> None:
        self.client.__exit__()
        self.accountant.close()

    def ask(self, route: tuple[str, str], secret: str | None) -> Any:
        asked, (method, _) = REQUESTS[route], route
        more = dict(asked.more)
        if "json" in more:
            more["json"] = {
                name: self.receipt if value == "RECEIPT" else value for name, value in more["json"].items()
            }
        bearer = {} if secret is None else {"Authorization": f"Bearer {self.secrets.get(secret, secret)}"}
        headers = {**more.pop("headers", {}), **bearer}
        return self.client.request(
            method,
            asked.path.replace("RECEIPT", self.receipt).replace("PROPOSAL", self.proposal),
            headers=headers,
            **more,
        )


def test_table_has_every_route_and_no_other() -> None:
    found = set()
    for router in ROUTERS:
        for route in router.routes:
            path = route.path.replace(":name}", "}").replace(":path}", "}")  # type: ignore[attr-defined]
            found |= {(method, path) for method in route.methods - {"HEAD"}}  # type: ignore[attr-defined]
    assert found == set(REQUESTS) == set(ACCESS)


def test_route_without_a_row_in_the_table_is_refused() -> None:
    with pytest.raises(KeyError):
        router_of().get("/v1/nothing")(lambda: None)


def test_description_states_the_scope_of_each_operation(site: Site) -> None:
    for path, methods in site.client.app.openapi()["paths"].items():  # type: ignore[attr-defined]
        for method, operation in methods.items():
            assert operation["x-scope"] == ACCESS[method.upper(), path].scope


NOT_THERE = {
    ("DELETE", "/v1/users/{user}"),
    ("POST", "/v1/users:erase"),
    ("POST", "/v1/calibrate"),
    ("POST", "/v1/ledger/keys:revoke"),
}
"""Routes whose object does not exist, which an authorized caller learns."""


NOT_PUBLISHED = {
    ("GET", "/v1/me/proof"),
    ("GET", "/v1/collections/{name}/proof"),
    ("GET", "/publications/{collection}/{file}"),
}
"""Routes of publications: a survey in memory has none."""


def _let_in(route: tuple[str, str], status: int) -> bool:
    """True if a status shows that the caller was authorized."""
    return status in (200, 400, 409) or (status == 404 and route in NOT_THERE | NOT_PUBLISHED)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.some(3)
def test_scope_opens_its_routes_and_no_others(site: Site, scope: str) -> None:
    wrong = {}
    for route in ROUTES:
        status, asked = site.ask(route, scope).status_code, ACCESS[route].scope
        if asked == INVITED:
            right = status == 401
        elif asked in (OPEN, ANY, scope) or scope == "admin":
            right = _let_in(route, status)
        else:
            right = status == 403
        if not right:
            wrong[route] = status
    assert not wrong


@pytest.mark.parametrize("secret", [None, "", "ldpb_nonsense", "revoked", "expired", "pending"])
@pytest.mark.some(3)
def test_request_without_a_valid_key_reaches_open_routes_only(site: Site, secret: str | None) -> None:
    for route in ROUTES:
        answer = site.ask(route, secret)
        if ACCESS[route].scope == OPEN:
            assert answer.status_code == (404 if route in NOT_PUBLISHED else 200), route
        else:
            assert (answer.status_code, answer.json()["type"]) == (401, "/problems/unauthorized"), route
            assert answer.headers["WWW-Authenticate"] == "Bearer", route


@pytest.mark.parametrize("secret", [None, "ldpb_nonsense"])
def test_malformed_body_without_a_key_is_unauthorized(site: Site, secret: str | None) -> None:
    """`{` without a key was answered by 400: bodies were read and parsed before the key was looked at."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {secret}"} if secret else {})
    for route in ROUTES:
        if route[0] in ("POST", "PUT") and ACCESS[route].scope not in (OPEN,):
            path = REQUESTS[route].path.replace("RECEIPT", site.receipt).replace("PROPOSAL", site.proposal)
            assert site.client.request(route[0], path, headers=headers, content=b"{").status_code == 401, route


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("binding", ["policy", "collection"])
@pytest.mark.some(4)
def test_bound_key_reaches_the_routes_of_the_table(site: Site, binding: str, scope: str) -> None:
    """A key bound to one collection set any policy, and one bound to anything read `/metrics` with all key names."""
    wrong = {}
    for route in ROUTES:
        access = ACCESS[route]
        may = getattr(access, binding)
        if access.scope in (OPEN, INVITED) or route == ("POST", "/v1/spends:batch"):
            continue
        elsewhere = site.ask(route, f"{scope}-{binding}-other").status_code
        there = site.ask(route, f"{scope}-{binding}-here").status_code
        has_scope = access.scope in (ANY, scope) or scope == "admin"
        if not has_scope or may == NO:
            right = elsewhere == there == 403
        elif may == NAMED:
            right = elsewhere == 403 and _let_in(route, there)
        else:
            assert may in (ROWS, FREE)
            right = _let_in(route, elsewhere) and _let_in(route, there)
        if not right:
            wrong[route] = (elsewhere, there)
    assert not wrong


@pytest.mark.parametrize("binding", ["policy", "collection"])
def test_bound_key_sees_only_its_own_rows(site: Site, binding: str) -> None:
    own, others = "other", {"policy": "default", "collection": "party"}[binding]
    for route in ROUTES:
        if getattr(ACCESS[route], binding) == ROWS:
            rows = site.ask(route, f"admin-{binding}-other").json()
            told = {row.get(binding, row.get("name")) for row in rows}
            assert told <= {own}, route
            rows = site.ask(route, f"admin-{binding}-here").json()
            assert {row.get(binding, row.get("name")) for row in rows} <= {others}, route


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_history_of_an_erased_user_is_gone_and_hides_the_erasure_from_a_bound_key(site: Site, method: str) -> None:
    site.accountant.erase("quinn", unknown=True)
    told = {}
    for secret in ("admin", "admin-policy-other", "admin-collection-other"):
        bearer = {"Authorization": f"Bearer {site.secrets[secret]}"}
        if method == "GET":
            answer = site.client.get("/v1/users/quinn/history", headers=bearer)
        else:
            answer = site.client.post("/v1/users:history", headers=bearer, json={"user": "quinn"})
        told[secret] = answer.status_code, answer.json()
    status, problem = told.pop("admin")
    assert (status, problem["type"], problem["user"]) == (410, "/problems/user-erased", "quinn")
    assert set(map(str, told.values())) == {"(200, [])"}


@pytest.mark.parametrize("bound", ["admin-policy-other", "admin-collection-other"])
def test_batch_checks_the_bounds_of_each_line(site: Site, bound: str) -> None:
    [line] = site.ask(("POST", "/v1/spends:batch"), bound).text.splitlines()
    assert '"/problems/forbidden"' in line


def test_invitation_opens_its_report_and_page_only(site: Site) -> None:
    for route in ROUTES:
        status = site.ask(route, "invitation").status_code
        if ACCESS[route].scope in (OPEN, INVITED):
            assert status == (404 if route in NOT_PUBLISHED else 200), route
        elif route == ("POST", "/v1/collections/{name}/reports"):
            assert status == 403  # under another key than the invitation's
        else:
            assert status == 401, route
