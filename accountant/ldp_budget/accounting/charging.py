"""Charging: `quote`, `spend`, `reserve`, `commit` and `void` for one user.

The first part loads the account and the policy for an admission decision, and writes a granted charge. The second
part quotes, spends and reserves. The third part ends a reservation: `commit` keeps its charge, `void` reverses it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .._validation import check_switch, check_text, shown
from ..errors import InvalidParameter, UnknownName
from ..ledger.calendar import LIFETIME, holds
from ..ledger.hash_chain import Name, find, place_of
from ..ledger.models import RESERVED, Entry
from . import reservations
from .admission import ApplicablePolicy, Decision, decide
from .charge_request import Request, StoredResponse, run_idempotent
from .policy_versions import latest_policy, policy_version, prices
from .queries import limit_states
from .receipts import QUOTED, REFUSED, BudgetExceeded, Receipt, answer_again, is_receipt, name_in, receipt_for
from .reservations import MOST_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ledger import Account, Ledger, Reading, Transaction
    from ..ledger.group_commit import Piece
    from ..ledger.models import IdempotencyRecord
    from ..registry.collections import Collection
    from ..sdk.mechanism import Mechanism
    from .admission import Decision
    from .charge_request import Charge, Principal, Request
    from .reservations import ReservationOutcome


# -- reading for a decision, and writing a charge ----------------------------------------------------------------


def load_account_and_terms(reading: Reading, request: Request) -> tuple[Account, ApplicablePolicy]:
    """Load the user's account and the applicable policy, with everything that the decision depends on."""
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
) -> ApplicablePolicy:
    """Apply the newest version of a policy to a charge, through a sub-limit or none. Raises `UnknownName`."""
    number, found = latest_policy(reading, policy)
    return ApplicablePolicy.of(found, charge, share, number, labelled=labelled)


def record_charge(transaction: Transaction, decision: Decision) -> int:
    """Write a granted charge: the sums of every window, label counts, quota and entry; return its number."""
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


# -- quote, spend, reserve --------------------------------------------------------------------------------------


def quote(
    ledger: Ledger,
    caller: Principal,
    user: str,
    mechanism: Mechanism | Collection | object,
    *,
    reports: int,
    label: str | None,
    policy: str,
) -> Receipt:
    """Compute the cost of a spend, and if it would fit; change nothing."""
    key = ledger.key
    request = Request(key, user, mechanism, reports=reports, policy=policy, label=label, caller=caller)
    with ledger.reading(ledger.partition_of(request.user_hash)) as reading:
        reading.go_by_the_clock()
        return _decide(reading, request).receipt(QUOTED)


def spend(
    ledger: Ledger,
    caller: Principal,
    user: str,
    mechanism: Mechanism | Collection | object,
    *,
    reports: int,
    key: str | None,
    label: str | None,
    digest: str | None,
    note: str | None,
    policy: str,
    strict: bool,
) -> Receipt:
    """Charge reports of a mechanism to a user, or refuse."""
    request = Request(
        ledger.key,
        user,
        mechanism,
        reports=reports,
        policy=policy,
        label=label,
        digest=digest,
        key=key,
        caller=caller,
        note=note,
    )
    return _charge(ledger, request, strict)


def reserve(
    ledger: Ledger,
    caller: Principal,
    user: str,
    mechanism: Mechanism | Collection | object,
    *,
    reports: int,
    expires: float,
    key: str | None,
    label: str | None,
    digest: str | None,
    note: str | None,
    policy: str,
    strict: bool,
) -> Receipt:
    """Charge now, and decide within `expires` seconds: `commit` keeps the charge, `void` reverses it."""
    if isinstance(expires, bool) or not isinstance(expires, int | float) or not 0 < expires <= MOST_SECONDS:
        raise InvalidParameter("expires", f"seconds > 0 and <= {MOST_SECONDS}", shown(expires))
    request = Request(
        ledger.key,
        user,
        mechanism,
        reports=reports,
        policy=policy,
        label=label,
        digest=digest,
        key=key,
        caller=caller,
        note=note,
        kind=RESERVED,
        lasts=int(expires * 1_000_000),
    )
    return _charge(ledger, request, strict)


def _charge(ledger: Ledger, request: Request, strict: bool) -> Receipt:
    check_switch("strict", strict)
    receipt = ledger.run(*to_work_item(ledger, request))
    if strict and receipt.status == REFUSED:
        raise BudgetExceeded(receipt)
    return receipt


def to_work_item(ledger: Ledger, request: Request) -> Piece[Receipt]:
    """Return the work of charging a request, its partition, and the keys that it will look up there."""
    needs = request.user_hash, None if request.key is None else request.key.key_hash
    return (
        lambda transaction: charge_in_transaction(transaction, request),
        ledger.partition_of(request.user_hash),
        needs,
    )


def charge_in_transaction(transaction: Transaction, request: Request) -> Receipt:
    """Decide and write; or return the stored response for the same idempotency key."""
    entry, decision = None, None

    def act() -> Receipt:
        nonlocal entry, decision
        decision = _decide(transaction, request)
        if not decision.fits:
            return decision.receipt(REFUSED)
        entry = record_charge(transaction, decision)
        return decision.receipt(request.kind, receipt_for(transaction, entry))

    def write(receipt: Receipt) -> StoredResponse | None:
        assert decision is not None
        if not decision.fits and decision.account.erased:
            return None  # store nothing that leads to an erased user
        return StoredResponse(receipt.store(decision.terms.number, transaction.moment.micros), entry)

    def read(stored: IdempotencyRecord) -> Receipt:
        return answer_again(transaction, request, stored, partial(policy_version, transaction))

    return run_idempotent(transaction, request.key, act, write=write, read=read)


def _decide(reading: Reading, request: Request) -> Decision:
    account, terms = load_account_and_terms(reading, request)
    return decide(account, request, terms, reading.windows)


# -- end of a reservation ---------------------------------------------------------------------------------------


def commit(ledger: Ledger, receipt: str) -> Receipt:
    """Keep the charge of a reservation."""
    return _end(ledger, receipt, reservations.commit)


def void(ledger: Ledger, receipt: str) -> Receipt:
    """Reverse the charge of a reservation, if it has neither been committed nor expired."""
    return _end(ledger, receipt, reservations.void)


def _end(ledger: Ledger, receipt: str, how: Callable[[Transaction, str, int], ReservationOutcome]) -> Receipt:
    name = name_in(check_text("receipt", receipt))
    ended = None if name is None else _end_named(ledger, name, receipt, how)
    if ended is None:
        raise UnknownName("reservation", receipt, [])
    return ended


def _end_named(
    ledger: Ledger, name: Name, receipt: str, how: Callable[[Transaction, str, int], ReservationOutcome]
) -> Receipt | None:
    def end(number: int) -> Callable[[Transaction], Receipt | None]:
        return lambda transaction: _resolve(transaction, name, receipt, how, number)

    def end_here(transaction: Transaction) -> Receipt | None:
        # A reservation that was made before the ledger was moved has another place now.
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
    how: Callable[[Transaction, str, int], ReservationOutcome],
    number: int,
) -> Receipt:
    if not is_receipt(transaction, name, receipt):
        raise UnknownName("reservation", receipt, [])
    entry, state, repeated = how(transaction, receipt, number)
    _, policy = latest_policy(transaction, policy_version(transaction, entry.policy).name)
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
