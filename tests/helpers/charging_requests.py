"""Requests to the two routes that charge, good ones and bad ones, and what the service answered and logged.

`python tests/helpers/charging_requests.py` records the answers again. They were first recorded when FastAPI handled
these routes, so the plain ASGI handlers answer, count and log as it did.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from prometheus_client import generate_latest

from ldp_budget import Accountant, mechanism
from ldp_budget.ledger.sqlite import SqliteStore
from ldp_budget.registry.collections import Collection
from ldp_budget_service import Settings, create_app
from ldp_budget_service.api_keys import ApiKeys

FILE = Path(__file__).parents[1] / "data" / "charging_answers.json"

NOW = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
SPENDS, BATCH = "/v1/spends", "/v1/spends:batch"
MOST_BYTES = 3000
GOOD = {"user": "alice", "mechanism": {"name": "oue", "epsilon": "0.01", "domain_size": 3}}
GONE = None
"""In place of a part of the body: the client disconnects."""


class Asked(NamedTuple):
    """A request, with the parts of its body as they arrive."""

    path: str = SPENDS
    method: str = "POST"
    query: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    parts: tuple[bytes | None, ...] = (b"",)


def with_members(**members: Any) -> bytes:
    """The good body with these members; those that are `...` are left out."""
    return json.dumps({name: value for name, value in {**GOOD, **members}.items() if value is not ...}).encode()


COLLECTION = {"mechanism": ..., "collection": "party"}
DEEP = 30_000
BODIES = (
    with_members(),
    with_members(user="bob", reports=2, note="a note", policy="default", label="one"),
    with_members(user="carol", **COLLECTION),
    with_members(user="carol", collection="party"),
    with_members(user="carol", collection="party", mechanism={"name": "oue", "epsilon": "1", "domain_size": 3}),
    with_members(user="carol", collection="unknown"),
    with_members(user="carol", mechanism=..., collection="unknown"),
    with_members(mechanism=...),
    with_members(mechanism={"name": "oue", "epsilon": "3", "domain_size": 3}),
    with_members(mechanism={"name": "gaussian", "epsilon": "0.5", "delta": "1e-7", "sensitivity": 1}),
    with_members(mechanism={"name": "loloha", "epsilon_lifetime": 1, "epsilon_first": 0.5, "domain_size": 4}),
    with_members(mechanism={"name": "memoized", "epsilon": 1}),
    with_members(mechanism={"name": "oue"}),
    with_members(mechanism={"name": "oue", "epsilon": True, "domain_size": 3}),
    with_members(mechanism={"name": "oue", "epsilon": [1], "domain_size": 3}),
    with_members(mechanism={"name": "oue", "epsilon": "x" * 80, "domain_size": 3}),
    with_members(mechanism={}),
    with_members(mechanism="oue"),
    with_members(mechanism=[GOOD["mechanism"]]),
    with_members(policy="narrow", user="dora"),
    with_members(policy="nowhere"),
    with_members(policy=""),
    with_members(policy=None),
    with_members(user=...),
    with_members(user=""),
    with_members(user=7),
    with_members(user=None),
    with_members(user="한글 \u2028 é"),
    with_members(user="gone"),
    with_members(user="x" * 2000),
    with_members(reports=0),
    with_members(reports=10**9 + 1),
    with_members(reports=10**400),
    with_members(reports=1.0),
    with_members(reports=True),
    with_members(reports="2"),
    with_members(reports=10**6),
    with_members(label=""),
    with_members(label=3),
    with_members(digest="AB12", user="erin"),
    with_members(digest="xyz"),
    with_members(note=""),
    with_members(note="two\nlines"),
    with_members(at_least=[10**7, 0, None, 0], user="erin"),
    with_members(at_least=[10**9, 0, 0, 0]),
    with_members(at_least=[1, 2]),
    with_members(at_least=[-1, 0, 0, 0]),
    with_members(at_least=[True, 0, 0, 0]),
    with_members(at_least="none"),
    with_members(dry_run=True),
    with_members(dry_run=True, user="frank", mechanism=..., collection="party"),
    with_members(dry_run="true"),
    with_members(dry_run=1),
    with_members(other=1),
    with_members(other=1, reports=0, user=7),
    b'{"user": "alice", "user": "bob", "mechanism": {"name": "oue", "epsilon": "0.01", "domain_size": 3}}',
    b'{"user": "alice", "mechanism": {"name": "oue", "epsilon": 1, "epsilon": "0.01", "domain_size": 3}}',
    b'{"user": "a:b", "mechanism": {"name": "oue", "epsilon": "0.01", "domain_size": 3}, "note": "a: b"}',
    b'{"user": "\\ud800", "mechanism": {"name": "oue", "epsilon": "0.01", "domain_size": 3}}',
    b'{"user": "alice", "mechanism": {"name": "oue", "epsilon": NaN, "domain_size": 3}}',
    b'{"user": "alice", "mechanism": {"name": "oue", "epsilon": 1e999, "domain_size": 3}}',
    b'{"user": "alice", "reports": ' + b"9" * 2500 + b"}",
    b'{"user": "alice", "mechanism": {"name": "oue", "epsilon": 0.01, "domain_size": 3e0}}',
    b'\t{ "user" :"zoe","mechanism":{"name":"oue","epsilon":1e-2,"domain_size":3} }\r\n',
    b"\xef\xbb\xbf" + with_members(),
    b'{"user": "\xff"}',
    b"{\xe9}",
    b"",
    b"   ",
    b"{",
    b"{}",
    b"[]",
    b"null",
    b"true",
    b"7",
    b'"text"',
    b"[{}]",
    b'{"user": "alice",}',
    b"{'user': 'alice'}",
    b'{"user": "a\tb"}',
    b"{}{}",
    b'{"user": "alice", "mechanism": ' + b"[" * 1200 + b"]" * 1200 + b"}",
    b"[" * 2900,
    b"x" * (MOST_BYTES + 1),
)
CONTENT_TYPES = (
    "application/json",
    "application/json; charset=utf-8",
    "application/vnd.api+json",
    "APPLICATION/JSON",
    "application/jsonx",
    "application/json-seq",
    "application/x-ndjson",
    "text/json",
    "application/x-www-form-urlencoded",
    "json",
    "/",
    None,
    "",
)
WHO = ("admin", "spender", "bound", "collecting", "reader", "revoked", "expired", "pending", "unknown", "invited")
QUERIES = (b"", b"x=1", b"x", b"dry_run=true", b"x=%ff", b"&", b"user=alice&user=bob")
PATHS = (
    *(SPENDS, SPENDS + "/", "/v1//spends", "/V1/spends", "/v1/spend%73", "/v1/spends%3Fx", "/v1/spends%3Abatch"),
    *(BATCH, BATCH + "/", "/v1/spends:Batch", "//v1/spends"),
)
METHODS = ("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "BREW", "post")
KEYS = ("", " ", "k" * 2000, "a b", "x" * 200, "sha256:0", "tab\there")


def _line(**members: Any) -> bytes:
    return with_members(**members)


LINES = (
    *(body.replace(b"\n", b" ") for body in BODIES),
    _line(key="own"),
    _line(key="own"),
    _line(key="own", user="other"),
    _line(key="own", reports=2),
    _line(key=3),
    _line(key=""),
    _line(user="grace", key="refused", mechanism={"name": "oue", "epsilon": "3", "domain_size": 3}),
    _line(user="grace", key="labelled", label="x"),
    b"\r",
    b"7",
)
PLAIN = tuple(
    json.dumps({"user": f"user {number}", "mechanism": GOOD["mechanism"], "key": f"line {number}"}).encode()
    for number in range(40)
)


def requests(secrets: dict[str, str]) -> Iterator[Asked]:
    """Every request, in order: those that a change of one thing makes of a good one, and a seeded sample of the rest."""
    number = count()

    def asked(
        who: str | None = "spender",
        key: str | None = ...,  # type: ignore[assignment]
        kind: str | None = "application/json",
        parts: tuple[bytes | None, ...] = (BODIES[0],),
        more: tuple[tuple[str, str], ...] = (),
        **rest: Any,
    ) -> Asked:
        key = f"key {next(number)}" if key is ... else key
        headers = [("host", "budget.example")]
        headers += [] if who is None else [("authorization", f"Bearer {secrets[who]}")]
        headers += [] if key is None else [("idempotency-key", key)]
        headers += [] if kind is None else [("content-type", kind)]
        return Asked(headers=(*headers, *more), parts=parts, **rest)

    for path in (SPENDS, BATCH):
        lines = (b"\n".join(PLAIN[:3]) if path == BATCH else BODIES[0],)
        yield from (asked(who, path=path, parts=lines) for who in (*WHO, None))
        yield from (asked(path=path, query=query, parts=lines) for query in QUERIES)
        yield from (asked(path=path, method=method, parts=lines) for method in METHODS)
        yield from (asked(path=path, key=key, parts=lines) for key in (*KEYS, None))
        yield from (asked(path=path, kind=kind, parts=lines) for kind in CONTENT_TYPES)
        for name, value in (
            *(("authorization", "Basic YTpi"), ("authorization", "bearer"), ("idempotency-key", "second")),
            *(("content-type", "text/plain"), ("idempotency-key", "ü"), ("content-length", str(MOST_BYTES + 1))),
            *(("content-length", "x"), ("x-request-id", "0123456789abcdef"), ("x-user", "bob"), ("x-user", "\xff")),
        ):
            who = None if name == "authorization" else "spender"
            yield asked(who, path=path, parts=lines, more=((name, value),))
        yield asked(None, path=path, parts=lines, more=(("authorization", f"bearer {secrets['spender']}"),))
        yield asked(None, path=path, parts=lines, more=(("authorization", f"Bearer  {secrets['spender']}"),))
        whole = lines[0]
        yield asked(path=path, parts=(whole[:20], whole[20:40], b"", whole[40:]))
        yield asked(path=path, parts=(b"", whole))
        yield asked(path=path, parts=(GONE,))
        yield asked(path=path, parts=(whole[:20], GONE))
        yield asked(path=path, parts=(b"x" * 2000, b"x" * 2000, b"x" * 2000))
        yield asked("unknown", path=path, parts=(b"x" * 5000,))
    yield from (asked(path=path) for path in PATHS)
    yield from (asked(path=path, method=method) for path in PATHS for method in ("OPTIONS", "GET"))
    for body in BODIES:
        yield asked(parts=(body,))
        yield asked("bound", parts=(body,))
    yield from (asked(key="again", parts=(body,)) for body in (*BODIES[:3], BODIES[0]))
    refused = with_members(user="heidi", mechanism={"name": "oue", "epsilon": "3", "domain_size": 3})
    yield from (asked(who, key="again", parts=(refused,)) for who in ("spender", "spender", "bound", "bound"))
    for who in ("spender", "bound", "collecting"):
        for key in (None, "batch"):
            yield asked(who, path=BATCH, key=key, parts=(b"\n".join(LINES),))
        yield asked(who, path=BATCH, key="batch", parts=(b"\n".join(LINES[:3]),))
    plain = b"\n".join(PLAIN)
    yield asked(path=BATCH, key=None, parts=(plain[:700], plain[700:701], plain[701:]))
    yield asked(path=BATCH, key=None, parts=(plain,))
    yield asked(path=BATCH, key="end", parts=(b"",))
    yield asked(path=BATCH, key=None, parts=(b"\n \n\n",))
    yield asked(path=BATCH, key="ends", parts=(b"\n" * 20_001,))
    yield asked(path=BATCH, key="lines", parts=(b"7\n" * 10_001,))
    yield asked(path=BATCH, key="long", parts=(b'"' + b"x" * (1 << 18) + b'"\n' + BODIES[0],))
    yield asked(path=BATCH, key="bytes", parts=(b"x" * (8 << 20), b"x"))
    chosen = random.Random(20261128)
    for _ in range(400):
        path = chosen.choice((SPENDS, SPENDS, BATCH))
        body = chosen.choice(BODIES) if path == SPENDS else b"\n".join(chosen.sample(LINES, 3))
        cut = chosen.randrange(len(body) + 1)
        yield asked(
            chosen.choice((*WHO, *["spender"] * 8, None)),
            chosen.choice((None, "shared", f"generated {next(number)}", f"generated {next(number)}")),
            chosen.choice(("application/json",) * 6 + CONTENT_TYPES),
            chosen.choice(((body,), (body,), (body,), (body[:cut], body[cut:]), (body[:cut], GONE))),
            path=path,
            query=chosen.choice((b"",) * 8 + QUERIES),
        )


def opened(now: list[datetime]) -> tuple[Accountant, dict[str, str]]:
    """A ledger of a fixed key, and a secret for each kind of caller."""
    store = SqliteStore(":memory:", create=True, secret=bytes(range(32)), sandbox=False, ledger_id="0" * 16)
    accountant = Accountant(store, clock=lambda: now[0])
    oue = mechanism("oue")(epsilon="1", domain_size=3)
    accountant.set_policy("default", ["lifetime=2.5,1e-6,zcdp", "day=2", "month=100,1e-5,renyi"])
    accountant.set_policy("narrow", ["lifetime=0.02"])
    accountant.add_collection(Collection("party", oue))
    accountant.spend("gone", oue, key="k")
    accountant.erase("gone")
    keys, soon, made = ApiKeys(accountant), now[0] + timedelta(hours=1), count()
    with mock.patch(
        "ldp_budget_service.api_keys.secrets.token_urlsafe", side_effect=lambda size: f"example-{next(made)}"
    ):
        secrets = {name: keys.create(name, ["spend"])[1] for name in ("spender", "revoked")}
        secrets["admin"] = keys.create("admin", ["admin"])[1]
        secrets["reader"] = keys.create("reader", ["read"])[1]
        secrets["bound"] = keys.create("bound", ["spend"], policies=["default"])[1]
        secrets["collecting"] = keys.create("collecting", ["spend"], collections=["party"])[1]
        secrets["expired"] = keys.create("expired", ["spend"], expires=soon)[1]
        secrets["pending"] = keys.create("pending", ["spend"], starts=soon + timedelta(hours=9))[1]
    keys.revoke("revoked")
    now[0] = soon + timedelta(minutes=1)
    return accountant, {**secrets, "unknown": "ldpb_unknown", "invited": "invitation"}


def play() -> dict[str, Any]:
    """Every answer and log line in order, and the metrics at the end."""
    accountant, secrets = opened([NOW])
    settings = Settings(most_bytes=MOST_BYTES, address_rate=0, threads=4)
    lines: list[dict[str, Any]] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(vars(record).get("said", {}))  # type: ignore[method-assign]
    logger = logging.getLogger("ldp_budget_service.requests")
    level, propagate = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        with accountant:
            app = create_app(accountant, settings)
            answers = asyncio.run(_answers(app, list(requests(secrets))))
            registry = app.state.metrics.registry
            shown = generate_latest(registry).decode().splitlines()
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate
    logged = [[line["method"], line["route"], line["status"], line["caller"], line["code"]] for line in lines]
    counted = ("ldp_budget_http_requests_total", "ldp_budget_problems_total", "ldp_budget_key_requests_total")
    counted += ("ldp_budget_charges_total", "ldp_budget_refusals_total")
    rows = sorted(line for line in shown if line.startswith(counted))
    return {"answers": [[*answer, *line] for answer, line in zip(answers, logged, strict=True)], "metrics": rows}


async def _answers(app: Any, many: list[Asked]) -> list[list[Any]]:
    return [await _answer(app, asked) for asked in many]


async def _answer(app: Any, asked: Asked) -> list[Any]:
    """The status, the headers and the body of one request."""
    waiting = list(asked.parts)
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        part = waiting.pop(0) if waiting else GONE
        if part is GONE:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": bool(waiting)}

    async def send(message: Any) -> None:
        sent.append(message)

    raw = asked.path.encode()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "server": ("127.0.0.1", 80),
        "client": ("192.0.2.7", 999),
        "scheme": "http",
        "method": asked.method,
        "root_path": "",
        "path": raw.replace(b"%73", b"s").replace(b"%3A", b":").replace(b"%3F", b"?").decode(),
        "raw_path": raw,
        "query_string": asked.query,
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in asked.headers],
        "state": {},
    }
    await app(scope, receive, send)
    start, body = sent[0], b"".join(message.get("body", b"") for message in sent[1:])
    # The order of the headers means nothing.
    headers = sorted(f"{name.decode()}: {value.decode()}" for name, value in start["headers"])
    given = any(name == "x-request-id" for name, _ in asked.headers)
    shown = [line for line in headers if given or not line.startswith("x-request-id: ")]
    text = body.decode()
    if len(text) > LONG:
        text = f"{text[:80]}… {sha256(body).hexdigest()}"
    return [start["status"], [line for line in shown if line not in DEFAULT], text]


LONG = 400
"""A longer body is recorded by its beginning and its hash."""


DEFAULT = {
    "cache-control: no-store",
    "content-security-policy: default-src 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy: same-origin",
    "cross-origin-resource-policy: same-origin",
    "referrer-policy: no-referrer",
    "x-content-type-options: nosniff",
}
"""Headers of every answer, which the file leaves out; `test_headers` of the middleware has them."""


def main() -> None:
    """Write the file, one answer a line."""
    found = {name: ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) for name, rows in play().items()}
    FILE.write_text(
        f'{{"answers": [\n{found["answers"]}\n],\n"metrics": [\n{found["metrics"]}\n]}}\n', encoding="utf-8"
    )


if __name__ == "__main__":
    sys.exit(main())
