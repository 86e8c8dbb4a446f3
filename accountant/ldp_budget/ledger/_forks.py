"""What happens to an open ledger when its process forks.

SQLite books its file locks in tables of the process. In a child these tables say that it holds locks which only the
parent has, so others may delete the log that the child still writes to, and what it acknowledged would be lost.
Hence a ledger is closed while the process forks, and parent and child each open it again when they need it.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator


class Forkable(Protocol):
    """What wants to know of a fork."""

    def before_fork(self) -> None: ...
    def after_fork_in_parent(self) -> None: ...
    def after_fork_in_child(self) -> None: ...


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()
_held: list[Forkable] = []
_forking = threading.RLock()
_opening = threading.RLock()
"""Nobody opens a ledger while the process forks. Whoever forks takes it last, so whoever has it waits for nobody."""


def watch(one: Forkable) -> None:
    """Tell `one` of every fork, for as long as it lives."""
    with _opening:
        _watched.add(one)


@contextmanager
def opening(one: Forkable) -> Iterator[None]:
    """Hold forks off while `one` is opened, and tell it of every later one.

    SQLite has locks of its own, which a child would find shut for ever.
    """
    with _opening:
        yield
        _watched.add(one)


def _before() -> None:
    _forking.acquire()
    while True:
        _opening.acquire()
        others = [one for one in _watched if one not in _held]
        if not others:
            return
        # Who writes may be opening another ledger just now, and one more may have been opened meanwhile.
        _opening.release()
        for one in others:
            one.before_fork()
            _held.append(one)


def _after_in_parent() -> None:
    for one in _held:
        one.after_fork_in_parent()
    _held.clear()
    _opening.release()
    _forking.release()


def _after_in_child() -> None:
    global _forking, _opening
    _forking, _opening = threading.RLock(), threading.RLock()
    for one in _held:
        one.after_fork_in_child()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
