"""Registry of mechanisms: plugins, certificates and collections.

Holds plugin discovery, adapters for third-party objects, and the public definition that clients run.
May import from guarantees, sampling, ledger, composition and sdk.

The context in which plugins are imported is here, so that a command can set it before it imports anything. A plugin may
print while it is imported. Standard output belongs to the process, and several threads may import plugins at the same
time; so the library itself redirects nothing. With the context come the options of the commands, which plugins must not
take for their fields.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from ..charge_options import NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    Context = Callable[[], AbstractContextManager[object]]

_of_main_thread: Context = nullcontext
_options: Callable[[], Iterable[str]] = tuple


def importing() -> AbstractContextManager[object]:
    """Return the context in which this thread imports plugins."""
    return _of_main_thread() if threading.current_thread() is threading.main_thread() else nullcontext()


def taken_names() -> frozenset[str]:
    """Return the names that no field of a plugin's mechanism may have: a command with that option could not set it."""
    return frozenset(NAMES).union(_options())


@contextmanager
def imports_in(context: Context, options: Callable[[], Iterable[str]] = tuple) -> Iterator[None]:
    """Let the main thread import plugins in a context. Only a program that owns its process may use this.

    Parameters:
        context: makes the context.
        options: returns the names of the program's own options; called if a plugin is found.
    """
    global _of_main_thread, _options
    before = _of_main_thread, _options
    _of_main_thread, _options = context, options
    try:
        yield
    finally:
        _of_main_thread, _options = before
