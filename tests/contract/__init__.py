"""The contract that every store of a ledger must pass.

The tests of a store inherit `StoreContract`, and override `place`, which says how to open a ledger. `LedgerContract` is the
part that a client of a service passes, too. `contract.measures` has the tests of limits with a measure, `contract.model` a
ledger in plain Python that a real one is compared with step by step, and `contract.toy_store` the smallest store.
"""

from __future__ import annotations

import pytest

from contract.charges import ChargesContract
from contract.histories import HistoriesContract
from contract.limits import LimitsContract
from contract.places import Place
from contract.reports import ReportsContract


class LedgerContract(LimitsContract, ChargesContract, HistoriesContract):
    """Inherit it and override `place`."""

    @pytest.fixture
    def place(self) -> Place:
        raise NotImplementedError


class StoreContract(LedgerContract, ReportsContract):
    """The same, and what a ledger's own store keeps of reports."""
