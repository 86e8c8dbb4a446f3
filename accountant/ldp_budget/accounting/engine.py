"""The engine: it charges any number of requests in one transaction. A single charge is a batch of one.

The engine works in three steps for each partition. It loads what all requests need, with one query per table. It
decides in order, with the pure function `admission.decide`; so two requests of one user see each other. It leaves the
writing to the transaction, which has one statement per table and one link of the hash chain.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..errors import ClockError, InvalidParameter, KeyConflict, LdpBudgetError
from ..ledger.calendar import LIFETIME
from ..ledger.models import SPENT, Entry
from ..ledger.row_macs import read_accounts
from .admission import ApplicablePolicy, ChargeCost, cost_of, decide
from .policy_versions import latest_policy, policy_version, prices
from .receipts import QUOTED, REFUSED, answer_again, receipt_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..ledger import Account, Reading, Transaction
    from ..ledger.calendar import Window
    from ..ledger.models import IdempotencyRecord
    from .admission import Decision
    from .charge_request import Charge, ChargeRequest
    from .receipts import Receipt


_MOST_KNOWN = 1000
"""Maximum number of requests whose cost a partition keeps."""


def charge(
    transactions: Mapping[int, Transaction], requests: Sequence[ChargeRequest]
) -> list[Receipt | LdpBudgetError]:
    """Charge requests in the transactions of their partitions; return a receipt, or an error, for each.

    A request with an error has written nothing. Raises any error that happens after something was written.
    """
    outcomes: list[Receipt | LdpBudgetError | None] = [None] * len(requests)
    by_partition: dict[int, list[int]] = {}
    for place, request in enumerate(requests):
        by_partition.setdefault(request.partition, []).append(place)
    for partition, places in by_partition.items():
        some = _Batch(transactions[partition], [requests[place] for place in places])
        for place in places:
            outcomes[place] = some.charge(requests[place])
    return [outcome for outcome in outcomes if outcome is not None]


class _Batch:
    """Requests of one partition, with all that they need."""

    def __init__(self, transaction: Transaction, requests: Sequence[ChargeRequest]) -> None:
        self._transaction = transaction
        needs = [(request.user_hash, request.key.key_hash) for request in requests if request.key is not None]
        self._records = transaction.idempotency_records(needs) if needs else {}
        self._accounts: Mapping[bytes, Account | LdpBudgetError] = {}
        self._problem: LdpBudgetError | None = None
        try:
            self._accounts = transaction.load_accounts(list({request.user_hash: None for request in requests}))
        except (ClockError, InvalidParameter) as error:  # stored responses are returned even if the clock is bad
            self._problem = error

    def charge(self, request: ChargeRequest) -> Receipt | LdpBudgetError:
        """Charge one request, or return the stored response for its idempotency key."""
        transaction = self._transaction
        written = transaction.writes
        try:
            key = request.key
            stored = None if key is None else self._records.get((request.user_hash, key.key_hash))
            return self._decide(request) if stored is None else self._repeat(request, stored)
        except LdpBudgetError as error:
            if transaction.writes != written:
                raise
            return error

    def _repeat(self, request: ChargeRequest, stored: IdempotencyRecord | LdpBudgetError) -> Receipt:
        if isinstance(stored, LdpBudgetError):
            raise stored
        assert request.key is not None
        if stored.request_digest != request.key.request_digest:
            raise KeyConflict(request.key.name)
        transaction = self._transaction
        receipt = answer_again(transaction, request, stored, partial(policy_version, transaction))
        return receipt._replace(position=transaction.position)

    def _cost(
        self, request: ChargeRequest, account: Account
    ) -> tuple[ApplicablePolicy, Mapping[str, Window], ChargeCost]:
        """Return the terms, windows and cost of a request; most are worked out once for many requests."""
        transaction = self._transaction
        windows, known = transaction.windows, transaction.cache.decided
        key = request.template, request.share
        found: tuple[ApplicablePolicy, ChargeCost] | None = known.get(key)
        if found is not None:
            return found[0], windows, found[1]
        terms = terms_for(transaction, request)
        if request.curve is not None or terms.policy.plan is not None:
            terms = load_counts(transaction, account, request, terms)
        cost = cost_of(request, terms, windows, account)
        # Others depend on the account, or on the mechanisms that are checked by then.
        if request.curve is None and terms.policy.plan is None and not terms.policy.checked:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            known[key] = terms, cost
        return terms, windows, cost

    def _decide(self, request: ChargeRequest) -> Receipt:
        if self._problem is not None:
            raise self._problem
        account = self._accounts[request.user_hash]
        if isinstance(account, LdpBudgetError):
            raise account
        transaction = self._transaction
        decision = decide(account, request, *self._cost(request, account))
        entry = None
        if decision.fits:
            entry = _write(transaction, decision)
            name = receipt_for(transaction, entry)
            receipt = decision.receipt(request.template.kind, name, transaction.position)
        else:
            receipt = decision.receipt(REFUSED, None, transaction.position)
        key = request.key
        if key is not None and not account.erased:  # nothing that is stored may lead to an erased user
            response = receipt.store(decision.terms.number, transaction.moment.micros)
            asked = request.user_hash, key.key_hash, entry, key.request_digest
            self._records[asked[:2]] = transaction.store_idempotency_record(*asked, response)
        return receipt


def quote(reading: Reading, request: ChargeRequest) -> Receipt:
    """Return the receipt that a charge would have now, with the status `quoted`."""
    reading.go_by_the_clock()
    account = read_accounts(reading, [request.user_hash])[request.user_hash]
    terms = load_counts(reading, account, request, terms_for(reading, request))
    return decide(account, request, terms, reading.windows).receipt(QUOTED)


def terms_for(reading: Reading, request: ChargeRequest) -> ApplicablePolicy:
    """Apply the newest version of the request's policy to it. Raises `UnknownName`."""
    return terms_in(reading, request.policy, request.charge, request.share)


