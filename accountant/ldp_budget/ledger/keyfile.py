"""The ledger's key: users, keys and labels are stored only as hashes under it.

It lies beside the ledger as `PATH.key`, readable by the owner alone. Ledger and key are made together, and one
without the other is an error: a ledger recreated beside an old key, or the reverse, would hand out fresh budgets.

The key says whether the ledger is a *sandbox*, in which nothing counts. That of a sandbox is longer, so the
same name has unrelated hashes under the two kinds, and every MAC and link of the one fails in the other. Nothing in
the ledger itself says it, so no value in there can be changed to turn a ledger of one kind into one of the other.

A key that was seen can be exchanged (`exchanging`): its file then holds several secrets. The first one goes on naming
users, for a name that nobody gives cannot be hashed anew; and every hash is stored *veiled* by the secret that is in
force, which also makes links, MACs and receipts. So who has all secrets but that one can neither find a name in what
is stored nor write anything that would be believed.
"""

from __future__ import annotations

import json
import os
import secrets
from functools import cached_property
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from typing import TYPE_CHECKING

from .._files import canonical_json, replacing, sync_file, sync_folder
from ..errors import LedgerError, SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterable

KEY_BYTES = 32
SANDBOX = b"sandbox"
"""What the key of a sandbox ends with, beyond the bytes of any other."""
HASH_BYTES = 16
CHAIN_HASH_BYTES = 32
MAC_BYTES = 8
_HALF = HASH_BYTES // 2
_LEDGER_ID_BYTES = 16
_ROUNDS = (b"veil 1", b"veil 2", b"veil 3", b"veil 4")


class Secret:
    """A secret that turns names into hashes nobody can link or guess without it (keyed BLAKE2b).

    `number`: which of its key it is, counted from 1.
    """

    def __init__(self, secret: bytes, number: int = 1) -> None:
        self._secret = secret
        self.number = number
        self.ledger_id = ""
        """The id of the ledger that goes by it, where that has one; two ledgers may have been made with one key."""
        self._begun: dict[bytes, blake2b] = {}

    def hash(self, purpose: bytes, text: str) -> bytes:
        """A keyed hash of `text`; the same text has unrelated hashes for different purposes (at most 16 bytes)."""
        hasher = (self._begun.get(purpose) or self._begin(purpose, HASH_BYTES)).copy()
        hasher.update(text.encode("utf-8", "surrogatepass"))
        return hasher.digest()

    def hash_outside(self, purpose: bytes, text: str) -> bytes:
        """`hash` of what leaves the ledger and comes back: no other ledger with the same key makes the same."""
        return self.hash(purpose, f"{self.ledger_id}\n{text}" if self.ledger_id else text)

    def hashes(self, purpose: bytes, texts: list[str]) -> list[bytes]:
        """`hash` of many texts."""
        return self._digests(purpose, HASH_BYTES, [text.encode("utf-8", "surrogatepass") for text in texts])

    def chain_hash(self, covered: bytes) -> bytes:
        """The keyed hash of a link of the journal's chain."""
        return self._digest(b"chain hash", CHAIN_HASH_BYTES, covered)

    def commitment(self, salt: bytes, label: bytes) -> bytes:
        """What stands for a label in the journal; without the salt nobody can tell for which."""
        return self._digest(b"commitment", HASH_BYTES, salt + label)

    def row_mac(self, *values: object) -> bytes:
        """A keyed hash of a row, by which a changed value is found."""
        # ascii(), not repr(): which characters that leaves as they are depends on the version of Python.
        return self._digest(b"row mac", MAC_BYTES, ascii(values).encode("ascii"))

    def sums(self, covered: bytes) -> blake2b:
        """A keyed hash that has taken in the sums of accounts, and is still to take in which account it is."""
        hasher = self._begin(b"sums", MAC_BYTES).copy()
        hasher.update(covered)
        return hasher

    def row_macs(self, rows: Iterable[tuple[object, ...]]) -> list[bytes]:
        """`MAC` of many rows."""
        return self._digests(b"row mac", MAC_BYTES, [ascii(row).encode("ascii") for row in rows])

    def encrypt_hash(self, hashed: bytes) -> bytes:
        """A hash as it is stored under this secret; what is no hash, and everything under the first one, as it is.

        A permutation of 16 bytes: four rounds of Feistel, each with a function of its own (Luby and Rackoff, "How to
        construct pseudorandom permutations from pseudorandom functions", SIAM J. Comput. 17, 1988). So of q stored
        hashes nobody without the secret learns more than which are equal, but for a chance of about q² / 2^64.
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
        """The hash that is stored as this."""
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
        """The functions of a veil's rounds, each of which has taken in the secret."""
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
        """A hash that has taken in the key, made once for each purpose; that takes longer than a short message."""
        if purpose not in self._begun:
            self._begun[purpose] = blake2b(digest_size=size, key=self._secret, person=purpose)
        return self._begun[purpose]

    def __repr__(self) -> str:
        return "<Key: secret>"


