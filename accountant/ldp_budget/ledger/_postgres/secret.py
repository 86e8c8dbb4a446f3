"""Where the secret of a ledger on a server lies: never there, or the server could link its users to their names."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from ..._files import alone_in, application_folder, create_private
from ...errors import LedgerError
from ..keys import Key, check_kind, new_key, read_key_file

if TYPE_CHECKING:
    from .address import Address

VARIABLE = "LDP_BUDGET_KEY"


def place(ledger: str) -> Path:
    """The key file of a ledger, by the name that it gave itself: that of the variable, or in the user's folder."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else application_folder() / "keys" / f"{ledger}.key"


def make(ledger: str, address: Address, given: bytes | None = None, sandbox: bool | None = None) -> Key:
    """The key of a ledger that is being made: that which the variable names, if it is there, else a new file.

    `given`: that of the ledger which is to be copied there.
    """
    file = place(ledger)
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with alone_in(file.parent):  # another may be writing the same one
            if file.exists():
                key = read(ledger, address)
                if given not in (None, key.secret):
                    why = f"expected the key of the ledger that is copied to it in {file}; found another key"
                    raise LedgerError(address.name, why)
                return key if given else check_kind(key, address.name, bool(sandbox))
            secret = given or new_key(sandbox)
            create_private(file, secret)
    except OSError as error:
        raise LedgerError(address.name, f"its key {file} cannot be written: {error.strerror}") from None
    return Key(secret)


def read(ledger: str, address: Address) -> Key:
    """The key of a ledger that is there. Raises `LedgerError`."""
    file = place(ledger)
    hint = f"; copy it there from the machine that made the ledger, or let {VARIABLE} name the file"
    key = read_key_file(file, address.name, hint)
    if stat.S_IMODE(file.stat().st_mode) & 0o077:
        raise LedgerError(address.name, f"others than its owner have rights to its key; type: chmod 600 {file}")
    return key
