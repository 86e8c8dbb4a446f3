"""Keyed hashing: users, idempotency keys and labels are stored only as keyed hashes.

The key determines whether the ledger is a *sandbox*, in which nothing counts. The key of a sandbox is longer. So the
same name has unrelated hashes under the two kinds, and every MAC and chain hash of one kind fails in the other. The
ledger itself does not store its kind, so no change to a stored value can turn one kind into the other.

A leaked key can be rotated (see `key_rotation`). Its file, see `key_file`, then holds several secrets. The first secret continues
to hash user names, because a user cannot be hashed again without the name. `Key.hash` *encrypts* every such hash with
the secret in use, which also makes chain hashes, MACs and receipts. All other code sees encrypted hashes only. An
attacker with all secrets except that one can neither find a name in the stored data nor write data that passes the
checks.
"""

from __future__ import annotations

import json
import secrets
from functools import cached_property
from hashlib import blake2b
from hmac import compare_digest
from typing import TYPE_CHECKING, Any

from .._files import canonical_json

if TYPE_CHECKING:
    from collections.abc import Iterable

KEY_BYTES = 32
SANDBOX = b"sandbox"
"""The suffix of a sandbox's key, after the bytes of an ordinary key."""
HASH_BYTES = 16
CHAIN_HASH_BYTES = 32
MAC_BYTES = 8
_HALF = HASH_BYTES // 2
_LEDGER_ID_BYTES = 16
_ROUNDS = (b"veil 1", b"veil 2", b"veil 3", b"veil 4")
_OF_ONE_LEDGER = frozenset({b"row mac", b"chain hash", b"sums"})
"""The purposes whose hashes name the ledger. Two ledgers may have one key, and rows of one must not hold in the other."""


