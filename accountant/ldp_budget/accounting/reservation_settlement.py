"""Reservations, second step: commit a reservation, or void it and return its charge.

A reservation is charged when it is made. So a commit changes no sum. An expired reservation stays charged, because
after a crash the report may have been sent. Only a timely void returns the charge. Terminal states never change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from .._validation import check_text, shown
from ..errors import InvalidParameter, ReservationConflict, UnknownName
from ..guarantees import Memoised
from ..guarantees.fixed_point import ZERO, Costs
from ..guarantees.memoised_costs import UNLABELLED, refund_in_window
from ..ledger.calendar import LIFETIME, holds, is_lifetime, measure_in, name_at, share_in
from ..ledger.export import entry_row, name_callers
from ..ledger.hash_chain import find, place_of
from ..ledger.models import COMMITTED, EXPIRED, RESERVED, SPENT, VOIDED, Entry
from ..ledger.snapshot import Replay, cost_in, promise, promises
from .policies import Policy
from .policy_versions import latest_policy, policy_version
from .queries import limit_states
from .receipts import Receipt, is_receipt, name_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ledger import Ledger, Transaction
    from ..ledger.hash_chain import Name

MOST_SECONDS = 366 * 86_400


def check_expires(expires: float) -> int:
    """Return the duration of a reservation in microseconds. Raises `InvalidParameter`."""
    if isinstance(expires, bool) or not isinstance(expires, int | float) or not 0 < expires <= MOST_SECONDS:
        raise InvalidParameter("expires", f"a number of seconds > 0 and <= {MOST_SECONDS}", shown(expires))
    return int(expires * 1_000_000)


class ReservationOutcome(NamedTuple):
    """A reservation and its state. `repeated` is True if it was in this state before."""

    entry: Entry
    state: str
    repeated: bool


def reservation_row(ledger: Ledger, receipt: str) -> dict[str, Any]:
    """The journal entry of a reservation, with its `state`. Raises `UnknownName`."""
    name = name_in(check_text("receipt", receipt))
    place = None if name is None else _place(ledger, name)
    if name is not None and place is not None:
        partition, number = place
        with ledger.reading(partition) as reading:
            row = reading.rows.entry(number) if is_receipt(reading, name, receipt) else None
            found = None if row is None or Entry.of(row).kind != RESERVED else entry_row(reading, Entry.of(row))
        if found is not None:
            return name_callers(ledger, [found])[0]
    raise UnknownName("reservation", receipt, None)


def _place(ledger: Ledger, name: Name) -> tuple[int, int] | None:
    """The partition and number of the entry with a name, even in a moved ledger."""
    if name.partition in ledger.partitions:
        with ledger.reading(name.partition) as reading:
            if reading.generation == name.generation:
                return name.partition, name.entry
    with ledger.reading(ledger.partition_of(place_of(ledger.key, name))) as reading:
        return find(reading, name)


def end(ledger: Ledger, receipt: str, how: Callable[[Transaction, str, int], ReservationOutcome]) -> Receipt:
    """Commit or void a reservation, wherever it is now. Raises `UnknownName`, and the errors of `how`."""
    name = name_in(check_text("receipt", receipt))
    ended = None if name is None else _end_named(ledger, name, receipt, how)
    if ended is None:
        raise UnknownName("reservation", receipt, None)
    return ended


def _end_named(
    ledger: Ledger, name: Name, receipt: str, how: Callable[[Transaction, str, int], ReservationOutcome]
) -> Receipt | None:
    def end_at(number: int) -> Callable[[Transaction], Receipt | None]:
        return lambda transaction: _resolve(transaction, name, receipt, how, number)

    def end_here(transaction: Transaction) -> Receipt | None:
        # A reservation that was made before the ledger was moved has another place now.
        return end_at(name.entry)(transaction) if name.generation == transaction.generation else None

    ended = ledger.run(end_here, name.partition) if name.partition in ledger.partitions else None
    if ended is not None:
        return ended
    with ledger.reading(ledger.partition_of(place_of(ledger.key, name))) as reading:
        found = find(reading, name)
    return None if found is None else ledger.run(end_at(found[1]), found[0])


def _resolve(
    transaction: Transaction,
    name: Name,
    receipt: str,
    how: Callable[[Transaction, str, int], ReservationOutcome],
    number: int,
) -> Receipt:
    if not is_receipt(transaction, name, receipt):
        raise UnknownName("reservation", receipt, None)
    entry, state, repeated = how(transaction, receipt, number)
    _, policy = latest_policy(transaction, policy_version(transaction, entry.policy).name)
    windows = transaction.windows_to_read() if repeated else transaction.windows
    tags = promise(transaction, entry.priced_mechanism).tags
    limits = [limit for limit in policy.all_limits if holds(limit.gauge, entry.sub_limit, tags)]
    spent = {period: transaction.total(entry.account, window) for period, window in windows.items()}
    return Receipt(
        status=state,
        user=None,
        policy=policy.name,
        cost_units=entry.costs,
        reports=entry.reports,
        limits=limit_states(windows, limits, spent),
        receipt=receipt,
        repeated=repeated,
        position=transaction.position,
    )


def commit(transaction: Transaction, receipt: str, number: int) -> ReservationOutcome:
    """Keep the charge of a reservation, an entry by its number. Raises `ReservationConflict` for a voided one."""
    entry, state = _reservation(transaction, receipt, number)
    if state == VOIDED:
        raise ReservationConflict(receipt, VOIDED, "committed")
    if state != RESERVED:
        return ReservationOutcome(entry, state, True)
    state = EXPIRED if transaction.is_over(entry) else COMMITTED
    _end(transaction, entry, state, ZERO)
    return ReservationOutcome(entry, state, False)


def void(transaction: Transaction, receipt: str, number: int) -> ReservationOutcome:
    """Return the charge of a reservation.

    Raises `ReservationConflict` for a committed or expired one, which stays charged.
    """
    entry, state = _reservation(transaction, receipt, number)
    if state == VOIDED:
        return ReservationOutcome(entry, VOIDED, True)
    if state == RESERVED and transaction.is_over(entry):
        state = EXPIRED
    if state != RESERVED:
        raise ReservationConflict(receipt, state, "voided")
    _give_back(transaction, entry)
    _return_quota(transaction, entry)
    return ReservationOutcome(entry, VOIDED, False)


def _reservation(transaction: Transaction, receipt: str, number: int) -> tuple[Entry, str]:
    """A reservation and its state. Raises `UnknownName`."""
    entry = transaction.entry(number)
    if entry is not None and entry.kind == SPENT:
        why = f"receipt {receipt!r} is a final charge, not a reservation, so it can be neither committed nor voided"
        raise UnknownName("reservation", receipt, None, why=why)
    if entry is None or entry.kind != RESERVED:
        raise UnknownName("reservation", receipt, None)
    resolution = transaction.resolution(entry.number)
    return entry, RESERVED if resolution is None else resolution.kind


def _end(transaction: Transaction, entry: Entry, kind: str, costs: Costs) -> Entry:
    at = transaction.moment.micros
    ended = entry._replace(
        kind=kind,
        at=at,
        costs=costs,
        expires=None,
        resolves=entry.number,
        has_record=False,
        has_note=False,
        api_key=transaction.by,
    )
    transaction.append(ended)
    return ended


def _give_back(transaction: Transaction, entry: Entry) -> None:
    """Subtract the charge from the windows in which it was made, and add a journal entry.

    It counts in no other windows, because a clock repair ends every reservation made before it.
    """
    transaction.check_account(entry.account)
    stored = transaction.rows.label(entry.number)
    label = None if stored is None else stored.label
    kept = transaction.periods()
    if transaction.rows.is_erased_account(entry.account):
        kept = {LIFETIME: kept[LIFETIME]}  # for an erased user no other window is kept
    # A window from before its period was limited is not kept either.
    tags = promise(transaction, entry.priced_mechanism).tags
    windows = {
        gauge: name_at(gauge, entry.at)
        for gauge, since in kept.items()
        if holds(gauge, entry.sub_limit, tags) and (is_lifetime(gauge) or entry.at >= since)
    }
    reported = _take_off(transaction, entry, label, windows)
    costs = {gauge: _cost(transaction, entry, label, gauge, window, reported) for gauge, window in windows.items()}
    sums = {period: transaction.spent(entry.account, window) for period, window in windows.items()}
    ended = _end(transaction, entry, VOIDED, ZERO.minus(costs[LIFETIME]))
    if any(None in spent for spent in sums.values()):
        # Nothing can be subtracted from an unbounded sum: the remaining charges are added up again.
        left = _add_up(transaction, ended, kept)
    else:
        left = {window: sums[period].minus(costs[period]) for period, window in windows.items()}
    for window in windows.values():
        transaction.set_spent(entry.account, window, left[window])


def _add_up(transaction: Transaction, ended: Entry, kept: dict[str, int]) -> dict[str, Costs]:
    """The account's sums by window, from its history and the entry that ends the reservation."""
    replay = Replay(kept, promises(transaction), transaction.repairs())
    # Deferred rows were written when the reservation was looked up; the entry that ends it was not.
    for each, label in transaction.history(ended.account):
        replay.add(each, label)
    replay.add(ended, None)
    return replay.sums


