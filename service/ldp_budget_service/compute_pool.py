"""Worker processes for long calculations, which `anyio.to_process` keeps.

A worker answers one question at a time. It knows nothing of a ledger, and is killed if it exceeds the time limit. So
no calculation delays a spend: it takes no interpreter lock and no memory of the service.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import anyio.to_process
import anyio.to_thread

from ldp_budget import InvalidParameter, Mechanism, mechanism
from ldp_budget.guarantees.fixed_point import decimal

from .error_codes import ServiceError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


_NICE = 19
MOST_MEMORY = 3 << 30
"""Maximum address space of a worker in bytes.

A calculation that needs more is refused, so the service itself does not run short of memory.
"""

Asked = dict[str, Any]

_log = logging.getLogger("ldp_budget_service")


# -- questions ---------------------------------------------------------------------------------------


def calibrate(asked: Asked) -> Any:
    """Return the output of `calibrate --json`."""
    made = _kind(asked).calibrate(**asked["options"])
    return made.describe(asked["users"])


def compose(asked: Asked) -> Any:
    """Return the output of `compose --json`."""
    from ldp_budget_surveys.planning.composition_comparison import composed

    return composed(_made(asked), asked["reports"], _delta(asked), asked["shuffled"])[0]


def plan(asked: Asked) -> Any:
    """Return the output of `plan --json`; for a collection, of its mechanism at another ε."""
    from ldp_budget_surveys.planning.composition_comparison import maker, planned_rules

    make = _made(asked).at_epsilon if asked["at_epsilon"] else maker(_kind(asked), _without_targets(asked))
    delta = _delta(asked)
    assert delta is not None
    return planned_rules(make, asked["reports"], _amount("total_epsilon", asked["total_epsilon"]), delta)[0]


def compare(asked: Asked) -> Any:
    """Return the output of `compare --json`."""
    from ldp_budget_surveys.planning.composition_comparison import compared

    names = ("epsilon", "domain_size", "users", "lower", "upper", "margin", "reports")
    return compared(**{name: asked[name] for name in names}, delta=_delta(asked))[0]


def simulate(asked: Asked) -> Any:
    """Return for each limit of a policy the first time at which it binds."""
    from ldp_budget.accounting.budget_timeline import simulate
    from ldp_budget.accounting.policies import Policy
    from ldp_budget_service.api.schemas import binding_form

    start = datetime.fromisoformat(asked["start"])
    policy = Policy.from_json(asked["policy"])
    found = simulate(policy, _made(asked), every=asked["every"], start=start, reports=asked["reports"])
    return [binding_form(each) for each in found]


def _kind(asked: Asked) -> type[Mechanism]:
    found: type[Mechanism] = mechanism(asked["name"])
    return found


def _without_targets(asked: Asked) -> dict[str, Any]:
    """Return the options of a mechanism whose ε is to be found. Raises `InvalidParameter` if ε is given."""
    options: dict[str, Any] = asked["options"]
    for name in _kind(asked).targets:
        if name in options:
            raise InvalidParameter(name, "left out, because the plan computes it", str(options[name]))
    return options


def _made(asked: Asked) -> Mechanism:
    return _kind(asked)(**asked["options"])


def _amount(option: str, value: Any) -> Decimal:
    try:
        return decimal(value)
    except ValueError:
        raise InvalidParameter(option, "a finite number", str(value)) from None


def _delta(asked: Asked) -> Decimal | None:
    from ldp_budget_surveys.planning.composition_comparison import check_delta

    given = asked["total_delta"]
    return None if given is None else check_delta(_amount("total_delta", given))


def estimate(asked: Asked) -> Any:
    """Return the estimate of a collection's rounds."""
    from .estimates import estimate

    return estimate(asked)


QUESTIONS: dict[str, Callable[[Asked], Any]] = {
    "estimate": estimate,
    "calibrate": calibrate,
    "compose": compose,
    "plan": plan,
    "compare": compare,
    "simulate": simulate,
}


