"""A key makes a retry safe: what it was used for once is answered again, and never done again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from unicodedata import category

from .._checks import check_text, shown
from ..errors import InvalidParameter, KeyConflict
from ..ledger.entries import BatchRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ledger import Transaction
    from ..ledger.entries import IdempotencyRecord
    from ..ledger.keys import Key

T = TypeVar("T")


def check_key(key: object) -> str:
    """`key`, if it is a text without blanks around it and without control characters. Raises `InvalidParameter`.

    Blanks at the ends get lost on the way through HTTP, and a key that has lost them is another key.
    """
    found = check_text("key", key)
    if found != found.strip() or any(category(each) == "Cc" for each in found):
        raise InvalidParameter("key", "a text without blanks around it and without control characters", shown(found))
    return found


class IdempotencyKey(NamedTuple):
    """A key as its caller named it and as the ledger knows it, and the digest of what it was used for.

    It is its user's own (a hash): others may use the same name, and it goes when the user is erased. That of a batch
    has no user.
    """

    name: str
    user_hash: bytes | None
    key_hash: bytes
    request_digest: bytes


def key_hash(secret: Key, key: str, scope: str) -> bytes:
    """What stands for a key in the ledger: another one for each scope, and without any what it has always been."""
    return secret.hash(b"caller key", ascii((scope, key))) if scope else secret.hash(b"key", key)


class StoredResponse(NamedTuple):
    """A response as the ledger keeps it, and the entry it belongs to, if it belongs to one; of a batch its kind."""

    text: str
    entry: int | None = None
    kind: str = ""


def run_idempotent(
    transaction: Transaction,
    key: IdempotencyKey | None,
    act: Callable[[], T],
    *,
    write: Callable[[T], StoredResponse | None],
    read: Callable[[Any], T],
) -> T:
    """What `act` returns, or has returned to the same request under the same key.

    `write` makes of a result what the ledger keeps, None for one that is not kept; `read` turns the record back. Raises
    `KeyConflict` where the key was used for another request.
    """
    if key is None:
        return act()
    stored: IdempotencyRecord | BatchRun | None
    if key.user_hash is None:
        stored = transaction.numbered(BatchRun, key.key_hash)
    else:
        stored = transaction.idempotency_record(key.user_hash, key.key_hash)
    if stored is None:
        answer = act()
        kept = write(answer)
        if kept is not None and key.user_hash is None:
            transaction.add_numbered(BatchRun(0, key.key_hash, key.request_digest, kept.kind, 0, kept.text))
        elif kept is not None and key.user_hash is not None:
            asked = key.user_hash, key.key_hash, kept.entry, key.request_digest
            transaction.store_idempotency_record(*asked, kept.text)
        return answer
    if stored.request_digest != key.request_digest:
        raise KeyConflict(key.name)
    return read(stored)
