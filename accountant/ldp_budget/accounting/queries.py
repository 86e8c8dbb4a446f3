"""Read-only queries: balances, history, the journal, reservations and positions.

Balances exist for one user, a list of users or all accounts. Many users are read in batches.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from .._dataframes import check_texts
from .._validation import ONE_USER, canonical_text, check_name, check_user, check_whole
from ..errors import UserErased
from ..guarantees import Memoised, from_json
from ..guarantees.fixed_point import LARGEST
from ..ledger import export
from ..ledger.calendar import counted_until
from ..ledger.checked_sums import checked_sums
from ..ledger.row_macs import read_accounts
from .budget_timeline import Remaining, remaining_of
from .policies import Policy
from .policy_versions import latest_policy, user_hash
from .receipts import Balance, LimitState, receipt_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..guarantees.fixed_point import Costs
    from ..ledger import Account, Ledger, Reading
    from ..ledger.calendar import Window
    from ..ledger.checked_sums import Part
    from .limits import Limit


_TOGETHER = 5_000


def balances_of(ledger: Ledger, users: Iterable[str], policy: str, share: str | None) -> Iterator[Balance]:
    """Yield the balance of each of `users`, in their order, without the odometer.

    The stream may have any length. Of every 5,000 users, those of one partition are read from one snapshot.
    """
    for batch, hashes in _batches(ledger, users):
        found: dict[bytes, Balance] = {}
        for partition, of_partition in _by_partition(ledger, hashes).items():
            with ledger.reading(partition) as reading:
                found.update(_read(reading, of_partition, policy, share))
        for user, hashed in zip(batch, hashes, strict=True):
            yield replace(found[hashed], user=user)


def all_balances(ledger: Ledger, policy: str, share: str | None) -> Iterator[Balance]:
    """Yield the balance of every account, by partition and number, without the odometer.

    A ledger stores no user names. Accounts with equal sums share one tuple of limits.
    """
    for partition in ledger.partitions:
        place = {"partition": partition} if len(ledger.partitions) > 1 else {}
        shown = partial(_balances_in, name=policy, share=share, place=place)
        for balances in checked_sums(partial(ledger.reading, partition), shown):
            yield from balances


def _balances_in(part: Part, name: str, share: str | None, place: dict[str, int]) -> list[Balance]:
    policy, balances = _policy(part.reading, name), list[Balance]()
    used = _used(part.reading, policy, [*part.spent])
    limits, windows = policy.limits_shown_to(share), part.reading.windows
    states: dict[tuple[Costs, ...], tuple[LimitState, ...]] = {}
    for number in range(part.first, part.last + 1):
        costs = part.spent.get(number)
        where = {**place, "account": number}
        if costs is None:
            balances.append(Balance(None, policy, (), erased=True, place=where))
            continue
        shown = states.get(costs)
        if shown is None:
            shown = states[costs] = limit_states(windows, limits, dict(zip(part.gauges, costs, strict=True)))
        quotas = quota_states(policy, _counts(policy, used, number)) if policy.plan is not None else ()
        balances.append(Balance(None, policy, shown, quotas, place=where))
    return balances


def account_names(ledger: Ledger, users: Iterable[str]) -> dict[tuple[int, int], str]:
    """The names of `users` by the partition and number of their accounts."""
    names: dict[tuple[int, int], str] = {}
    for batch, hashes in _batches(ledger, users):
        named = dict(zip(hashes, batch, strict=True))
        for partition, of_partition in _by_partition(ledger, hashes).items():
            with ledger.reading(partition) as reading:
                for hashed, account in reading.numbers_of(of_partition).items():
                    names[partition, account] = named[hashed]
    return names


def _batches(ledger: Ledger, users: Iterable[str]) -> Iterator[tuple[list[str], list[bytes]]]:
    """Yield the users in batches, in order, with their hashes."""
    iterator = iter(check_texts("users", users, "a list of user names", ONE_USER))
    while batch := [check_user(user) for user in islice(iterator, _TOGETHER)]:
        yield batch, ledger.key.hashes(b"user", batch)


def _by_partition(ledger: Ledger, hashes: list[bytes]) -> dict[int, list[bytes]]:
    """The users of each partition."""
    by_partition: dict[int, list[bytes]] = {}
    for hashed in hashes:
        by_partition.setdefault(ledger.partition_of(hashed), []).append(hashed)
    return by_partition


def _read(reading: Reading, users: list[bytes], name: str, share: str | None) -> dict[bytes, Balance]:
    """The balances of some users of one partition."""
    policy, accounts = _policy(reading, name), read_accounts(reading, users)
    used = _used(reading, policy, [account.number for account in accounts.values() if account.number is not None])
    return {user: _balance(reading, policy, account, used, share) for user, account in accounts.items()}


def _balance(
    reading: Reading, policy: Policy, account: Account, used: Mapping[tuple[int, str], int], share: str | None
) -> Balance:
    if account.erased:
        return Balance(None, policy, (), erased=True)
    states = _states(reading, policy.limits_shown_to(share), account)
    return Balance(None, policy, states, quota_states(policy, _counts(policy, used, account.number or 0)))


def _counts(policy: Policy, used: Mapping[tuple[int, str], int], account: int) -> dict[str, int]:
    """The use of each quota of the policy's plan by an account."""
    return {promise: used.get((account, promise), 0) for promise, _ in _quotas(policy)}


