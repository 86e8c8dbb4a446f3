"""Everything that can be set about the service."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """How the service behaves.

    Parameters:
        reports: the folder of the inboxes, one for each collection; None: reports are not taken. Instances that share
            a ledger share this folder as well.
        most_bytes: of the body of a request, but for a batch, whose length nothing limits.
        most_line: bytes of one line of a batch.
        rate: requests a second that one caller may make in the long run; 0: any number.
        burst: how many more at once.
    """

    reports: Path | None = None
    most_bytes: int = 1 << 20
    most_line: int = 1 << 16
    rate: float = 0
    burst: int = 100
