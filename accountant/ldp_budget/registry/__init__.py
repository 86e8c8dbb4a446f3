"""Registry of mechanisms: plugins, certificates, collections and rankings.

Holds plugin discovery, adapters for third-party objects, and the public definition that clients run.
May import from guarantees, sampling, ledger, composition and sdk.

The context in which plugins are imported is here, so that a command can set it before it imports anything. A plugin may
print while it is imported. Standard output belongs to the process, and several threads may import plugins at the same
time; so the library itself redirects nothing.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    Context = Callable[[], AbstractContextManager[object]]

_of_main_thread: Context = nullcontext


def importing() -> AbstractContextManager[object]:
    """Return the context in which this thread imports plugins."""
    return _of_main_thread() if threading.current_thread() is threading.main_thread() else nullcontext()


@contextmanager
def imports_in(context: Context) -> Iterator[None]:
    """Let the main thread import plugins in a context. Only a program that owns its process may use this."""
    global _of_main_thread
    before, _of_main_thread = _of_main_thread, context
    try:
        yield
    finally:
        _of_main_thread = before
