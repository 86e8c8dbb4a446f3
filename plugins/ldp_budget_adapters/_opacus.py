"""Opacus: its accountants are about something else than what one client sends."""

from __future__ import annotations

from ldp_budget.errors import NotSupported

from ._reading import Read, theirs


def read(thing: object) -> Read | None:
    """Refused, whatever it is; None for what is not of Opacus."""
    kind = theirs(thing, "opacus")
    if kind is None:
        return None
    raise NotSupported(
        f"{kind.__module__}.{kind.__qualname__} accounts for one record of a data set that the trainer saw in the "
        "clear, and only for what is said of the trained model; it says nothing about what one user sends. What a "
        "client adds to its own update can be charged as `declared`, or as `gaussian` with its sigma and sensitivity"
    )
