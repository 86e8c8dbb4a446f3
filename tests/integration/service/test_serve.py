"""`ldp-budget serve` and `serve`: the started server, its settings and its messages."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from ldp_budget import Accountant, InvalidParameter
from ldp_budget_service import server as running
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_service.commands import serve as command_serve
from ldp_budget_service.settings import Settings
from service_farm import HOST, Caller, Farm, new_ledger


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Record the server in place of running it."""
    found: dict[str, Any] = {}

    class Unserved(running.Server):
        def run(self, sockets: list[socket.socket] | None = None) -> None:
            assert sockets is not None
            found.update(server=self, ports=[listener.getsockname() for listener in sockets])
            for listener in sockets:
                listener.close()

    monkeypatch.setattr(running, "Server", Unserved)
    monkeypatch.setattr(running.logs, "logging_to", lambda *_, **__: nullcontext())
    return found


def test_serve_listens_on_loopback_by_default(started: dict[str, Any], tmp_path: Path) -> None:
    said: list[str] = []
    running.serve(tmp_path / "budget.db", port=0, say=said.append)
    assert [host for host, *_ in started["ports"]] == [HOST]
    assert not any("WARNING" in line for line in said)


@pytest.mark.parametrize(("proxies", "warned"), [((), True), (("127.0.0.1",), False)])
def test_serve_beyond_loopback_without_tls_warns(
    started: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxies: tuple[str, ...], warned: bool
) -> None:
    said: list[str] = []
    with pytest.raises(InvalidParameter, match=r"port must be a free port of 192\.0\.2\.1: got 0"):
        running.serve(tmp_path / "budget.db", "192.0.2.1", 0, proxies=proxies, say=said.append)  # nobody's address
    assert any("WARNING: 192.0.2.1 is beyond this machine" in line for line in said) is warned
    assert not (tmp_path / "budget.db").exists()


def test_serve_first_makes_the_ledger_and_says_how_to_create_a_key(started: dict[str, Any], tmp_path: Path) -> None:
    said: list[str] = []
    running.serve(tmp_path / "budget.db", port=0, say=said.append)
    assert said[0] == f"ledger: {tmp_path / 'budget.db'}"
    assert "type: ldp-budget api-key create NAME --scope spend" in said[1]
    with Accountant(tmp_path / "budget.db", create=False) as accountant:
        ApiKeys(accountant).create("app", ["spend"])
    running.serve(tmp_path / "budget.db", port=0, say=(again := list[str]()).append)
    assert len(again) == 1


def test_serve_in_memory_needs_its_option_and_prints_a_key(started: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="in memory ends with the process"):
        running.serve(":memory:", port=0)
    said: list[str] = []
    running.serve(":memory:", port=0, in_memory=True, say=said.append)
    assert re.search(r"its API key is: ldpb_\S{43}$", said[-1])


def test_serve_on_a_port_in_use_is_refused(started: dict[str, Any], tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as taken, pytest.raises(InvalidParameter, match="Address already in use"):
        running.serve(tmp_path / "budget.db", port=taken.getsockname()[1])
    assert not (tmp_path / "budget.db").exists()


def test_serve_ends_at_once_on_a_second_signal(farm: Farm, tmp_path: Path) -> None:
    place = str(tmp_path / "budget.db")
    new_ledger(place, "lifetime=1")
    server = farm.start(place, notice=20.0)
    with Caller(server.port, None) as caller:
        assert caller.ask("GET", "/livez").status == 200
    begun = time.monotonic()
    server.signal(signal.SIGTERM)
    time.sleep(0.3)
    assert server.end() == 0
    assert time.monotonic() - begun < 10


# -- the command ---------------------------------------------------------------------------------------------


class Service:
    """In the service's place: what it was asked for."""

    Settings = Settings

    def serve(self, *arguments: Any, **options: Any) -> None:
        self.asked = arguments, options


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    made = Service()
    monkeypatch.setattr(command_serve, "import_module", lambda name: made)
    return made


def test_command_line_starts_without_the_service() -> None:
    code = "import sys, ldp_budget_service.commands.serve; print([name for name in sys.modules if 'fastapi' in name])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


# -- the guide -----------------------------------------------------------------------------------------------
