"""The keyword arguments of calls that `Accountant`, `Client` and `BudgetClient` share, besides `ChargeOptions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from ..registry.collections import Collection
    from ..sdk.mechanism import Mechanism
    from .limits import Limit
    from .plans import Plan

Chargeable: TypeAlias = "Mechanism | Collection | object"
"""A mechanism with its parameters; a collection, which charges its mechanism; or an object of another library."""


class RunOptions(TypedDict, total=False):
    """The options of `spend_many`, each of which may be left out.

    Parameters:
        key: an idempotency key for the whole run. The same run again skips every batch that was charged. A run that has
            reached its end accepts no other users, and neither more nor fewer of them. A key belongs to the caller (see
            `acting_for`): the same run through a service with that API key is a repeat. Without a caller, the run
            belongs to this machine. Through a service, it is then a run of another caller, which charges the users too.
        digest: hexadecimal; binds the reports to the key, so it needs a key.
        note: one line of at most 500 characters, stored with every charge. Erasing a user deletes that user's copy.
        tags: what the reports depend on or are for, see `ChargeOptions`.
        policy: the policy to check against; by default `default`.
        shard: the part of the batches that this process charges, if several processes share a run with a key. (2, 4) is
            the second of every four batches. Give every shard the same users: a difference is detected only when one
            process goes through the whole run. A run may continue with any other number of shards, or without shards.
        on_batch: called as `on_batch(users, refused)` after each batch, with the number of users in the batch and the
            list of refused users. Without it, the result lists the refused users.
    """

    key: str | None
    digest: str | None
    note: str | None
    tags: Iterable[str]
    policy: str
    shard: tuple[int, int] | None
    on_batch: Callable[[int, list[str]], None] | None


class SeriesOptions(TypedDict, total=False):
    """The options of `simulate`, each of which may be left out.

    Parameters:
        reports: the number of reports each time; by default 1.
        start: the time of the first reports, an aware datetime; by default now.
        policy: the policy to check against; by default `default`.
    """

    reports: int
    start: datetime | None
    policy: str


class PolicyTerms(TypedDict, total=False):
    """The terms of a policy besides its limits, each of which may be left out.

    Parameters:
        relation: "any" refuses guarantees that hold only for neighbors of the same change pattern.
        unbounded: True allows a policy without a lifetime limit, that is, an unlimited total.
        checked: True refuses mechanisms whose guarantee has not been checked here, see `certificates`.
        plan: admit only the charges of this plan, each up to its quota.
        shares: sub-limits by name, each a list of limits. Charges through the API keys that are bound to a sub-limit
            must fit its limits too, for each user. None keeps the existing sub-limits, {} removes them.
        zone: the IANA time zone, such as "Asia/Seoul", in which days, weeks and months begin at midnight. None keeps
            the zone of the version before, with its rules; a new policy has "UTC". The policy stores the rules of the
            zone. What was charged in the current window of the new zone is computed from the journal.
    """

    relation: str | None
    unbounded: bool
    checked: bool
    plan: Plan | None
    shares: Mapping[str, Sequence[Limit | str]] | None
    zone: str | None


class PolicyOptions(PolicyTerms, total=False):
    """The options of `set_policy`: the terms of the policy, and `override`.

    Parameters:
        override: the reason for setting the policy without the approval that this ledger demands; only on the ledger's
            host. The administrative log keeps the reason; `policy show` and the officer's page show it. A change that
            needs no approval records no reason.
    """

    override: str | None
