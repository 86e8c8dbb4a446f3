"""What an author can do next where something could not be decided: the second half of a sentence that says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..authoring.base import Mechanism
from ..authoring.frequency import FrequencyMechanism
from ..authoring.numeric import NumericMechanism

if TYPE_CHECKING:
    from ..errors import NotSupported

BY_CHANNEL = "describe what is drawn by `compare`, which is checked in fractions"
PROMISE_OF_FINITE = "promise what its finite reports say, by `Pure`, `SymmetricPair` or `dominating_pair`"
ROUND_UP = "the digits that are known do not tell them apart, so round the claim up"
BREAKPOINT = "name the report where it turns in `report_breakpoints`"
TWO_INPUTS = "give two in `critical_inputs`"
SMALLER = "give the class an example with a smaller ε"
SHORTER = "give the class an example with shorter reports"
TOP_LEVEL = "define the class at the top of a module that is installed"


def undefined(mechanism: Mechanism, error: NotSupported, *members: str) -> str:
    """Why something is not supported, and which of these members are still to be defined, if any are."""
    bases = (Mechanism, FrequencyMechanism, NumericMechanism)
    missing = [name for name in members if any(_of(type(mechanism), name) is _of(base, name) for base in bases)]
    return f"{error}; define {' and '.join(f'`{name}`' for name in missing)}" if missing else str(error)


def _of(cls: type[Mechanism], name: str) -> object:
    return getattr(cls, name, None)
