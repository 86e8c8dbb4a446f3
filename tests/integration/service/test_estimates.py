"""Estimates over HTTP: a worker process computes them, with limits, once for each set of reports."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import anyio
import anyio.from_thread
import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
from fastapi.testclient import TestClient

from ldp_budget import Accountant, Collection, mechanism
from ldp_budget.reports import estimation
from ldp_budget.reports.inbox import Inbox, Sent
from ldp_budget_service import Settings, compute_pool, create_app
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_service.compute_pool import Workers
from ldp_budget_service.error_codes import ServiceError

PATH = "/v1/collections/party/estimate"
ANSWERS = ("left", "right", "neither")


class Site:
    """A service with a collection of three answers."""

    def __init__(self, settings: Settings) -> None:
        self.accountant = Accountant(":memory:")
        self.accountant.set_policy("default", ["lifetime=1000"])
        oue = mechanism("oue")(epsilon="2", domain_size=3)
        self.collection = Collection("party", oue, ANSWERS).agreed()
        self.inbox = Inbox(self.accountant, self.collection)
        secret = ApiKeys(self.accountant).create("reader", ["read"])[1]
        self.client = TestClient(create_app(self.accountant, settings), headers={"Authorization": f"Bearer {secret}"})

    def seal(self, name: str, count: int) -> None:
        """Add a round of answers to the first question."""
        reports = self.inbox.bytes_of(self.collection.randomize([number % 3 for number in range(count)]))
        self.inbox.take_many([Sent(f"{name} {place}", "k", each) for place, each in enumerate(reports)])
        assert self.inbox.seal(name, count) == count


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    made = Site(Settings())
    made.seal("one", 60)
    made.seal("two", 30)
    with made.client, made.accountant:
        yield made


@pytest.fixture
def in_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an estimate in this process fail."""
    for name in ("total_of", "estimate_totals", "estimate_row"):
        monkeypatch.setattr(estimation, name, lambda *a, **k: pytest.fail("computed in the process of the service"))


def expected(site: Site, *rounds: str, **more: Any) -> Any:
    totals = [estimation.total_of(site.collection, site.inbox.round(name)) for name in rounds]
    result = estimation.estimate_totals(site.collection, totals)
    assert result is not None
    return estimation.estimate_row(site.collection, result, **more)


def test_estimate_of_a_worker_equals_that_of_the_library(site: Site) -> None:
    assert site.client.get(PATH).json() == expected(site, "one", "two")
    assert site.client.get(PATH, params={"round": "two"}).json() == expected(site, "two")
    found = site.client.get(PATH, params={"by_round": "true", "confidence": "0.5"}).json()["rounds"]
    assert found == [{"round": name, **expected(site, name, level=0.5)} for name in ("one", "two")]


@pytest.mark.usefixtures("in_a_worker")
def test_estimate_is_not_computed_in_the_service(site: Site) -> None:
    """With a `read` key, an estimate of heavy hitters took 27 seconds and 565 MiB in the process of the service."""
    assert site.client.get(PATH, params={"top": 2, "adjust": "simplex"}).status_code == 200


def test_new_round_is_in_the_next_estimate(site: Site) -> None:
    before = site.client.get(PATH).json()
    site.seal("three", 20)
    assert site.client.get(PATH).json()["reports"] == before["reports"] + 20


def test_estimate_beyond_the_time_limit_is_refused_and_spends_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Site(Settings(estimate_seconds=0.001))
    made.seal("one", 20)
    with made.client, made.accountant:
        answer = made.client.get(PATH)
        assert (answer.status_code, answer.json()["type"]) == (400, "/problems/too-much-work")
        assert made.client.get("/v1/policies").status_code == 200


