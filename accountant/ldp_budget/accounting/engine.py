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
from ..ledger.models import SPENT
from ..ledger.row_macs import read_accounts
from .admission import ApplicablePolicy, ChargeCost, Outcome, cost_of, decide
from .policy_versions import latest_policy, policy_version, prices
from .receipts import QUOTED, answer_again

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..ledger import Account, Reading, Transaction
    from ..ledger.calendar import Window
    from ..ledger.models import IdempotencyRecord
    from .admission import Decision
    from .charge_request import ChargeRequest, RequestTemplate
    from .priced_mechanism import PricedMechanism
    from .receipts import Receipt


_MOST_KNOWN = 1000
"""Maximum number of requests whose cost a partition keeps."""


def charge(
    transactions: Mapping[int, Transaction], requests: Sequence[ChargeRequest]
) -> list[Outcome | Receipt | LdpBudgetError]:
    """Charge requests in the transactions of their partitions; return an outcome, or an error, for each.

    A request with an error has written nothing. Raises any error that happens after something was written.
    """
    if len(transactions) == 1:
        return _charge(next(iter(transactions.values())), requests)
    found: dict[int, Outcome | Receipt | LdpBudgetError] = {}
    by_partition: dict[int, list[int]] = {}
    for place, request in enumerate(requests):
        by_partition.setdefault(request.partition, []).append(place)
    for partition, places in by_partition.items():
        outcomes = _charge(transactions[partition], [requests[place] for place in places])
        found.update(zip(places, outcomes, strict=True))
    return [found[place] for place in range(len(requests))]


def _charge(transaction: Transaction, requests: Sequence[ChargeRequest]) -> list[Outcome | Receipt | LdpBudgetError]:
    """Charge requests of one partition: load what they need, decide in order, and leave the writing to the end."""
    needs: list[tuple[bytes, bytes]] = []
    users: dict[bytes, None] = {}
    for request in requests:
        users[request.user_hash] = None
        if request.key is not None:
            needs.append((request.user_hash, request.key.key_hash))
    problem: LdpBudgetError | None = None
    windows: Mapping[str, Window] = {}
    at = 0
    try:
        at, windows = transaction.moment.micros, transaction.windows
    except (ClockError, InvalidParameter) as error:  # stored responses are returned even if the clock is bad
        problem = error
    records = transaction.idempotency_records(needs) if needs else {}
    accounts: Mapping[bytes, Account | LdpBudgetError] = {}
    if problem is None:
        accounts = transaction.account_macs.load([*users])
    known = transaction.cache.decided
    place = transaction.secret, transaction.end.generation, transaction.partition
    outcomes: list[Outcome | Receipt | LdpBudgetError] = []
    for request in requests:
        written, key = transaction.writes, request.key
        asked = request.user_hash, b"" if key is None else key.key_hash
        stored = records.get(asked)
        try:
            if stored is not None:
                outcomes.append(_repeat(transaction, request, stored))
                continue
            if problem is not None:
                raise problem
            account = accounts[request.user_hash]
            if isinstance(account, LdpBudgetError):
                raise account
            terms, cost = known.get((request.template, request.share)) or _priced(transaction, request, account)
            decision = decide(account, request, terms, windows, cost)
            entry = None
            if not decision.why and not decision.binding:
                charge = request.charge
                mechanism = transaction.cache.charges.get(charge.stored_as) or charge.store(transaction)
                decision.charge()
                entry = _write(transaction, decision, mechanism, at)
            outcome = Outcome(decision, entry, place, transaction.newest_entry)
            if key is not None and not account.erased:  # nothing that is stored may lead to an erased user
                response = outcome.stored(at)
                records[asked] = transaction.store_idempotency_record(*asked, entry, key.request_digest, response)
            outcomes.append(outcome)
        except LdpBudgetError as error:
            if transaction.writes != written:
                raise
            outcomes.append(error)
    return outcomes


def _repeat(transaction: Transaction, request: ChargeRequest, stored: IdempotencyRecord | LdpBudgetError) -> Receipt:
    """Return the stored response for the idempotency key of a request."""
    if isinstance(stored, LdpBudgetError):
        raise stored
    assert request.key is not None
    if stored.request_digest != request.key.request_digest:
        raise KeyConflict(request.key.name)
    receipt = answer_again(transaction, request, stored, partial(policy_version, transaction))
    return receipt._replace(position=transaction.position)


