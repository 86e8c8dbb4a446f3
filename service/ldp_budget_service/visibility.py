"""What a caller may see of receipts, rows and positions.

Numbers of entries, accounts and journal positions say how many charges others made. Spent and remaining amounts sum
all charges of a user, also those under other policies and of other collections. So a *restricted* caller gets neither:

- A key that is bound to policies or collections gets its rows numbered from 1, receipts without numbers, and no sums.
- A respondent gets receipts without numbers, and the sums of her own account.

A hidden receipt is the digest of the receipt, and the entry's name encrypted under it (a synthetic IV, RFC 5297). It
resolves a reservation as the receipt itself does.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ldp_budget.accounting.receipts import REFUSED, Receipt, name_in
from ldp_budget.guarantees.fixed_point import LARGEST
from ldp_budget.ledger.hash_chain import Name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Row = dict[str, Any]

_NAME = struct.Struct(">IIQ")
_DIGEST_DIGITS = 20
_HIDDEN = re.compile(rf"[0-9a-f]{{{_DIGEST_DIGITS + 2 * _NAME.size}}}")
_PURPOSE = b"hidden receipt "
Digest = Callable[[bytes], str]
"""The keyed digest of a ledger, `Accountant.keyed_digest`."""


# -- receipts -------------------------------------------------------------------------------------------


def hidden(keyed: Digest, receipt: str) -> str:
    """Return the form of a receipt that does not reveal the number of its entry."""
    name = name_in(receipt)
    if name is None:
        return receipt  # hidden already
    digest = receipt.rpartition("-")[2]
    return digest + _masked(keyed, digest, _NAME.pack(*name)).hex()


def revealed(keyed: Digest, receipt: str) -> str:
    """Return the receipt that a hidden one stands for; any other text unchanged."""
    if not _HIDDEN.fullmatch(receipt):
        return receipt
    digest = receipt[:_DIGEST_DIGITS]
    name = Name(*_NAME.unpack(_masked(keyed, digest, bytes.fromhex(receipt[_DIGEST_DIGITS:]))))
    return f"{name}-{digest}"


def _masked(keyed: Digest, digest: str, name: bytes) -> bytes:
    mask = bytes.fromhex(keyed(_PURPOSE + digest.encode()))
    return bytes(a ^ b for a, b in zip(name, mask, strict=False))  # the mask is at least as long


def without_number(keyed: Digest, receipt: Receipt) -> Receipt:
    """Return a receipt without the numbers of the journal."""
    shown = None if receipt.receipt is None else hidden(keyed, receipt.receipt)
    return receipt._replace(receipt=shown, position="")


def without_sums(receipt: Receipt) -> Receipt:
    """Return a receipt without the sums of the user's charges, and without what follows from them."""
    return receipt._replace(limits=(), affordable_reports=LARGEST)


def refusal_in_words(receipt: Receipt) -> str:
    """Return the sentence for a refusal whose sums are not shown."""
    binding = ", ".join(receipt.binding)
    limits = f"limits of policy {receipt.policy} that it does not fit: {binding}" if binding else receipt.why
    return f"{REFUSED}: {receipt.user or 'the request'}. {limits[:1].upper()}{limits[1:]}. No user was charged."


# -- rows -----------------------------------------------------------------------------------------------

_NUMBERED = ("partition", "entry", "account", "resolves")


def numbered_alone(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows of one user with numbers of their own, 1, 2, 3 …, in place of those of the journal."""
    numbers: dict[Any, int] = {}
    for number, row in enumerate(rows, 1):
        numbers[row["entry"]] = number
        resolves = numbers.get(row["resolves"])
        yield {**_without_numbers(row), "entry": number, "resolves": resolves}


def unnumbered(keyed: Digest, row: Row) -> Row:
    """Return the row of a reservation without the numbers of the journal."""
    shown = {"receipt": hidden(keyed, row["receipt"])} if row.get("receipt") else {}
    return {**_without_numbers(row), **shown}


def _without_numbers(row: Row) -> Row:
    return {name: None if name in _NUMBERED else value for name, value in row.items() if name != "partition"}
