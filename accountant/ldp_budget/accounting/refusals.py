"""What the ledger knows of refusals: the answers that it keeps under keys, by the hour, policy and limit.

A refusal changes nothing else, and without a key it is kept nowhere. Nor is one kept of an erased user, whose answers
go. So these are the refusals that the ledger knows of, and never more than there were.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from .activity import HOUR_MICROS
from .receipts import REFUSED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..ledger.entries import IdempotencyRecord

OTHER = "other"
"""Stands in the place of a period where no limit refused but something else, such as a mechanism nobody checked."""
SEVERAL = " and "

_REFUSED = f'["{REFUSED}",'
_BATCH = '{"refused":'


class Refusal(NamedTuple):
    """What refusals are counted by: the hour since 1970, the policy, and the periods whose limits refused."""

    hour: int
    policy: str
    limit: str


class Refusals:
    """The refusals that the answers of one partition tell of, as far as they were added."""

    def __init__(self) -> None:
        self.answers = 0
        """How many answers were gone through."""
        self.counts: dict[Refusal, int] = {}
        self.in_bulk = 0
        """How many requests of bulk runs were refused; of these nobody knows when, and by which limit."""

    def add(self, answers: Iterable[IdempotencyRecord], policies: Mapping[int, str]) -> None:
        """Add answers that belong to no entry; `policies` are named by the numbers of their versions."""
        for stored in answers:
            if stored.answer.startswith(_REFUSED):
                _, numbers, (binding, _) = json.loads(stored.answer)
                hour, policy = numbers[1] // HOUR_MICROS, policies[numbers[0]]
                refusal = Refusal(hour, policy, SEVERAL.join(binding) or OTHER)
                self.counts[refusal] = self.counts.get(refusal, 0) + 1
            elif stored.answer.startswith(_BATCH):
                self.in_bulk += len(json.loads(stored.answer)["refused"])
