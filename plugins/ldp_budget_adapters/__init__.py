"""Adapters: read other libraries' objects as guarantees, so that an accountant charges what those objects draw.

An adapter is chosen by the classes of an object, never by its attributes, and then looks up in the library that these
classes are the library's own. It imports `ldp_budget` and no library: an object exists only where its caller has
imported one. Only the modules `nvflare` and `flower`, for their users, import these libraries. The package is a plugin, found
by the entry-point group `ldp_budget`.
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
    """Return the guarantee that an object of a supported library makes about one user's value."""
    read = _read(thing)
    return None if read is None else read.guarantee


@hookimpl
def source_of(thing: object) -> str | None:
    """Return the library with its version, the parameters, and the condition under which they were read."""
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
