"""A key makes a retry safe: what it was used for once is answered again, and never done again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ..errors import KeyConflict

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ledger import Transaction

T = TypeVar("T")


class IdempotencyKey(NamedTuple):
    """A key as its caller named it and as the ledger knows it, and the digest of what it was used for.

    With a `user` (a hash) it goes when that user is erased; without one it names a run, and stays.
    """

    name: str
    hash: bytes
    user: bytes | None
    request: bytes


def once(
    transaction: Transaction,
    key: IdempotencyKey | None,
    act: Callable[[], T],
    *,
    write: Callable[[T], str],
    read: Callable[[str], T],
) -> T:
    """What `act` answers, or has answered to the same request under the same key.

    `write` makes of an answer what the ledger keeps, `read` turns that back. Raises `KeyConflict` where the key was
    used for another request.
    """
    if key is None:
        return act()
    stored = transaction.answer_to(key.hash)
    if stored is None:
        answer = act()
        transaction.store_answer(key.hash, key.user, key.request, write(answer))
        return answer
    if stored.request != key.request:
        raise KeyConflict(key.name)
    return read(stored.answer)