class Key(Secret):
    """All secrets of a ledger, from the content of its file.

    It is itself the first of them, which names users, keys and labels for good. Each partition of the ledger says which
    of them is in force there. A process that meets one that it does not know looks into the file again, and what it
    finds there is learnt by all who have this object.
    """

    def __init__(self, content: bytes) -> None:
        super().__init__(_parse(content)[2][0])
        self._seen = 1
        self._read(content)

    def _read(self, content: bytes) -> None:
        active, begun, secrets = _parse(content)
        later = {number: Secret(secret, number) for number, secret in enumerate(secrets[1:], 2)}
        for each in later.values():
            each.ledger_id = self.ledger_id
        self._secrets: dict[int, Secret] = {1: self, **later}
        self.active = active
        """The number of a secret that is in force in every partition; a partition under an older one has gone back."""
        self.begun = begun
        """The number of the newest secret that may be in force in some partition; a later one is in force in none."""
        self.secret = content
        """What stands in its file."""

    def set_ledger_id(self, ledger_id: str) -> None:
        """Take the id of the ledger."""
        for each in self._secrets.values():
            each.ledger_id = ledger_id

    @property
    def sandbox(self) -> bool:
        """Whether its ledger is a sandbox."""
        return self._secret[KEY_BYTES:] == SANDBOX

    @property
    def newest(self) -> int:
        """The number of its newest secret, which may be one that is in force nowhere yet."""
        return max(self._secrets)

    def at(self, number: int) -> Secret | None:
        """A secret by its number; None where it is not known."""
        return self._secrets.get(number)

    def is_that_of(self, other: Key) -> bool:
        """Whether both are of the same ledger, whatever secrets came later."""
        return compare_digest(self._secret, other._secret)

    def replaces(self, other: Key) -> bool:
        """Whether this has every secret of the other one that is or was in force: what stands in for it must."""
        mine, others = self._all(), other._all()[: other.used]
        return len(mine) >= len(others) and all(map(compare_digest, mine, others))

    def learn(self, other: Key) -> None:
        """Take what stands in the file now; it is that of the same ledger."""
        if other.secret != self.secret:
            self._read(other.secret)

    @property
    def used(self) -> int:
        """The number of the newest secret that is known to be in force in a partition."""
        return max(self.active, self._seen)

    def found_in_force(self, number: int) -> None:
        """Remember that a partition goes by a secret, which may not be said in the file on this machine."""
        self._seen = max(self._seen, number)

    def with_new_secret(self) -> bytes:
        """What its file is to hold with one secret more, that is in force nowhere."""
        return _write(self.active, self.begun, [*self._all(), new_key(self.sandbox)])

    def without_new_secrets(self, used: int) -> bytes:
        """What its file is to hold without the secrets that are in force nowhere, which those up to `used` are."""
        return _write(self.active, self.begun, self._all()[: max(used, self.begun)])

    def with_begun(self, number: int) -> bytes:
        """What its file is to hold before a secret is in force anywhere: from then on it cannot be taken out."""
        return _write(self.active, max(self.begun, number), self._all())

    def with_active(self, number: int) -> bytes:
        """What its file is to hold when a secret is in force in all partitions."""
        return _write(max(self.active, number), max(self.begun, number), self._all())

    def at_moment(self, number: int) -> Key:
        """The key to go with a copy of a ledger of one partition, in which that secret was in force."""
        return Key(_write(number, number, self._all()))

    def _all(self) -> list[bytes]:
        return [secret._secret for _, secret in sorted(self._secrets.items())]


