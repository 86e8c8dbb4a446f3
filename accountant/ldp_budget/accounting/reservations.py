"""The second step of a reservation: commit it, or void it and give back what it held.

A reservation is charged when it is made. So a commit changes no sum, an expired one stays charged (after a crash the
report may be out), and only a void in time takes the charge back. Terminal states never change.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from ..errors import ReservationConflict, UnknownName
from ..guarantees import Memoised, from_json
from ..guarantees.amounts import ZERO, Costs
from ..ledger.entries import COMMITTED, EXPIRED, RESERVED, VOIDED, Entry
from ..ledger.windows import LIFETIME, code_at
from .policies import Policy

if TYPE_CHECKING:
    from ..ledger import Transaction

MOST_SECONDS = 366 * 86_400


class Resolved(NamedTuple):
    """A reservation, the state it is in, and whether it was in it before."""

    entry: Entry
    state: str
    repeated: bool


def commit(transaction: Transaction, receipt: str) -> Resolved:
    """Keep what a reservation charged. Raises `ReservationConflict` for a voided one."""
    entry, state = _reservation(transaction, receipt)
    if state == VOIDED:
        raise ReservationConflict(receipt, VOIDED, "committed")
    if state != RESERVED:
        return Resolved(entry, state, True)
    state = EXPIRED if _is_over(entry, transaction) else COMMITTED
    _end(transaction, entry, state, ZERO)
    return Resolved(entry, state, False)


def void(transaction: Transaction, receipt: str) -> Resolved:
    """Give it back. Raises `ReservationConflict` for a committed or expired one: that stays charged."""
    entry, state = _reservation(transaction, receipt)
    if state == VOIDED:
        return Resolved(entry, VOIDED, True)
    if state == RESERVED and _is_over(entry, transaction):
        state = EXPIRED
    if state != RESERVED:
        raise ReservationConflict(receipt, state, "voided")
    given_back = _give_back(transaction, entry)
    _return_quota(transaction, entry)
    _end(transaction, entry, VOIDED, given_back)
    return Resolved(entry, VOIDED, False)


def _reservation(transaction: Transaction, receipt: str) -> tuple[Entry, str]:
    """A reservation and the state it is in. Raises `UnknownName`."""
    entry = transaction.entry(int(receipt)) if receipt.isascii() and receipt.isdigit() and len(receipt) < 19 else None
    if entry is None or entry.kind != RESERVED:
        raise UnknownName("reservation", receipt, [])
    resolution = transaction.resolution(entry.number)
    return entry, RESERVED if resolution is None else resolution.kind


def _is_over(entry: Entry, transaction: Transaction) -> bool:
    return entry.expires is not None and transaction.moment.micros >= entry.expires


def _end(transaction: Transaction, entry: Entry, kind: str, costs: Costs) -> None:
    at = transaction.moment.micros
    transaction.append(entry._replace(kind=kind, at=at, costs=costs, expires=None, resolves=entry.number))


def _give_back(transaction: Transaction, entry: Entry) -> Costs:
    """Take the charge out of the windows it was made in; returns what that adds to the lifetime, below zero."""
    label = transaction.rows.label(entry.number)
    erased = transaction.rows.is_cut_off(entry.account)
    lifetime = ZERO
    for period, since in transaction.periods().items():
        if period != LIFETIME and (entry.at < since or erased):
            continue  # of an erased user, or before the period was limited, this window is not kept
        window = code_at(period, entry.at)
        cost = _last_step(transaction, entry, label, window) if entry.labelled else entry.costs
        transaction.set_spent(entry.account, window, transaction.spent(entry.account, window).minus(cost))
        if period == LIFETIME:
            lifetime = ZERO.minus(cost)
    return lifetime


def _last_step(transaction: Transaction, entry: Entry, label: bytes | None, window: int) -> Costs:
    """What the last reports of a label cost in a window; its count goes back by them."""
    if label is None:
        return ZERO  # the user was erased meanwhile; the sums stay as they are
    guarantee = from_json(json.loads(transaction.stored_charge(entry.charge).guarantee))
    assert isinstance(guarantee, Memoised)
    before = transaction.label_reports(entry.account, label, entry.charge, window) - entry.reports
    transaction.set_label_reports(entry.account, label, entry.charge, window, before)
    return guarantee.step(before, entry.reports)


def _return_quota(transaction: Transaction, entry: Entry) -> None:
    plan = Policy.read(transaction.policy_version(entry.policy).definition).plan
    if plan is None:
        return
    promise = transaction.stored_charge(entry.charge).guarantee
    used = transaction.quota_used(entry.account, plan.identity, promise)
    transaction.set_quota_used(entry.account, plan.identity, promise, used - entry.reports)
