"""Calculations over HTTP: guarantees and costs equal those of the commands, within a time limit."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
import anyio.from_thread
import anyio.to_thread
from click.testing import CliRunner
from fastapi.testclient import TestClient

from ldp_budget import Accountant, Collection, mechanism
from ldp_budget_cli.app import cli
from ldp_budget_service import Settings, compute_pool, create_app
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_service.compute_pool import Workers
from ldp_budget_service.error_codes import ServiceError

OUE = {"name": "oue", "epsilon": "1", "domain_size": 7}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with Accountant(":memory:") as accountant:
        accountant.add_collection(Collection("party", mechanism("oue")(epsilon="1", domain_size=7)))
        secret = ApiKeys(accountant).create("reader", ["read"])[1]
        app = create_app(accountant, Settings(question_seconds=20))
        with TestClient(app, headers={"Authorization": f"Bearer {secret}"}) as made:
            yield made


def said(*arguments: str) -> Any:
    result = CliRunner().invoke(cli, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


OPTIONS = ("oue", "--epsilon", "1", "--domain-size", "7")


@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("path", "body", "command"),
    [
        ("/v1/calibrate", {"mechanism": OUE, "users": 100}, ("calibrate", *OPTIONS, "--users", "100")),
        (
            "/v1/calibrate",
            {"mechanism": {"name": "gaussian", "epsilon": 1, "delta": "1e-6"}},
            ("calibrate", "gaussian", "--epsilon", "1", "--delta", "1e-6"),
        ),
        ("/v1/compose", {"mechanism": OUE, "reports": 50}, ("compose", *OPTIONS, "--reports", "50")),
        (
            "/v1/compose",
            {"collection": "party", "reports": 50, "total_delta": "1e-6", "shuffled": 1000},
            ("compose", *OPTIONS, "--reports", "50", "--total-delta", "1e-6", "--shuffled", "1000"),
        ),
        (
            "/v1/plan",
            {"mechanism": {"name": "oue", "domain_size": 7}, "reports": 5, "total_epsilon": "2"},
            ("plan", "oue", "--domain-size", "7", "--reports", "5", "--total-epsilon", "2"),
        ),
        (
            "/v1/compare",
            {"epsilon": "1", "domain_size": 7, "users": 100, "reports": 3},
            ("compare", "--epsilon", "1", "--domain-size", "7", "--users", "100", "--reports", "3"),
        ),
        (
            "/v1/compare",
            {"epsilon": "1", "lower": 0, "upper": "1"},
            ("compare", "--epsilon", "1", "--lower", "0", "--upper", "1"),
        ),
    ],
)
def test_calculation_equals_that_of_the_command(
    client: TestClient, path: str, body: Any, command: tuple[str, ...]
) -> None:
    answer = client.post(path, json=body)
    assert (answer.status_code, answer.json()) == (200, said(*command))


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/v1/calibrate", {"mechanism": {"name": "none"}}, 404, "unknown-name"),
        ("/v1/calibrate", {"mechanism": {"name": "oue", "epsilon": -1, "domain_size": 7}}, 400, "invalid-parameter"),
        ("/v1/calibrate", {"mechanism": OUE, "users": 0}, 400, "invalid-parameter"),
        ("/v1/compose", {"reports": 1}, 400, "invalid-parameter"),
        ("/v1/compose", {"collection": "none", "reports": 1}, 404, "unknown-name"),
        ("/v1/compose", {"mechanism": OUE, "reports": 10**6 + 1}, 400, "invalid-parameter"),
        ("/v1/compose", {"mechanism": OUE, "reports": 1, "total_delta": "2"}, 400, "invalid-parameter"),
        ("/v1/compose", {"mechanism": OUE, "reports": 1, "total_delta": "x"}, 400, "invalid-parameter"),
        ("/v1/plan", {"mechanism": OUE, "reports": 1, "total_epsilon": "1"}, 400, "invalid-parameter"),
        ("/v1/plan", {"collection": "party", "reports": 1, "total_epsilon": "x"}, 400, "invalid-parameter"),
        ("/v1/compare", {"epsilon": "1"}, 400, "invalid-parameter"),
        ("/v1/compare", {"epsilon": "1", "lower": 0}, 400, "invalid-parameter"),
        ("/v1/compare", {"epsilon": "1", "domain_size": 7}, 400, "invalid-parameter"),
        ("/v1/compare", {"epsilon": "1", "lower": 0, "upper": 1, "total_delta": "0"}, 400, "invalid-parameter"),
    ],
)
def test_calculation_with_a_wrong_value_states_the_range(
    client: TestClient, path: str, body: Any, status: int, code: str
) -> None:
    answer = client.post(path, json=body)
    assert (answer.status_code, answer.json()["type"].rpartition("/")[2]) == (status, code)


SLEEPS = """
import json, os, time