def answer(line: str, memory: int = MOST_MEMORY) -> Any:
    """Return the answer to a question, in a worker process. Errors of the library reach the service as they are.

    The process has a limit of memory, and gives way to the service, whose spends go first.
    """
    import os
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    os.setpriority(os.PRIO_PROCESS, 0, _NICE)
    asked = json.loads(line)
    return QUESTIONS[asked["question"]](asked)


# -- pool --------------------------------------------------------------------------------------------

_MOST_ANSWERS = 512
_MOST_WAITING = 4
_TOO_MUCH = (TimeoutError, anyio.BrokenWorkerProcess, MemoryError, OverflowError, RecursionError)

Prepared = Callable[[], AbstractContextManager[Asked]]
"""Gives a worker what is too large for the identity of a question, for as long as the calculation takes."""


class Workers:
    """Pool of worker processes with a cache of answers. An answer never changes.

    Requests for the same answer wait for one calculation. They wait in the event loop, so that no thread waits.

    Parameters:
        processes: maximum number of processes; each starts when it is first needed.
        seconds: maximum seconds per answer.
        memory: maximum address space of a process in bytes.
    """

    def __init__(self, processes: int, seconds: float, memory: int = MOST_MEMORY) -> None:
        self._processes, self._seconds, self._memory = processes, seconds, memory
        self._turns: anyio.CapacityLimiter | None = None
        self._answers: OrderedDict[str, Any] = OrderedDict()
        self._running: dict[str, asyncio.Task[Any]] = {}

    def ask(self, question: str, asked: Asked) -> Any:
        """Return the answer; for threads of the application. Raises as the library, and `ServiceError`."""
        return anyio.from_thread.run(self.answer, question, asked)

    async def answer(self, question: str, asked: Asked, prepared: Prepared | None = None) -> Any:
        """Return the answer. Raises as the library, and `ServiceError`.

        Parameters:
            question: one of `QUESTIONS`.
            asked: what determines the answer, which is cached by it.
            prepared: opens, in a thread, what the worker gets in addition.
        """
        line = json.dumps({"question": question, **asked}, sort_keys=True)
        if line in self._answers:
            self._answers.move_to_end(line)
            return self._answers[line]
        running = self._running.get(line)
        if running is None:
            if self._turns is None:
                self._turns = anyio.CapacityLimiter(self._processes)
            if len(self._running) >= self._processes + _MOST_WAITING:
                raise ServiceError(
                    "overloaded", "too many calculations are in progress. Try again later.", {"Retry-After": "5"}
                )
            running = self._running[line] = asyncio.ensure_future(self._calculated(line, prepared, self._turns))
            running.add_done_callback(partial(self._keep, line))
        return await asyncio.shield(running)  # it goes on if one of those that wait for it goes away

    def _keep(self, line: str, running: asyncio.Task[Any]) -> None:
        del self._running[line]
        if running.cancelled() or running.exception() is not None:
            return
        self._answers[line] = running.result()
        if len(self._answers) > _MOST_ANSWERS:
            self._answers.popitem(last=False)

    async def _calculated(self, line: str, prepared: Prepared | None, turns: anyio.CapacityLimiter) -> Any:
        async with turns, _opened(prepared) as more:
            asked = {**json.loads(line), **more}
            try:
                with anyio.fail_after(self._seconds):  # the cancellation kills the process
                    return await anyio.to_process.run_sync(
                        answer, json.dumps(asked), self._memory, cancellable=True, limiter=anyio.CapacityLimiter(1)
                    )
            except _TOO_MUCH as error:
                _log.warning("calculation", extra={"said": {"error": type(error).__name__}})
                why = f"the calculation takes more than {self._seconds:g} seconds, or too much memory. Ask for less."
                raise ServiceError("too-much-work", why) from None


@asynccontextmanager
async def _opened(prepared: Prepared | None) -> AsyncIterator[Asked]:
    """Open and close in threads what a worker gets in addition."""
    if prepared is None:
        yield {}
        return
    held = await anyio.to_thread.run_sync(prepared)
    more = await anyio.to_thread.run_sync(held.__enter__)
    try:
        yield more
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(held.__exit__, None, None, None)