class Secret:
    """A secret for keyed BLAKE2b hashes: without it, names cannot be linked to their hashes or guessed from them.

    `number`: its position in the key, counted from 1.
    """

    def __init__(self, secret: bytes, number: int = 1) -> None:
        self._secret = secret
        self.number = number
        self._ledger_id, self._salt = "", b""
        self._begun: dict[bytes, blake2b] = {}

    @property
    def ledger_id(self) -> str:
        """The id of the ledger that uses this secret, if it has one; two ledgers may have been made with one key.

        Every MAC and chain hash names it, in the salt of BLAKE2b's parameter block (Aumasson and others,
        "BLAKE2: simpler, smaller, fast as MD5", 2013). So it costs no time.
        """
        return self._ledger_id

    @ledger_id.setter
    def ledger_id(self, ledger_id: str) -> None:
        self._ledger_id = ledger_id
        named = ledger_id.encode("utf-8", "surrogatepass")
        self._salt = blake2b(named, digest_size=blake2b.SALT_SIZE).digest() if ledger_id else b""
        self._begun = {}

    def hash(self, purpose: bytes, text: str) -> bytes:
        """Return a keyed hash of `text`.

        The same text has unrelated hashes for different purposes (at most 16 bytes).
        """
        hasher = (self._begun.get(purpose) or self._begin(purpose, HASH_BYTES)).copy()
        hasher.update(text.encode("utf-8", "surrogatepass"))
        return hasher.digest()

    def hash_outside(self, purpose: bytes, text: str) -> bytes:
        """Return `hash` of a value that leaves the ledger and comes back.

        Another ledger with the same key has another hash.
        """
        return Secret.hash(self, purpose, f"{self._ledger_id}\n{text}" if self._ledger_id else text)

    def receipt(self, name: str) -> str:
        """Return the receipt of an entry, from its name: the name, and a keyed digest."""
        return f"{name}-{self.hash_outside(b'receipt', name).hex()[:20]}"

    def hashes(self, purpose: bytes, texts: list[str]) -> list[bytes]:
        """Return `hash` of many texts."""
        return self._digests(purpose, HASH_BYTES, [text.encode("utf-8", "surrogatepass") for text in texts])

    def chain_hash(self, covered: bytes) -> bytes:
        """Return the keyed chain hash of what one transaction appended."""
        # Spelled out, as in `hash`: each transaction makes one.
        hasher = (self._begun.get(b"chain hash") or self._begin(b"chain hash", CHAIN_HASH_BYTES)).copy()
        hasher.update(covered)
        return hasher.digest()

    def commitment(self, salt: bytes, label: bytes) -> bytes:
        """Return the commitment to a label, as the journal has it. Without the salt it does not reveal the label."""
        return self._digest(b"commitment", HASH_BYTES, salt + label)

    def row_mac(self, *values: object) -> bytes:
        """Return the MAC of a row, which detects a changed value."""
        # ascii(), not repr(): the characters that repr() escapes depend on the version of Python.
        return self._digest(b"row mac", MAC_BYTES, ascii(values).encode("ascii"))

    def sums(self, covered: bytes) -> blake2b:
        """Return a keyed hasher that has taken in account sums; the account itself is still to be added."""
        hasher = self._begin(b"sums", MAC_BYTES).copy()
        hasher.update(covered)
        return hasher

    def row_macs(self, rows: Iterable[tuple[object, ...]]) -> list[bytes]:
        """Return `row_mac` of many rows."""
        return self._digests(b"row mac", MAC_BYTES, [ascii(row).encode("ascii") for row in rows])

    def with_macs(self, rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return rows, each with its `row_mac` in place of its last value."""
        begun, found = self._begun.get(b"row mac") or self._begin(b"row mac", MAC_BYTES), []
        for row in rows:
            covered = row[:-1]
            hasher = begun.copy()
            hasher.update(ascii(covered).encode("ascii"))
            found.append((*covered, hasher.digest()))
        return found

    def encrypt_hash(self, hashed: bytes) -> bytes:
        """Return the stored form of a hash under this secret.

        Values of another length are returned unchanged, and so are all values under the first secret.

        The encryption is a permutation of 16 bytes: four Feistel rounds, each with its own keyed function (Luby and
        Rackoff, "How to construct pseudorandom permutations from pseudorandom functions", SIAM J. Comput. 17, 1988).
        From q stored hashes, an attacker without the secret learns only which are equal, except with probability of
        about q² / 2^64.
        """
        if self.number == 1 or len(hashed) != HASH_BYTES:
            return hashed
        left, right = int.from_bytes(hashed[:_HALF]), int.from_bytes(hashed[_HALF:])
        for begun in self._rounds:
            hasher = begun.copy()
            hasher.update(right.to_bytes(_HALF))
            left, right = right, left ^ int.from_bytes(hasher.digest())
        return left.to_bytes(_HALF) + right.to_bytes(_HALF)

    def decrypt_hash(self, stored: bytes) -> bytes:
        """Return the hash whose stored form this is."""
        if self.number == 1 or len(stored) != HASH_BYTES:
            return stored
        left, right = int.from_bytes(stored[:_HALF]), int.from_bytes(stored[_HALF:])
        for begun in reversed(self._rounds):
            hasher = begun.copy()
            hasher.update(left.to_bytes(_HALF))
            left, right = right ^ int.from_bytes(hasher.digest()), left
        return left.to_bytes(_HALF) + right.to_bytes(_HALF)

    @cached_property
    def _rounds(self) -> list[blake2b]:
        """The keyed hashers of the Feistel rounds."""
        return [self._begin(purpose, _HALF) for purpose in _ROUNDS]

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
        """Return a hasher that has taken in the key.

        It is cached per purpose, because that takes longer than a short message.
        """
        if purpose not in self._begun:
            salt = self._salt if purpose in _OF_ONE_LEDGER else b""
            self._begun[purpose] = blake2b(digest_size=size, key=self._secret, person=purpose, salt=salt)
        return self._begun[purpose]

    def __repr__(self) -> str:
        return "<Key: secret>"


class Key(Secret):
    """All secrets of a ledger, from the content of its key file.

    The object itself is the first secret, which permanently hashes users, keys and labels. `in_use` is the secret that
    encrypts these hashes. It never changes: an open ledger continues under one secret or not at all. Otherwise a hash
    that was made before a rotation would find no user after it, and the user would get a fresh budget.
    """

    def __init__(self, content: bytes, in_use: int = 1) -> None:
        super().__init__(_parse(content)[1][0])
        self._read(content)
        self.in_use = self._secrets[in_use]
        """The secret that makes everything that is stored."""

    def _read(self, content: bytes) -> None:
        active, secrets = _parse(content)
        later = {number: Secret(secret, number) for number, secret in enumerate(secrets[1:], 2)}
        for each in later.values():
            each.ledger_id = self.ledger_id
        self._secrets: dict[int, Secret] = {1: self, **later}
        self.active = active
        """The number of a secret that was in use; a ledger under an older one was rolled back."""
        self.secret = content
        """The content of the key file."""

    def with_in_use(self, number: int) -> Key:
        """Return the same key with another secret in use."""
        key = Key(self.secret, number)
        key.set_ledger_id(self.ledger_id)
        return key

    # -- stored hashes ------------------------------------------------------------------------------------

    def hash(self, purpose: bytes, text: str) -> bytes:
        """Return the keyed hash of `text`, as it is stored and looked up."""
        # Spelled out, as in `Secret.hash`: each charge makes several of these hashes.
        hasher = (self._begun.get(purpose) or self._begin(purpose, HASH_BYTES)).copy()
        hasher.update(text.encode("utf-8", "surrogatepass"))
        hashed = hasher.digest()
        return hashed if self.in_use.number == 1 else self.in_use.encrypt_hash(hashed)

    def each(self, *asked: tuple[bytes, str]) -> list[bytes]:
        """Return `hash` of some pairs of a purpose and a text."""
        begun, found = self._begun, []
        for purpose, text in asked:
            hasher = (begun.get(purpose) or self._begin(purpose, HASH_BYTES)).copy()
            hasher.update(text.encode("utf-8", "surrogatepass"))
            found.append(hasher.digest())
        return found if self.in_use.number == 1 else [*map(self.in_use.encrypt_hash, found)]

    def hashes(self, purpose: bytes, texts: list[str]) -> list[bytes]:
        """Return `hash` of many texts."""
        hashes = super().hashes(purpose, texts)
        return hashes if self.in_use.number == 1 else [*map(self.in_use.encrypt_hash, hashes)]

    def plain(self, stored: bytes) -> bytes:
        """Return the hash without its encryption: it is the same under each secret."""
        return self.in_use.decrypt_hash(stored)

    def plain_hashes(self, stored: list[bytes]) -> list[bytes]:
        """Return `plain` of many hashes."""
        return stored if self.in_use.number == 1 else [*map(self.in_use.decrypt_hash, stored)]

    def commitment(self, salt: bytes, label: bytes) -> bytes:
        """Return the commitment to a label. Salt and label are encrypted, so a rotation keeps the commitment valid."""
        return super().commitment(self.plain(salt), self.plain(label))

    def partition_of(self, stored: bytes, partitions: int) -> int:
        """Return the partition of a stored hash."""
        return int.from_bytes(self.plain(stored)[:4]) % partitions

    # -- secrets ------------------------------------------------------------------------------------------

    def set_ledger_id(self, ledger_id: str) -> None:
        """Set the ledger id of every secret."""
        for each in self._secrets.values():
            each.ledger_id = ledger_id

    @property
    def sandbox(self) -> bool:
        """True if the ledger is a sandbox."""
        return self._secret[KEY_BYTES:] == SANDBOX

    @property
    def newest(self) -> int:
        """The number of the newest secret, which may not be in use yet."""
        return max(self._secrets)

    def at(self, number: int) -> Secret | None:
        """Return a secret by its number; None if it is unknown."""
        return self._secrets.get(number)

    def is_that_of(self, other: Key) -> bool:
        """True if both keys belong to the same ledger, regardless of later secrets."""
        return compare_digest(self._secret, other._secret)

    def replaces(self, other: Key) -> bool:
        """True if this key can replace `other`: it has every secret of `other`."""
        mine, others = self._all(), other._all()
        return len(mine) >= len(others) and all(map(compare_digest, mine, others))

    def learn(self, other: Key) -> None:
        """Take over the current content of the key file, which belongs to the same ledger."""
        if other.secret != self.secret:
            self._read(other.secret)

    def with_new_secret(self) -> bytes:
        """Return the key file's content with one more secret, which is not in use yet."""
        return _write(self.active, [*self._all(), new_key(self.sandbox)])

    def with_active(self, number: int) -> bytes:
        """Return the key file's content when a secret is in use."""
        return _write(max(self.active, number), self._all())

    def at_moment(self, number: int) -> Key:
        """Return the key for a copy of a ledger in which that secret was in use."""
        return Key(_write(number, self._all()))

    def _all(self) -> list[bytes]:
        return [secret._secret for _, secret in sorted(self._secrets.items())]


def _parse(content: bytes) -> tuple[int, list[bytes]]:
    """Return the number of the active secret, and all secrets. Raises `ValueError`."""
    if len(content) == KEY_BYTES or content[KEY_BYTES:] == SANDBOX:
        return 1, [content]
    try:
        found = json.loads(content)
        active = found["active"]
        secrets = [bytes.fromhex(secret) for secret in found["secrets"]]
    except (ValueError, TypeError, LookupError):
        raise ValueError(f"has {len(content)} bytes instead of {KEY_BYTES}") from None
    if type(active) is not int:
        raise ValueError("was changed")
    whole = all(len(each) == KEY_BYTES or each[KEY_BYTES:] == SANDBOX for each in secrets)
    if not whole or active not in range(1, len(secrets) + 1) or len({len(each) for each in secrets}) != 1:
        raise ValueError("was changed")
    return active, secrets


def _write(active: int, secrets: list[bytes]) -> bytes:
    """Return the content of a key file: the bytes of the secret if there is only one, else JSON."""
    if len(secrets) == 1:
        return secrets[0]
    content = {"active": active, "secrets": [each.hex() for each in secrets]}
    return f"{canonical_json(content)}\n".encode("ascii")


def new_key(sandbox: bool | None = None) -> bytes:
    return secrets.token_bytes(KEY_BYTES) + (SANDBOX if sandbox else b"")


def new_ledger_id() -> str:
    """Return the id of a new ledger. A copy keeps the id of its source, so that receipts stay valid there."""
    return secrets.token_hex(_LEDGER_ID_BYTES // 2)


def write_ledger_id(key: Key, ledger_id: str) -> bytes:
    """Return the stored form of a ledger id. A change made without the key is detected."""
    return ledger_id.encode("ascii", "replace") + key.hash(b"ledger id", ledger_id)


def read_ledger_id(key: Key, stored: bytes | None) -> str | None:
    """Return a ledger id from its stored form; None if that was changed."""
    # A store of another kind may have no id; its copy has none either.
    ledger_id = (stored or b"")[:-HASH_BYTES].decode("ascii", "replace")
    return (
        ledger_id if stored is not None and compare_digest(write_ledger_id(key, ledger_id), bytes(stored)) else None
    )
