"""The rule of the unit tier, checked in the setup and the call of each test: no process and no connection.

A case with the marker `exhaustive` is of another tier, and may have both.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any

import pytest

STARTS = frozenset({"subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"})
CONNECTS = frozenset({"socket.bind", "socket.connect", "socket.getaddrinfo"})


class TierError(RuntimeError):
    """A unit test did what only integration and exhaustive tests do."""


class Guard:
    """Refuses the audit events of a process or a connection while it is on; Python has no way to remove the hook."""

    def __init__(self, forbidden: frozenset[str] = STARTS | CONNECTS) -> None:
        self.attempts: list[str] = []
        self._forbidden = forbidden
        self._is_on = False
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._is_on and event in self._forbidden:
            self.attempts.append(f"{event}{arguments[:2]!r:.80}")
            raise TierError(f"{self.attempts[-1]}: a test that needs this belongs in tests/integration")

    def during(self) -> Generator[None, Any, Any]:
        """Guard what a hook wrapper yields to; fail afterwards if the test caught the refusal."""
        self.attempts.clear()
        self._is_on = True
        try:
            result = yield
        finally:
            self._is_on = False
        if self.attempts:
            raise TierError(f"{', '.join(self.attempts)}: a test that needs this belongs in tests/integration")
        return result


GUARD = Guard()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from GUARD.during()) if item.get_closest_marker("exhaustive") is None else (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from GUARD.during()) if item.get_closest_marker("exhaustive") is None else (yield)
