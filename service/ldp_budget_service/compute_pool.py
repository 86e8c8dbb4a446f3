"""Worker processes for long calculations: `python -m ldp_budget_service.compute_pool` and the pool of them.

A worker reads one line of JSON per question and writes one line per answer. It knows nothing of a ledger. The pool
kills a worker that exceeds the time limit. So no calculation delays a spend: it takes no thread of the service, no
interpreter lock and no memory.
"""

from __future__ import annotations

import json
import selectors
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ldp_budget import InvalidParameter, LdpBudgetError, Mechanism, mechanism
from ldp_budget.guarantees.fixed_point import decimal

from .error_codes import ForwardedProblem, ServiceError, as_json, problem_of

if TYPE_CHECKING:
    from collections.abc import Callable


MOST_MEMORY = 3 << 30
"""Maximum address space of a worker in bytes.

A calculation that needs more is refused, so the service itself does not run short of memory.
"""

Asked = dict[str, Any]


# -- worker process ----------------------------------------------------------------------------------


def calibrate(asked: Asked) -> Any:
    """Return the output of `calibrate --json`."""
    made = _kind(asked).calibrate(**asked["options"])
    return made.describe(asked["users"])


def compose(asked: Asked) -> Any:
    """Return the output of `compose --json`."""
    from ldp_budget.accounting.rule_comparison import central_of, own_delta, promise_of, totals

    made, reports = _made(asked), asked["reports"]
    delta = own_delta(promise_of(made), reports) if asked["total_delta"] is None else _delta(asked)
    rules, _ = totals(made, reports, delta)
    row = {"reports": reports, "delta": float(delta), "rules": rules}
    if asked["shuffled"] is not None:
        row["shuffled"], _ = central_of(made, reports, delta, asked["shuffled"])
    return row


def plan(asked: Asked) -> Any:
    """Return the output of `plan --json`; for a collection, of its mechanism at another ε."""
    from ldp_budget.accounting.rule_comparison import by_rule, maker, planned

    make = _made(asked).at_epsilon if asked["at_epsilon"] else maker(_kind(asked), _without_targets(asked))
    epsilon, delta, reports = _amount("total_epsilon", asked["total_epsilon"]), _delta(asked), asked["reports"]
    rules, _ = by_rule(lambda rule: planned(make, reports, epsilon, delta, rule))
    return {"reports": reports, "epsilon": float(epsilon), "delta": float(delta), "rules": rules}


def compare(asked: Asked) -> Any:
    """Return the output of `compare --json`."""
    from ldp_budget.accounting.rule_comparison import own_delta, totals
    from ldp_budget.registry.ranking import rank_frequency, rank_numeric

    reports, given = asked["reports"], None if asked["total_delta"] is None else _delta(asked)

    def beside(made: Mechanism) -> dict[str, Any]:
        delta = own_delta(made.guarantee, reports) if given is None else given
        rules, _ = totals(made, reports, delta)
        return {"totals": {"reports": reports, "delta": float(delta), "rules": rules}}

    with_totals = None if reports is None else beside
    rows: list[dict[str, Any]] = []
    if asked["domain_size"] is not None:
        rows += rank_frequency(asked["epsilon"], asked["domain_size"], asked["users"], beside=with_totals)
    if asked["lower"] is not None:
        rows += rank_numeric(asked["epsilon"], asked["lower"], asked["upper"], asked["users"], beside=with_totals)
    return rows


def simulate(asked: Asked) -> Any:
    """Return for each limit of a policy the first time at which it binds."""
    from ldp_budget.accounting.budget_projection import simulate
    from ldp_budget.accounting.policies import Policy
    from ldp_budget.api.schemas import binding_form

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
            raise InvalidParameter(name, "none, as it is what is to be found", str(options[name]))
    return options


def _made(asked: Asked) -> Mechanism:
    return _kind(asked)(**asked["options"])


def _amount(option: str, value: Any) -> Decimal:
    try:
        return decimal(value)
    except ValueError:
        raise InvalidParameter(option, "a finite number", str(value)) from None


