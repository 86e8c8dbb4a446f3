"""Charging one user, for good or until it is decided; and what that would cost."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .._checks import check_switch, shown
from ..errors import InvalidParameter
from ..ledger.entries import RESERVED
from .books import Books, policy_version
from .charging import apply, standing
from .decision import Decision, decide
from .idempotency import StoredResponse, run_idempotent
from .policies import DEFAULT
from .receipts import QUOTED, REFUSED, BudgetExceeded, Receipt, answer_again, receipt_for
from .request import Request
from .reservations import MOST_SECONDS

if TYPE_CHECKING:
    from ..authoring.base import Mechanism
    from ..catalogue.collections import Collection
    from ..ledger import Reading, Transaction
    from ..ledger.entries import IdempotencyRecord
    from ..ledger.groups import Piece


def quote(
    self: Books,
    user: str,
    mechanism: Mechanism | Collection | object,
    *,
    reports: int = 1,
    label: str | None = None,
    policy: str = DEFAULT,
) -> Receipt:
    """What a spend would cost and whether it would fit; changes nothing.

    Parameters:
        user: who would be charged.
        mechanism: a mechanism with its parameters; a collection, whose mechanism is charged then; or an object of
            another library, see `guarantee_of`.
        reports: how many reports, at least one.
        label: which memoised value they repeat.
        policy: the policy to hold it against.

    Returns:
        A receipt that says `quoted`; its `binding` names what stands in the way, if anything does.

    Raises:
        InvalidParameter: one of them is of another kind or out of range.
        NotSupported: it is of another library, and says nothing about two values of one user.
        UnknownName: there is no such policy.
        ClockError: the clock cannot be believed.
    """
    key, caller = self._ledger.key, self._caller
    request = Request(key, user, mechanism, reports=reports, policy=policy, label=label, caller=caller)
    with self._ledger.reading(self._ledger.partition_of(request.user_hash)) as reading:
        reading.go_by_the_clock()
        return _decide(reading, request).receipt(QUOTED)


def spend(
    self: Books,
    user: str,
    mechanism: Mechanism | Collection | object,
    *,
    reports: int = 1,
    key: str | None = None,
    label: str | None = None,
    digest: str | None = None,
    note: str | None = None,
    policy: str = DEFAULT,
    strict: bool = False,
) -> Receipt:
    """Charge reports of a mechanism to a user, or refuse.

    Parameters:
        user: who is charged.
        mechanism: a mechanism with its parameters; a collection, whose mechanism is charged then, and which is
            named in the journal; or an object of another library, see `guarantee_of`.
        reports: how many reports, at least one.
        key: makes a retry safe: the same key with the same request returns the stored answer. It is the user's
            own, and stands for one randomised output. Another collection is another request, another note is not.
        label: which memoised value the reports repeat: an opaque name of yours.
        digest: hexadecimal; binds the report itself to the key.
        note: one line of at most 500 characters, kept beside the charge until the user is erased; of a repeated
            request the one that came first stays.
        policy: the policy to hold it against.
        strict: raise `BudgetExceeded` rather than return a refusal.

    Returns:
        A receipt that says `spent` or `refused`; it is true if and only if the report may be sent.

    Raises:
        InvalidParameter: one of them is of another kind or out of range. Nothing was charged.
        NotSupported: it is of another library, and says nothing about two values of one user. Nothing was charged.
        UnknownName: there is no such policy.
        KeyConflict: the key was used for another request.
        BudgetExceeded: it was refused, and `strict`.
        ClockError: the clock cannot be believed.
    """
    request = Request(
        self._ledger.key,
        user,
        mechanism,
        reports=reports,
        policy=policy,
        label=label,
        digest=digest,
        key=key,
        caller=self._caller,
        note=note,
    )
    return _charge(self, request, strict)


def reserve(
    self: Books,
    user: str,
    mechanism: Mechanism | Collection | object,
    *,
    reports: int = 1,
    expires: float = 3600,
    key: str | None = None,
    label: str | None = None,
    digest: str | None = None,
    note: str | None = None,
    policy: str = DEFAULT,
    strict: bool = False,
) -> Receipt:
    """Charge now, and decide within `expires` seconds: `commit` keeps the charge, `void` takes it back.

    What is not voided in time stays charged, for the report may be out already.

    Parameters:
        user: who is charged.
        mechanism: a mechanism with its parameters; a collection, whose mechanism is charged then; or an object of
            another library, see `guarantee_of`.
        reports: how many reports, at least one.
        expires: seconds, above 0 and at most 366 days.
        key: makes a retry safe, as with `spend`.
        label: which memoised value the reports repeat.
        digest: hexadecimal; binds the report itself to the key.
        note: one line of at most 500 characters, kept beside the charge until the user is erased.
        policy: the policy to hold it against.
        strict: raise `BudgetExceeded` rather than return a refusal.

    Returns:
        A receipt that says `reserved`, whose `receipt` is for `commit` and `void`; or `refused`.

    Raises:
        InvalidParameter: one of them is of another kind or out of range. Nothing was charged.
        NotSupported: it is of another library, and says nothing about two values of one user. Nothing was charged.
        UnknownName: there is no such policy.
        KeyConflict: the key was used for another request.
        BudgetExceeded: it was refused, and `strict`.
        ClockError: the clock cannot be believed.
    """
    if isinstance(expires, bool) or not isinstance(expires, int | float) or not 0 < expires <= MOST_SECONDS:
        raise InvalidParameter("expires", f"seconds > 0 and <= {MOST_SECONDS}", shown(expires))
    request = Request(
        self._ledger.key,
        user,
        mechanism,
        reports=reports,
        policy=policy,
        label=label,
        digest=digest,
        key=key,
        caller=self._caller,
        note=note,
        kind=RESERVED,
        lasts=int(expires * 1_000_000),
    )
    return _charge(self, request, strict)


def _charge(self: Books, request: Request, strict: bool) -> Receipt:
    check_switch("strict", strict)
    receipt = self._ledger.run(*piece_of(self, request))
    if strict and receipt.status == REFUSED:
        raise BudgetExceeded(receipt)
    return receipt


def piece_of(self: Books, request: Request) -> Piece[Receipt]:
    """The work of charging a request, the partition in which it is done, and what it will look up there."""
    needs = request.user_hash, None if request.key is None else request.key.key_hash
    return lambda transaction: charge_in(transaction, request), self._ledger.partition_of(request.user_hash), needs


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
