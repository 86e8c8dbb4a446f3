"""How a check of the contract ends where it does not simply pass."""

from __future__ import annotations

from ...errors import LdpBudgetError


class Broken(LdpBudgetError, AssertionError):  # noqa: N818 - reads as what it is
    """A mechanism does not keep to the contract; the message says how."""


class NotChecked(LdpBudgetError):  # noqa: N818
    """A check does not apply to a mechanism, or cannot decide; the message says why."""


def expect(true: bool, otherwise: str) -> None:
    """Raise `Broken` with that message unless `true`."""
    if not true:
        raise Broken(otherwise)