Counts: TypeAlias = "dict[str, dict[bytes, int]]"
"""Reports of one memoising mechanism by window and label."""


def _take_off(transaction: Transaction, entry: Entry, label: bytes | None, windows: dict[str, str]) -> Counts | None:
    """Subtract memoised reports from their counts; return the rest of their mechanism, None if there are no counts."""
    erased = transaction.rows.is_erased_account(entry.account)
    memoised = isinstance(promise(transaction, entry.priced_mechanism).guarantee, Memoised)
    if erased or not memoised or (label is None and entry.labelled):
        return None
    counted = UNLABELLED if label is None else label
    left: Counts = {window: {} for window in windows.values()}
    for _, each, charge, window, reports in transaction.rows.memoised_counts(entry.account, entry.account):
        if charge == entry.priced_mechanism and window in left:
            left[window][each] = reports
    for window, counts in left.items():
        # In a window that is still being backfilled the count may lack them; then it is written again.
        counts[counted] = max(0, counts.get(counted, 0) - entry.reports)
        transaction.set_memoised_reports(entry.account, counted, entry.priced_mechanism, window, counts[counted])
    return left


def _cost(
    transaction: Transaction, entry: Entry, label: bytes | None, gauge: str, window: str, reported: Counts | None
) -> Costs:
    """The cost that a voided reservation subtracts from a window; `reported`: the rest of its mechanism's reports."""
    known, measure = promise(transaction, entry.priced_mechanism), measure_in(gauge)
    guarantee = known.guarantee
    if not isinstance(guarantee, Memoised):
        return cost_in(gauge, entry, known)
    if reported is None:
        return ZERO  # the user was erased meanwhile; the sums stay unchanged
    return refund_in_window(
        measure,
        guarantee,
        reported[LIFETIME],
        reported[window],
        UNLABELLED if label is None else label,
        entry.reports,
        broken=bool(share_in(gauge)) or bool(transaction.repairs()),
        over=name_at(gauge, transaction.moment.micros) != window,
    )


def _return_quota(transaction: Transaction, entry: Entry) -> None:
    plan = Policy.read(transaction.policy_version(entry.policy).definition).plan
    if plan is None:
        return
    promise = transaction.priced_mechanism(entry.priced_mechanism).guarantee
    used = transaction.quota_used(entry.account, plan.identity, promise)
    transaction.set_quota_used(entry.account, plan.identity, promise, used - entry.reports)
