"""Pages with the real libraries of telemetry and surveys: installed, bundled, served, and a sink that keeps all they send."""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import re
import shutil
import subprocess
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pytest

from javascript import PACKAGE, node

SDKS = PACKAGE / "test" / "sdks"
_HTML = (
    "<!doctype html><meta charset=utf-8><title>t</title><div id=page></div><script type=module src=/page.js></script>"
)


class Sent(NamedTuple):
    """A request at the sink, as it came, and all that one can read in it."""

    path: str
    headers: str
    body: bytes

    @property
    def readable(self) -> str:
        text = self.body.decode("latin1")
        for inflate in (gzip.decompress, zlib.decompress):
            try:
                text += inflate(self.body).decode("latin1")
            except (OSError, EOFError, zlib.error):
                continue
        return f"{unquote(self.path)}\n{self.headers}\n{text}\n{unquote(text)}\n{_decoded(text)}"


def _decoded(text: str) -> str:
    """What JSON members of Base64 hold."""
    found = []
    for word in re.split(r'["=]', unquote(text)):
        if len(word) > 30:
            try:
                found.append(
                    base64.b64decode(
                        word + "=" * (-len(word) % 4), altchars=b"-_" if {*word} & {*"-_"} else None
                    ).decode("latin1")
                )
            except (binascii.Error, ValueError):
                continue
    return "\n".join(found)


class Site:
    """Where the page is; the sink is the same server by another name, so another origin."""

    def __init__(self, port: int) -> None:
        self.page, self._origin, self._rooms = f"http://127.0.0.1:{port}/", f"http://localhost:{port}", count(1)
        self.faults: list[int] = []
        self.clear()

    def clear(self) -> None:
        """A sink for the next device, empty; what pages before still send goes nowhere."""
        self.room = f"/{next(self._rooms)}/"
        self.sent: list[Sent] = []
        self.faults.clear()

    @property
    def sink(self) -> str:
        return f"{self._origin}{self.room[:-1]}"

    def events(self) -> list[Any]:
        """The JSON bodies at the sink."""
        return [json.loads(each.body) for each in self.sent if each.body.startswith((b"{", b"["))]


def bundled(folder: Path, entry: str) -> str:
    """Install the libraries as their lock file says, and bundle a page with them; without npm the test is skipped."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm on this machine")
    node()
    if not (folder / "package.json").exists():
        shutil.copytree(SDKS, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
        words = ["ci", "--no-audit", "--no-fund", "--loglevel=error"]
        done = subprocess.run([npm, *words], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            pytest.skip("the libraries cannot be installed here")
        (folder / "node_modules" / "ldp-budget").symlink_to(PACKAGE)
    made = folder / f"{entry}.out.js"
    words = [entry, "--bundle", "--format=esm", "--log-level=error", f"--outfile={made.name}", "--preserve-symlinks"]
    subprocess.run([str(folder / "node_modules" / ".bin" / "esbuild"), *words], cwd=folder, check=True, timeout=120)
    return made.read_text(encoding="utf-8")


@contextmanager
def served(script: str) -> Iterator[Site]:
    """Serve a page with a script, and keep what comes to the sink; `faults` are its next answers in place of 200."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Access-Control-Allow-Origin", self.headers.get("Origin", "*"))
            self.send_header("Access-Control-Allow-Credentials", "true")
            self.send_header("Access-Control-Allow-Headers", "content-type, sp-anonymous, x-requested-with")
            with suppress(ConnectionError):  # of a page that was closed
                self.end_headers()
                self.wfile.write(body)

        def do_OPTIONS(self) -> None:
            self.answer(200, "text/plain", b"")

        def do_GET(self) -> None:
            if self.path == "/page.js":
                self.answer(200, "text/javascript", script.encode())
            elif self.path.split("?")[0] == "/" and not self.headers["Host"].startswith("localhost"):
                self.answer(200, "text/html", _HTML.encode())
            else:
                self.keep(b"")

        def do_POST(self) -> None:
            self.keep(self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def keep(self, body: bytes) -> None:
            status = 200
            if self.path.startswith(site.room):
                site.sent.append(Sent(self.path, str(self.headers), body))
                status = site.faults.pop(0) if site.faults else 200
            self.answer(status, "application/json", b"{}")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site = Site(server.server_port)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield site
    server.shutdown()
    thread.join()
    server.server_close()
