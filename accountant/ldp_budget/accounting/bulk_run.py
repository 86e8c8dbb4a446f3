"""`spend_many`: a run that charges one report to each of many users.

A stream of users is cut into batches, with the keys KEY#0, KEY#1 and so on. A batch without lines follows the last
one and binds the end of the run. So the same key with more, fewer or reordered users is a conflict. Several processes
can share a run: each takes a shard of its batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from .._dataframes import check_texts
from .._validation import ONE_USER, check_call, check_user, check_users, check_whole, shown
from ..errors import InvalidParameter, LedgerError, NotSupported
from ..registry.collections import Collection
from ..sdk.mechanism import Mechanism
from . import engine
from .batch import SPENT_RESULT, Batch, Lines, SpendResult
from .charge_request import bound_digest, check_key, chosen_of, request_template
from .receipts import REFUSED

if TYPE_CHECKING:
    from ..ledger import Ledger
    from .charge_request import Principal, RequestTemplate

BATCH = 50_000
"""The number of users in one batch of a run."""


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
        from .._dataframes import html_table

        counts = self.to_json()
        return html_table("users charged", list(counts), [list(counts.values())], 1)

    def to_json(self) -> dict[str, int]:
        """The output of `spend-many --json`."""
        return {"spent": self.spent, "refused": self.refused, "repeated": self.repeated}


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


def in_shard(number: int, shard: Shard) -> bool:
    """True if the shard has batch `number`, counted from 0."""
    which, shards = shard
    return number % shards == which - 1


def batches(users: Iterable[str], shard: Shard = (1, 1)) -> Iterator[tuple[int, list[str]]]:
    """Yield the shard's batches of users in order, with numbers from 0; the last one is empty and marks the end.

    The batches are those of the whole list, for any number of shards. Raises `InvalidParameter` at the batch that
    contains anything but texts. The caller must still check each user.
    """
    iterator = iter(check_texts("users", users, "a list of user names", ONE_USER))
    for number in count():
        batch = list(islice(iterator, BATCH))
        if in_shard(number, shard):
            yield number, batch
            if not batch:
                return


def spend_many(
    ledger: Ledger,
    caller: Principal,
    users: Iterable[str],
    mechanism: Mechanism | Collection | object,
    *,
    key: str | None,
    digest: str | None,
    note: str | None,
    policy: str,
    shard: tuple[int, int] | None,
    on_batch: Callable[[int, list[str]], None] | None,
) -> BulkResult:
    """Charge one report to each of many users, in batches; refuse the users whose limits do not fit it."""
    result = BulkResult()
    template = request_template(chosen_of(mechanism), policy=policy, digest=digest, note=note)
    common = ("spend_many", *template.charge.identity, bound_digest(digest, key), policy)
    if key is not None:
        check_key(key)
    check_call("on_batch", on_batch)
    shard = check_shard(shard, key)
    _check_policy(ledger, template, caller)
    for number, given in batches(users, shard):
        named = None if key is None else f"{key}#{number}"
        batch = Batch(ledger, caller, named, explain=False, name=key, follows=number > 0)
        lines = Lines(checked_users(given, number * BATCH), [], {}, template)
        if not given:
            if key is not None:
                _bind_end(batch, lines, common)
            break
        refused = _count(result, given, batch.charge(lines, common))
        if on_batch is not None:
            on_batch(len(given), refused)
        else:
            result.refused_users += refused
    return result


def checked_users(given: list[str], before: int) -> list[str]:
    """Return the canonical names of a batch. Raises `InvalidParameter` with the position in the whole list.

    `before` is the number of users in earlier batches.
    """
    try:
        return check_users(given)
    except InvalidParameter:
        for place, user in enumerate(given, before):
            check_listed(user, place, bool(before))
        raise


def check_listed(user: object, place: int, charged: bool) -> str:
    """Return the canonical name of the user at a position. `charged`: True if earlier batches were charged."""
    try:
        return check_user(user)
    except InvalidParameter as error:
        hint = "Only earlier batches were charged." if charged else "No user was charged."
        found = f"{error.found} at position {place} of the list"
        raise InvalidParameter(error.option, error.expected, found, hint=hint) from None


def _count(result: BulkResult, users: list[str], results: list[SpendResult]) -> list[str]:
    """Add the results of a batch; return the refused users. Raises the error of a line that failed."""
    if results.count(SPENT_RESULT) == len(users):  # the common case
        result.spent += len(users)
        return []
    refused = []
    for user, each in zip(users, results, strict=True):
        if each.status == REFUSED:
            refused.append(user)
        elif each.error is not None:
            raise each.error
        elif each.repeated:
            result.repeated += 1
        else:
            result.spent += 1
    result.refused += len(refused)
    return refused


def _check_policy(ledger: Ledger, template: RequestTemplate, caller: Principal) -> None:
    """Raise an error if the policy can charge none of the users, before a batch is bound to its key."""
    with ledger.reading() as reading:
        terms = engine.terms_in(reading, template.policy, template.charge, caller.share)
    if terms.policy.plan is not None:
        raise NotSupported(
            f"policy {terms.policy.name} has a plan, so its users cannot be charged in bulk",
            hint="Charge them one at a time.",
        )


def _bind_end(batch: Batch, lines: Lines, common: tuple[Any, ...]) -> None:
    """Record the end of a run. All users of the run were charged before, so an error must not say otherwise."""
    try:
        batch.charge(lines, common)
    except LedgerError as error:
        why = "the users of the run were charged, but the end of the run could not be stored"
        hint = "Repeat the run with the same key."
        raise LedgerError(error.path, why, unknown=True, hint=hint) from error
