"""Signed notes (C2SP signed-note, tlog-checkpoint): the key of a log, and the checkpoints that it signs.

The key of the log is not the key of the ledger. It is a file of one line in the text format of signed notes:
`PRIVATE+KEY+name+id+base64`. The verifier key `name+id+base64` is public.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING

from ldp_budget._files import create_private, others_have_access
from ldp_budget.errors import InvalidParameter, PublicationError

from .signed_limits import signing_key

if TYPE_CHECKING:
    from pathlib import Path

_ED25519 = b"\1"
_NAME = re.compile(r"[!-*,-~]{1,200}")
_PREFIX = "PRIVATE+KEY+"


class LogKey:
    """The Ed25519 key of a log. `name` is the origin of its checkpoints."""

    def __init__(self, name: str, seed: bytes) -> None:
        if not _NAME.fullmatch(name):
            raise InvalidParameter(
                "name", "at most 200 printable ASCII characters without spaces and plus signs", name
            )
        self.name, self._seed = name, seed
        self._key = signing_key(seed)
        self._public = _ED25519 + self._key.public_key().public_bytes_raw()
        self._id = sha256(f"{name}\n".encode() + self._public).digest()[:4]

    def __repr__(self) -> str:
        return f"<LogKey {self.verifier_key}>"

    @property
    def verifier_key(self) -> str:
        """The public key as text, which `check --key` takes."""
        return f"{self.name}+{self._id.hex()}+{base64.b64encode(self._public).decode()}"

    def sign(self, text: str) -> str:
        """Return a signed note with this text, whose last line must end with a newline."""
        signature = base64.b64encode(self._id + self._key.sign(text.encode())).decode()
        return f"{text}\n\u2014 {self.name} {signature}\n"

    def mark_at(self, place: int) -> bytes:
        """Return the mark of a record whose own mark is that of an earlier one. Without the key, it looks random."""
        return blake2b(place.to_bytes(8, "big"), digest_size=16, key=self._seed, person=b"copied mark").digest()

    def checkpoint(self, size: int, root: bytes) -> str:
        """Return the signed checkpoint of a log of so many entries."""
        return self.sign(f"{self.name}\n{size}\n{base64.b64encode(root).decode()}\n")

    @classmethod
    def create(cls, file: Path, name: str) -> LogKey:
        """Create a key file that only its owner can read. Raises `PublicationError` if it exists."""
        key = cls(name, os.urandom(32))
        line = f"{_PREFIX}{name}+{key._id.hex()}+{base64.b64encode(_ED25519 + key._seed).decode()}\n"
        try:
            create_private(file, line.encode())
        except FileExistsError:
            raise PublicationError(
                f"{file} exists. Nothing was changed", hint="Print its public key: ldp-budget publish key show"
            ) from None
        return key

    @classmethod
    def read(cls, file: Path) -> LogKey:
        """Read a key file. Raises `PublicationError` if it is missing or malformed, or if others can read it."""
        try:
            line, is_open = file.read_text("ascii"), others_have_access(file)
        except FileNotFoundError:
            hint = "Make one: ldp-budget publish key new"
            raise PublicationError("the log has no key", hint=hint) from None
        except (OSError, UnicodeDecodeError) as error:
            raise PublicationError(f"the key file {file} cannot be read: {error}") from None
        if is_open:
            raise PublicationError(f"other users have access to {file}", hint=f"Run: chmod 600 {file}")
        try:
            name, key_id, text = line.removeprefix(_PREFIX).rstrip("\n").split("+", 2)
            data = base64.b64decode(text, validate=True)
            key = cls(name, data[1:])
        except (binascii.Error, ValueError):
            raise PublicationError(f"{file} is not a key file of a log", hint="Restore it from a backup.") from None
        if key._id.hex() != key_id or data[:1] != _ED25519 or not line.startswith(_PREFIX):
            raise PublicationError(f"{file} is not a key file of a log", hint="Restore it from a backup.")
        return key
