"""The path of `POST /v1/spends` is short enough to read: the files of ours that it runs through, on every thread."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import ldp_budget
import ldp_budget_service
from charging_requests import Asked, _answer
from ldp_budget import Accountant
from ldp_budget_service import create_app
from ldp_budget_service.api_keys import ApiKeys

SERVICE = str(Path(ldp_budget_service.__file__).parent)
FOLDERS = SERVICE, str(Path(ldp_budget.__file__).parent)
BODY = b'{"user": "alice", "mechanism": {"name": "rr", "epsilon": "0.0001"}}'


@pytest.fixture
def files(tmp_path: Path) -> set[str]:
    """Run some charges, and return the files of the last one."""
    found: set[str] = set()
    watched = False

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if watched and event == "call" and frame.f_code.co_filename.startswith(FOLDERS):
            found.add(frame.f_code.co_filename)

    async def charges(app: Any, secret: str) -> None:
        nonlocal watched
        for number in range(5):
            headers = ("host", "x"), ("authorization", f"Bearer {secret}"), ("content-type", "application/json")
            watched = number == 4
            answer = await _answer(app, Asked(headers=(*headers, ("idempotency-key", f"{number}")), parts=(BODY,)))
            assert answer[0] == 200
        watched = False

    threading.setprofile(profile)  # of the threads that begin now, such as the writer's
    sys.setprofile(profile)
    try:
        with Accountant(tmp_path / "budget.db") as accountant:
            accountant.set_policy("default", ["lifetime=4", "day=1"])
            secret = ApiKeys(accountant).create("a", ["spend"])[1]
            asyncio.run(charges(create_app(accountant), secret))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return found


@pytest.mark.slow
def test_post_of_a_charge_runs_through_few_files(files: set[str]) -> None:
    of_the_service = {file for file in files if file.startswith(SERVICE)}
    assert 5 < len(of_the_service) <= 10, sorted(of_the_service)
    assert len(files) <= 26, sorted(files)
