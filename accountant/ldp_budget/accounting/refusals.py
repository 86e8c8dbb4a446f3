"""What the ledger knows of refusals: the responses that it keeps under keys, by the hour, policy and limit.

A refusal changes nothing else, and without a key it is kept nowhere. Nor is one kept of an erased user, whose answers
go. So these are the refusals that the ledger knows of, and never more than there were.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from ..ledger.entries import CHARGED
from .activity import HOUR_MICROS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..ledger.entries import BatchRun, IdempotencyRecord

OTHER = "other"
"""Stands in the place of a period where no limit refused but something else, such as a mechanism nobody checked."""
SEVERAL = " and "


class Refusal(NamedTuple):
    """What refusals are counted by: the hour since 1970, the policy, and the periods whose limits refused."""

    hour: int
    policy: str
    limit: str


class Refusals:
    """The refusals that the records of one partition tell of, as far as they were added."""

    def __init__(self) -> None:
        self.rows = 0
        """How many numbered rows were gone through."""
        self.counts: dict[Refusal, int] = {}
        self.in_bulk = 0
        """How many requests of bulk runs were refused; of these nobody knows when, and by which limit."""

    def add(
        self, records: Iterable[IdempotencyRecord], runs: Iterable[BatchRun], policies: Mapping[int, str]
    ) -> None:
        """Add records of refusals and batch runs; `policies` are named by the numbers of their versions."""
        for stored in records:
            _, numbers, (binding, _) = json.loads(stored.response)
            hour, policy = numbers[1] // HOUR_MICROS, policies[numbers[0]]
            refusal = Refusal(hour, policy, SEVERAL.join(binding) or OTHER)
            self.counts[refusal] = self.counts.get(refusal, 0) + 1
        for run in runs:
            if run.kind == CHARGED:
                self.in_bulk += len(json.loads(run.response)["refused"])
