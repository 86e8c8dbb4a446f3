"""A check-up: could a ledger be written to just now? Looked at without writing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import LdpBudgetError, LedgerError, LedgerKeyMissing
from . import gate

if TYPE_CHECKING:
    from .ledger import Ledger


def check_up(ledger: Ledger) -> dict[str, str | None]:
    """What is wrong with its tables, its key and its clock: None where nothing is."""
    found: dict[str, str | None] = {"schema": None, "key": None}
    try:
        ledger.check_key()
    except LdpBudgetError as error:
        found["key"] = str(error)
    try:
        ledger.entries()  # which a store answers soon, or says that its engine does not answer
        with ledger.reading() as reading:
            reading.newest_policies()
            if reading.end.state != gate.OPEN:
                raise LedgerError(ledger.name, gate.why_shut(reading))
            if found["key"] is None:  # which is what writers lock
                ledger.check_writable()
            found["clock"] = None
            try:
                reading.go_by_the_clock()
            except LdpBudgetError as error:
                found["clock"] = str(error)
    except LedgerKeyMissing as error:
        found["key"] = str(error)
    except LdpBudgetError as error:
        found["schema"] = str(error)
    return found
