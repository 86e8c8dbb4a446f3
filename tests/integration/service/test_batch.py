"""`POST /v1/spends:batch`: at most 10,000 lines, with a result for each line, in order."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

from ldp_budget import Accountant, Limit
from ldp_budget_service.api.schemas import MOST_BYTES, MOST_LINES
from ldp_budget_service.settings import Settings
from service_farm import HOST, PATIENCE, Answer
from service_threads import Served

OUE = {"name": "oue", "epsilon": "1", "domain_size": 7}


@pytest.fixture
def served() -> Iterator[Served]:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon=2)])
        accountant.set_policy("strict", [Limit("lifetime", epsilon="0.5")])
        with Served(accountant, Settings(body_seconds=0.5)) as made:
            yield made


def body(*rows: Any) -> bytes:
    return b"".join(row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows)


def users(count: int, first: int = 0) -> list[dict[str, Any]]:
    """A line for each of so many users."""
    return [{"user": f"u{number}", "mechanism": OUE} for number in range(first, first + count)]


def ask(served: Served, content: bytes, secret: str, key: str | None = "batch") -> Answer:
    headers = {"Content_Type": "application/x-ndjson"} | ({} if key is None else {"Idempotency_Key": key})
    return served.ask("POST", "/v1/spends:batch", content, secret, **headers)


def results(served: Served, content: bytes, secret: str, key: str | None = "batch") -> list[dict[str, Any]]:
    """The lines of a response to a batch that is accepted."""
    answer = ask(served, content, secret, key)
    assert answer.status == 200, answer.body
    assert answer.headers["Content-Type"].startswith("application/x-ndjson")
    assert "Journal-Position" in answer.headers
    return [json.loads(line) for line in answer.body.splitlines()]


def problem(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json()["type"].rpartition("/")[2]


def charged(served: Served) -> int:
    count: int = served.accountant.stats()["entries_by_kind"].get("spent", 0)
    return count


def begin(served: Served, secret: str, content: bytes, key: str = "batch", more: int = 1) -> socket.socket:
    """Send the head of a batch and a part of its body, of which `more` bytes do not follow."""
    line = socket.create_connection((HOST, served.port), timeout=PATIENCE)
    head = f"POST /v1/spends:batch HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {secret}\r\n"
    length = f"Idempotency-Key: {key}\r\nContent-Length: {len(content) + more}\r\n\r\n"
    line.sendall((head + length).encode() + content)
    return line


# -- lines ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["batch", None])
def test_batch_lines_are_counted_as_spends_are(served: Served, key: str | None) -> None:
    """The metrics, and the alert rules on them, use these numbers."""
    asked, secret = served.app.state.metrics.asked, served.secret("spend")
    before = asked()
    rows = [{"user": "counted", "mechanism": OUE, "reports": reports} for reports in (1, 1000)]
    lines = rows if key is not None else [{**row, "key": str(place)} for place, row in enumerate(rows)]
    content = body(*lines, {"user": "counted", "mechanism": {"name": "nothing"}})
    for _ in range(2):
        results(served, content, secret, key)
    assert {name: number - before.get(name, 0) for name, number in asked().items()} == {
        **dict.fromkeys(before, 0),
        **{"spent": 1, "refused": 1, "repeated": 2},
    }


@pytest.mark.parametrize("key", ["batch", None])
@pytest.mark.parametrize("count", [1, 20])
def test_batch_position_covers_its_own_charges(served: Served, key: str | None, count: int) -> None:
    """It was the position before the batch, so a read at `min_position` could miss the charges."""
    lines = [{**row, **({} if key else {"key": "k"})} for row in users(count)]
    answer = ask(served, body(*lines), served.secret("spend"), key)
    newest = max(row["entry"] for user in lines for row in served.accountant.history(user["user"]))
    partition, _, entry = answer.headers["Journal-Position"].partition(":")
    assert (partition, int(entry) >= newest) == ("0", True)


# -- limits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["batch", None])
def test_batch_of_10001_lines_is_refused_and_charges_nothing(served: Served, key: str | None) -> None:
    answer = ask(served, body(*users(MOST_LINES + 1)), served.secret("spend"), key)
    assert problem(answer) == (413, "too-large")
    assert "at most 10000 lines: got 10001" in answer.json()["detail"]
    assert charged(served) == 0


def test_batch_of_too_many_bytes_is_refused_and_charges_nothing(served: Served) -> None:
    filled = body(*users(10))
    secret = served.secret("spend")
    assert problem(ask(served, filled + b" " * (MOST_BYTES + 1 - len(filled)), secret)) == (413, "too-large")
    assert charged(served) == 0
    assert len(results(served, filled + b" " * (MOST_BYTES - len(filled)), secret)) == 10


def test_batch_whose_body_does_not_arrive_in_time_is_refused_and_charges_nothing(served: Served) -> None:
    """Without a limit, slow clients could hold a connection and 8 MiB each for ever."""
    secret = served.secret("spend")
    with closing(begin(served, secret, body(*users(3)))) as line:
        told = line.makefile("rb").read()
    assert b" 408 " in told.partition(b"\r\n")[0]
    assert b"slow-request" in told
    assert charged(served) == 0
    assert len(results(served, body(*users(3)), secret)) == 3


def test_batch_whose_connection_breaks_off_charges_nothing(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    secret = served.secret("spend")
    begin(served, secret, body(*users(3))).close()
    assert [each["repeated"] for each in results(served, body(*users(3)), secret)] == [False] * 3
    assert charged(served) == 3
    assert "Traceback" not in caplog.text
