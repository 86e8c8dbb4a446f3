"""Durable state: a journal of charges and the sums that follow from it, behind a store that can be exchanged."""

from __future__ import annotations

from .ledger import Ledger
from .models import Entry
from .snapshot import Account, Reading
from .transaction import Transaction

__all__ = ["Account", "Entry", "Ledger", "Reading", "Transaction"]
