"""`POST /v1/spends:batch` over real sockets: a line for each line, in order, while lines still come."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

from ldp_budget import Accountant, Limit, mechanism
from ldp_budget.accounting.api_keys import ApiKeys
from ldp_budget_service import ndjson_stream
from ldp_budget_service.settings import Settings
from service_farm import HOST, PATIENCE
from service_threads import Served

OUE = {"name": "oue", "epsilon": "1", "domain_size": 7}


@pytest.fixture
def served() -> Iterator[Served]:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon=2)])
        accountant.set_policy("strict", [Limit("lifetime", epsilon="0.5")])
        with Served(accountant, Settings(most_line=2000, body_seconds=1)) as made:
            yield made


def body(*rows: Any) -> bytes:
    return b"".join(row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows)


def ask(served: Served, content: bytes, key: str | None = "run", secret: str | None = None) -> list[dict[str, Any]]:
    headers = {"Content_Type": "application/x-ndjson"} | ({} if key is None else {"Idempotency_Key": key})
    answer = served.ask("POST", "/v1/spends:batch", content, secret or served.secret("spend"), **headers)
    assert answer.status == 200, answer.body
    assert answer.headers["Content-Type"].startswith("application/x-ndjson")
    assert "Journal-Position" in answer.headers
    return [json.loads(line) for line in answer.body.splitlines()]


class Stream:
    """A batch of which a part is sent at a time."""

    def __init__(self, served: Served, secret: str, key: str = "run") -> None:
        self._line = socket.create_connection((HOST, served.port), timeout=PATIENCE)
        self._file = self._line.makefile("rb")
        head = (
            f"POST /v1/spends:batch HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {secret}\r\n"
            + (f"Idempotency-Key: {key}\r\n" if key else "")
            + "Transfer-Encoding: chunked\r\n\r\n"
        )
        self._line.sendall(head.encode())
        self._begun = False

    def send(self, *rows: Any) -> None:
        content = body(*rows)
        self._line.sendall(f"{len(content):x}\r\n".encode() + content + b"\r\n")

    def end(self) -> None:
        self._line.sendall(b"0\r\n\r\n")

    def begins(self) -> bool:
        """Whether it is let in; reads the head of the answer."""
        status, self._begun = self._file.readline(), True
        while self._file.readline().strip():
            pass
        return b" 200 " in status

    def answers(self, count: int) -> list[dict[str, Any]]:
        """The next so many answers."""
        if not self._begun:
            self.begins()
        found: list[bytes] = []
        while len(found) < count:
            size = int(self._file.readline(), 16)
            if not size:
                break
            found += self._file.read(size).splitlines()
            self._file.readline()
        return [json.loads(line) for line in found]

    def rest(self) -> list[dict[str, Any]]:
        return self.answers(10**6)

    def close(self) -> None:
        self._file.close()
        self._line.close()


def test_each_line_has_an_answer_and_what_is_wrong_with_one_is_not_the_others(served: Served) -> None:
    told = ask(
        served,
        body(
            {"user": "a", "mechanism": OUE},
            b"nonsense\n",
            b"\n",
            {"user": "b", "mechanism": OUE, "policy": "none"},
            {"user": "b", "mechanism": OUE, "policy": "strict"},
            {"user": "c", "mechanism": OUE, "key": "k"},
            {"user": "", "mechanism": OUE},
            {"user": "d", "mechanism": {"name": "oue"}},
            {"user": "d", "mechanism": OUE, "nonsense": 1},
            {"user": "e" * 3000, "mechanism": OUE},
            b'{"user": "\xff"}\n',
            b"7\n",
            {"user": "a", "mechanism": OUE, "label": []},
            {"user": {}, "mechanism": OUE, "note": {}},
            {"user": "f", "mechanism": OUE, "reports": 2},
        ),
    )
    codes = [each.get("problem", {}).get("type", each["status"]).rpartition("/")[2] for each in told]
    assert codes == [
        "spent",
        "malformed",
        "unknown-name",
        "refused",
        "malformed",
        "invalid-parameter",
        "invalid-parameter",
        "malformed",
        "too-large",
        "malformed",
        "malformed",
        "invalid-parameter",
        "invalid-parameter",
        "spent",
    ]
    assert [each["line"] for each in told] == [1, 2, *range(4, 16)]
    refused = told[3]
    assert (refused["binding"], refused["affordable_reports"]) == (["lifetime"], 0)
    assert refused["limits"][0]["remaining"]["epsilon"] == 0.5


def test_answers_come_while_lines_still_do_and_again_for_the_same_key(served: Served) -> None:
    secret = served.secret("spend")
    stream = Stream(served, secret)
    for number in range(3):
        stream.send(*({"user": f"u{number}-{each}", "mechanism": OUE} for each in range(20)))
        assert [each["line"] for each in stream.answers(20)] == list(range(20 * number + 1, 20 * number + 21))
    stream.send(b'{"user": "a", "mech')
    stream.send(b'anism": ' + json.dumps(OUE).encode() + b"}")
    stream.end()
    [last] = stream.rest()
    assert (last["line"], last["status"], last["repeated"]) == (61, "spent", False)
    stream.close()
    rows = [{"user": f"u{number}-{each}", "mechanism": OUE} for number in range(3) for each in range(20)]
    rows.append({"user": "a", "mechanism": OUE})
    told = ask(served, body(*rows), secret=secret)
    assert [each["repeated"] for each in told] == [True] * 61
    assert served.accountant.stats()["entries_by_kind"]["spent"] == 61


def test_run_repeated_with_more_or_fewer_lines_is_a_conflict(served: Served) -> None:
    """A run of three lines was repeated with four, and the fourth user was charged; with two, it was answered."""
    secret = served.secret("spend")
    rows = [{"user": f"u{number}", "mechanism": OUE} for number in range(4)]
    ask(served, body(*rows[:3]), secret=secret)
    stream = Stream(served, secret, "by halves")
    for row in rows[:3]:
        stream.send(row)
        assert len(stream.answers(1)) == 1
    stream.end()
    assert stream.rest() == []
    stream.close()
    entries = served.accountant.stats()["entries"]
    for key in ("run", "by halves"):
        assert [each["status"] for each in ask(served, body(*rows[:3]), key, secret)] == ["spent"] * 3
        *_, last = ask(served, body(*rows), key, secret)
        assert (last["line"], last["problem"]["type"]) == (4, "/problems/key-conflict")
        *_, last = ask(served, body(*rows[:2]), key, secret)
        assert (last["line"], last["problem"]["type"]) == (2, "/problems/key-conflict")
        [nothing] = ask(served, b"", key, secret)
        assert (nothing["status"], nothing["problem"]["type"]) == ("failed", "/problems/key-conflict")
    assert served.accountant.stats()["entries"] == entries


def test_a_run_that_was_cut_off_is_run_again(served: Served) -> None:
    secret, rows = served.secret("spend"), [{"user": f"u{each}", "mechanism": OUE} for each in range(100)]
    stream = Stream(served, secret)
    stream.send(*rows[:50], b'{"user": "u5')
    assert len(stream.answers(50)) == 50
    stream.close()
    whole = body(*rows)  # beforehand, as the service does not wait for it
    with closing(begun(served, secret)) as stream:
        stream.send(whole)
        stream.end()
        told = stream.rest()
    assert [each["status"] for each in told] == ["spent"] * 100
    assert sum(not each["repeated"] for each in told) == 50
    assert served.accountant.stats()["entries_by_kind"]["spent"] == 100


def test_a_chunk_that_came_at_once_is_waited_for_when_it_trickles(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, rows = served.secret("spend"), [{"user": f"u{each}", "mechanism": OUE} for each in range(40)]
    assert len(ask(served, body(*rows), secret=secret)) == 40
    monkeypatch.setattr(ndjson_stream, "MOST_BYTES", 100)
    monkeypatch.setattr(ndjson_stream, "MOST_LINES", 7)
    stream = Stream(served, secret)
    for row in rows:
        stream.send(row)
    stream.end()
    assert [each["repeated"] for each in stream.rest()] == [True] * 40
    stream.close()


def test_memory_is_bounded_however_much_is_sent_before_anything_is_taken(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ndjson_stream, "MOST_BYTES", 1000)
    monkeypatch.setattr(ndjson_stream, "LINE_BYTES", 0)
    held: list[int] = []
    add = ndjson_stream.Incoming._add

    def watched(self: Any, data: bytes, ended: bool) -> None:
        add(self, data, ended)
        held.append(self._bytes)

    monkeypatch.setattr(ndjson_stream.Incoming, "_add", watched)
    rows = [{"user": f"user {each}", "mechanism": OUE} for each in range(8_000)]
    told = ask(served, body(*rows))
    assert len(told) == 8_000
    assert max(held) < 400_000 < len(body(*rows))


def test_a_line_without_end_is_not_held(served: Served) -> None:
    stream = Stream(served, served.secret("spend"))
    for _ in range(50):
        stream.send(b"x" * 1500)
    stream.send(b"\n", {"user": "a", "mechanism": OUE})
    stream.end()
    told = stream.rest()
    assert [(each["line"], each["status"]) for each in told] == [(1, "failed"), (2, "spent")]
    assert told[0]["problem"]["type"] == "/problems/too-large"
    stream.close()


def test_with_a_key_of_its_own_each_line_is_a_spend_and_may_be_asked_as_one(served: Served) -> None:
    secret = served.secret("spend", "read")
    rows = [{"user": "a", "mechanism": OUE, "key": "k"}, {"user": "a", "mechanism": OUE, "key": "k"}]
    told = ask(served, body(*rows, {"user": "b", "mechanism": OUE}), key=None, secret=secret)
    assert [(each["line"], each.get("repeated")) for each in told] == [(1, False), (2, True), (3, None)]
    alone = served.ask("POST", "/v1/spends", {"user": "a", "mechanism": OUE}, secret, Idempotency_Key="k")
    assert (alone.json()["receipt"], alone.json()["repeated"]) == (told[0]["receipt"], True)


def test_one_run_at_a_time_goes_under_a_key(served: Served) -> None:
    secret = served.secret("spend")
    stream = Stream(served, secret)
    stream.send({"user": "a", "mechanism": OUE})
    assert len(stream.answers(1)) == 1
    other = served.ask("POST", "/v1/spends:batch", body(), secret, Idempotency_Key="run")
    assert (other.status, other.json()["type"]) == (409, "/problems/in-flight")
    stream.end()
    assert stream.rest() == []
    stream.close()
    assert ask(served, body({"user": "a", "mechanism": OUE}), secret=secret)[0]["repeated"]


@pytest.mark.slow
def test_who_falls_silent_is_told_and_heard_no_more(served: Served) -> None:
    stream = Stream(served, served.secret("spend"))
    stream.send({"user": "a", "mechanism": OUE})
    [first, last] = stream.rest()
    assert first["status"] == "spent"
    assert last["problem"]["type"] == "/problems/slow-request"
    stream.close()


def test_other_lines_under_the_key_end_the_run(served: Served) -> None:
    secret = served.secret("spend")
    ask(served, body(*({"user": f"u{each}", "mechanism": OUE} for each in range(4))), secret=secret)
    told = ask(served, body(*({"user": f"v{each}", "mechanism": OUE} for each in range(9))), secret=secret)
    assert {each["problem"]["type"] for each in told} == {"/problems/key-conflict"}
    assert served.accountant.stats()["entries_by_kind"]["spent"] == 4


@pytest.mark.slow
def test_a_hundred_thousand_lines_are_charged_once_though_the_line_is_cut_thrice(served: Served) -> None:
    secret, count = served.secret("spend"), 100_000
    rows = [{"user": f"u{each % 60_000}", "mechanism": {**OUE, "epsilon": "0.5"}} for each in range(count)]
    for part in (20_000, 40_000, 70_000):
        with closing(begun(served, secret)) as stream:
            for first in range(0, part, 10_000):
                stream.send(*rows[first : first + 10_000])
            stream.answers(part - 9_000)
    whole = body(*rows)  # beforehand, as the service does not wait for it
    with closing(begun(served, secret)) as stream:
        stream.send(whole)
        stream.end()
        told = stream.rest()
    assert [each["status"] for each in told] == ["spent"] * count
    assert 0 < sum(each["repeated"] for each in told) < count
    assert served.accountant.stats()["entries_by_kind"]["spent"] == count
    oue = mechanism("oue")(epsilon="0.5", domain_size=7)
    assert served.accountant.quote("u5", oue).limits[0].spent.epsilon == 1.0
    assert served.accountant.verify().ok


def begun(served: Served, secret: str) -> Stream:
    """A run that nobody else is at any more."""
    while True:
        stream = Stream(served, secret)
        if stream.begins():
            return stream
        stream.close()


@pytest.mark.parametrize("key", ["counted", None])
def test_what_came_of_each_line_is_counted_as_that_of_a_spend(served: Served, key: str | None) -> None:
    """Alerts of many refusals and the metrics go by these."""
    asked, secret = served.app.state.metrics.asked, served.secret("spend")
    before = asked()
    rows = [{"user": "counted", "mechanism": OUE, "reports": reports} for reports in (1, 1000)]
    lines = rows if key is not None else [{**row, "key": str(place)} for place, row in enumerate(rows)]
    content = body(*lines, {"user": "counted", "mechanism": {"name": "nothing"}})
    for _ in range(2):
        ask(served, content, key, secret)
    assert {name: number - before.get(name, 0) for name, number in asked().items()} == {
        **dict.fromkeys(before, 0),
        **{"spent": 1, "refused": 1, "repeated": 2},
    }


@pytest.mark.parametrize("key", ["run", ""])
def test_batch_whose_key_is_revoked_charges_no_more_lines(served: Served, key: str) -> None:
    """A key that was revoked charged on through a batch that it had opened, for as long as that stayed open."""
    secret = served.secret("spend", name="leaver")
    with closing(Stream(served, secret, key)) as stream:
        stream.send(line("alice", key))
        assert [row["status"] for row in stream.answers(1)] == ["spent"]
        ApiKeys(served.accountant).revoke("leaver")
        stream.send(line("bob", key))
        (told,) = stream.rest()
    assert (told["line"], told["status"], told["problem"]["type"]) == (2, "failed", "/problems/unauthorized")
    assert served.accountant.history("bob") == []


def line(user: str, run: str) -> dict[str, Any]:
    return {"user": user, "mechanism": OUE, **({} if run else {"key": f"k-{user}"})}


def test_lines_of_one_byte_that_wait_are_few() -> None:
    """4 MiB of lines of one byte each were 4 million objects: 450 MiB for one connection."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"x\n" * 10_000, "more_body": True}

    async def read() -> ndjson_stream.Incoming:
        incoming = ndjson_stream.Incoming(receive, 1000)
        with suppress(TimeoutError):
            await asyncio.wait_for(incoming.read(), 0.5)
        return incoming

    assert len(asyncio.run(read()).lines) == 30_000
