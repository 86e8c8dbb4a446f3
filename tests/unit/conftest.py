"""The rule of the unit tier, checked in the setup and the call of each test: no process and no connection."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from tier_guard import Guard

GUARD = Guard()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, Any, Any]:
    return (yield from GUARD.during())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    return (yield from GUARD.during())