def terms_in(reading: Reading, policy: str, charge: Charge, share: str | None = None) -> ApplicablePolicy:
    """Apply the newest version of a policy to a charge, through a sub-limit or none. Raises `UnknownName`."""
    number, found = latest_policy(reading, policy)
    return ApplicablePolicy.of(found, charge, share, number)


def load_counts(
    reading: Reading, account: Account, request: ChargeRequest, terms: ApplicablePolicy
) -> ApplicablePolicy:
    """Load the account's reports of a memoising mechanism, and its used quotas; apply the prices of its other plans."""
    plan = terms.policy.plan
    charge = request.charge
    if plan is not None:
        account.quota_used = reading.quota_used(account.number, plan.identity, charge.promise)
        others = [each for each in reading.plans_used(account.number) if each != plan.identity]
        terms = terms.with_other_plans(prices(reading, others))
    if request.curve is not None:
        stored = reading.priced_mechanism_number(charge.fingerprint, charge.promise, charge.collection)
        gauges = {window.name: gauge for gauge, window in reading.windows.items() if window.counts(terms.share)}
        account.count_reports(stored, gauges)
        account.repaired = bool(reading.repairs())
    return terms


def _write(transaction: Transaction, decision: Decision) -> int:
    """Write a granted charge: the account, label counts, quota and entry; return the number of the entry."""
    request, terms, account = decision.request, decision.terms, decision.account
    template = request.template
    mechanism = request.charge.store(transaction)
    if account.number is None:
        transaction.account_macs.open(transaction.open_account(account.user), account)
    number = account.number
    assert number is not None
    decision.charge()
    label = request.label_hash if request.curve is not None else None
    for gauge, counts in account.reported.items() if request.curve is not None else ():
        window = transaction.windows[gauge].name
        transaction.set_memoised_reports(number, request.label, mechanism, window, counts[request.label])
    plan = terms.policy.plan
    if plan is not None:
        transaction.set_quota_used(number, plan.identity, request.charge.promise, account.quota_used)
    at = transaction.moment.micros
    entry = Entry(
        0,
        at,
        template.kind,
        number,
        mechanism,
        terms.number,
        request.reports,
        decision.costs[LIFETIME],
        expires=None if template.lasts is None else at + template.lasts,
        has_record=request.key is not None,
        has_note=template.note is not None,
        api_key=request.api_key,
        sub_limit=terms.share,
    )
    written = transaction.append(entry, label, template.note)
    if request.report is not None:
        transaction.store_report(written, request.charge.collection, request.report)
    return written


# -- requests that are alike -----------------------------------------------------------------------------------


def charge_alike(
    transaction: Transaction,
    charge: Charge,
    terms: ApplicablePolicy,
    note: str | None,
    users: Sequence[bytes],
    api_key: int,
) -> Sequence[bytes]:
    """Charge one report to each of distinct users (hashes) by set-based statements; return the refused users.

    `api_key` is the number of the API key that the entries record.
    """
    windows = transaction.windows  # raises for an implausible clock, before any work
    if terms.why:
        return users
    batch = transaction.batch(sorted(users))
    limited = [(windows[limit.gauge], limit) for limit in terms.limits]
    rooms = [(window.name, limit.remaining_room(charge.cost_under(window.measure))) for window, limit in limited]
    refused = batch.refuse(rooms)
    if len(refused) < len(users):
        transaction.open_accounts(batch)
        mine = [window for window in windows.values() if window.counts(terms.share)]
        transaction.charge_batch(batch, {window.name: charge.cost_under(window.measure) for window in mine})
        common = (transaction.moment.micros, SPENT, charge.store(transaction), terms.number, *charge.cost)
        transaction.append_batch(batch, common, api_key, note, terms.share)
    return refused
