"""The async calls of `Client`, and the batches that it cuts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

from ldp_budget import Accountant, InvalidParameter
from ldp_budget_service.api.schemas import MOST_LINES
from ldp_budget_service.client import Client
from ldp_budget_service.client import batch as client_batch
from ledger_contract import coin
from service_threads import Served


@pytest.fixture
def served() -> Iterator[Served]:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        with Served(accountant) as made:
            yield made


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with Client(f"http://127.0.0.1:{served.port}", served.secret("spend", "read")) as made:
        yield made


def test_spend_async_of_many_tasks_gives_each_its_own_result(served: Served, client: Client) -> None:
    async def spend_all() -> list[Any]:
        tasks = (client.spend_async(f"user-{n % 3}", coin(1), key=str(n)) for n in range(15))
        return await asyncio.gather(*tasks)

    statuses = [receipt.status for receipt in asyncio.run(spend_all())]
    assert (statuses.count("spent"), statuses.count("refused")) == (12, 3)
    assert served.accountant.verify().ok


def test_reserve_async_and_balance_async_do_the_same_as_reserve_and_balance(client: Client) -> None:
    async def reserve() -> tuple[Any, Any]:
        receipt = await client.reserve_async("alice", coin(1), key="k", expires=60, note="weekly")
        return receipt, await client.balance_async("alice")

    receipt, balance = asyncio.run(reserve())
    assert client.reserve("alice", coin(1), key="k", expires=60).repeated
    assert balance == client.balance("alice")
    assert client.void(receipt.receipt).status == "voided"
    with pytest.raises(InvalidParameter):
        asyncio.run(client.spend_async("", coin(1)))


def test_receipt_of_a_service_has_the_position_of_the_ledger(served: Served, client: Client) -> None:
    spent = client.spend("alice", coin(1), key="k")
    assert spent.position == served.accountant.position("alice") != ""
    assert client.spend("alice", coin(9)).position == spent.position
    assert client.spend("alice", coin(1), key="k").position == spent.position
    held = client.reserve("alice", coin(1))
    assert client.commit(held.receipt or "").position == served.accountant.position("alice")


def test_spend_many_cuts_batches_that_the_service_accepts(monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    sizes: list[int] = []
    result = client.spend_many(
        (f"user {number}" for number in range(MOST_LINES + 5)),
        coin("0.5"),
        key="run",
        on_batch=lambda users, refused: sizes.append(users),
    )
    assert (sizes, result.spent) == ([MOST_LINES, 5], MOST_LINES + 5)
    monkeypatch.setattr(client_batch, "MOST_BYTES", 1000)
    users = [f"{number}-{'x' * 100}" for number in range(30)]
    cut = list(client_batch.batches(users, {"policy": "default"}))
    assert [user for each in cut for user in each.users] == users
    assert len(cut) > 3
    assert all(len(b"".join(each.lines)) <= 1000 for each in cut)
