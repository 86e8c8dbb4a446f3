"""Interrupts (Ctrl-C) at any point: nothing is charged by halves, and no other caller waits forever.

A caller writes in its own thread if the ledger is idle; otherwise it waits for the writer thread, which is never
interrupted.
"""

from __future__ import annotations

import dis
import itertools
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from types import FrameType
from typing import Any, Self

import pytest

from contract.acts import check, coin, spent
from fixed_clock import Clock
from ldp_budget import Accountant, LedgerError
from ldp_budget.ledger.write_queue import Work, WriteQueue, run_each
from ledger_inside import store_of
from postgres_places import Emptied
from postgres_servers import wait_until
from queue_callers import EveryPartition, queue_of_transactions

LOOKS = {"RESUME", "JUMP_BACKWARD", "CALL", "CALL_KW", "CALL_FUNCTION_EX"} & dis.opmap.keys()
"""After these the interpreter looks whether a signal has come; of calls, after those of what is not Python code."""


# An interrupt inside a callback of the garbage collector is printed, not raised; the ledger has no part in that.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def by_the_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every caller waits for the writer thread, as if the ledger were never idle."""
    monkeypatch.setattr(WriteQueue, "_run_here", lambda self, mine: False)


class Interrupt:
    """A KeyboardInterrupt at the `number`-th point at which one could be raised, and only one."""

    def __init__(self, number: int) -> None:
        self.number = self.left = number
        self._before: dict[int, str | None] = {}
        """The latest instruction of each frame, by its id: a frame that is kept would keep what it has open."""

    def __enter__(self) -> Self:
        self._traced_before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._traced_before)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        # What is collected just now may be the ledger of an earlier test.
        if frame.f_code.co_name == "__del__":
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "call":
            self._before[id(frame)] = None
            if frame.f_back is not None:  # the end of a call of Python's own code is no point
                self._before[id(frame.f_back)] = None
        elif event == "opcode":
            if self._before.get(id(frame)) in LOOKS:
                self.left -= 1
                if self.left == 0:
                    self._interrupt()
            self._before[id(frame)] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        return self._trace

    def _interrupt(self) -> None:
        raise KeyboardInterrupt


def every_interrupt(each: int = 1) -> Iterator[Interrupt]:
    """One at each of the points of what is done with them, or at some; the last one finds no point any more."""
    for number in itertools.count(1, each):
        interrupt = Interrupt(number)
        yield interrupt
        if interrupt.left > 0:
            return


def hold_and_commit(accountant: Accountant, key: str) -> None:
    receipt = accountant.reserve("alice", coin("0.01"), key=key).receipt
    assert receipt is not None
    accountant.commit(receipt)


OPERATIONS: dict[str, Callable[[Accountant, str], object]] = {
    "spend": lambda accountant, key: accountant.spend("alice", coin("0.01"), key=key),
    "spend_many": lambda accountant, key: accountant.spend_many(["alice", "carol"], coin("0.01"), key=key),
    "reserve": hold_and_commit,
    "set_policy": lambda accountant, key: accountant.set_policy("default", ["lifetime=1000"]),
    "balance": lambda accountant, key: accountant.balance("alice"),
    "history": lambda accountant, key: list(accountant.history("alice")),
    "journal": lambda accountant, key: [next(accountant.journal()), *accountant.journal()],
    "verify": lambda accountant, key: accountant.verify(),
    "stats": lambda accountant, key: accountant.stats(),
}
KEYED = ("spend", "spend_many", "reserve")


