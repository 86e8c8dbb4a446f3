"""Charging many users over HTTP: one line for each user, in batches that the service accepts.

Batch n of a run has the key KEY#n. So other users under the same key are a conflict, and none of them is charged. A
batch without lines binds the end of the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count as count_from
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ldp_budget._dataframes import check_texts
from ldp_budget._validation import ONE_USER
from ldp_budget.accounting.batch import FAILED
from ldp_budget.accounting.bulk_run import BulkResult, check_listed, in_shard
from ldp_budget.ledger.models import SPENT

from ..api.problem_details import error_of
from ..api.schemas import MOST_BYTES, MOST_LINES, charge_body, header_of, sendable

if TYPE_CHECKING:
    from ldp_budget.accounting.batch import Spend
    from ldp_budget.accounting.bulk_run import Shard

    from .transport import Service

T = TypeVar("T")

PATH = "/v1/spends:batch"
MOST_KEYED = 500


class Batch(NamedTuple):
    """Users who are charged together, under the names that the caller gave, and their lines."""

    users: list[str]
    lines: list[bytes]


def charge_all(
    service: Service,
    users: Iterable[str],
    common: Mapping[str, Any],
    key: str,
    shard: Shard,
    *,
    ends: bool,
) -> Iterator[tuple[Batch, list[Any]]]:
    """Yield the batches of a shard with the answers to their lines. Raises the error of the first line that failed.

    `ends`: True to bind the end of the run to its key too.
    """
    following = 0
    for number, batch in enumerate(batches(users, common)):
        following = number + 1
        if in_shard(number, shard):
            yield batch, _answers(service, batch.lines, f"{key}#{number}")
    if ends:
        end = next(number for number in count_from(following) if in_shard(number, shard))
        _answers(service, [], f"{key}#{end}")


def _answers(service: Service, lines: Sequence[bytes], key: str) -> list[Any]:
    """Return the answers to the lines of one batch. Raises the error of the first line that failed."""
    rows = service.exchange(PATH, lines, key=key)
    for row in rows:
        if row.get("status") == FAILED:
            problem = row["problem"]
            raise error_of(service.url, problem["status"], problem)
    return rows


def count(result: BulkResult, batch: Batch, rows: Sequence[Mapping[str, Any]], fresh: bool) -> list[str]:
    """Add a batch to the result and return the refused users.

    With a `fresh` key, a user that is already charged was charged by this very run.
    """
    refused = [user for user, row in zip(batch.users, rows, strict=True) if row["status"] != SPENT]
    repeated = 0 if fresh else sum(row["status"] == SPENT and row["repeated"] for row in rows)
    result.refused += len(refused)
    result.repeated += repeated
    result.spent += len(rows) - len(refused) - repeated
    return refused


def batches(users: Iterable[str], common: Mapping[str, Any]) -> Iterator[Batch]:
    """Yield the users in batches, always the same for the same users. Raises `InvalidParameter` at an invalid user."""
    shared = json.dumps(common, separators=(",", ":"))[1:-1]
    more = len(shared) + 12  # of the line around the user
    together: list[str] = []
    texts: list[str] = []
    size = 0
    sent = False
    for place, user in enumerate(check_texts("users", users, "a list of user names", ONE_USER)):
        text = json.dumps(sendable("user", check_listed(user, place, sent)))
        if together and (len(together) == MOST_LINES or size + len(text) + more > MOST_BYTES):
            yield Batch(together, _lines(texts, shared))
            sent = True
            together, texts, size = [], [], 0
        together.append(user)
        texts.append(text)
        size += len(text) + more
    if together:
        yield Batch(together, _lines(texts, shared))


def _lines(texts: list[str], shared: str) -> list[bytes]:
    return [f'{{"user":{text},{shared}}}\n'.encode() for text in texts]


def line_of(spend: Spend) -> bytes:
    """Return a spend as a line with its own key, a new one if it has none. Raises `InvalidParameter`."""
    body = charge_body(
        spend.user,
        spend.mechanism,
        reports=spend.reports,
        policy=spend.policy,
        label=spend.label,
        digest=spend.digest,
        note=spend.note,
    )
    return json.dumps({**body, "key": header_of(spend.key)}, separators=(",", ":")).encode() + b"\n"


def chunks_of(spends: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split spends into chunks that a service answers in one request."""
    for first in range(0, len(spends), MOST_KEYED):
        yield spends[first : first + MOST_KEYED]