def _delta(asked: Asked) -> Decimal:
    from ldp_budget.accounting.rule_comparison import check_delta

    return check_delta(_amount("total_delta", asked["total_delta"]))


QUESTIONS: dict[str, Callable[[Asked], Any]] = {
    "calibrate": calibrate,
    "compose": compose,
    "plan": plan,
    "compare": compare,
    "simulate": simulate,
}


def answer(line: str) -> str:
    """Return the answer to a line: `{"answer": …}`, or `{"problem": …}`."""
    try:
        asked = json.loads(line)
        return as_json({"answer": QUESTIONS[asked["question"]](asked)})
    except LdpBudgetError as error:
        return as_json({"problem": problem_of(error)})
    except (MemoryError, OverflowError, RecursionError) as error:
        return as_json({"too_much": type(error).__name__})
    except Exception as error:  # the service logs it
        return as_json({"crashed": f"{type(error).__name__}: {error}"})


def main() -> None:
    """Answer questions until standard input ends."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    for line in sys.stdin:
        sys.stdout.write(answer(line) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()


# -- pool --------------------------------------------------------------------------------------------

_MOST_ANSWERS = 512
_MOST_WAITING = 4
_MODULE = "ldp_budget_service.compute_pool"


class Workers:
    """Pool of worker processes with a cache of answers. An answer never changes.

    Parameters:
        processes: maximum number of processes; each starts when it is first needed.
        seconds: maximum seconds per answer.
    """

    def __init__(self, processes: int, seconds: float) -> None:
        self._seconds = seconds
        self._free = threading.Semaphore(processes)
        # Threads that wait here are not available for other requests.
        self._room = threading.Semaphore(processes + _MOST_WAITING)
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._answers: OrderedDict[str, Any] = OrderedDict()

    def ask(self, question: str, asked: dict[str, Any]) -> Any:
        """Return the answer. Raises `ForwardedProblem` for an error, and `ServiceError` on overload or timeout."""
        line = json.dumps({"question": question, **asked}, sort_keys=True)
        with self._lock:
            if line in self._answers:
                self._answers.move_to_end(line)
                return self._answers[line]
        if not self._room.acquire(blocking=False):
            raise ServiceError("overloaded", "too many questions are being worked out", {"Retry-After": "5"})
        try:
            with self._free:
                answer = self._ask(line)
        finally:
            self._room.release()
        with self._lock:
            self._answers[line] = answer
            if len(self._answers) > _MOST_ANSWERS:
                self._answers.popitem(last=False)
        return answer

    def _ask(self, line: str) -> Any:
        with self._lock:
            worker = self._idle.pop() if self._idle else _Worker()
        try:
            told = json.loads(worker.ask(line, self._seconds))
        except (OSError, ValueError, TimeoutError):
            worker.end()
            why = f"this takes more than {self._seconds:g} seconds, or more memory than there is for it; ask for less"
            raise ServiceError("too-much-work", why) from None
        except BaseException:
            worker.end()
            raise
        with self._lock:
            self._idle.append(worker)
        if "too_much" in told:
            raise ServiceError("too-much-work", f"this needs more memory or larger numbers than there are: {told}")
        if "crashed" in told:
            raise RuntimeError(told["crashed"])
        if "problem" in told:
            raise ForwardedProblem(told["problem"])
        return told["answer"]

    def close(self) -> None:
        """End the idle processes."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.end()


class _Worker:
    """A process that answers one question after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", _MODULE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def ask(self, line: str, seconds: float) -> bytes:
        """Return the line of the answer. Raises `TimeoutError`, and `OSError` if the process has ended."""
        process, deadline = self._process, time.monotonic() + seconds
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
        read = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not read.endswith(b"\n"):
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise TimeoutError
                part = process.stdout.read1(1 << 16)  # type: ignore[attr-defined]
                if not part:
                    raise OSError("it has ended")
                read += part
        return read

    def end(self) -> None:
        """Kill the process."""
        process = self._process
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        process.wait()
