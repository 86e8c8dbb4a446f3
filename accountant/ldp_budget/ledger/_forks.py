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

    def hold(self, wait: bool) -> bool:
        """Keep every other thread out; without `wait`, only if that can be done at once. Whether it was done."""

    def let_go(self) -> None:
        """Undo `hold`."""

    def before_fork(self) -> None:
        """Get ready, once all are held."""

    def after_fork_in_child(self) -> None:
        """Begin anew: no thread is there but the one that forked."""


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()
_held: list[Forkable] = []
_forking = threading.RLock()
_opening = threading.RLock()
"""Nobody opens a ledger while the process forks. Whoever forks takes it last, so whoever has it waits for nobody."""


_closing = threading.RLock()
"""No ledger that was dropped is being closed while the process forks. Whoever has it waits for no other lock here."""


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


@contextmanager
def closing() -> Iterator[None]:
    """Hold forks off while a ledger is closed that nobody holds any more, so that no fork knows of it."""
    with _closing:
        yield


def _before() -> None:
    _forking.acquire()
    while not _hold_all():
        pass
    _closing.acquire()
    for one in _held:
        one.before_fork()


def _hold_all() -> bool:
    """Hold all there are, and keep others from being opened; whether there were no more than were held before.

    A thread may have one and wait for another, so whoever forks waits for one at a time, with none held.
    """
    _opening.acquire()
    others = [one for one in _watched if one not in _held]
    if not others:
        return True
    _opening.release()
    for one in others:
        if not one.hold(wait=False):
            _let_all_go()
            one.hold(wait=True)
            _held.append(one)
            break
        _held.append(one)
    return False


def _let_all_go() -> None:
    for one in _held:
        one.let_go()
    _held.clear()


def _after_in_parent() -> None:
    _let_all_go()
    _closing.release()
    _opening.release()
    _forking.release()


def _after_in_child() -> None:
    global _forking, _opening, _closing
    _forking, _opening, _closing = threading.RLock(), threading.RLock(), threading.RLock()
    for one in _held:
        one.after_fork_in_child()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
