"""Requests that find old API keys wait for one reading of the log."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from charging_requests import BODIES, Asked, _answer
from ldp_budget import Accountant, mechanism
from ldp_budget_service import create_app
from ldp_budget_service.api_keys import ApiKeys


@pytest.fixture
def accountant() -> Any:
    with Accountant(":memory:", clock=lambda: datetime(2026, 11, 22, 9, 30, tzinfo=UTC)) as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        accountant.spend("alice", mechanism("rr")(epsilon="0.1"))
        yield accountant


def asked(secret: str, number: int) -> Asked:
    headers = ("host", "x"), ("authorization", f"Bearer {secret}"), ("idempotency-key", f"{number}")
    return Asked(headers=(*headers, ("content-type", "application/json")), parts=(BODIES[0],))


def statuses(app: Any, secret: str, number: int) -> list[int]:
    async def together() -> list[Any]:
        return await asyncio.gather(*[_answer(app, asked(secret, each)) for each in range(number)])

    return [answer[0] for answer in asyncio.run(together())]


def test_requests_with_old_keys_read_them_once_together(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = ApiKeys(accountant).create("a", ["spend"])[1]
    app = create_app(accountant)
    read, readings = accountant.records, []

    def records(*arguments: Any) -> Any:
        readings.append(time.monotonic())
        return read(*arguments)

    monkeypatch.setattr(accountant, "records", records)
    assert statuses(app, secret, 8) == [200] * 8
    assert len(readings) == 1
    assert statuses(app, secret, 8) == [200] * 8  # the same keys, in another event loop
    assert len(readings) == 1


def test_key_revoked_through_the_same_accountant_ends_at_once(accountant: Accountant) -> None:
    keys = ApiKeys(accountant)
    secret = keys.create("a", ["spend"])[1]
    app = create_app(accountant)
    assert statuses(app, secret, 2) == [200, 200]
    keys.revoke("a")
    assert statuses(app, secret, 2) == [401, 401]
