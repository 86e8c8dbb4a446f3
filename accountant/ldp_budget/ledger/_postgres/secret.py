"""Where the secret of a ledger on a server lies: never there, or the server could link its users to their names."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from ..._files import alone_in, application_folder, create_private
from ...errors import LedgerError
from ..keys import KEY_BYTES, Key, new_key

if TYPE_CHECKING:
    from .address import Address

VARIABLE = "LDP_BUDGET_KEY"


def place(ledger: str) -> Path:
    """The key file of a ledger, by the name that it gave itself: that of the variable, or in the user's folder."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else application_folder() / "keys" / f"{ledger}.key"


def make(ledger: str, address: Address) -> Key:
    """The key of a ledger that is being made: that which the variable names, if it is there, else a new file."""
    file = place(ledger)
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with alone_in(file.parent):  # another may be writing the same one
            if file.exists():
                return read(ledger, address)
            secret = new_key()
            create_private(file, secret)
    except OSError as error:
        raise LedgerError(address.name, f"its key {file} cannot be written: {error.strerror}") from None
    return Key(secret)


def read(ledger: str, address: Address) -> Key:
    """The key of a ledger that is there. Raises `LedgerError`."""
    file = place(ledger)
    try:
        secret, mode = file.read_bytes(), file.stat().st_mode
    except OSError as error:
        why = (
            f"its key {file} cannot be read: {error.strerror}; copy it there from the machine that made the ledger,"
            f" or let {VARIABLE} name the file"
        )
        raise LedgerError(address.name, why) from None
    if len(secret) != KEY_BYTES:
        raise LedgerError(address.name, f"its key {file} has {len(secret)} bytes instead of {KEY_BYTES}")
    if stat.S_IMODE(mode) & 0o077:
        raise LedgerError(address.name, f"others than its owner have rights to its key; type: chmod 600 {file}")
    return Key(secret)