def _used(reading: Reading, policy: Policy, accounts: list[int]) -> dict[tuple[int, str], int]:
    """The use of the policy's plan quotas by some accounts."""
    if policy.plan is None or not accounts:
        return {}
    first, last = min(accounts), max(accounts)
    # Read a whole range of accounts if not too many other accounts are in it.
    ranges = [(first, last)] if last - first <= 10 * len(accounts) else [(each, each) for each in accounts]
    rows = (row for each in ranges for row in reading.rows.quotas(*each) if row.plan == policy.plan.identity)
    return {(row.account, row.guarantee): row.used for row in rows}


def _policy(reading: Reading, name: str) -> Policy:
    return Policy.read(reading.policy(name).definition)


def limit_states(
    windows: Mapping[str, Window], limits: Sequence[Limit], spent: Mapping[str, Costs]
) -> tuple[LimitState, ...]:
    """The amounts spent under each of some limits, in these windows."""
    return tuple([LimitState(limit, spent[limit.gauge], windows[limit.gauge].resets_at) for limit in limits])


def _states(reading: Reading, limits: Sequence[Limit], account: Account) -> tuple[LimitState, ...]:
    """The amounts that an account has spent under each of some limits; of a sliding one, with what comes back when."""
    windows, states = reading.windows, list[LimitState]()
    for state in limit_states(windows, limits, account.totals(windows)):
        gauge = state.limit.gauge
        days = account.sliding_sums(gauge, windows[gauge]) if windows[gauge].earlier else ()
        states.append(state._replace(returns=tuple([(counted_until(name), costs) for name, costs in days])))
    return tuple(states)


def quota_states(policy: Policy, used: Mapping[str, int]) -> tuple[dict[str, Any], ...]:
    """The use of each quota of the policy's plan."""
    return tuple(
        {"guarantee": json.loads(promise), "quota": count, "used": used[promise], "left": count - used[promise]}
        for promise, count in _quotas(policy)
    )


def _quotas(policy: Policy) -> tuple[tuple[str, int], ...]:
    return () if policy.plan is None else policy.plan.quotas


def balance(ledger: Ledger, user: str, policy: str, *, share: str | None) -> Balance:
    """The amounts that a user has spent under each limit of a policy, in the windows that are open now."""
    hashed, user = user_hash(ledger, user), canonical_text(user)
    check_name("policy", policy)
    with ledger.reading(ledger.partition_of(hashed)) as reading:
        _, found = latest_policy(reading, policy)
        if reading.is_erased(hashed):
            return Balance(user, found, (), erased=True)
        account = read_accounts(reading, [hashed])[hashed]
        charged = [] if account.number is None else export.charges_of(reading, account.number)
        plan = found.plan
        used = (
            {}
            if plan is None
            else {promise: reading.quota_used(account.number, plan.identity, promise) for promise, _ in plan.quotas}
        )
        states = _states(reading, found.limits_shown_to(share), account)
        charges = tuple((from_json(json.loads(each.guarantee)), count) for each, count, _ in charged)
        mechanisms = tuple((each.mechanism, each.declared) for each, _, _ in charged)
        units = tuple(
            epsilon if isinstance(guarantee, Memoised) else None
            for (guarantee, _), (_, _, epsilon) in zip(charges, charged, strict=True)
        )
        quotas = quota_states(found, used)
        return Balance(user, found, states, quotas, charges, mechanisms=mechanisms, charged=units)