def _priced(
    transaction: Transaction, request: ChargeRequest, account: Account
) -> tuple[ApplicablePolicy, ChargeCost]:
    """Return the terms and the cost of a request; most are worked out once for many requests."""
    terms = terms_in(transaction, request.template, request.share)
    if request.curve is not None or terms.policy.plan is not None:
        terms = load_counts(transaction, account, request, terms)
    cost = cost_of(request, terms, transaction.windows, account)
    # Others depend on the account, or on the mechanisms that are checked by then.
    if request.curve is None and terms.policy.plan is None and not terms.policy.checked:
        known = transaction.cache.decided
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known[request.template, request.share] = terms, cost
    return terms, cost


def quote(reading: Reading, request: ChargeRequest) -> Receipt:
    """Return the receipt that a charge would have now, with the status `quoted`."""
    reading.go_by_the_clock()
    account = read_accounts(reading, [request.user_hash])[request.user_hash]
    terms = load_counts(reading, account, request, terms_in(reading, request.template, request.share))
    return decide(account, request, terms, reading.windows).receipt(QUOTED)


def terms_in(reading: Reading, template: RequestTemplate, share: str | None) -> ApplicablePolicy:
    """Apply the newest version of its policy to a request, through a sub-limit or none. Raises `UnknownName`."""
    number, found = latest_policy(reading, template.policy)
    return ApplicablePolicy.of(found, template.charge, share, number)


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
        stored = reading.priced_mechanism_number(*charge.stored_as)
        gauges = {
            window.name: gauge for gauge, window in reading.windows.items() if window.counts(terms.share, charge.tags)
        }
        account.count_reports(stored, gauges)
        account.repaired = bool(reading.repairs())
    return terms


def _write(transaction: Transaction, decision: Decision, mechanism: int, at: int) -> int:
    """Write a granted charge: the account, label counts, quota and entry; return the number of the entry."""
    request, terms, account = decision.request, decision.terms, decision.account
    template = request.template
    number = account.number
    if number is None:
        number = transaction.open_account(account.user)
        transaction.account_macs.open(number, account)
    label = None
    if request.curve is not None or terms.policy.plan is not None:
        label = _count(transaction, decision, number, mechanism)
    written = transaction.append_charge(
        (at, template.kind, number, mechanism, terms.number, request.reports, *decision.cost.costs[LIFETIME]),
        (
            None if template.lasts is None else at + template.lasts,
            0 if request.key is None else 1,
            request.api_key,
            terms.share,
        ),
        account,
        label,
        template.note,
    )
    if request.report is not None:
        transaction.store_report(written, request.charge.collection, request.report)
    return written


def _count(transaction: Transaction, decision: Decision, number: int, mechanism: int) -> bytes | None:
    """Write the label counts and the used quota of a granted charge; return the hash of the label for its entry."""
    request, account, plan = decision.request, decision.account, decision.terms.policy.plan
    label = None
    if request.curve is not None:
        label = request.label_hash
        for gauge, counts in account.reported.items():
            window = transaction.windows[gauge].name
            transaction.set_memoised_reports(number, request.label, mechanism, window, counts[request.label])
    if plan is not None:
        transaction.set_quota_used(number, plan.identity, request.charge.promise, account.quota_used)
    return label


# -- requests that are alike -----------------------------------------------------------------------------------


def charge_alike(
    transaction: Transaction,
    charge: PricedMechanism,
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
    rooms = [
        (window.name, limit.remaining_room(charge.cost_in(window.scope, window.measure))) for window, limit in limited
    ]
    refused = batch.refuse(rooms)
    if len(refused) < len(users):
        transaction.open_accounts(batch)
        mine = [window for window in windows.values() if window.counts(terms.share, charge.tags)]
        transaction.charge_batch(
            batch, {window.name: charge.cost_in(window.scope, window.measure) for window in mine}
        )
        common = (transaction.moment.micros, SPENT, charge.store(transaction), terms.number, *charge.cost)
        transaction.append_batch(batch, common, api_key, note, terms.share)
    return refused
