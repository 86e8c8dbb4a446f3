"""The proxies of the operations guide, as the guide sets them up, in front of a server: nginx and Caddy."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

from ldp_budget import Accountant
from ldp_budget_service.settings import Settings
from service_farm import HOST, MECHANISM, PATIENCE
from service_threads import Served

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "operations.md"

pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
        with Served(accountant, Settings(address_rate=0.01, address_burst=20), proxies=[HOST]) as made:
            yield made


class Proxy:
    """A proxy that listens; `context` where it speaks TLS."""

    def __init__(self, port: int, context: ssl.SSLContext | None, log: Path | None) -> None:
        self.port, self.context, self.log = port, context, log

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any, bytes]:
        line: http.client.HTTPConnection = (
            http.client.HTTPConnection(HOST, self.port, timeout=PATIENCE)
            if self.context is None
            else http.client.HTTPSConnection(HOST, self.port, timeout=PATIENCE, context=self.context)
        )
        try:
            line.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = line.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            line.close()

    def connect(self) -> socket.socket:
        line = socket.create_connection((HOST, self.port), timeout=PATIENCE)
        return line if self.context is None else self.context.wrap_socket(line)


def snippet(language: str, begins: str) -> str:
    """The block of the guide that begins so."""
    text = GUIDE.read_text(encoding="utf-8")
    (found,) = re.findall(rf"```{language}\n({re.escape(begins)}.*?)```", text, re.DOTALL)
    return str(found)


def free_port() -> int:
    with socket.create_server((HOST, 0)) as listener:
        return int(listener.getsockname()[1])


def replaced(text: str, **values: str) -> str:
    """The text with each value in its place, which must be there."""
    for place, value in values.items():
        assert place in text, place
        text = text.replace(place, value)
    return text


def started(command: list[str], proxy: Proxy) -> Iterator[Proxy]:
    """The proxy, once it answers."""
    process = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and process.poll() is None:
            with suppress(OSError):
                if proxy.ask("GET", "/problems/forbidden")[0] == 200:
                    break
            time.sleep(0.05)
        assert process.poll() is None
        yield proxy
    finally:
        process.terminate()
        process.wait(PATIENCE)


@pytest.fixture(scope="module")
def nginx(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    if shutil.which("nginx") is None or shutil.which("openssl") is None:
        pytest.skip("no nginx: apt-get install nginx-light")
    folder, port = tmp_path_factory.mktemp("nginx"), free_port()
    certificate, key = folder / "cert.pem", folder / "key.pem"
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=budget.example.org",
    ]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    log = folder / "budget.log"
    text = replaced(
        snippet("nginx", "# nginx"),
        **{
            "listen 443 ssl": f"listen {HOST}:{port} ssl",
            "127.0.0.1:8000": f"{HOST}:{served.port}",
            "/etc/ssl/budget.example.org.pem": str(certificate),
            "/etc/ssl/private/budget.example.org.key": str(key),
            "/var/log/nginx/budget.log": str(log),
            "/var/log/nginx/budget-error.log": str(folder / "error.log"),
        },
    )
    places = "".join(f"{name}_temp_path {folder / name};\n" for name in ("client_body", "proxy"))
    whole = f"worker_processes 1;\npid {folder / 'pid'};\nevents {{}}\nhttp {{\n{places}{text}}}\n"
    (folder / "nginx.conf").write_text(whole, encoding="utf-8")
    context = ssl.create_default_context(cafile=str(certificate))
    context.check_hostname = False
    command = ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "start.log")]
    yield from started([*command, "-g", "daemon off;"], Proxy(port, context, log))


@pytest.fixture(scope="module")
def caddy(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    if shutil.which("caddy") is None:
        pytest.skip("no Caddy: apt-get install caddy")
    folder, port = tmp_path_factory.mktemp("caddy"), free_port()
    text = replaced(
        snippet("text", "# Caddy"),
        **{"budget.example.org {": f"http://{HOST}:{port} {{", "127.0.0.1:8000": f"{HOST}:{served.port}"},
    )
    text = text.replace("{\n    servers", "{\n    admin off\n    servers", 1)
    (folder / "Caddyfile").write_text(text, encoding="utf-8")
    command = ["caddy", "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
    yield from started(command, Proxy(port, None, None))


@pytest.fixture(params=["nginx", "caddy"])
def proxy(request: pytest.FixtureRequest) -> Proxy:
    found: Proxy = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def bearer(served: Served) -> dict[str, str]:
    return {"Authorization": f"Bearer {served.secret(name='proxied')}"}


def spend(user: str, **more: Any) -> bytes:
    return json.dumps({"user": user, "mechanism": MECHANISM, **more}).encode()


def test_proxy_passes_names_on_as_they_were_written(proxy: Proxy, bearer: dict[str, str]) -> None:
    headers = {**bearer, "Content_Type": "application/json", "Idempotency_Key": f"k-{proxy.port}"}
    assert proxy.ask("POST", "/v1/spends", spend("a/b c"), **headers)[0] == 200
    status, found, body = proxy.ask("GET", "/v1/users/a%2Fb%20c/balance", **bearer)
    assert (status, json.loads(body)["user"]) == (200, "a/b c")
    assert ("Strict-Transport-Security" in found) == (proxy.context is not None)


def test_proxy_hides_the_metrics(proxy: Proxy, bearer: dict[str, str]) -> None:
    assert proxy.ask("GET", "/metrics", **bearer)[0] == 404


def test_proxy_bounds_a_body_and_allows_a_larger_batch(proxy: Proxy, bearer: dict[str, str]) -> None:
    headers = {**bearer, "Content_Type": "application/json", "Idempotency_Key": f"b-{proxy.port}"}
    assert proxy.ask("POST", "/v1/spends", spend("a", note="x" * 1_100_000), **headers)[0] == 413
    lines = b"".join(spend(f"user {number}") + b" " * 3000 + b"\n" for number in range(400))
    assert len(lines) > 1_200_000
    status, _, body = proxy.ask("POST", "/v1/spends:batch", lines, **headers)
    assert (status, body.count(b'"status":"spent"')) == (200, 400)


def test_proxy_serves_others_while_bodies_are_half_sent(proxy: Proxy, served: Served, bearer: dict[str, str]) -> None:
    """Half-sent bodies locked all others out of the service."""
    head = b"POST /v1/spends HTTP/1.1\r\nHost: budget.example.org\r\nContent-Type: application/json\r\n"
    lines = [proxy.connect() for _ in range(20)]
    try:
        for line in lines:
            line.sendall(head + b'Content-Length: 1000\r\n\r\n{"user":')
        assert proxy.ask("GET", "/v1/ledger", **bearer)[0] == 200
    finally:
        for line in lines:
            line.close()


def test_log_of_the_proxy_holds_no_paths(nginx: Proxy, bearer: dict[str, str]) -> None:
    assert nginx.ask("GET", "/v1/users/secretive/balance", **bearer)[0] == 200
    assert nginx.log is not None
    told = nginx.log.read_text(encoding="utf-8")
    assert " GET 200 " in told
    assert "secretive" not in told
    assert "/v1" not in told
