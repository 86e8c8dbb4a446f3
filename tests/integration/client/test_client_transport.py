"""The transport of the client: retries where safe, for a bounded time, without leaking data to others.

The services here answer by a script.
"""

from __future__ import annotations

import json
import logging
import os
import ssl
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from contract.acts import coin
from fixed_clock import Clock
from ldp_budget import Accountant, InvalidParameter, KeyConflict, LedgerError, NotSupported
from ldp_budget.accounting.charge_request import LOCAL
from ldp_budget_service.api.schemas import header_of
from ldp_budget_service.client import Client, ServiceProblem
from service_places import Keys, shared_service

KEY = "ldpb_a-secret-key"
RECEIPT = {
    "status": "spent",
    "repeated": False,
    "receipt": "1-00",
    "user": "alice",
    "policy": "default",
    "cost": {"epsilon": 1.0, "delta": 0.0},
    "limits": [],
    "binding": [],
    "affordable_reports": None,
    "checked": "exact",
    "units": {"cost": [10**9, 0, None, None], "reports": 1, "limits": []},
}


def problem(code: str, **more: Any) -> str:
    return json.dumps({"type": f"/problems/{code}", "detail": code, **more})


class Script:
    """A service that gives one answer after the other, and the last one for ever."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, str], str]] = []
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                script.asked.append((self.command, self.path, dict(self.headers), body))
                status, headers, text = script.answers.pop(0) if len(script.answers) > 1 else script.answers[0]
                self.send_response(status)
                for name, value in {"Content-Length": str(len(text.encode())), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

            do_GET = do_PUT = do_POST  # noqa: N815 - as the library calls them

            def log_message(self, *said: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def keys(self) -> list[str | None]:
        return [headers.get("Idempotency-Key") for _, _, headers, _ in self.asked]


@pytest.fixture
def script() -> Iterator[Script]:
    made = Script()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def client(script: Script) -> Iterator[Client]:
    with Client(script.url, KEY, patience=5.0, timeout=2.0) as made:
        yield made


DONE = (200, {}, json.dumps(RECEIPT))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((503, {}, problem("ledger-error", unknown=False)), "503"),
        ((503, {}, problem("ledger-error", unknown=True)), "503"),
        ((503, {}, "<html>"), "503"),
        ((502, {}, ""), "502"),
        ((504, {}, "timed out"), "504"),
        ((408, {}, ""), "408"),
        ((503, {}, problem("overloaded")), "503"),
        ((429, {"Retry-After": "0"}, problem("too-many-requests")), "429"),
        ((409, {"Retry-After": "0"}, problem("in-flight")), "409"),
        ((409, {}, problem("position-not-reached")), "409"),
    ],
)
@pytest.mark.some(3)
def test_transient_error_is_retried_with_the_same_key(
    script: Script, client: Client, answer: Any, reason: str
) -> None:
    script.answers = [answer, answer, DONE]
    assert client.spend("alice", coin(1)).status == "spent"
    assert client.repeated == {reason: 2}
    assert len(script.asked) == 3
    assert len(set(script.keys)) == 1
    assert len(script.keys[0] or "") >= 32, "the client has drawn it"
    assert client.spend("alice", coin(1)).status == "spent"
    assert script.keys[3] != script.keys[0], "another request, another key"


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "malformed"), (401, "unauthorized"), (403, "forbidden"), (413, "too-large"), (409, "wrong-collection")],
)
def test_permanent_error_is_raised_at_once(script: Script, client: Client, status: int, code: str) -> None:
    script.answers = [(status, {}, problem(code))]
    with pytest.raises(ServiceProblem) as told:
        client.spend("alice", coin(1))
    assert (told.value.code, told.value.status, len(script.asked)) == (code, status, 1)


def test_unknown_route_is_reported_as_another_service_version(script: Script, client: Client) -> None:
    script.answers = [(404, {}, problem("not-found"))]
    with pytest.raises(NotSupported, match="does not support this request"):
        client.stats()


@pytest.mark.parametrize(
    ("answer", "unknown"),
    [
        ((503, {}, problem("ledger-error", unknown=False)), False),
        ((503, {}, problem("ledger-error", unknown=True)), True),
        ((503, {}, "upstream"), True),
        ((502, {}, "upstream"), True),
        ((503, {}, problem("overloaded")), False),
        ((504, {}, "upstream"), True),
        ((503, {}, problem("sandbox-error")), False),
        ((503, {}, problem("clock-error")), False),
        ((429, {}, problem("too-many-requests")), False),
        ((409, {}, problem("in-flight")), True),
        ((500, {}, "oops"), True),
        ((500, {}, problem("of-another-kind")), True),
        ((200, {}, "<html>sign in</html>"), True),
        ((200, {}, '{"status": "spent"}'), True),
        ((307, {"Location": "http://127.0.0.1:9/"}, ""), True),
    ],
)
@pytest.mark.some(3)
def test_error_of_the_last_try_says_if_the_outcome_is_unknown(script: Script, answer: Any, unknown: bool) -> None:
    # `Retry-After` leaves no time for a second try, so a slow machine changes nothing.
    status, headers, body = answer
    script.answers = [(status, {"Retry-After": "3600", **headers}, body)]
    with Client(script.url, KEY, patience=60) as client, pytest.raises(LedgerError) as told:
        client.spend("alice", coin(1), key="k")
    assert told.value.unknown is unknown
    assert ("It is unknown whether" in str(told.value)) is unknown
    assert (vars(told.value).get("key") == "k") is unknown


def test_later_refusal_does_not_settle_an_earlier_try(script: Script) -> None:
    """A first try may have been charged though the key was revoked, or the clock set, before the second."""
    for late in ((401, {}, problem("unauthorized")), (503, {}, problem("clock-error"))):
        script.answers = [(502, {}, ""), late]
        with Client(script.url, KEY, patience=5) as client, pytest.raises(LedgerError) as told:
            client.spend("alice", coin(1))
        assert told.value.unknown
    script.answers = [(502, {}, ""), (422, {}, problem("key-conflict", key="x"))]
    with Client(script.url, KEY, patience=5) as client, pytest.raises(KeyConflict) as conflict:
        client.spend("alice", coin(1), key="k")
    assert conflict.value.key == "k"


def test_retry_after_beyond_the_patience_raises_at_once(script: Script) -> None:
    script.answers = [(429, {"Retry-After": "3600"}, problem("too-many-requests"))]
    with Client(script.url, KEY, patience=30) as client:
        started = time.monotonic()
        with pytest.raises(LedgerError, match="too many requests"):
            client.spend("alice", coin(1))
        script.answers = [(503, {"Retry-After": formatdate(time.time() + 3600, usegmt=True)}, "")]
        with pytest.raises(LedgerError, match="503"):
            client.spend("alice", coin(1))
        assert time.monotonic() - started < 20
    assert len(script.asked) == 2


def test_request_that_times_out_for_its_size_is_not_retried(script: Script, client: Client) -> None:
    script.answers = [(504, {}, "upstream")]
    with pytest.raises(LedgerError, match="504") as told:
        client.verify()
    assert (told.value.unknown, len(script.asked)) == (False, 1)


def test_redirect_is_not_followed(script: Script, client: Client) -> None:
    """The key would go wherever it leads."""
    script.answers = [(307, {"Location": f"{script.url}/elsewhere"}, ""), DONE]
    with pytest.raises(LedgerError, match="HTTP status 307"):
        client.spend("alice", coin(1))
    assert [path for _, path, _, _ in script.asked] == ["/v1/spends"]


# -- data sent and data shown ---------------------------------------------------------------------------------------


def test_key_and_user_are_in_no_log_message_or_path(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    script.answers = [(500, {}, "oops")]
    with caplog.at_level(logging.DEBUG), Client(script.url, KEY, patience=0.2) as client:
        told = [repr(client), str(client), client.name, str(vars(client))]
        for ask in (
            lambda: client.spend("alice@example.org", coin(1)),
            lambda: client.balance("alice@example.org"),
            lambda: client.history("alice@example.org"),
            lambda: client.erase("alice@example.org"),
            lambda: client.remaining_over_time("alice@example.org"),
            lambda: client.is_erased("alice@example.org"),
            lambda: client.open_reservations(user="alice@example.org"),
            lambda: client.position("alice@example.org"),
            lambda: list(client.journal(["alice@example.org"])),
        ):
            with pytest.raises(LedgerError) as error:
                ask()
            told += [str(error.value), repr(error.value), str(vars(error.value))]
    assert len(script.asked) == 9
    assert all(headers["Authorization"] == f"Bearer {KEY}" for _, _, headers, _ in script.asked)
    assert "alice" not in str([path for _, path, _, _ in script.asked])
    logged = caplog.text + str([vars(record) for record in caplog.records])
    assert "127.0.0.1" in logged, "something was logged"
    assert KEY not in logged
    assert "alice" not in logged
    assert KEY not in "".join(told)
    assert "alice" not in "".join(told)


@pytest.mark.parametrize(
    "host", ["budget.example.org", "10.0.0.7", "127.0.0.1.example.org", "[2001:db8::1]", "0.0.0.0"]
)
def test_url_without_tls_is_refused_except_for_loopback(host: str) -> None:
    with pytest.raises(InvalidParameter, match="url must be an https:// URL"):
        Client(f"http://{host}:8000", KEY)
    Client(f"http://{host}:8000", KEY, plain_http=True).close()
    Client(f"https://{host}:8000", KEY).close()


def test_idempotency_keys_of_any_text_are_sent_distinctly() -> None:
    """A key that a header cannot hold is hashed, and no other key looks like a hash."""
    keys = ["k", "2026-11-21/alice/party", "a b", "é", "e", "x" * 1000, "a\xa0b", "", "sha256:00"]
    sent = [header_of(key) for key in keys if key]
    assert sent[:2] == keys[:2]
    assert len(set(sent)) == len(sent)
    assert all(each.isascii() and each.isprintable() and " " not in each and len(each) <= 200 for each in sent)
    assert header_of("é") == header_of("é")
    assert header_of(None) != header_of(None)
    with pytest.raises(InvalidParameter, match="without lone surrogates"):
        header_of("\ud800")


# -- TLS ----------------------------------------------------------------------------------------------------------


def test_certificate_untrusted_is_refused_at_once(tmp_path: Any) -> None:
    pytest.importorskip("cryptography")
    certificate, private = self_signed(tmp_path)
    made = Script()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, private)
    made._server.socket = context.wrap_socket(made._server.socket, server_side=True)
    made.answers = [DONE]
    url = made.url.replace("http://127.0.0.1", "https://localhost")
    try:
        with Client(url, KEY, patience=60) as client:
            with pytest.raises(LedgerError, match="the certificate of the service cannot be verified") as told:
                client.spend("alice", coin(1))
            assert not told.value.unknown
            assert client.repeated == {}
        trusting = ssl.create_default_context(cafile=str(certificate))
        with Client(url, KEY, tls=trusting) as client:
            assert client.spend("alice", coin(1)).status == "spent"
    finally:
        made.close()
    assert len(made.asked) == 1


def self_signed(folder: Any) -> tuple[Any, Any]:
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "certificate.pem", folder / "private.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, private


# -- threads, forks, and the end ----------------------------------------------------------------------------------


@pytest.fixture
def served(clock: Clock) -> Iterator[Client]:
    """A client of a real service."""
    with Accountant(":memory:", clock=clock) as ledger:
        ledger.set_policy("default", ["lifetime=9"])
        keys = Keys()
        shared_service().serve(ledger, keys)
        with Client(shared_service().url, keys.secret_of(LOCAL)) as client:
            yield client


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_client_after_a_fork_connects_again(served: Client) -> None:
    assert served.spend("alice", coin(1))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if served.spend("bob", coin(1)) and served.balance("alice").charges else 2
            served.close()
        finally:
            os._exit(status)
    assert [bool(served.spend("alice", coin(1))) for _ in range(5)] == [True] * 5
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert served.spend("alice", coin(1)), "what the child closed is its own"
    assert len(served.history("bob")) == 1
    assert served.repeated == {}
