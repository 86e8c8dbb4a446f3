"""The rule of the unit tier, checked in the setup and the call of each test: no process and no connection.

A case with the marker `exhaustive` is of another tier, and may have both.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from tier_guard import Guard

GUARD = Guard()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from GUARD.during()) if item.get_closest_marker("exhaustive") is None else (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from GUARD.during()) if item.get_closest_marker("exhaustive") is None else (yield)