@pytest.mark.parametrize(
    ("name", "each"),
    [
        ("spend", 5),
        ("balance", 1),
        ("history", 1),
        # Between the points of `verify` the ledger grows, and each of thousands would verify all of it.
        *(pytest.param(name, 7 if name == "verify" else 1, marks=pytest.mark.exhaustive) for name in OPERATIONS),
    ],
)
def test_interrupt_at_any_point_leaves_a_ledger_that_all_callers_can_use(
    tmp_path: Path, clock: Clock, name: str, each: int
) -> None:
    """Interrupt at each instruction after which the interpreter would raise one, in any code."""
    accountant = Accountant(tmp_path / "budget.db", clock=clock)  # not `with`: to close one that is stuck never ends
    _interrupt_everywhere(accountant, name, each)
    assert not store_of(accountant)._reading, "a connection stays with a reader that is gone"
    in_another_thread(accountant.close, 0)


@pytest.mark.usefixtures("by_the_writer")
@pytest.mark.parametrize(
    ("name", "each"),
    [
        ("spend", 1),
        ("spend_many", 7),
        *(pytest.param(name, 1, marks=pytest.mark.exhaustive) for name in ("spend_many", "reserve", "set_policy")),
    ],
)
def test_interrupt_at_any_point_while_the_writer_thread_works_leaves_a_ledger_that_all_callers_can_use(
    tmp_path: Path, clock: Clock, name: str, each: int
) -> None:
    """The caller withdraws what it asked for, or is charged and finds that by the key."""
    accountant = Accountant(tmp_path / "budget.db", clock=clock)
    _interrupt_everywhere(accountant, name, each)
    in_another_thread(accountant.close, 0)


@pytest.mark.usefixtures("by_the_writer")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_interrupt_at_any_point_of_the_first_submission_leaves_one_writer_thread_or_none() -> None:
    """The first submission starts the thread."""

    def writers() -> int:
        return sum(thread.is_alive() for thread in threading.enumerate() if thread.name == "ldp-budget writer")

    before = writers()
    for interrupt in every_interrupt():
        queue = queue_of_transactions(EveryPartition())
        with suppress(KeyboardInterrupt, RuntimeError), interrupt:  # Python's threads may turn the one into the other
            queue.run(run_each, [Work(lambda _: None, 0, 0)])
        in_another_thread(lambda: queue.run(run_each, [Work(lambda _: None, 0, 0)]), interrupt.number)  # noqa: B023
        wait_until(lambda: writers() <= before + 1, f"two threads after an interrupt at point {interrupt.number}")
        in_another_thread(queue.close, interrupt.number)
        wait_until(
            lambda: writers() == before, f"the thread still runs after an interrupt at point {interrupt.number}"
        )
    assert interrupt.number > 10


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["spend", "reserve", "balance", "history"])
def test_interrupt_at_any_point_leaves_a_ledger_on_a_server_that_all_callers_can_use(clock: Clock, name: str) -> None:
    accountant = Emptied(3).open(clock)
    _interrupt_everywhere(accountant, name, each=3)
    accountant.close()


