"""The second step of a reservation: commit it, or void it and give back what it held.

A reservation is charged when it is made. So a commit changes no sum, an expired one stays charged (after a crash the
report may be out), and only a void in time takes the charge back. Terminal states never change.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

from ..errors import ReservationConflict, UnknownName
from ..guarantees import Memoised, from_json
from ..guarantees.amounts import Costs
from ..ledger import Entry
from ..ledger.windows import LIFETIME, from_micros, to_micros, window_at
from .limits import Policy
from .receipts import COMMITTED, EXPIRED, RESERVED, VOIDED

if TYPE_CHECKING:
    from ..ledger import Transaction

MOST_SECONDS = 366 * 86_400
_NOTHING = Costs(0, 0, 0, 0)


def commit(transaction: Transaction, receipt: str, now: datetime) -> tuple[Entry, str, bool]:
    """(the reservation, its state, whether it had it already). Raises `ReservationConflict` for a voided one."""
    entry = _reservation(transaction, receipt)
    state = _state(transaction, entry)
    if state == VOIDED:
        raise ReservationConflict(receipt, VOIDED, "committed")
    if state != RESERVED:
        return entry, state, True
    state = EXPIRED if _is_over(entry, now) else COMMITTED
    _resolve(transaction, entry, state, _NOTHING, now)
    return entry, state, False


def void(transaction: Transaction, receipt: str, now: datetime) -> tuple[Entry, str, bool]:
    """The same for a void. Raises `ReservationConflict` for a committed or expired one: that stays charged."""
    entry = _reservation(transaction, receipt)
    state = _state(transaction, entry)
    if state == VOIDED:
        return entry, VOIDED, True
    if state == RESERVED and _is_over(entry, now):
        state = EXPIRED
    if state != RESERVED:
        raise ReservationConflict(receipt, state, "voided")
    given_back = _give_back(transaction, entry)
    _return_quota(transaction, entry)
    _resolve(transaction, entry, VOIDED, given_back, now)
    return entry, VOIDED, False


def _reservation(transaction: Transaction, receipt: str) -> Entry:
    entry = transaction.entry(int(receipt)) if receipt.isascii() and receipt.isdigit() and len(receipt) < 19 else None
    if entry is None or entry.kind != RESERVED:
        raise UnknownName("reservation", receipt, [])
    return entry


def _state(transaction: Transaction, entry: Entry) -> str:
    resolution = transaction.resolution(entry.number)
    return RESERVED if resolution is None else resolution.kind


def _is_over(entry: Entry, now: datetime) -> bool:
    return entry.expires is not None and to_micros(now) >= entry.expires


def _resolve(transaction: Transaction, entry: Entry, kind: str, costs: Costs, now: datetime) -> None:
    transaction.append(entry._replace(kind=kind, at=to_micros(now), costs=costs, expires=None, resolves=entry.number))


def _give_back(transaction: Transaction, entry: Entry) -> Costs:
    """Take the charge out of the windows it was made in; returns what that adds to the lifetime, below zero."""
    charged_at = from_micros(entry.at)
    label = transaction.label_of(entry.number)
    erased = transaction.is_cut_off(entry.account)
    lifetime = _NOTHING
    for period, since in transaction.kept_since().items():
        if period != LIFETIME and (entry.at < since or erased):
            continue  # of an erased user, or before the period was limited, this window is not kept
        window = window_at(period, charged_at).code
        cost = entry.costs
        if entry.labelled:
            cost = _last_step(transaction, entry, label, window)
        transaction.set_spent(entry.account, window, transaction.spent(entry.account, window).minus(cost))
        if period == LIFETIME:
            lifetime = _NOTHING.minus(cost)
    return lifetime


def _last_step(transaction: Transaction, entry: Entry, label: bytes | None, window: int) -> Costs:
    """What the last reports of a label cost in a window; its count goes back by them."""
    if label is None:
        return _NOTHING  # the user was erased meanwhile; the sums stay as they are
    guarantee = from_json(json.loads(transaction.stored_charge(entry.charge)["guarantee"]))
    assert isinstance(guarantee, Memoised)
    before = transaction.label_reports(entry.account, label, entry.charge, window) - entry.reports
    transaction.set_label_reports(entry.account, label, entry.charge, window, before)
    return guarantee.step(before, entry.reports)


def _return_quota(transaction: Transaction, entry: Entry) -> None:
    plan = Policy.from_json(json.loads(transaction.policy_definition(entry.policy))).plan
    if plan is None:
        return
    promise = transaction.stored_charge(entry.charge)["guarantee"]
    used = transaction.quota_used(entry.account, plan.identity, promise)
    transaction.set_quota_used(entry.account, plan.identity, promise, used - entry.reports)
