"""Bodies of batches: their lines and bytes are bounded, and no thread but one of the pool reads them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
from fastapi.testclient import TestClient

from ldp_budget import Accountant, Collection, mechanism
from ldp_budget_service import create_app, json_bodies, request_limits, schemas
from ldp_budget_service.api.schemas import MOST_LINES
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_service.routes import spends

LINE = json.dumps({"user": "alice", "mechanism": {"name": "rr", "epsilon": "0.1"}}).encode()


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=4000"])
        secret = ApiKeys(accountant).create("tests", ["admin"])[1]
        with TestClient(create_app(accountant), headers={"Authorization": f"Bearer {secret}"}) as made:
            yield made


def sent(client: TestClient, body: bytes, key: str) -> Any:
    return client.post("/v1/spends:batch", content=body, headers={"Idempotency-Key": key})


@pytest.mark.parametrize("line", [b"", b" ", b"1", b"{}", b"\r"])
def test_batch_with_too_many_line_ends_is_refused_before_it_is_split(
    client: TestClient, line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """8 MiB of blank lines blocked the event loop for a second and took 250 MB."""
    monkeypatch.setattr(spends, "_lines_in", lambda body: pytest.fail("the body was split"))
    answer = sent(client, (line + b"\n") * (2 * MOST_LINES + 1), "ends")
    assert (answer.status_code, answer.json()["type"]) == (413, "/problems/too-large")


COIN = {"name": "rr", "epsilon": "0.1"}


def body_of(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def rows_of(answer: Any) -> list[dict[str, Any]]:
    return [json.loads(row) for row in answer.text.splitlines()]


def test_common_members_sent_once_make_the_same_batch(client: TestClient) -> None:
    names = [f"common {number}" for number in range(5)]
    shared = {"mechanism": COIN, "policy": "default", "note": "weekly"}
    short = sent(client, body_of({"common": shared}, *({"user": name} for name in names)), "common")
    assert [(row["line"], row["status"], row["repeated"]) for row in rows_of(short)] == [
        (number, "spent", False) for number in range(2, 7)
    ]
    long = sent(client, body_of(*({"user": name, **shared} for name in names)), "common")
    assert [(row["line"], row["repeated"]) for row in rows_of(long)] == [(number, True) for number in range(1, 6)]


def test_line_may_add_members_to_the_common_ones_and_not_repeat_them(client: TestClient) -> None:
    rows = [
        {"user": "ada"},
        {"user": "ada", "reports": 2},
        {"user": "ada", "mechanism": COIN},
        {"user": "ada", "policy": "x"},
        {},
        {"user": "ada", "key": "k"},
        {"user": "ada", "strange": 1},
        {"common": {}, "user": "ada"},
    ]
    answer = sent(client, body_of({"common": {"mechanism": COIN}}, *rows), "more")
    found = [row["status"] for row in rows_of(answer)]
    assert found == ["spent", "spent", "failed", "failed", *["failed"] * 4]


def test_common_members_with_keys_in_the_lines(client: TestClient) -> None:
    rows = [{"user": "eve", "key": "1"}, {"user": "eve", "key": "1"}, {"user": "eve"}]
    answer = client.post("/v1/spends:batch", content=body_of({"common": {"mechanism": COIN}}, *rows))
    assert [row.get("repeated") for row in rows_of(answer)] == [False, True, None]


@pytest.mark.parametrize(
    "first",
    [
        {"common": {}, "more": 1},
        {"common": []},
        {"common": None},
        {"common": {"user": "a"}},
        {"common": {"key": "a"}},
    ],
)
def test_wrong_common_line_is_refused_and_charges_nothing(client: TestClient, first: Any) -> None:
    answer = sent(client, body_of(first, {"user": "zoe", "mechanism": COIN}), "wrong")
    assert (answer.status_code, answer.json()["type"]) == (400, "/problems/malformed")
    assert sent(client, body_of({"user": "zoe", "mechanism": COIN}), "wrong").status_code == 200


def test_line_that_is_too_long_has_a_problem_and_the_others_are_charged(client: TestClient) -> None:
    long = b'{"user": "bob", "note": "' + b"x" * spends.MOST_LINE_BYTES + b'"}'
    rows = [json.loads(row) for row in sent(client, LINE + b"\n" + long, "long").text.splitlines()]
    assert [row["status"] for row in rows] == ["spent", "failed"]
    assert rows[1]["problem"]["type"] == "/problems/too-large"


def test_batches_that_take_too_much_memory_together_are_refused(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_limits, "MOST_BATCH_BYTES", len(LINE) - 1)
    answer = sent(client, LINE, "memory")
    assert (answer.status_code, answer.json()["type"]) == (503, "/problems/overloaded")
    assert int(answer.headers["Retry-After"]) >= 1
    monkeypatch.undo()
    assert sent(client, LINE, "memory").status_code == 200


def test_error_of_a_line_does_not_keep_its_content() -> None:
    """33 lines of 80,000 members took 400 MB: each error held the line that it was raised for."""

    reader = spends._Lines(None, False)  # type: ignore[arg-type]
    error = reader.read(b'{"user": "a", "x": [1, 2, 3]}')
    assert error.__traceback__ is error.__context__ is error.__cause__ is None  # type: ignore[union-attr]


@pytest.mark.parametrize("size", [json_bodies.SMALL_BYTES, 10 * json_bodies.SMALL_BYTES])
def test_large_body_is_parsed_outside_of_the_event_loop(
    client: TestClient, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    parse = json_bodies.parsed

    def noted(body: bytes) -> Any:
        threads.append(threading.current_thread().name)
        return parse(body)

    monkeypatch.setattr(json_bodies, "parsed", noted)
    body = json.dumps({"users": ["u" * 100] * (size // 100)})
    assert client.post("/v1/balances", content=body, headers={"Content-Type": "application/json"}).status_code == 200
    assert threads
    assert all("worker" in name.lower() for name in threads), threads


# -- mechanisms ------------------------------------------------------------------------------------------------------


def table(answers: int) -> dict[str, Any]:
    return {
        "name": "matrix-substitution",
        "matrix": [
            [0.9 if row == column else 0.1 / (answers - 1) for column in range(answers)] for row in range(answers)
        ],
    }


@pytest.mark.parametrize("path", ["/v1/spends", "/v1/reservations", "/v1/collections"])
def test_mechanism_that_takes_long_to_make_is_refused(client: TestClient, path: str) -> None:
    """A table of 300 answers took seconds in the process of the service, with the scope `spend`."""
    named = {"name": "large"} if path.endswith("collections") else {"user": "alice"}
    answer = client.post(path, json={**named, "mechanism": table(80)}, headers={"Idempotency-Key": "large"})
    assert (answer.status_code, answer.json()["type"]) == (413, "/problems/too-large")


@pytest.mark.slow
def test_stored_collection_is_charged_by_its_own_large_mechanism(client: TestClient) -> None:
    """The client of the package sends the mechanism with the name of the collection."""
    accountant: Accountant = client.app.state.accountant  # type: ignore[attr-defined]
    accountant.add_collection(Collection("wide", mechanism("matrix-substitution")(matrix=table(70)["matrix"])))
    declared = accountant.collection("wide").mechanism.declared
    body = {"user": "alice", "collection": "wide", "mechanism": {"name": "matrix-substitution", **declared}}
    assert len(json.dumps(body)) > schemas.MOST_OPTION_BYTES
    assert client.post("/v1/spends", json=body, headers={"Idempotency-Key": "wide"}).status_code == 200