def answer(line, memory=0):
    asked = json.loads(line)
    time.sleep(asked.get("sleep", 0))
    if asked.get("die"):
        os._exit(1)
    if asked.get("too_much"):
        raise MemoryError
    if asked.get("bug"):
        raise RuntimeError("a bug")
    return asked
"""

Ask = Callable[[dict[str, Any]], Any]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Ask]:
    """Requests to a worker that sleeps and dies on command, from a thread of an event loop."""
    (tmp_path / "sleeps.py").write_text(SLEEPS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(compute_pool, "answer", import_module("sleeps").answer)
    workers = Workers(1, 3.0)
    with anyio.from_thread.start_blocking_portal() as portal:
        yield lambda asked: portal.call(anyio.to_thread.run_sync, workers.ask, "compose", asked)


@pytest.mark.exhaustive
def test_workers_end_a_slow_or_dead_calculation_and_answer_the_next(ask: Ask) -> None:
    for asked in ({"sleep": 60}, {"die": True}, {"too_much": True}):
        with pytest.raises(ServiceError, match="memory") as caught:
            ask(asked)
        assert caught.value.code == "too-much-work"
    with pytest.raises(RuntimeError, match="a bug"):
        ask({"bug": True})
    assert ask({"n": 1})["n"] == 1


@pytest.mark.exhaustive
def test_calculations_beyond_the_queue_are_refused(ask: Ask) -> None:
    told: list[Any] = []

    def one(number: int) -> None:
        try:
            told.append(ask({"n": number, "sleep": 0.3}))
        except ServiceError as error:
            told.append(error.code)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told.count("overloaded") == 12 - 1 - compute_pool._MOST_WAITING


@pytest.mark.exhaustive
def test_calculation_beyond_the_memory_limit_is_refused() -> None:
    code = "from ldp_budget_service import compute_pool as c; c.QUESTIONS['a'] = lambda asked: "
    code += 'len(bytearray(c.MOST_MEMORY)); c.answer(\'{"question": "a"}\')'
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MemoryError" in ended.stderr


def test_simulation_runs_in_another_process(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulation of 100 years took 7 seconds of the service's own processor time, during which no spend was served."""
    asked: list[str] = []
    ask = Workers.answer
    monkeypatch.setattr(Workers, "answer", lambda self, what, more: asked.append(what) or ask(self, what, more))
    accountant: Accountant = client.app.state.accountant  # type: ignore[attr-defined]
    accountant.set_policy("simulated", ["lifetime=5", "day=1"])
    answer = client.get("/v1/policies/simulated/simulation", params={"every": "day", "collection": "party"})
    found = accountant.simulate(accountant.collection("party"), every="day", policy="simulated")
    assert [row["charged"] for row in answer.json()] == [binding.charged for binding in found]
    assert asked == ["simulate"]


def test_balance_computes_no_loss_in_the_service(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """`balance?shuffled=N`, for keys that may only read, was worked out in the service and stopped all spends."""
    monkeypatch.setattr("ldp_budget.composition.compose", None)
    accountant: Accountant = client.app.state.accountant  # type: ignore[attr-defined]
    accountant.set_policy("default", ["lifetime=5"])
    accountant.spend("alice", accountant.collection("party"))
    assert client.get("/v1/users/alice/balance", params={"shuffled": 1000}).status_code == 400
    answer = client.get("/v1/users/alice/balance")
    assert answer.json().keys() == {"user", "policy", "limits"}
