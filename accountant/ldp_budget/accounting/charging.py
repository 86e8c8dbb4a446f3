"""Between the decision and the ledger: what a decision needs is read here, and what it grants is written here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..guarantees import Memoised
from ..ledger.entries import Entry
from ..ledger.windows import LIFETIME, holds
from .policies import prices, share_number

if TYPE_CHECKING:
    from ..ledger import Account, Reading, Transaction
    from .decision import Decision
    from .policies import Policy
    from .request import Request


def account_for(reading: Reading, request: Request, policy: Policy) -> Account:
    """The user's account, with what else a decision about this request depends on."""
    account = reading.account(request.user_hash)
    if account.number is None:
        account = account._replace(erased=reading.is_erased(request.user_hash))
    label, charge = request.label_hash, request.charge
    if label is not None and isinstance(charge.guarantee, Memoised):
        number = reading.charge_number(charge.fingerprint, charge.promise, charge.collection)
        share = share_number(policy, request.share)
        windows = [(gauge, window) for gauge, window in reading.windows.items() if holds(gauge, share)]
        done = {gauge: reading.label_reports(account.number, label, number, window.code) for gauge, window in windows}
        account = account._replace(reported=done)
    if policy.plan is not None:
        identity = policy.plan.identity
        used = reading.quota_used(account.number, identity, charge.promise)
        others = [plan for plan in reading.plans_used(account.number) if plan != identity]
        account = account._replace(quota_used=used, other_plans=prices(reading, others))
    return account


def apply(transaction: Transaction, decision: Decision, policy_number: int) -> int:
    """Write what a decision grants: sums of every window, label counts, quota and entry; returns its number."""
    request, after = decision.request, decision.after
    charge = request.charge.store(transaction)
    number = transaction.open_account(request.user_hash) if after.number is None else after.number
    windows = transaction.windows
    for period, spent in after.spent.items():
        transaction.set_spent(number, windows[period].code, spent)
    label = request.label_hash if after.reported else None
    if label is not None:
        for period, reports in after.reported.items():
            transaction.set_label_reports(number, label, charge, windows[period].code, reports)
    plan = decision.policy.plan
    if plan is not None:
        transaction.set_quota_used(number, plan.identity, request.charge.promise, after.quota_used)
    at, costs = transaction.moment.micros, decision.costs[LIFETIME]
    expires = None if request.lasts is None else at + request.lasts
    keyed, noted = request.key is not None, request.note is not None
    common = (number, charge, policy_number, request.reports, costs)
    entry = Entry(0, at, request.kind, *common, None, expires, None, keyed, noted, share=decision.share)
    return transaction.append(entry, label, request.note)
