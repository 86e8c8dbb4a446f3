"""Ending a reservation: to keep what it charged, or to give that back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._checks import check_text
from ..errors import UnknownName
from ..ledger.names import Name, find, place_of
from ..ledger.windows import holds
from . import reservations
from .balances import limit_states
from .books import policy_in, policy_version
from .receipts import Receipt, is_receipt, name_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ledger import Ledger, Transaction
    from .reservations import Resolved


def commit(ledger: Ledger, receipt: str) -> Receipt:
    """Keep what a reservation charged."""
    return _end(ledger, receipt, reservations.commit)


def void(ledger: Ledger, receipt: str) -> Receipt:
    """Give back what a reservation charged, while that is possible."""
    return _end(ledger, receipt, reservations.void)


def _end(ledger: Ledger, receipt: str, how: Callable[[Transaction, str, int], Resolved]) -> Receipt:
    name = name_in(check_text("receipt", receipt))
    ended = None if name is None else _end_named(ledger, name, receipt, how)
    if ended is None:
        raise UnknownName("reservation", receipt, [])
    return ended


def _end_named(
    ledger: Ledger, name: Name, receipt: str, how: Callable[[Transaction, str, int], Resolved]
) -> Receipt | None:
    def end(number: int) -> Callable[[Transaction], Receipt | None]:
        return lambda transaction: _resolve(transaction, name, receipt, how, number)

    def end_here(transaction: Transaction) -> Receipt | None:
        # One that was made before the ledger was copied has another place by now.
        return end(name.entry)(transaction) if name.generation == transaction.generation else None

    ended = ledger.run(end_here, name.partition) if name.partition in ledger.partitions else None
    if ended is not None:
        return ended
    with ledger.reading(ledger.partition_of(place_of(ledger.key, name))) as reading:
        found = find(reading, name)
    return None if found is None else ledger.run(end(found[1]), found[0])


def _resolve(
    transaction: Transaction,
    name: Name,
    receipt: str,
    how: Callable[[Transaction, str, int], Resolved],
    number: int,
) -> Receipt:
    if not is_receipt(transaction, name, receipt):
        raise UnknownName("reservation", receipt, [])
    entry, state, repeated = how(transaction, receipt, number)
    _, policy = policy_in(transaction, policy_version(transaction, entry.policy).name)
    windows = transaction.windows_to_read() if repeated else transaction.windows
    limits = [limit for limit in policy.all_limits if holds(limit.gauge, entry.sub_limit)]
    spent = {period: transaction.spent(entry.account, window.code) for period, window in windows.items()}
    return Receipt(
        status=state,
        user=None,
        policy=policy.name,
        cost_units=entry.costs,
        reports=entry.reports,
        limits=limit_states(windows, limits, spent),
        receipt=receipt,
        repeated=repeated,
    )
