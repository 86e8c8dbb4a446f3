"""What users have spent and have left, and what stands in the journal; nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._checks import check_name, check_whole
from .._columns import check_texts
from ..errors import UserErased
from ..guarantees.amounts import LARGEST
from ..ledger import listing
from .balances import account_names, all_balances, balances_of, limit_states, quota_states
from .books import policy_in, user_hash
from .receipts import Balance, receipt_of
from .remaining import Remaining, remaining_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..ledger import Ledger


def balance(ledger: Ledger, user: str, policy: str, *, share: str | None) -> Balance:
    """What a user has spent under each limit of a policy, in the windows that are open now."""
    hashed = user_hash(ledger, user)
    check_name("policy", policy)
    with ledger.reading(ledger.partition_of(hashed)) as reading:
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
        states = limit_states(reading.windows, found.limits_shown_to(share), account.spent)
        return Balance(user, found, states, quota_states(found, used), charges)


def balances(ledger: Ledger, users: Iterable[str] | None, policy: str, *, share: str | None) -> Iterator[Balance]:
    """The balance of each of many users, in their order, or with None of every account, by its number."""
    check_name("policy", policy)
    with ledger.reading() as reading:
        policy_in(reading, policy)  # one that there is not is told, even where nobody asks for a balance
    return all_balances(ledger, policy, share) if users is None else balances_of(ledger, users, policy, share)


def remaining_over_time(ledger: Ledger, user: str, policy: str, *, share: str | None) -> tuple[Remaining, ...]:
    """What was left of each limit of a policy, as it is now, from the user's first charge until now."""
    hashed = user_hash(ledger, user)
    check_name("policy", policy)
    with ledger.reading(ledger.partition_of(hashed)) as reading:
        _, found = policy_in(reading, policy)
        if reading.is_erased(hashed):
            return ()
        return remaining_of(reading, found.limits_shown_to(share), reading.number_of(hashed))


def is_erased(ledger: Ledger, user: str) -> bool:
    """Whether a user was erased, and gets no budget."""
    hashed = user_hash(ledger, user)
    with ledger.reading(ledger.partition_of(hashed)) as reading:
        return reading.is_erased(hashed)


def history(ledger: Ledger, user: str, *, first: int, most: int | None) -> list[dict[str, Any]]:
    """The journal entries of a user, oldest first; a reservation's `state` says what has become of it."""
    hashed = user_hash(ledger, user)
    check_whole("first", first, 1, LARGEST)
    if most is not None:
        check_whole("most", most, 1, LARGEST)
    with ledger.reading(ledger.partition_of(hashed)) as reading:
        account = reading.number_of(hashed)
        if account is None and reading.is_erased(hashed):
            raise UserErased(user)
        rows = [] if account is None else listing.history_rows(reading, account, first, most)
    return listing.name_callers(ledger, rows)


def open_reservations(ledger: Ledger, most: int | None, *, user: str | None) -> list[dict[str, Any]]:
    """The reservations that can still be committed or voided, newest first, each with its `receipt`."""
    if most is not None:
        check_whole("most", most)
    rows = listing.open_reservations(ledger, None if user is None else user_hash(ledger, user), most)
    return [{"receipt": receipt_of(row.pop("secret"), row.pop("name")), **row} for row in rows]


def journal(ledger: Ledger, users: Iterable[str] | None) -> Iterator[dict[str, Any]]:
    """Every journal entry in order, as one moment of the ledger saw it; others may write meanwhile."""
    return listing.journal_rows(ledger, None if users is None else account_names(ledger, users))


def position(ledger: Ledger, user: str | None) -> str:
    """Where the journal ends: `PARTITION:ENTRY` of each partition of the ledger, with commas between."""
    if user is None:
        return ",".join(f"{partition}:{entries}" for partition, entries in enumerate(ledger.entries()))
    partition = ledger.partition_of(user_hash(ledger, user))
    with ledger.reading(partition) as reading:
        return f"{partition}:{reading.end.entries}"


def positions(ledger: Ledger, users: Sequence[str]) -> list[str]:
    """Where the journal ends for each of some users, by one look at it."""
    partitions = [ledger.partition_of(user_hash(ledger, user)) for user in check_texts("users", users, "texts")]
    entries = ledger.entries()
    return [f"{partition}:{entries[partition]}" for partition in partitions]
