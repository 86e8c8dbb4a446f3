"""How a check of the contract ends where it does not simply pass."""

from __future__ import annotations

from ...errors import LdpBudgetError
from .._advice import TWO_INPUTS


class Broken(LdpBudgetError, AssertionError):  # noqa: N818 - reads as what it is
    """A mechanism does not keep to the contract; the message says how."""


class NotChecked(LdpBudgetError):  # noqa: N818
    """A check does not apply to a mechanism, or cannot decide; the message says why, and what would help.

    Attribute: `applies`, whether the check is asked of such a mechanism; where it is not, nothing is open.
    """

    def __init__(self, why: str, *, applies: bool = True) -> None:
        self.applies = applies
        super().__init__(why)


NOTHING_PROMISED = "it promises nothing, so its reports may say anything and need not be random"
NO_TWO_INPUTS = f"there are no two inputs to compare; {TWO_INPUTS}"


def expect(true: bool, otherwise: str) -> None:
    """Raise `Broken` with that message unless `true`."""
    if not true:
        raise Broken(otherwise)
