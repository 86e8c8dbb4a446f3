"""The respondents' pages in Firefox and WebKit: a whole survey, its reload, `/me`, and the check of the receipt.

The other files of this folder do the same, and more, in Chromium.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
pytest.importorskip("cryptography", reason="no signature: pip install 'ldp-budget[fast]'")

from ldp_budget import Accountant
from ldp_budget_surveys.publication.publisher import Publisher
from questionnaire_site import health
from survey_site import Site, running, with_surveys

_SECONDS = 60
_LOOK_SECONDS = 0.1


class Page(ABC):
    """A page of an engine."""

    @abstractmethod
    def goto(self, address: str) -> None:
        """Open an address, and wait until it is loaded."""

    @abstractmethod
    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, a promise too, that JSON can hold."""

    def until(self, expression: str) -> Any:
        """Return the value of an expression when it is true. Fails after a minute, with the text of the page."""
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            if found := self.evaluate(expression):
                return found
            time.sleep(_LOOK_SECONDS)
        raise AssertionError(f"{expression}: {self.evaluate('document.body.innerText')}")

    def click(self, selector: str) -> None:
        """Wait for an element, and click it."""
        self.until(f"!!document.querySelector({json.dumps(selector)})")
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")


# -- Firefox -----------------------------------------------------------------------------------------------------------


class _Socket:
    """A client of a WebSocket (RFC 6455): texts only."""

    def __init__(self, port: int, path: str) -> None:
        self._wire = socket.create_connection(("127.0.0.1", port), _SECONDS)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Upgrade: websocket", "Connection: Upgrade"]
        lines += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", ""]
        self._wire.sendall("\r\n".join(lines).encode())
        self._file = self._wire.makefile("rb")
        assert b" 101 " in self._file.readline()
        while self._file.readline().strip():
            pass

    def send(self, text: str) -> None:
        data, mask = text.encode(), os.urandom(4)
        few, some = struct.pack(">B", 128 | min(len(data), 125)), struct.pack(">BH", 254, len(data) % 2**16)
        size = few if len(data) < 126 else some if len(data) < 2**16 else struct.pack(">BQ", 255, len(data))
        masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))
        self._wire.sendall(b"\x81" + size + mask + masked)

    def receive(self) -> str:
        found = b""
        while True:
            first, size = self._file.read(2)
            if size >= 126:
                size = int.from_bytes(self._file.read(2 if size == 126 else 8), "big")
            content = self._file.read(size)
            if first & 15 in (0, 1):
                found += content
                if first & 128:
                    return found.decode()

    def close(self) -> None:
        self._file.close()
        self._wire.close()


class Firefox(Page):
    """A tab of Firefox."""

    def __init__(self, wire: _Socket) -> None:
        self._wire, self._number = wire, 0
        self._do("session.new", capabilities={})
        self._context = self._do("browsingContext.create", type="tab")["context"]

    def _do(self, method: str, **params: Any) -> Any:
        self._number += 1
        self._wire.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            answer = json.loads(self._wire.receive())
            if answer.get("id") == self._number:
                assert answer["type"] == "success", answer
                return answer["result"]

    def goto(self, address: str) -> None:
        self._do("browsingContext.navigate", context=self._context, url=address, wait="complete")

    def evaluate(self, expression: str) -> Any:
        found = self._do(
            "script.evaluate",
            expression=f"(async () => JSON.stringify((await ({expression})) ?? null))()",
            target={"context": self._context},
            awaitPromise=True,
        )
        assert found["type"] == "success", found
        return json.loads(found["result"]["value"])


