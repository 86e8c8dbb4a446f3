"""`spend_many`: a run that charges one report to each of many users, on the ledger's host or through a service.

A stream of users is cut into batches, with the keys KEY#0, KEY#1 and so on. A batch without lines follows the last
one and binds the end of the run. So the same key with more, fewer or reordered users is a conflict. Several processes
can share a run: each takes a shard of its batches.

The batches depend on the users only, and each is a `spend_batch`. So a caller can begin a run on the ledger's host and
continue it through a service, or the reverse.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import TYPE_CHECKING, Any, TypeAlias

from .._dataframes import check_texts, html_table
from .._validation import ONE_USER, check_call, check_user, check_users, check_whole, shown
from ..charge_options import DEFAULT
from ..errors import InvalidParameter, KeyConflict, LedgerError, NotSupported
from . import engine
from .batch import SPENT_RESULT, STEP, SpendResult, spend_alike
from .charge_request import bound_digest, key_in_header, request_template
from .priced_mechanism import chosen_of
from .receipts import REFUSED

if TYPE_CHECKING:
    from ..ledger import Ledger
    from ..registry.collections import Collection
    from ..sdk.mechanism import Mechanism
    from .charge_request import Principal, RequestTemplate

BATCH = 50_000
"""The most users in one batch of a run."""
BATCH_BYTES = 7 << 20
"""The most bytes of the names in one batch of a run, as JSON, so that one request to a service holds it."""

ChargeBatch: TypeAlias = Callable[[list[str], "str | None"], Sequence[SpendResult]]
"""Charges the users of a batch under its key, if it has one; returns their results in order."""


@dataclass
class BulkResult:
    """The numbers of requests that were charged, refused, or charged by an earlier run with the same key.

    `refused_users` lists each refused user once for each refusal. It stays empty if `on_batch` reports them.
    """

    spent: int = 0
    refused: int = 0
    repeated: int = 0
    refused_users: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<BulkResult: {self.spent} spent, {self.refused} refused, {self.repeated} repeated>"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        return html_table("users charged", [self.to_json()])

    def to_json(self) -> dict[str, int]:
        """The output of `spend-many --json`."""
        return {"spent": self.spent, "refused": self.refused, "repeated": self.repeated}


# -- the batches of a run ------------------------------------------------------------------------------------------

Shard = tuple[int, int]
"""The number of a shard, from 1, and the number of shards; it has every batch with that remainder."""


def check_shard(shard: Any, key: str | None) -> Shard:
    """Return `shard` if it is valid and the run has a key; the single shard for None. Raises `InvalidParameter`."""
    if shard is None:
        return 1, 1
    expected = "a pair of whole numbers: the number of the shard, from 1, and the number of shards"
    if not isinstance(shard, tuple) or len(shard) != 2:
        raise InvalidParameter("shard", expected, shown(shard))
    shards = check_whole("shard", shard[1], 1)
    if key is None:
        # Only a key identifies a batch of an earlier run, and the shard that charged it.
        raise InvalidParameter("key", "the name of the run, the same for all its shards", None)
    return check_whole("shard", shard[0], 1, shards), shards


def batches(
    users: Iterable[str], shard: Shard = (1, 1), pause: Callable[[], None] = lambda: None
) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield the shard's batches in order: the number from 0, the users as given, and their canonical names.

    The last one is empty and marks the end. The batches are those of the whole list, for any number of shards. Raises
    `InvalidParameter` before the batch of an invalid user. `pause` is called after each few users.
    """
    which, shards = shard
    iterator = iter(check_texts("users", users, "a list of user names", ONE_USER))
    given: list[str] = []
    before = 0
    for number in count():
        while some := [*islice(iterator, min(STEP, BATCH - len(given)))]:
            given += some
            pause()
        names = _checked_users(given, before)
        size = _fitting(names)
        if number % shards == which - 1:
            yield number, given[:size], names[:size]
            if not given:
                return
        before += size
        del given[:size]


def _fitting(names: list[str]) -> int:
    """Return the number of names, from the first, that fit one batch: at least one."""
    joined = "".join(names)
    if 6 * len(joined) <= BATCH_BYTES:  # no character takes more in JSON
        return len(names)
    escaped = joined.count('"') + joined.count("\\") + (0 if joined.isprintable() else 5 * len(joined))
    if len(joined.encode()) + escaped <= BATCH_BYTES:
        return len(names)
    size = 0
    for place, name in enumerate(names):
        size += len(json.dumps(name, ensure_ascii=False).encode()) - 2
        if size > BATCH_BYTES and place:
            return place
    return len(names)


