"""How a check of the contract ends where it does not simply pass."""

from __future__ import annotations

from ...errors import LdpBudgetError
from ..verification.advice import TWO_INPUTS


class Broken(LdpBudgetError, AssertionError):  # noqa: N818 - reads as what it is
    """A mechanism does not keep to the contract; the message says how."""


class NotChecked(LdpBudgetError):  # noqa: N818
    """A check does not apply to a mechanism, or cannot decide; the message says why."""


class DoesNotApply(NotChecked):
    """A check is not asked of such a mechanism: nothing is open, and nothing can be done."""


NOTHING_PROMISED = "it promises nothing, so its reports may say anything and need not be random"
NO_TWO_INPUTS = f"there are no two inputs to compare; {TWO_INPUTS}"


def expect(true: bool, otherwise: str) -> None:
    """Raise `Broken` with that message unless `true`."""
    if not true:
        raise Broken(otherwise)
