"""Context of the current request for logs and metrics: the API key's name, the problem code and the outcomes.

It holds nothing about a user.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ldp_budget.accounting.batch import SpendResult
    from ldp_budget.accounting.receipts import Receipt

    Charge = Receipt | SpendResult

Count = Callable[[str, int, Iterable[str]], None]


def _count_nothing(outcome: str, number: int, periods: Iterable[str]) -> None:
    """Discard the count."""


@dataclass(slots=True)
class RequestContext:
    """One request: its `id`, the name of the `caller`'s API key, the `code` of its problem, and its `trace` id."""

    id: str = ""
    caller: str | None = None
    code: str | None = None
    trace: str | None = None
    count: Count = _count_nothing
    """Adds a number to an outcome, with the periods of the limits that refused."""


CURRENT: ContextVar[RequestContext] = ContextVar("current", default=RequestContext())  # noqa: B039
"""The request of this task and of the threads that it waits for; outside of a request, one whose values are not used."""


def count(charges: Iterable[Charge]) -> None:
    """Count the outcomes of charges."""
    counted = CURRENT.get().count
    ended = Counter(("repeated" if each.repeated else each.status, each.binding) for each in charges)
    for (outcome, periods), number in ended.items():
        counted(outcome, number, periods)
