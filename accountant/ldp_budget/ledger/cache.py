"""What a ledger's writing transactions have read, kept for the next one for as long as nobody else writes."""

from __future__ import annotations

from .entries import End, StoredPolicy


class Cache:
    """Rows that need not be read again, for they change with the end of the lane alone.

    A transaction brings what it writes up to date here; the cache of one that was rolled back is dropped.
    """

    def __init__(self, end: End | None = None) -> None:
        self.end = end
        # The periods for which windows are kept, and since when.
        self.periods: dict[str, int] | None = None
        # The newest version of each policy.
        self.policies: dict[str, StoredPolicy] = {}
        # The numbers of charges, by fingerprint and guarantee.
        self.charges: dict[tuple[str, str], int] = {}
