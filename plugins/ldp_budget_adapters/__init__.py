"""Other libraries' objects as guarantees, so that an accountant charges what they draw.

Nothing of a library is imported here: an object of it can only be there if somebody has imported the library already.
Which adapter is asked follows from the classes that an object is an instance of, whatever it says of itself; whether
they are the library's own, the adapter looks up in the library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ldp_budget.guarantees import Guarantee
from ldp_budget.registry.hookspecs import hookimpl

if TYPE_CHECKING:
    from ._adapter_helpers import Read

_ADAPTERS = {
    "diffprivlib": ("_diffprivlib", "read"),
    "dp_accounting": ("_dp_accounting", "read"),
    "flwr": ("_learning", "read_flower"),
    "opacus": ("_learning", "read_opacus"),
    "opendp": ("_opendp", "read"),
}


@hookimpl
def guarantee_of(thing: object) -> Guarantee | None:
    """What an object of OpenDP, diffprivlib, dp-accounting or Flower promises about two values of one user."""
    read = _read(thing)
    return None if read is None else read.guarantee


@hookimpl
def source_of(thing: object) -> str | None:
    """The library with its version, the parameters, and on what condition they were read."""
    read = _read(thing)
    return None if read is None else read.source


def _read(thing: object) -> Read | None:
    for cls in type(thing).__mro__:
        module = cls.__module__
        adapter = _ADAPTERS.get(module.partition(".")[0]) if isinstance(module, str) else None
        if adapter is not None:
            file, function = adapter
            read: Read | None = getattr(import_module(f".{file}", __name__), function)(thing)
            return read
    return None
