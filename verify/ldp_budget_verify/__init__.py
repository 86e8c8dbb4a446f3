"""Verification of guarantees: exact proofs, black-box audits, and the contract that every mechanism must satisfy.

`exact` proves in fractions, `law` derives the law of a client program, `audit` bounds a loss from reports alone, and
`contract` holds the checks of a plugin. This module has the outcomes of a check that did not pass, and hints for authors.
It imports `ldp_budget`, and for its commands `ldp_budget_cli`. Public names such as `ldp_budget.verify` are loaded from here
on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldp_budget.errors import LdpBudgetError
from ldp_budget.sdk.frequency_oracle import FrequencyMechanism
from ldp_budget.sdk.mechanism import Mechanism
from ldp_budget.sdk.numeric_mechanism import NumericMechanism

if TYPE_CHECKING:
    from ldp_budget.errors import NotSupported


BY_CHANNEL = "describe what is drawn by `compare`, which is checked in fractions"
PROMISE_OF_FINITE = "promise what its finite reports say, by `Pure`, `SymmetricPair` or `dominating_pair`"
ROUND_UP = "the digits that are known do not tell them apart, so round the claim up"
BREAKPOINT = "name the report where it turns in `report_breakpoints`"
TWO_INPUTS = "give two in `critical_inputs`"
SMALLER = "give the class an example with a smaller ε"
SHORTER = "give the class an example with shorter reports"
TOP_LEVEL = "define the class at the top of a module that is installed"


def undefined(mechanism: Mechanism, error: NotSupported, *members: str) -> str:
    """Return the reason why something is not supported, and which of these members are not defined yet."""
    if error.hint:  # it says what to do
        return str(error)
    bases = (Mechanism, FrequencyMechanism, NumericMechanism)
    missing = [name for name in members if any(_of(type(mechanism), name) is _of(base, name) for base in bases)]
    return f"{error}; define {' and '.join(f'`{name}`' for name in missing)}" if missing else str(error)


def _of(cls: type[Mechanism], name: str) -> object:
    return getattr(cls, name, None)


class Broken(LdpBudgetError, AssertionError):  # noqa: N818 - reads as what it is
    """A mechanism violates the contract; the message says how."""


class NotChecked(LdpBudgetError):  # noqa: N818
    """A check does not apply to a mechanism, or cannot decide; the message says why, and what would help.

    Attribute: `applies`, True if the check applies to such a mechanism. If False, nothing is left open.
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