def test_interrupt_of_the_pool_while_it_opens_a_connection_leaves_a_ledger_that_all_callers_can_use(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool has noted by then that it is opening a connection, and would open no other one."""
    from psycopg_pool.pool import AddConnection

    class Interrupted(AddConnection):
        def __init__(self, *_: object, **__: object) -> None:
            monkeypatch.undo()
            raise KeyboardInterrupt

    place = Emptied(3)
    with place.open(clock) as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
    accountant = place.open(clock)
    monkeypatch.setattr("psycopg_pool.pool.AddConnection", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        accountant.balance("alice")
    in_another_thread(lambda: accountant.balance("bob"), 1)
    accountant.close()


def _interrupt_everywhere(accountant: Accountant, name: str, each: int) -> None:
    accountant.set_policy("default", ["lifetime=1000"])
    OPERATIONS[name](accountant, "first")
    with Interrupt(0) as never:
        OPERATIONS[name](accountant, "second")
    points = range(1, 1 - never.left, each)
    assert len(points) > 20
    for point in points:
        try:
            with Interrupt(point):
                OPERATIONS[name](accountant, f"key-{point}")
        except (KeyboardInterrupt, LedgerError):  # what it was raised in may tell it so
            pass
        in_another_thread(lambda: accountant.spend("bob", coin("0.01")), point)
        in_another_thread(lambda: accountant.balance("bob"), point)
        OPERATIONS[name](accountant, f"key-{point}")
    assert spent(accountant, "bob") == {"lifetime": len(points) * Decimal("0.01")}
    if name in KEYED:
        once = accountant.history("alice")
        for point in points:
            OPERATIONS[name](accountant, f"key-{point}")
        assert accountant.history("alice") == once, "every key was charged for, and once"
    check(accountant)


def in_another_thread(work: Callable[[], object], point: int) -> None:
    done: list[object] = []
    thread = threading.Thread(target=lambda: done.append(work()), daemon=True)
    thread.start()
    thread.join(30)
    assert done, f"others fail, or wait for ever, after an interrupt at point {point}"


@pytest.mark.parametrize("partitions", [1, pytest.param(3, marks=pytest.mark.exhaustive)])
def test_close_interrupted_at_any_point_can_be_repeated(tmp_path: Path, clock: Clock, partitions: int) -> None:
    place = tmp_path / "budget.db" if partitions == 1 else Emptied(partitions).address
    with Accountant(place, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
    for interrupt in every_interrupt(partitions):
        accountant = Accountant(place, clock=clock)
        accountant.spend("alice", coin("0.01"))  # which begins what takes checkpoints
        with suppress(KeyboardInterrupt), interrupt:
            accountant.close()
        in_another_thread(accountant.close, interrupt.number)
        in_another_thread(lambda: spend_there(place, clock), interrupt.number)
    assert interrupt.number > 10


@pytest.mark.parametrize("each", [31, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_opening_or_close_interrupted_at_any_point_locks_out_no_other_caller(
    tmp_path: Path, clock: Clock, each: int
) -> None:
    """Even if it is never closed again."""
    place = tmp_path / "budget.db"
    with Accountant(place, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
    for interrupt in every_interrupt(each):
        with suppress(KeyboardInterrupt), interrupt:
            Accountant(place, clock=clock).close()
        in_another_thread(lambda: spend_there(place, clock), interrupt.number)
    assert interrupt.number > 100


def spend_there(place: str | Path, clock: Clock) -> object:
    with Accountant(place, clock=clock) as accountant:
        return accountant.spend("bob", coin("0.01"))


def test_real_interrupts_lose_nothing(tmp_path: Path, clock: Clock) -> None:
    """In the main thread, over and over, while other threads spend as well, of whom none gets an error."""
    accountant = Accountant(tmp_path / "budget.db", clock=clock)
    accountant.set_policy("default", ["lifetime=1000"])
    asked: set[str] = set()
    told: set[str] = set()
    over = threading.Event()

    def spend(key: str) -> None:
        asked.add(key)
        accountant.spend("alice", coin("0.01"), key=key)
        told.add(key)

    def others(number: int) -> None:
        for turn in itertools.takewhile(lambda turn: not over.is_set(), itertools.count()):
            spend(f"{number}/{turn}")

    threads = [threading.Thread(target=others, args=(number,), daemon=True) for number in range(3)]
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    interrupts = 0
    try:
        for thread in threads:
            thread.start()
        for turn in range(150):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0002 + 0.00006 * (turn % 50))
                spend(f"main/{turn}")
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupts += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        over.set()
        for thread in threads:
            thread.join(30)
    assert not any(thread.is_alive() for thread in threads), "they wait for ever"
    assert interrupts > 10
    assert {key for key in asked - told if not key.startswith("main/")} == set(), "other threads got an error"
    repeated = {key for key in asked if accountant.spend("alice", coin("0.01"), key=key).repeated}
    assert told <= repeated
    assert spent(accountant, "alice") == {"lifetime": len(asked) * Decimal("0.01")}
    check(accountant)
    accountant.close()