@contextmanager
def firefox() -> Iterator[Page]:
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if program is None:
        pytest.skip("no Firefox on this machine: apt-get install firefox-esr")
    with tempfile.TemporaryDirectory() as profile:
        (Path(profile) / "user.js").write_text('user_pref("intl.accept_languages", "en");\n')
        words = [program, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"]
        with _running(words, {"HOME": profile}) as process:
            assert process.stderr is not None
            wire = _Socket(int(_line(process.stderr, rb"WebDriver BiDi listening on ws://[^:]+:(\d+)")), "/session")
            try:
                yield Firefox(wire)
            finally:
                wire.close()


# -- WebKit ------------------------------------------------------------------------------------------------------------


class WebKit(Page):
    """A window of WebKit's own small browser."""

    def __init__(self, address: str, browser: str) -> None:
        self._address = address
        options = {"binary": browser, "args": ["--automation"]}
        made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": options}}})
        self._session = f"/session/{made['sessionId']}"
        self._ask("POST", f"{self._session}/timeouts", {"script": 1000 * _SECONDS, "pageLoad": 1000 * _SECONDS})

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        asked = urllib.request.Request(f"{self._address}{path}", data, headers, method=method)
        with urllib.request.urlopen(asked, timeout=2 * _SECONDS) as answer:
            return json.load(answer)["value"]

    def goto(self, address: str) -> None:
        self._ask("POST", f"{self._session}/url", {"url": address})

    def evaluate(self, expression: str) -> Any:
        script = (
            "const done = arguments[0];"
            f"(async () => JSON.stringify({{ found: (await ({expression})) ?? null }}))()"
            ".then(done, (error) => done(JSON.stringify({ error: String(error) })));"
        )
        found = json.loads(self._ask("POST", f"{self._session}/execute/async", {"script": script, "args": []}))
        assert "error" not in found, found
        return found["found"]

    def close(self) -> None:
        self._ask("DELETE", self._session)


@contextmanager
def webkit() -> Iterator[Page]:
    driver, screen = shutil.which("WebKitWebDriver"), shutil.which("Xvfb")
    browsers = sorted(Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser"))
    if driver is None or not browsers:
        pytest.skip("no WebKit on this machine: apt-get install webkit2gtk-driver")
    if screen is None:
        pytest.skip("no virtual screen on this machine: apt-get install xvfb")
    with tempfile.TemporaryDirectory() as home, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        with _running([screen, "-displayfd", "2", "-screen", "0", "800x900x24", "-nolisten", "tcp"], {}) as shown:
            assert shown.stderr is not None
            number = _line(shown.stderr, rb"^(\d+)$")
            here = {"DISPLAY": f":{number}", "HOME": home, "LIBGL_ALWAYS_SOFTWARE": "1"}
            here |= {"WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1", "LANG": "en_US.UTF-8", "NO_AT_BRIDGE": "1"}
            with _running([driver, f"--port={port}"], here):
                _reachable(port)
                page = WebKit(f"http://127.0.0.1:{port}", str(browsers[-1]))
                try:
                    yield page
                finally:
                    page.close()


# -- processes -----------------------------------------------------------------------------------------------------------


@contextmanager
def _running(words: list[str], more: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **more}, bufsize=0
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stderr is not None
        process.stderr.close()


def _line(stream: IO[bytes], pattern: bytes) -> str:
    """Return the group of the first line that has a pattern. Fails after a minute."""
    end, seen = time.monotonic() + _SECONDS, b""
    while time.monotonic() < end:
        if select.select([stream], [], [], 1)[0]:
            seen += os.read(stream.fileno(), 4096)
            if found := re.search(pattern, seen[: seen.rfind(b"\n") + 1], re.MULTILINE):
                return found[1].decode()
    raise AssertionError(seen)


def _reachable(port: int) -> None:
    end = time.monotonic() + _SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(_LOOK_SECONDS)


ENGINES = {"firefox": firefox, "webkit": webkit}


SEND = "button[type=submit]"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("published")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, published: Path) -> Iterator[Site]:
    with Accountant(tmp_path_factory.mktemp("survey") / "budget.db") as accountant:
        with_surveys(accountant).add_collection(health("all", "all"))
        key = Publisher(accountant).new_key("ask.example.org/surveys").verifier_key
        with running(accountant, publications=str(published), respondent_rate=0) as made:
            made.log_key = f"~{hashlib.sha256(key.encode()).hexdigest()[:32]}"
            yield made


@pytest.fixture(scope="module", params=sorted(ENGINES))
def page(request: pytest.FixtureRequest) -> Iterator[Page]:
    with ENGINES[request.param]() as opened:
        yield opened


def test_whole_survey_its_reload_and_my_budget_in_other_engines(
    site: Site, page: Page, published: Path, request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.params["page"]
    page.goto(site.link(f"{name} ana", "all", lang="en"))
    page.click(SEND)  # without answers
    errors = page.evaluate("[...document.querySelectorAll('.question .error')].map((each) => each.textContent)")
    assert ["Please choose" in each or "Please enter" in each for each in errors] == [True] * 3
    page.evaluate("document.querySelectorAll('fieldset').forEach((each) => each.querySelector('input').click())")
    page.evaluate("(document.querySelector('input[type=number]').value = '7.5')")
    assert "at most 88.1% sure" in page.evaluate("document.body.innerText")
    page.click(SEND)
    number = page.until("document.querySelector('#number')?.textContent")
    page.goto(f"{site.page('all')}?lang=en")  # the link stays in its tab
    assert page.until("document.querySelector('#number')?.textContent") == number
    assert site.charged(f"{name} ana") == 1

    page.goto(f"{site.origin}/me?lang=en")
    page.until("document.querySelectorAll('#services table, #service ~ * table').length > 0")
    said = page.evaluate("document.body.innerText")
    assert "Health and habits" in said
    assert re.search(r"ε = 2\b", said)


def test_receipt_is_checked_in_other_engines(
    site: Site, page: Page, published: Path, request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.params["page"]
    page.goto(site.link(f"{name} ben", lang="en"))
    page.click("input[value=bike]")
    page.click(SEND)
    link = page.until("document.querySelector('#part a.secondary, section a.secondary')?.href")
    Publisher(site.accountant).publish(site.accountant.collection("commute"), published / "commute")
    page.goto("about:blank")
    page.goto(link)
    assert page.until("document.querySelector('h1[data-verdict]')?.dataset.verdict") == "proved"
    said = page.evaluate("document.querySelector('h1').textContent")
    assert re.fullmatch(r"Your report is counted, and the estimate follows from the \d reports\.", said)
    assert page.evaluate("location.hash") == ""
