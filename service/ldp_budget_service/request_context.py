"""What may be told of the request under way: whose key, which problem, how it ended. Nothing of a user is here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ldp_budget.accounting.batch_run import SpendResult
    from ldp_budget.accounting.receipts import Receipt

    Charge = Receipt | SpendResult

Count = Callable[[str, int, Iterable[str]], None]


def _nobody(outcome: str, number: int, periods: Iterable[str]) -> None:
    """Nobody counts."""


@dataclass(slots=True)
class RequestContext:
    """One request: its `id`, the name of the `caller`'s key, the `code` of its problem, and the `trace` it is in."""

    id: str = ""
    caller: str | None = None
    code: str | None = None
    trace: str | None = None
    count: Count = _nobody
    """Counts an outcome so many times, with the periods of the limits that refused."""


_TOLD: ContextVar[RequestContext | None] = ContextVar("told", default=None)


def begin(told: RequestContext) -> None:
    """From here on, in this task and the threads that it waits for, this is the request under way."""
    _TOLD.set(told)


def current_request() -> RequestContext:
    """What is told of the request under way; outside of one, something that nobody reads."""
    return _TOLD.get() or RequestContext()


def count(charges: Iterable[Charge]) -> None:
    """Count how charges ended."""
    counted = current_request().count
    ended = Counter(("repeated" if each.repeated else each.status, each.binding) for each in charges)
    for (outcome, periods), number in ended.items():
        counted(outcome, number, periods)
