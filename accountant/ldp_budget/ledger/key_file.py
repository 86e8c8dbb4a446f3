"""The key file of a ledger in a file: `PATH.key` next to the ledger, readable by its owner only.

Ledger and key are created together, and one without the other is an error. A ledger recreated next to an old key, or the
reverse, would hand out fresh budgets.
"""

from __future__ import annotations

import os
from pathlib import Path

from .._files import replacing, sync_file, sync_folder
from ..errors import LedgerError, SandboxError
from .keyed_hashing import Key


def key_path(path: Path) -> Path:
    """Return the path of the key file of the ledger at `path`."""
    return path.with_name(path.name + ".key")


def check_kind(key: Key, ledger: str, sandbox: bool | None) -> Key:
    """Return the key if its ledger is of the wanted kind (sandbox or not); None accepts both.

    Raises `SandboxError`.
    """
    if sandbox is not None and key.sandbox != sandbox:
        raise SandboxError(ledger, key.sandbox)
    return key


def replace(file: Path, ledger: str, content: bytes) -> None:
    """Write the content of a key file atomically and durably. Raises `LedgerError` if that is not possible."""
    try:
        if file.read_bytes() == content:
            # Another process wrote it, and may have been killed before it was durable. A secret in use must be
            # durable.
            sync_file(file)
            sync_folder(Path(os.path.realpath(file)).parent)
            return
        with replacing(file) as draft:
            draft.write(content)
    except OSError as error:
        raise LedgerError(ledger, f"its key file {file} cannot be written: {error.strerror}") from None


def read_key(path: Path) -> Key:
    """Return the key of the ledger at `path`. Raises `LedgerError`."""
    return read_key_file(key_path(path), str(path))


def read_key_file(file: Path, ledger: str, hint: str = "") -> Key:
    """Return the key in a key file. Raises `LedgerError` if the file is missing, unreadable or malformed."""
    try:
        secret = file.read_bytes()
    except OSError as error:
        raise LedgerError(ledger, f"its key file {file} cannot be read: {error.strerror}", hint=hint) from None
    try:
        return Key(secret)
    except ValueError as error:
        raise LedgerError(ledger, f"its key file {file} {error}", hint="Restore it from a backup.") from None
