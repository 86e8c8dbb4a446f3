"""Between the decision and the ledger: what a decision needs is read here, and what it grants is written here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ledger.entries import Entry
from ..ledger.windows import LIFETIME
from .books import policy_in
from .succession import prices
from .terms import Terms

if TYPE_CHECKING:
    from ..ledger import Account, Reading, Transaction
    from .decision import Decision
    from .request import Charge, Request


def standing(reading: Reading, request: Request) -> tuple[Account, Terms]:
    """What a request is held against: the user's account, with what else it depends on, and what the policy asks."""
    user, charge = request.user_hash, request.charge
    terms = terms_in(reading, request.policy, charge, request.share, labelled=request.label is not None)
    account = reading.account(user)
    if account.number is None:
        account = account._replace(erased=reading.is_erased(user))
    if terms.policy.plan is not None:
        identity = terms.policy.plan.identity
        account = account._replace(quota_used=reading.quota_used(account.number, identity, charge.promise))
        others = [plan for plan in reading.plans_used(account.number) if plan != identity]
        terms = terms.beside(prices(reading, others))
    label = request.label_hash
    if label is not None and request.curve is not None:
        stored = reading.priced_mechanism_number(charge.fingerprint, charge.promise, charge.collection)
        windows = [(gauge, window) for gauge, window in reading.windows.items() if window.counts(terms.share)]
        done = {
            gauge: reading.memoised_reports(account.number, label, stored, window.code) for gauge, window in windows
        }
        account = account._replace(reported=done, repaired=bool(reading.repairs()))
    return account, terms


def terms_in(
    reading: Reading, policy: str, charge: Charge, share: str | None = None, *, labelled: bool = False
) -> Terms:
    """The terms of the newest version of a policy for a charge, through a share or none. Raises `UnknownName`."""
    number, found = policy_in(reading, policy)
    return Terms.of(found, charge, share, number, labelled=labelled)


def apply(transaction: Transaction, decision: Decision) -> int:
    """Write what a decision grants: sums of every window, label counts, quota and entry; returns its number."""
    request, terms, after = decision.request, decision.terms, decision.after
    charge = request.charge.store(transaction)
    number = after.number
    if number is None:
        number = transaction.open_account(request.user_hash)
        transaction.account_macs.open(number, request.user_hash)
    windows = transaction.windows
    for period, spent in after.spent.items():
        transaction.set_spent(number, windows[period].code, spent)
    label = request.label_hash if after.reported else None
    if label is not None:
        for period, reports in after.reported.items():
            transaction.set_memoised_reports(number, label, charge, windows[period].code, reports)
    plan = terms.policy.plan
    if plan is not None:
        transaction.set_quota_used(number, plan.identity, request.charge.promise, after.quota_used)
    at, costs = transaction.moment.micros, decision.costs[LIFETIME]
    expires = None if request.lasts is None else at + request.lasts
    keyed, noted = request.key is not None, request.note is not None
    common = (number, charge, terms.number, request.reports, costs)
    entry = Entry(0, at, request.kind, *common, None, expires, None, keyed, noted, sub_limit=terms.share)
    return transaction.append(entry, label, request.note)
