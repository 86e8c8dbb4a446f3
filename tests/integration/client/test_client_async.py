"""The async calls of `Client`, and the batches that it cuts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

from contract.acts import coin
from ldp_budget import Accountant, InvalidParameter
from ldp_budget.accounting import bulk_run
from ldp_budget_service.api.schemas import MOST_LINES
from ldp_budget_service.client import Client
from ldp_budget_service.routes import spends
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
    users = [f"user {number}" for number in range(MOST_LINES + 5)]
    result = client.spend_many(users, coin("0.5"), key="run", on_batch=lambda users, refused: sizes.append(users))
    assert (sizes, result.spent) == ([MOST_LINES + 5], MOST_LINES + 5)


@pytest.mark.parametrize("name", ["x" * 1000, "é" * 700, "𝕏" * 300, 'quote " and \\ ' * 60])
def test_spend_many_of_long_names_cuts_batches_that_the_service_accepts(
    monkeypatch: pytest.MonkeyPatch, client: Client, name: str
) -> None:
    monkeypatch.setattr(bulk_run, "BATCH_BYTES", 20_000)
    monkeypatch.setattr(spends, "MOST_BYTES", 21_500)
    sizes: list[int] = []
    users = [f"{number} {name}" for number in range(40)]
    assert client.spend_many(users, coin("0.5"), key="run", on_batch=lambda n, refused: sizes.append(n)).spent == 40
    assert sum(sizes) == 40
    assert len(sizes) > 1
    assert min(sizes[:-1]) >= 10
    assert client.spend_many(users, coin("0.5"), key="run").repeated == 40
