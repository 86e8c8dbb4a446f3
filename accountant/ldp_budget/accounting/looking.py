"""What users have spent and have left, and what stands in the journal; nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._checks import check_name, check_whole
from .._columns import check_texts
from ..guarantees.amounts import LARGEST
from ..ledger import listing
from .balances import account_names, all_balances, balances_of, limit_states, quota_states
from .books import Books, policy_in
from .policies import DEFAULT
from .receipts import Balance, receipt_of
from .remaining import Remaining, remaining_of
from .reservations import reservation_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .overview import Overview


def balance(self: Books, user: str, policy: str = DEFAULT) -> Balance:
    """What a user has spent under each limit of a policy, in the windows that are open now.

    Parameters:
        user: whose balance it is; of somebody never seen it is that of nothing spent.
        policy: the policy to hold it against.

    Returns:
        A balance. In its `limits` are `spent`, `remaining` and `capacity`, plain numbers.

    Raises:
        InvalidParameter: one of them is no text.
        UnknownName: there is no such policy.
    """
    hashed = self._hash(user)
    check_name("policy", policy)
    with self._ledger.reading(self._ledger.partition_of(hashed)) as reading:
        _, found = policy_in(reading, policy)
        if reading.is_erased(hashed):
            return Balance(user, found, (), erased=True)
        account = reading.account(hashed)
        charges = () if account.number is None else listing.charges_of(reading, account.number)
        plan = found.plan
        used = (
            {}
            if plan is None
            else {promise: reading.quota_used(account.number, plan.identity, promise) for promise, _ in plan.quotas}
        )
        states = limit_states(reading.windows, found.limits_shown_to(self._caller.share), account.spent)
        return Balance(user, found, states, quota_states(found, used), charges)


def balances(self: Books, users: Iterable[str] | None = None, policy: str = DEFAULT) -> Iterator[Balance]:
    """The balance of each of many users, in their order, or with None of every account, by its number.

    Without the odometer, which is worked out for each. Of 5,000 at a time those of one partition of the ledger are
    read in one moment.

    Parameters:
        users: whose balances, a stream of any length; None for everybody's.
        policy: the policy to hold them against.

    Raises:
        InvalidParameter: the policy or one of the users is no text.
        UnknownName: there is no such policy.
    """
    check_name("policy", policy)
    with self._ledger.reading() as reading:
        policy_in(reading, policy)  # one that there is not is told, even where nobody asks for a balance
    share = self._caller.share
    return (
        all_balances(self._ledger, policy, share)
        if users is None
        else balances_of(self._ledger, users, policy, share)
    )


def remaining_over_time(self: Books, user: str, policy: str = DEFAULT) -> tuple[Remaining, ...]:
    """What was left of each limit of a policy, as it is now, from the user's first charge until now.

    It is worked out from the journal. A user who was erased has no limits, as in `balance`.

    Parameters:
        user: whose limits.
        policy: the policy that has them.

    Raises:
        InvalidParameter: one of them is no text.
        UnknownName: there is no such policy.
    """
    hashed = self._hash(user)
    check_name("policy", policy)
    with self._ledger.reading(self._ledger.partition_of(hashed)) as reading:
        _, found = policy_in(reading, policy)
        if reading.is_erased(hashed):
            return ()
        return remaining_of(reading, found.limits_shown_to(self._caller.share), reading.number_of(hashed))


def is_erased(self: Books, user: str) -> bool:
    """Whether a user was erased, and gets no budget.

    Parameters:
        user: whom to look for.

    Raises:
        InvalidParameter: it is no text.
    """
    hashed = self._hash(user)
    with self._ledger.reading(self._ledger.partition_of(hashed)) as reading:
        return reading.is_erased(hashed)


def history(self: Books, user: str, *, first: int = 1, most: int | None = None) -> list[dict[str, Any]]:
    """The journal entries of a user, oldest first; a reservation's `state` says what has become of it.

    Of a user who was erased there are none, as `is_erased` says: the ledger no longer knows which were that user's.

    Parameters:
        user: whose entries.
        first: the number of the entry from which on they are listed.
        most: how many entries at most; None for all. The next ones begin behind the `entry` of the last one.

    Raises:
        InvalidParameter: one of them is of another kind or out of range.
    """
    hashed = self._hash(user)
    check_whole("first", first, 1, LARGEST)
    if most is not None:
        check_whole("most", most, 1, LARGEST)
    with self._ledger.reading(self._ledger.partition_of(hashed)) as reading:
        account = reading.number_of(hashed)
        rows = [] if account is None else listing.history_rows(reading, account, first, most)
    return listing.name_callers(self._ledger, rows)


def open_reservations(self: Books, most: int | None = 20, *, user: str | None = None) -> list[dict[str, Any]]:
    """The reservations that can still be committed or voided, newest first, each with its `receipt`.

    Parameters:
        most: how many of them at most; None for all.
        user: whose; None for everybody's.

    Raises:
        InvalidParameter: one of them is of another kind.
    """
    if most is not None:
        check_whole("most", most)
    rows = listing.open_reservations(self._ledger, None if user is None else self._hash(user), most)
    return [{"receipt": receipt_of(row.pop("secret"), row.pop("name")), **row} for row in rows]


def reservation(self: Books, receipt: str) -> dict[str, Any]:
    """The journal entry of a reservation, with the `state` it is in.

    Parameters:
        receipt: that of the reservation, as `reserve` gave it out.

    Raises:
        UnknownName: this ledger has no such reservation.
        InvalidParameter: the receipt is no text.
    """
    return reservation_row(self._ledger, receipt)


def journal(self: Books, users: Iterable[str] | None = None) -> Iterator[dict[str, Any]]:
    """Every journal entry in order, as one moment of the ledger saw it; others may write meanwhile.

    Users appear as the numbers of their accounts.

    Parameters:
        users: with it each entry has a `user` too: the one of these whose account it is, or None.

    Raises:
        InvalidParameter: one of the users is no text.
    """
    return listing.journal_rows(self._ledger, None if users is None else account_names(self._ledger, users))


def stats(self: Books) -> dict[str, Any]:
    """The counts of what the ledger holds, and its newest link (`head`).

    Raises:
        Nothing but `LedgerError`.
    """
    return listing.stats(self._ledger)


def position(self: Books, user: str | None = None) -> str:
    """Where the journal ends: `PARTITION:ENTRY` of each partition of the ledger, with commas between.

    Positions of one ledger are compared partition by partition: whatever was written before a position was told is in
    every reading whose own position is not behind it.

    Parameters:
        user: that of the user's partition alone; None for every partition.

    Returns:
        The partitions, each with the number of its newest entry.

    Raises:
        InvalidParameter: the user is no text.
    """
    if user is None:
        return ",".join(f"{partition}:{entries}" for partition, entries in enumerate(self._ledger.entries()))
    partition = self._ledger.partition_of(self._hash(user))
    with self._ledger.reading(partition) as reading:
        return f"{partition}:{reading.end.entries}"


def positions(self: Books, users: Sequence[str]) -> list[str]:
    """Where the journal ends for each of some users, by one look at it.

    Parameters:
        users: whose partitions are told.

    Returns:
        `position` of each.

    Raises:
        InvalidParameter: one of them is no text.
    """
    partitions = [self._ledger.partition_of(self._hash(user)) for user in check_texts("users", users, "texts")]
    entries = self._ledger.entries()
    return [f"{partition}:{entries[partition]}" for partition in partitions]


def overview(self: Books) -> Overview:
    """What the ledger adds up to without naming anybody: charges and refusals by day, and what is left of limits.

    Keep it: it remembers what it has read, and reads on from there.

    Raises:
        Nothing.
    """
    from .overview import Overview

    return Overview(self._ledger)