def _checked_users(given: list[str], before: int) -> list[str]:
    """Return the canonical names of users. Raises `InvalidParameter` with the position in the whole list.

    `before` is the number of users in earlier batches.
    """
    try:
        return check_users(given)
    except InvalidParameter:
        for place, user in enumerate(given, before):
            _check_listed(user, place, bool(before))
        raise


def _check_listed(user: object, place: int, charged: bool) -> None:
    """Check the user at a position. `charged`: True if earlier batches were charged."""
    try:
        check_user(user)
    except InvalidParameter as error:
        hint = "Only earlier batches were charged." if charged else "No user was charged."
        found = f"{error.found} at position {place} of the list"
        raise InvalidParameter(error.option, error.expected, found, hint=hint) from None


# -- the run -------------------------------------------------------------------------------------------------------


def charge_run(
    charge: ChargeBatch,
    users: Iterable[str],
    *,
    name: str | None,
    key: str | None,
    shard: Any,
    on_batch: Callable[[int, list[str]], None] | None,
    pause: Callable[[], None] = lambda: None,
) -> BulkResult:
    """Charge the users in batches with the keys NAME#0, NAME#1 and so on; without keys if there is no `name`.

    `key` is what the caller called the run. Without it, the run has no end, and each charge is its own.
    """
    result = BulkResult()
    check_call("on_batch", on_batch)
    for number, given, names in batches(users, check_shard(shard, key), pause):
        named = None if name is None else f"{name}#{number}"
        try:
            if not given:
                if key is not None:
                    _bind_end(charge, named)
                break
            refused = _count(result, given, charge(names, named), fresh=key is None)
        except KeyConflict as error:
            raise (error if key is None else KeyConflict(key)) from None
        if on_batch is not None:
            on_batch(len(given), refused)
        else:
            result.refused_users += refused
    return result


def _count(result: BulkResult, users: list[str], results: Sequence[SpendResult], fresh: bool) -> list[str]:
    """Add the results of a batch; return the refused users. Raises the error of a line that failed.

    With a `fresh` key, a user that is already charged was charged by this very run.
    """
    if results.count(SPENT_RESULT) == len(users):  # the common case
        result.spent += len(users)
        return []
    refused, repeated = [], 0
    for user, each in zip(users, results, strict=True):
        if each.status == REFUSED:
            refused.append(user)
        elif each.error is not None:
            raise each.error
        elif each.repeated and not fresh:
            repeated += 1
    result.refused += len(refused)
    result.repeated += repeated
    result.spent += len(users) - len(refused) - repeated
    return refused


def _bind_end(charge: ChargeBatch, named: str | None) -> None:
    """Record the end of a run. All users of the run were charged before, so an error must not say otherwise."""
    try:
        charge([], named)
    except LedgerError as error:
        why = "the users of the run were charged, but the end of the run could not be stored"
        hint = "Repeat the run with the same key."
        raise LedgerError(error.path, why, unknown=True, hint=hint) from error


def spend_many(
    ledger: Ledger,
    caller: Principal,
    users: Iterable[str],
    mechanism: Mechanism | Collection | object,
    *,
    key: str | None = None,
    digest: str | None = None,
    note: str | None = None,
    tags: Iterable[str] | None = None,
    policy: str = DEFAULT,
    shard: tuple[int, int] | None = None,
    on_batch: Callable[[int, list[str]], None] | None = None,
) -> BulkResult:
    """Charge one report to each of many users of a ledger on this machine."""
    digest = bound_digest(digest, key)
    template = request_template(chosen_of(mechanism), policy=policy, digest=digest, note=note, tags=tags)
    name = None if key is None else key_in_header(key)

    def charge(names: list[str], named: str | None) -> list[SpendResult]:
        return spend_alike(ledger, caller, names, template, named)

    _check_policy(ledger, template, caller)
    give_way = ledger.give_way
    return charge_run(charge, users, name=name, key=key, shard=shard, on_batch=on_batch, pause=give_way)


def _check_policy(ledger: Ledger, template: RequestTemplate, caller: Principal) -> None:
    """Raise an error if the policy can charge none of the users, before a batch is bound to its key."""
    with ledger.reading() as reading:
        terms = engine.terms_in(reading, template, caller.share)
    if terms.policy.plan is not None:
        raise NotSupported(
            f"policy {terms.policy.name} has a plan, so its users cannot be charged in bulk",
            hint="Charge them one at a time.",
        )
