"""What a ledger's writing transactions have read, kept for the next one for as long as nobody else writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .entries import PartitionHead, StoredPolicy

if TYPE_CHECKING:
    from .windows import Window


class Cache:
    """Rows that need not be read again, for they change with charges, policies and periods, which the partition counts.

    A transaction brings what it writes up to date here; the cache of one that was rolled back is dropped.
    """

    def __init__(self, end: PartitionHead | None = None) -> None:
        self.end = end
        # The periods for which windows are kept, and since when; and the windows of a day, with that day.
        self.periods: dict[str, int] | None = None
        self.windows: dict[str, Window] = {}
        self.day: int | None = None
        # The newest version of each policy.
        self.policies: dict[str, StoredPolicy] = {}
        # The numbers of charges, by fingerprint, guarantee and collection.
        self.charges: dict[tuple[str, str, str], int] = {}

    def holds(self, end: PartitionHead) -> bool:
        """Whether it holds of a partition that ends here."""
        mine = self.end
        return mine is not None and mine.known == end.known
