"""Requests are read strictly: nothing in them is guessed or ignored, and each error has the code of its cause."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
from fastapi.testclient import TestClient

from ldp_budget import Accountant
from ldp_budget_service import create_app
from ldp_budget_service.api_keys import ApiKeys

OUE = {"name": "oue", "epsilon": "1", "domain_size": 7}
CHARGE = {"user": "alice", "mechanism": OUE}


class Clock:
    """A clock with a time that the test sets."""

    now = datetime(2026, 11, 21, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def client(clock: Clock) -> Iterator[TestClient]:
    with Accountant(":memory:", clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        secret = ApiKeys(accountant).create("tests", ["admin"])[1]
        with TestClient(create_app(accountant), headers={"Authorization": f"Bearer {secret}"}) as made:
            yield made


def problem(client: TestClient, path: str, body: Any = None, content: bytes | None = None, **headers: str) -> Any:
    """The problem that a request gets."""
    if content is not None:
        headers["Content-Type"] = "application/json"
    given = {"content": content} if content is not None else {"json": body}
    answer = client.post(path, **given, headers={"Idempotency-Key": "k", **headers})
    found = answer.json()
    return answer.status_code, found["type"].rpartition("/")[2], found


# -- codes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "option", "expected", "found"),
    [
        ("/v1/spends", {**CHARGE, "reports": 0}, "reports", "a number >= 1", "0"),
        ("/v1/spends", {"mechanism": OUE}, "user", "given", None),
        ("/v1/reservations", {**CHARGE, "expires": -5}, "expires", "a number > 0", "-5"),
        ("/v1/spends", {**CHARGE, "dry_run": "perhaps"}, "dry_run", "true or false", "'perhaps'"),
        ("/v1/reservations", {**CHARGE, "expires": "soon"}, "expires", "a number", "'soon'"),
        ("/v1/spends", {**CHARGE, "user": 7}, "user", "a string", "7"),
    ],
)
def test_parameter_outside_its_range_is_invalid_parameter(
    client: TestClient, path: str, body: Any, option: str, expected: str, found: str | None
) -> None:
    """They were `malformed`, without the option: the reference of errors says otherwise."""
    status, code, said = problem(client, path, body)
    assert (status, code) == (400, "invalid-parameter")
    assert (said["option"], said["expected"], said["found"]) == (option, expected, found)
    assert said["detail"] == (
        f"{option} is missing" if found is None else f"{option} must be {expected}: got {found}"
    )


def test_missing_idempotency_key_is_invalid_parameter(client: TestClient) -> None:
    for headers in ({}, {"Idempotency-Key": ""}):
        answer = client.post("/v1/spends", json=CHARGE, headers=headers)
        assert (answer.status_code, answer.json()["type"]) == (400, "/problems/invalid-parameter")
        assert answer.json()["option"] == "Idempotency-Key"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[]", "the body must be a JSON object: got []"),
        (b"7", "the body must be a JSON object: got 7"),
        (b"", "the body is missing: it must be a JSON object"),
        (b'{"user": "\xff"}', "the body must be UTF-8: got another byte at position 10"),
        (b"[" * 100_000, "the body is nested too deeply. Send lists and objects in fewer levels."),
        (b'{"user": 1', "The body is not valid JSON: expecting ',' delimiter at position 10."),
        (b'{"user": "h", "user": "g"}', "the body has the member 'user' more than once. Send it once."),
    ],
)
def test_body_that_is_no_object_is_malformed_and_says_why(client: TestClient, content: bytes, said: str) -> None:
    status, code, found = problem(client, "/v1/spends", content=content)
    assert (status, code, found["detail"]) == (400, "malformed", said)


def test_member_unknown_is_malformed(client: TestClient) -> None:
    status, code, said = problem(client, "/v1/spends", {**CHARGE, "nonsense": 1})
    assert (status, code) == (400, "malformed")
    assert said["detail"] == "nonsense must be left out, because this request has no such member: got 1"


# -- strictness ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b'{"user": "h3", "user": "g3", "mechanism": {"name": "oue", "epsilon": "1", "domain_size": 7}}',
        b'{"user": "h3", "mechanism": {"name": "oue", "epsilon": "1", "epsilon": "0.1", "domain_size": 7}}',
    ],
)
def test_repeated_member_charges_no_user(client: TestClient, content: bytes) -> None:
    """The last one counted: a proxy that checks the first one would see another user."""
    assert problem(client, "/v1/spends", content=content)[:2] == (400, "malformed")
    answer = client.post("/v1/spends:batch", content=content, headers={"Idempotency-Key": "k"})
    assert answer.json()["problem"]["type"] == "/problems/malformed"
    assert client.app.state.accountant.history("g3") == []  # type: ignore[attr-defined]


def test_query_parameter_unknown_is_refused(client: TestClient) -> None:
    answer = client.get("/v1/users/alice/balance?polcy=zz")
    assert (answer.status_code, answer.json()["type"]) == (400, "/problems/malformed")
    assert answer.json()["detail"] == (
        "'polcy' must be left out of the query, which has only min_position, policy: got 'zz'"
    )
    assert client.get("/livez?probe=1").status_code == 200


# -- words ---------------------------------------------------------------------------------------------------------


def test_bound_key_is_told_what_to_name(client: TestClient) -> None:
    accountant = client.app.state.accountant  # type: ignore[attr-defined]
    secret = ApiKeys(accountant).create("bound", ["spend"], collections=["mood"])[1]
    status, code, said = problem(client, "/v1/spends", CHARGE, Authorization=f"Bearer {secret}")
    assert (status, code) == (403, "forbidden")
    assert said["detail"].endswith('this request names no collection. Name one: "collection": "mood".')


def test_key_without_the_scope_is_told_its_scopes_and_the_remedy(client: TestClient) -> None:
    accountant = client.app.state.accountant  # type: ignore[attr-defined]
    secret = ApiKeys(accountant).create("reader", ["read"])[1]
    detail = problem(client, "/v1/spends", CHARGE, Authorization=f"Bearer {secret}")[2]["detail"]
    assert "lacks the scope spend: it has read. " in detail
    assert detail.endswith("ldp-budget api-key create NAME --scope spend")


def test_secret_of_an_ended_key_is_told_when_it_ended(client: TestClient, clock: Clock) -> None:
    accountant = client.app.state.accountant  # type: ignore[attr-defined]
    keys, now = ApiKeys(accountant), accountant.now()
    expired = keys.create("expired", ["spend"], expires=now + timedelta(seconds=5))[1]
    pending = keys.create("pending", ["spend"], starts=now + timedelta(days=5))[1]
    revoked = keys.create("revoked", ["spend"])[1]
    keys.revoke("revoked")
    clock.now += timedelta(seconds=10)
    said = [
        problem(client, "/v1/spends", CHARGE, Authorization=f"Bearer {secret}")[2]["detail"]
        for secret in (expired, pending, revoked, expired[:-1])
    ]
    assert said[0].startswith(f"this API key expired at {now + timedelta(seconds=5):%Y-%m-%dT%H:%M:%SZ}. ")
    assert said[1].startswith("this API key is valid from ")
    assert said[2].startswith("this API key was revoked at ")
    assert said[3].startswith("the API key is missing, unknown or no longer valid.")
