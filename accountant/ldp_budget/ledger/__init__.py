"""Durable state: the journal of charges, the sums that follow from it, and the protocols of the stores behind it.

It holds the ledger, its transactions, key file, verification and migration; `sqlite` and `postgres` are the stores.
Of the other rooms it may import `guarantees` only.
"""

from __future__ import annotations

from .ledger import Ledger
from .snapshot import Account, Reading
from .transaction import Transaction

__all__ = ["Account", "Ledger", "Reading", "Transaction"]