def balances(ledger: Ledger, users: Iterable[str] | None, policy: str, *, share: str | None) -> Iterator[Balance]:
    """The balance of each of many users, in their order; with None of every account, by its number."""
    check_name("policy", policy)
    with ledger.reading() as reading:
        latest_policy(reading, policy)  # raises for an unknown policy, even before the first balance is read
    return all_balances(ledger, policy, share) if users is None else balances_of(ledger, users, policy, share)


def remaining_over_time(ledger: Ledger, user: str, policy: str, *, share: str | None) -> tuple[Remaining, ...]:
    """The remaining amounts of each limit of a policy, as it is now, from the user's first charge until now."""
    hashed = user_hash(ledger, user)
    check_name("policy", policy)
    with ledger.reading(ledger.partition_of(hashed)) as reading:
        _, found = latest_policy(reading, policy)
        if reading.is_erased(hashed):
            return ()
        return remaining_of(reading, found.limits_shown_to(share), reading.number_of(hashed))


def is_erased(ledger: Ledger, user: str) -> bool:
    """True if a user was erased, and gets no budget."""
    hashed = user_hash(ledger, user)
    with ledger.reading(ledger.partition_of(hashed)) as reading:
        return reading.is_erased(hashed)


def history(ledger: Ledger, user: str, *, first: int, most: int | None) -> list[dict[str, Any]]:
    """The journal entries of a user, oldest first. A reservation's `state` shows its outcome."""
    hashed = user_hash(ledger, user)
    check_whole("first", first, 1, LARGEST)
    if most is not None:
        check_whole("most", most, 1, LARGEST)
    with ledger.reading(ledger.partition_of(hashed)) as reading:
        account = reading.number_of(hashed)
        if account is None and reading.is_erased(hashed):
            raise UserErased(user)
        rows = [] if account is None else export.history_rows(reading, account, first, most)
    return export.name_callers(ledger, rows)


def open_reservations(ledger: Ledger, most: int | None, *, user: str | None) -> list[dict[str, Any]]:
    """The reservations that can still be committed or voided, newest first, each with its `receipt`."""
    if most is not None:
        check_whole("most", most)
    rows = export.open_reservations(ledger, None if user is None else user_hash(ledger, user), most)
    return [{"receipt": receipt_of(row.pop("secret"), row.pop("name")), **row} for row in rows]


def journal(ledger: Ledger, users: Iterable[str] | None) -> Iterator[dict[str, Any]]:
    """Yield every journal entry in order, from one snapshot of the ledger. Writers may continue meanwhile."""
    return export.journal_rows(ledger, None if users is None else account_names(ledger, users))


def position(ledger: Ledger, user: str | None) -> str:
    """The end of the journal: `PARTITION:ENTRY` of each partition of the ledger, separated by commas."""
    if user is None:
        return ",".join(f"{partition}:{entries}" for partition, entries in enumerate(ledger.entries()))
    partition = ledger.partition_of(user_hash(ledger, user))
    with ledger.reading(partition) as reading:
        return f"{partition}:{reading.end.entries}"


def positions(ledger: Ledger, users: Sequence[str]) -> list[str]:
    """The end of the journal for each of some users, from one query."""
    partitions = [
        ledger.partition_of(user_hash(ledger, user))
        for user in check_texts("users", users, "a list of user names", ONE_USER)
    ]
    entries = ledger.entries()
    return [f"{partition}:{entries[partition]}" for partition in partitions]
