"""What mechanisms promise and cost, over HTTP: as the commands say it, and never for longer than a while."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
from click.testing import CliRunner
from fastapi.testclient import TestClient

from ldp_budget import Accountant, Collection, mechanism
from ldp_budget.accounting.api_keys import ApiKeys
from ldp_budget_cli.app import cli
from ldp_budget_service import Settings, compute_pool, create_app
from ldp_budget_service.compute_pool import Workers
from ldp_budget_service.error_codes import ForwardedProblem, ServiceError

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
def test_answers_are_those_of_the_commands(
    client: TestClient, path: str, body: Any, command: tuple[str, ...]
) -> None:
    answer = client.post(path, json=body)
    assert (answer.status_code, answer.json()) == (200, said(*command))


def test_a_plan_for_a_collection_is_one_for_its_mechanism(client: TestClient) -> None:
    body = {"reports": 5, "total_epsilon": "2"}
    of_collection = client.post("/v1/plan", json={"collection": "party", **body}).json()
    of_mechanism = client.post("/v1/plan", json={"mechanism": {"name": "oue", "domain_size": 7}, **body}).json()
    assert of_collection == of_mechanism


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/v1/calibrate", {"mechanism": {"name": "none"}}, 404, "unknown-name"),
        ("/v1/calibrate", {"mechanism": {"name": "oue", "epsilon": -1, "domain_size": 7}}, 400, "invalid-parameter"),
        ("/v1/calibrate", {"mechanism": OUE, "users": 0}, 400, "malformed"),
        ("/v1/compose", {"reports": 1}, 400, "malformed"),
        ("/v1/compose", {"collection": "none", "reports": 1}, 404, "unknown-name"),
        ("/v1/compose", {"mechanism": OUE, "reports": 10**6 + 1}, 400, "malformed"),
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
def test_what_is_wrong_is_told_with_its_range(
    client: TestClient, path: str, body: Any, status: int, code: str
) -> None:
    answer = client.post(path, json=body)
    assert (answer.status_code, answer.json()["type"].rpartition("/")[2]) == (status, code)


SLEEPS = """
import sys, time, json
for line in sys.stdin:
    asked = json.loads(line)
    time.sleep(asked.get("sleep", 0))
    if asked.get("die"): sys.exit(1)
    print(json.dumps(asked.get("says", {"answer": asked})), flush=True)
"""


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[Workers]:
    """Workers whose process sleeps and dies as it is told."""
    (tmp_path / "sleeps.py").write_text(SLEEPS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(compute_pool, "_MODULE", "sleeps")
    made = Workers(1, 1.0)
    yield made
    made.close()


@pytest.mark.slow
def test_what_takes_too_long_or_dies_is_ended_and_the_next_is_answered(stub: Workers) -> None:
    begun = time.monotonic()
    for asked in ({"sleep": 60}, {"die": True}):
        with pytest.raises(ServiceError) as caught:
            stub.ask("compose", asked)
        assert caught.value.code == "too-much-work"
    assert stub.ask("compose", {"n": 1})["n"] == 1
    assert time.monotonic() - begun < 30
    with pytest.raises(ServiceError, match="memory"):
        stub.ask("compose", {"says": {"too_much": "MemoryError"}})
    with pytest.raises(RuntimeError, match="a bug"):
        stub.ask("compose", {"says": {"crashed": "a bug"}})
    with pytest.raises(ForwardedProblem, match="wrong"):
        stub.ask("compose", {"says": {"problem": {"detail": "wrong"}}})


def test_an_answer_is_worked_out_once(stub: Workers) -> None:
    first = stub.ask("compose", {"sleep": 0.1})
    assert stub.ask("compose", {"sleep": 0.1}) is first
    assert stub.ask("compose", {"sleep": 0.2}) is not first


@pytest.mark.slow
def test_of_too_many_questions_the_last_are_turned_away(stub: Workers) -> None:
    told: list[Any] = []

    def ask(number: int) -> None:
        try:
            told.append(stub.ask("compose", {"n": number, "sleep": 0.3}))
        except ServiceError as error:
            told.append(error.code)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told.count("overloaded") == 12 - 1 - compute_pool._MOST_WAITING


def test_simulation_is_worked_out_beside_the_service(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulation of 100 years took 7 seconds of the service's own processor time, in which no spend went on."""
    asked: list[str] = []
    ask = Workers.ask
    monkeypatch.setattr(Workers, "ask", lambda self, what, more: asked.append(what) or ask(self, what, more))
    accountant: Accountant = client.app.state.accountant  # type: ignore[attr-defined]
    accountant.set_policy("simulated", ["lifetime=5", "day=1"])
    answer = client.get("/v1/policies/simulated/simulation", params={"every": "day", "collection": "party"})
    found = accountant.simulate(accountant.collection("party"), every="day", policy="simulated")
    assert [row["charged"] for row in answer.json()] == [binding.charged for binding in found]
    assert asked == ["simulate"]


def test_balance_works_out_no_loss_in_the_service(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """`balance?shuffled=N`, for keys that may only read, was worked out in the service and stopped all spends."""
    monkeypatch.setattr("ldp_budget.composition.compose", None)
    accountant: Accountant = client.app.state.accountant  # type: ignore[attr-defined]
    accountant.set_policy("default", ["lifetime=5"])
    accountant.spend("alice", accountant.collection("party"))
    answer = client.get("/v1/users/alice/balance", params={"shuffled": 1000, "odometer": "true"})
    assert answer.json().keys() == {"user", "policy", "limits"}