def test_round_below_the_minimum_group_is_refused_and_the_rest_waits() -> None:
    made = Site(Settings())
    bearer = {"Authorization": f"Bearer {ApiKeys(made.accountant).create('admin', ['admin'])[1]}"}
    body = {
        "name": "mood",
        "mechanism": {"name": "oue", "epsilon": "1"},
        "categories": ["a", "b"],
        "minimum_group": 4,
    }
    with made.client as client, made.accountant as accountant:
        assert client.post("/v1/collections", json=body, headers=bearer).json()["minimum_group"] == 4
        wrong = client.post("/v1/collections", json={**body, "minimum_group": 1}, headers=bearer)
        assert (wrong.status_code, wrong.json()["type"]) == (409, "/problems/name-taken")
        inbox = Inbox(accountant, accountant.collection("mood"))
        inbox.take_many([Sent(f"user {number}", "k", b"\1") for number in range(3)])
        early = client.post("/v1/collections/mood/rounds", json={"round": "one"}, headers=bearer)
        assert (early.status_code, early.json()["type"]) == (409, "/problems/too-few-reports")
        inbox.take_many([Sent(f"late {number}", "k", b"\1") for number in range(2)])
        assert (
            client.post("/v1/collections/mood/rounds", json={"round": "one"}, headers=bearer).json()["reports"] == 4
        )
        assert client.get("/v1/collections/mood/estimate", headers=bearer).json()["reports"] == 4
        assert len(inbox) == 1


# -- the pool ------------------------------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calculations that were begun. A worker is a pause."""
    begun: list[str] = []

    async def run(function: Any, line: str, memory: int, **more: Any) -> Any:
        begun.append(line)
        await anyio.sleep(0.05)
        return {"memory": memory}

    monkeypatch.setattr(compute_pool.anyio.to_process, "run_sync", run)
    return begun


def asked_at_once(workers: Workers, questions: list[int]) -> list[Any]:
    """What many requests at once get; of an error its code and its header."""
    found: list[Any] = []

    async def one(number: int) -> None:
        try:
            found.append(await workers.answer("estimate", {"n": number}))
        except ServiceError as error:
            found.append((error.code, error.headers))

    async def all_of_them() -> None:
        async with anyio.create_task_group() as group:
            for number in questions:
                group.start_soon(one, number)

    anyio.run(all_of_them)
    return found


def test_equal_requests_at_once_are_one_calculation(counted: list[str]) -> None:
    found = asked_at_once(Workers(1, 10, 123), [7] * 24)
    assert (len(counted), found) == (1, [{"memory": 123}] * 24)


@pytest.mark.parametrize("processes", [1, 3])
def test_requests_beyond_the_queue_are_refused_with_the_time_to_retry(counted: list[str], processes: int) -> None:
    found = asked_at_once(Workers(processes, 10), list(range(24)))
    admitted = processes + compute_pool._MOST_WAITING
    assert len(counted) == admitted
    assert found.count(("overloaded", {"Retry-After": "5"})) == 24 - admitted


def test_request_that_goes_away_does_not_end_the_calculation_of_others(counted: list[str]) -> None:
    workers, found = Workers(1, 10), []

    async def stay() -> None:
        found.append(await workers.answer("estimate", {"n": 1}))

    async def leave() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(stay)
            with anyio.move_on_after(0.01):
                await workers.answer("estimate", {"n": 1})

    anyio.run(leave)
    assert (len(counted), len(found)) == (1, 1)


def test_failed_calculation_is_not_cached(counted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*given: Any, **more: Any) -> Any:
        raise MemoryError

    workers, run = Workers(1, 10), compute_pool.anyio.to_process.run_sync
    with anyio.from_thread.start_blocking_portal() as portal:
        monkeypatch.setattr(compute_pool.anyio.to_process, "run_sync", fails)
        with pytest.raises(ServiceError, match="memory"):
            portal.call(partial(workers.answer, "estimate", {"n": 1}))
        monkeypatch.setattr(compute_pool.anyio.to_process, "run_sync", run)
        assert portal.call(partial(workers.answer, "estimate", {"n": 1}))
