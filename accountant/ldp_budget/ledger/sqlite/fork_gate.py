"""Forks while other threads use SQLite: a fork waits until no thread is inside.

A forked child has a copy of SQLite's memory, and of its threads only the one that forked. A lock that another thread
held, a mutex of SQLite or a lock of a ledger, is held in the child forever: it hangs, or believes that it is writing
itself. So every use of SQLite by a ledger holds a lock of this module, which the thread that forks takes before.
There are two kinds:

- a *section* is held while a ledger is opened, closed, written to or copied;
- a *call* lock belongs to a connection that reads. It is held for each call into SQLite, and not between two: a
  snapshot that a caller holds for an hour delays no fork.

A thread inside a call waits for nothing else. So the thread that forks takes all sections first and the calls last.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECONDS = 10.0
"""Longest time that a fork waits. A child that is forked within a transaction could not open the ledger."""

_WAY_SECONDS = 0.1

# Held while a lock is added; and by the thread that forks, once it has all sections: then nothing is opened.
_registry = threading.RLock()
_sections: weakref.WeakSet[Any] = weakref.WeakSet()
_calls: weakref.WeakSet[Any] = weakref.WeakSet()
_unfinished: list[_GatedCursor] = []
"""Cursors that the program dropped while another thread had their lock."""
held: dict[int, list[Any]] = {}
"""The locks that each thread that forks has taken."""


def new_section() -> Any:
    """Return a lock that keeps the process from forking while it is held."""
    section = threading.RLock()
    with _registry:
        _sections.add(section)
    return section


@contextmanager
def section() -> Iterator[None]:
    """Keep the process from forking."""
    with new_section():
        yield


def is_held_by_fork() -> bool:
    """Return True while a thread forks."""
    return bool(held)


def give_way() -> None:
    """Let a thread that waits to fork go first, for a tenth of a second: the locks are not fair."""
    if held and threading.get_ident() not in held:
        deadline = time.monotonic() + _WAY_SECONDS
        while held and time.monotonic() < deadline:
            time.sleep(_WAY_SECONDS / 100)


def _new_call() -> Any:
    _finish_cursors()
    call = threading.RLock()
    with _registry:
        _calls.add(call)
    return call


class _Connection(sqlite3.Connection):
    """A connection whose users hold a section: its calls take no lock, which would slow down each charge."""


class GatedConnection(_Connection):
    """A connection whose calls keep the process from forking, until `ungate`."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self._call: Any = _new_call()
        with self._call:
            super().__init__(*given, **named)

    def ungate(self) -> None:
        """Leave the locks out from now on: each user of the connection holds a section."""
        self.__class__ = _Connection  # type: ignore[assignment]

    def cursor(self, factory: Any = sqlite3.Cursor) -> Any:
        if factory is not sqlite3.Cursor:
            return super().cursor(factory)
        with self._call:
            cursor: sqlite3.Cursor = super().cursor(_GatedCursor)  # type: ignore[arg-type]
            return cursor

    def execute(self, *given: Any) -> Any:
        return self.cursor().execute(*given)

    def executemany(self, *given: Any) -> Any:
        return self.cursor().executemany(*given)

    def close(self) -> None:
        with self._call:
            super().close()


class _GatedCursor(sqlite3.Cursor):
    """A cursor of a gated connection."""

    def __init__(self, connection: GatedConnection) -> None:
        super().__init__(connection)
        self._call = connection._call

    def _call_within(self, function: Any, *given: Any) -> Any:
        with self._call:
            try:
                return function(self, *given)
            except sqlite3.Error:
                # The error's traceback may keep the cursor, and an open statement would keep the database open.
                self.finish()
                raise

    def execute(self, *given: Any) -> Any:
        return self._call_within(sqlite3.Cursor.execute, *given)

    def executemany(self, *given: Any) -> Any:
        return self._call_within(sqlite3.Cursor.executemany, *given)

    def __next__(self) -> Any:
        return self._call_within(sqlite3.Cursor.__next__)

    def fetchone(self) -> Any:
        return self._call_within(sqlite3.Cursor.fetchone)

    def fetchmany(self, *given: Any) -> Any:
        return self._call_within(sqlite3.Cursor.fetchmany, *given)

    def fetchall(self) -> Any:
        return self._call_within(sqlite3.Cursor.fetchall)

    def __del__(self) -> None:
        # Python would end the statement without the lock. This may run anywhere, so it waits for nothing.
        if self._call.acquire(blocking=False):
            try:
                self.finish()
            finally:
                self._call.release()
        else:
            _unfinished.append(self)

    def finish(self) -> None:
        """End the statement."""
        with suppress(sqlite3.Error), self._call:
            super().close()


def _finish_cursors() -> None:
    while _unfinished:
        _unfinished.pop().finish()


# -- forks ---------------------------------------------------------------------------------------------------


def at_fork(in_parent: Callable[[], None], in_child: Callable[[bool], None]) -> None:
    """Register what is done after each fork; the child learns if no other thread was inside SQLite."""

    def after_in_child() -> None:
        mine = held.get(threading.get_ident(), [])
        held.clear()
        held[threading.get_ident()] = mine
        try:
            in_child(_registry in mine)
        finally:
            _let_go()

    def after_in_parent() -> None:
        _let_go()
        _finish_cursors()
        in_parent()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_hold, after_in_parent=after_in_parent, after_in_child=after_in_child)


def _hold() -> None:
    """Take all locks: the sections, then the registry, then the calls. After some seconds, fork without the rest."""
    mine = held.setdefault(threading.get_ident(), [])
    deadline = time.monotonic() + SECONDS
    seen: dict[int, Any] = {}  # by identity

    def take(locks: weakref.WeakSet[Any]) -> bool:
        """Take the locks that were not seen yet; return True if none is missing."""
        with _registry:
            found = list(locks)
        for each in found:
            if id(each) not in seen:
                seen[id(each)] = each
                if _take(each, deadline):
                    mine.append(each)
        return len(mine) == len(seen)

    while take(_sections) and _take(_registry, deadline):
        if len(seen) == len(_sections):
            if take(_calls):
                mine.append(_registry)
            else:
                _registry.release()
            return
        _registry.release()


def _take(lock: Any, deadline: float) -> bool:
    taken: bool = lock.acquire(timeout=max(0.0, deadline - time.monotonic()))
    return taken


def _let_go() -> None:
    for lock in reversed(held.pop(threading.get_ident(), [])):
        lock.release()
