"""The ledger's key: users, keys and labels are stored only as hashes under it.

It lies beside the ledger as `PATH.key`, readable by the owner alone. Ledger and key are made together, and one
without the other is an error: a ledger recreated beside an old key, or the reverse, would hand out fresh budgets.

The key says whether the ledger is a *rehearsal*, in which nothing counts. That of a rehearsal is longer, so the
same name has unrelated hashes under the two kinds, and every seal and link of the one fails in the other. Nothing in
the ledger itself says it, so no value in there can be changed to turn a ledger of one kind into one of the other.
"""

from __future__ import annotations

import secrets
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import LedgerError, RehearsalError

if TYPE_CHECKING:
    from collections.abc import Iterable

KEY_BYTES = 32
REHEARSAL = b"rehearsal"
"""What the key of a rehearsal ends with, beyond the bytes of any other."""
HASH_BYTES = 16
LINK_BYTES = 32
SEAL_BYTES = 8


class Key:
    """A secret that turns names into hashes nobody can link or guess without it (keyed BLAKE2b)."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._begun: dict[bytes, blake2b] = {}

    @property
    def secret(self) -> bytes:
        """What stands in its file."""
        return self._secret

    @property
    def rehearsal(self) -> bool:
        """Whether its ledger is a rehearsal."""
        return self._secret[KEY_BYTES:] == REHEARSAL

    def hash(self, purpose: bytes, text: str) -> bytes:
        """A keyed hash of `text`; the same text has unrelated hashes for different purposes (at most 16 bytes)."""
        hasher = (self._begun.get(purpose) or self._begin(purpose, HASH_BYTES)).copy()
        hasher.update(text.encode("utf-8", "surrogatepass"))
        return hasher.digest()

    def hashes(self, purpose: bytes, texts: list[str]) -> list[bytes]:
        """`hash` of many texts."""
        return self._digests(purpose, HASH_BYTES, [text.encode("utf-8", "surrogatepass") for text in texts])

    def link(self, covered: bytes) -> bytes:
        """The keyed hash of a link of the journal's chain."""
        return self._digest(b"link", LINK_BYTES, covered)

    def mark(self, salt: bytes, label: bytes) -> bytes:
        """What stands for a label in the journal; without the salt nobody can tell for which."""
        return self._digest(b"mark", HASH_BYTES, salt + label)

    def seal(self, *values: object) -> bytes:
        """A keyed hash of a row, by which a changed value is found."""
        # ascii(), not repr(): which characters that leaves as they are depends on the version of Python.
        return self._digest(b"seal", SEAL_BYTES, ascii(values).encode("ascii"))

    def seals(self, rows: Iterable[tuple[object, ...]]) -> list[bytes]:
        """`seal` of many rows."""
        return self._digests(b"seal", SEAL_BYTES, [ascii(row).encode("ascii") for row in rows])

    def _digest(self, purpose: bytes, size: int, message: bytes) -> bytes:
        hasher = (self._begun.get(purpose) or self._begin(purpose, size)).copy()
        hasher.update(message)
        return hasher.digest()

    def _digests(self, purpose: bytes, size: int, messages: list[bytes]) -> list[bytes]:
        begun, digests = self._begin(purpose, size), []
        for message in messages:
            hasher = begun.copy()
            hasher.update(message)
            digests.append(hasher.digest())
        return digests

    def _begin(self, purpose: bytes, size: int) -> blake2b:
        """A hash that has taken in the key, made once for each purpose; that takes longer than a short message."""
        if purpose not in self._begun:
            self._begun[purpose] = blake2b(digest_size=size, key=self._secret, person=purpose)
        return self._begun[purpose]

    def __repr__(self) -> str:
        return "<Key: secret>"


def key_path(path: Path) -> Path:
    """Where the key of the ledger at `path` lies."""
    return path.with_name(path.name + ".key")


def new_key(rehearsal: bool | None = None) -> bytes:
    return secrets.token_bytes(KEY_BYTES) + (REHEARSAL if rehearsal else b"")


def check_kind(key: Key, ledger: str, rehearsal: bool | None) -> Key:
    """The key itself, if its ledger is a rehearsal, or is none, as is wanted; None takes either.

    Raises `RehearsalError`.
    """
    if rehearsal is not None and key.rehearsal != rehearsal:
        raise RehearsalError(ledger, key.rehearsal)
    return key


def read_key(path: Path) -> Key:
    """The key of the ledger at `path`. Raises `LedgerError`."""
    return read_key_file(key_path(path), str(path))


def read_key_file(file: Path, ledger: str, hint: str = "") -> Key:
    """The key of a ledger from its file; raises `LedgerError` if it is missing, unreadable or malformed."""
    try:
        secret = file.read_bytes()
    except OSError as error:
        raise LedgerError(ledger, f"its key {file} cannot be read: {error.strerror}{hint}") from None
    if len(secret) != KEY_BYTES and secret[KEY_BYTES:] != REHEARSAL:
        raise LedgerError(ledger, f"its key {file} has {len(secret)} bytes instead of {KEY_BYTES}")
    return Key(secret)
