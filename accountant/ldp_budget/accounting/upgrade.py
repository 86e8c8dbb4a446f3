"""Upgrade of a ledger to the tables of this version: verified first, then migrated in one transaction a step."""

from __future__ import annotations

from typing import NamedTuple

from .._validation import shown
from ..errors import InvalidParameter, LedgerError, NotSupported
from ..ledger.storage import POST, PRE
from .accountant import Accountant
from .connect import open_store


class Upgrade(NamedTuple):
    """What an upgrade did: the ledger, the version of its tables before, and the names of the applied steps."""

    name: str
    before: int
    steps: list[str]


def upgrade(ledger: str, step: str = POST) -> Upgrade:
    """Verify a ledger, then apply the pending migrations.

    Parameters:
        ledger: a path or `postgresql://…`.
        step: "pre" for the step that runs while the version before still charges; "post" for all of it.

    Raises:
        InvalidParameter: `step` is neither.
        LedgerError: the ledger cannot be opened, or does not verify. Nothing was written.
    """
    if step not in (PRE, POST):
        raise InvalidParameter("step", f"{PRE} or {POST}", shown(step))
    store = open_store(ledger, False, upgrade=True)
    if not hasattr(store, "migrate"):
        raise NotSupported(f"the store of {store.name} has no migrations")
    with Accountant(store, create=False, sandbox=None) as accountant:
        found = accountant.verify()
        if not found.ok:
            why = f"it does not verify: {found.problems[0]}. It was not upgraded"
            raise LedgerError(store.name, why, hint="Run: ldp-budget ledger verify")
        return Upgrade(store.name, *store.migrate(step))
