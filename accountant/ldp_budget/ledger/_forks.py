"""What happens to an open ledger when its process forks.

SQLite books its file locks in tables of the process. In a child these tables say that it holds locks which only the
parent has, so others may delete the log that the child still writes to, and what it acknowledged would be lost.
Hence a ledger is closed while the process forks, and parent and child each open it again when they need it.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Forkable(Protocol):
    """What wants to know of a fork."""

    def before_fork(self) -> None: ...
    def after_fork_in_parent(self) -> None: ...
    def after_fork_in_child(self) -> None: ...


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()
_held: list[Forkable] = []
_forking = threading.RLock()


def watch(one: Forkable) -> None:
    """Tell `one` of every fork, for as long as it lives."""
    _watched.add(one)


def _before() -> None:
    _forking.acquire()
    _held[:] = list(_watched)
    for one in _held:
        one.before_fork()


def _after_in_parent() -> None:
    for one in _held:
        one.after_fork_in_parent()
    _held.clear()
    _forking.release()


def _after_in_child() -> None:
    global _forking
    _forking = threading.RLock()
    for one in _held:
        one.after_fork_in_child()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
