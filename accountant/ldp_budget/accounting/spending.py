"""Charging one user, for good or until it is decided; and what that would cost."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .._checks import check_switch, shown
from ..errors import InvalidParameter
from ..ledger.entries import RESERVED
from .books import policy_version
from .charging import apply, standing
from .decision import Decision, decide
from .idempotency import StoredResponse, run_idempotent
from .receipts import QUOTED, REFUSED, BudgetExceeded, Receipt, answer_again, receipt_for
from .request import Request
from .reservations import MOST_SECONDS

if TYPE_CHECKING:
    from ..authoring.base import Mechanism
    from ..catalogue.collections import Collection
    from ..ledger import Ledger, Reading, Transaction
    from ..ledger.entries import IdempotencyRecord
    from ..ledger.groups import Piece
    from .callers import Caller


def quote(
    ledger: Ledger,
    caller: Caller,
    user: str,
    mechanism: Mechanism | Collection | object,
    *,
    reports: int,
    label: str | None,
    policy: str,
) -> Receipt:
    """What a spend would cost and whether it would fit; changes nothing."""
    key = ledger.key
    request = Request(key, user, mechanism, reports=reports, policy=policy, label=label, caller=caller)
    with ledger.reading(ledger.partition_of(request.user_hash)) as reading:
        reading.go_by_the_clock()
        return _decide(reading, request).receipt(QUOTED)


def spend(
    ledger: Ledger,
    caller: Caller,
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
    caller: Caller,
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
    """Charge now, and decide within `expires` seconds: `commit` keeps the charge, `void` takes it back."""
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
    receipt = ledger.run(*piece_of(ledger, request))
    if strict and receipt.status == REFUSED:
        raise BudgetExceeded(receipt)
    return receipt


def piece_of(ledger: Ledger, request: Request) -> Piece[Receipt]:
    """The work of charging a request, the partition in which it is done, and what it will look up there."""
    needs = request.user_hash, None if request.key is None else request.key.key_hash
    return lambda transaction: charge_in(transaction, request), ledger.partition_of(request.user_hash), needs


def charge_in(transaction: Transaction, request: Request) -> Receipt:
    """Decide, then write; or answer again what was answered under the same key."""
    entry, decision = None, None

    def act() -> Receipt:
        nonlocal entry, decision
        decision = _decide(transaction, request)
        if not decision.fits:
            return decision.receipt(REFUSED)
        entry = apply(transaction, decision)
        return decision.receipt(request.kind, receipt_for(transaction, entry))

    def write(receipt: Receipt) -> StoredResponse | None:
        assert decision is not None
        if not decision.fits and decision.account.erased:
            return None  # nothing that leads to an erased user is kept again
        return StoredResponse(receipt.store(decision.terms.number, transaction.moment.micros), entry)

    def read(stored: IdempotencyRecord) -> Receipt:
        return answer_again(transaction, request, stored, partial(policy_version, transaction))

    return run_idempotent(transaction, request.key, act, write=write, read=read)


def _decide(reading: Reading, request: Request) -> Decision:
    account, terms = standing(reading, request)
    return decide(account, request, terms, reading.windows)
