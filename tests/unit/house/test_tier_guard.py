"""The guard of the unit tier refuses a process and a connection, also if the test catches the refusal."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest

from tier_guard import Guard, TierError


@pytest.fixture
def guard() -> Guard:
    """A guard of one event that only these tests raise."""
    return Guard(frozenset({"ldp_budget.test"}))


def test_guard_during_a_test_refuses_the_event(guard: Guard) -> None:
    during = guard.during()
    next(during)
    with pytest.raises(TierError, match="tests/integration"):
        sys.audit("ldp_budget.test", 7)


def test_guard_after_a_caught_refusal_fails_the_test(guard: Guard) -> None:
    during = guard.during()
    next(during)
    with pytest.raises(TierError):
        sys.audit("ldp_budget.test")
    with pytest.raises(TierError, match=r"ldp_budget\.test"):
        during.send(None)


def test_guard_outside_a_test_refuses_nothing(guard: Guard) -> None:
    sys.audit("ldp_budget.test")
    assert guard.attempts == []


def connect() -> None:
    with socket.socket() as opened:
        opened.connect(("127.0.0.1", 9))


@pytest.fixture
def active(request: pytest.FixtureRequest) -> Guard:
    """The guard of this tier."""
    [module] = [
        plugin
        for plugin in request.config.pluginmanager.get_plugins()
        if str(getattr(plugin, "__file__", "")).endswith("unit/conftest.py")
    ]
    return module.GUARD  # type: ignore[no-any-return]


@pytest.mark.parametrize("start", [lambda: subprocess.run(["true"], check=True), os.fork, connect])
def test_guard_of_the_unit_tier_refuses_a_process_and_a_connection(
    start: Callable[[], object], active: Guard
) -> None:
    with pytest.raises(TierError):
        start()
    active.attempts.clear()