def _parse(content: bytes) -> tuple[int, int, list[bytes]]:
    """Which secret is active, up to which they may be in force, and all of them. Raises `ValueError`."""
    if len(content) == KEY_BYTES or content[KEY_BYTES:] == SANDBOX:
        return 1, 1, [content]
    try:
        found = json.loads(content)
        active, begun = found["active"], found["begun"]
        secrets = [bytes.fromhex(secret) for secret in found["secrets"]]
    except (ValueError, TypeError, LookupError):
        raise ValueError(f"has {len(content)} bytes instead of {KEY_BYTES}") from None
    if type(active) is not int or type(begun) is not int:
        raise ValueError("was changed")
    whole = all(len(each) == KEY_BYTES or each[KEY_BYTES:] == SANDBOX for each in secrets)
    numbered = active in range(1, len(secrets) + 1) and begun in range(active, len(secrets) + 1)
    if not whole or not numbered or len({len(each) for each in secrets}) != 1:
        raise ValueError("was changed")
    return active, begun, secrets


def _write(active: int, begun: int, secrets: list[bytes]) -> bytes:
    """The content of a key file: as it always was where there is one secret, else JSON."""
    if len(secrets) == 1:
        return secrets[0]
    content = {"active": active, "begun": begun, "secrets": [each.hex() for each in secrets]}
    return f"{canonical_json(content)}\n".encode("ascii")


def key_path(path: Path) -> Path:
    """Where the key of the ledger at `path` lies."""
    return path.with_name(path.name + ".key")


def new_key(sandbox: bool | None = None) -> bytes:
    return secrets.token_bytes(KEY_BYTES) + (SANDBOX if sandbox else b"")


def new_ledger_id() -> str:
    """The id of a new ledger. A copy keeps that of its source, as receipts go on holding there."""
    return secrets.token_hex(_LEDGER_ID_BYTES // 2)


def write_ledger_id(key: Key, ledger_id: str) -> bytes:
    """The id of a ledger as it is stored. Without the key it cannot be changed unnoticed."""
    return ledger_id.encode("ascii", "replace") + key.hash(b"ledger id", ledger_id)


def read_ledger_id(key: Key, stored: bytes | None) -> str | None:
    """The id of a ledger from what is stored; None where that was changed."""
    # A store of another kind may have no id; its copy has none either.
    ledger_id = (stored or b"")[:-HASH_BYTES].decode("ascii", "replace")
    return (
        ledger_id if stored is not None and compare_digest(write_ledger_id(key, ledger_id), bytes(stored)) else None
    )


def check_kind(key: Key, ledger: str, sandbox: bool | None) -> Key:
    """The key itself, if its ledger is a sandbox, or is none, as is wanted; None takes either.

    Raises `SandboxError`.
    """
    if sandbox is not None and key.sandbox != sandbox:
        raise SandboxError(ledger, key.sandbox)
    return key


def replace(file: Path, ledger: str, content: bytes) -> None:
    """Have a content in a key's file, whole and durable; raises `LedgerError` where that cannot be written."""
    try:
        if file.read_bytes() == content:
            # By somebody who may have been killed before it was durable, and a secret in force must be.
            sync_file(file)
            sync_folder(Path(os.path.realpath(file)).parent)
            return
        with replacing(file) as draft:
            draft.write(content)
    except OSError as error:
        raise LedgerError(ledger, f"its key {file} cannot be written: {error.strerror}") from None


def read_key(path: Path) -> Key:
    """The key of the ledger at `path`. Raises `LedgerError`."""
    return read_key_file(key_path(path), str(path))


def read_key_file(file: Path, ledger: str, hint: str = "") -> Key:
    """The key of a ledger from its file; raises `LedgerError` if it is missing, unreadable or malformed."""
    try:
        secret = file.read_bytes()
    except OSError as error:
        raise LedgerError(ledger, f"its key {file} cannot be read: {error.strerror}{hint}") from None
    try:
        return Key(secret)
    except ValueError as error:
        raise LedgerError(ledger, f"its key {file} {error}") from None
