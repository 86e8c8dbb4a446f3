"""What a ledger's writing transactions have read, kept for the next one for as long as nobody else writes."""

from __future__ import annotations


class Known:
    """Rows that a transaction need not read again: they change by this connection's own transactions alone.

    `version` is SQLite's data version, which tells of commits by others. A transaction brings what it writes up to
    date here; what one knew that was rolled back is forgotten.
    """

    def __init__(self, version: int = 0) -> None:
        self.version = version
        # Number and time of the newest journal entry, and the link of the newest transaction.
        self.newest: tuple[int, int | None, bytes] | None = None
        # The periods for which windows are kept, and since when.
        self.periods: dict[str, int] | None = None
        # The newest version of each policy: its number and definition.
        self.policies: dict[str, tuple[int, str]] = {}
        # The numbers of charges, by fingerprint and guarantee.
        self.charges: dict[tuple[str, str], int] = {}
