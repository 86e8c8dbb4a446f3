"""A simulated world: the processes that share one ledger, their clocks, and the faults that strike.

Everything runs from one seed, in one thread. Between two transactions of an operation, another process may run one of
its own. What the ledger answers is compared with the reference model; a difference is a `BrokenPromiseError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from ldp_budget import Accountant
from ldp_budget.accounting.charge_request import Principal
from ldp_budget.errors import ClockError, KeyConflict, LdpBudgetError, LedgerError, ReservationConflict, TooFewReports
from ldp_budget.ledger import calendar, window_backfill
from ldp_budget.ledger.keyed_hashing import Key
from ldp_budget.ledger.write_queue import Submission, WriteQueue

from .model import Model
from .store import FAULTS, Connection, Crash, Disk, Fault

START = 1_795_262_400
"""The time at which every world begins: noon of 2026-11-21, a Saturday."""
DRIFT = 3600
"""The seconds by which the clock of a process may drift from the monotonic clock."""
USERS = [f"user-{number:02}" for number in range(24)]
HEALTHY = "no call fails unless something else has failed"
ANSWERS = (ClockError, KeyConflict, ReservationConflict, TooFewReports)
"""The errors that are answers. Any other error needs a fault that explains it."""


class BrokenPromiseError(AssertionError):
    """The ledger did something else than the reference model; `steps` is the number of steps until then."""

    def __init__(self, promise: str, found: object, expected: object, world: World) -> None:
        self.promise, self.steps = promise, world.steps
        replay = f"python tests/helpers/simulation --seed {world.seed} --steps {world.asked} --trace"
        super().__init__(
            f"{promise}\nstep:     {world.steps}\nfound:    {found}\nexpected: {expected}\nreplay:   {replay}"
        )


class SteppedQueue(WriteQueue):
    """The write queue without its thread: a caller runs what waits, and tasks of an event loop wait for `serve`."""

    is_gathering = False

    def _start(self) -> None:
        pass

    def _gather(self) -> None:
        pass

    def _run_here(self, mine: Submission) -> bool:
        was_run = super()._run_here(mine)
        self.serve()
        return was_run

    def _wake_writer(self) -> None:
        if not self.is_gathering and not self._writing._is_owned():  # type: ignore[attr-defined]
            self.serve()


class Process:
    """A process with the ledger open. Its clock is ahead by `offset` seconds, or behind."""

    def __init__(self, number: int, connection: Connection, time: SimpleNamespace, offset: int) -> None:
        self.number, self.connection, self._time = number, connection, time
        self.offset = self._offset_at_start = offset
        clock = time.time = self.clock  # the default clock of the library, which is checked for jumps
        self.accountant = Accountant(connection, clock=clock)
        ledger = self.accountant._ledger
        self.queue = ledger._queue = SteppedQueue(ledger.name, ledger)
        ledger.after_commit = lambda: None  # no thread takes checkpoints: that is an operation
        self.through: dict[str | None, Accountant] = {None: self.accountant}
        """The accountant as it is used through each sub-limit, and through none."""

    def clock(self) -> int:
        return START + self._time.monotonic() + self.offset

    @property
    def now(self) -> int | None:
        """The time of its clock; None if the clock has jumped since the process started."""
        return self.clock() if abs(self.offset - self._offset_at_start) <= DRIFT else None


class World:
    """The disk, the processes, the time, and the reference model."""

    def __init__(self, seed: int, write: Callable[[str], None] | None = None) -> None:
        self.seed, self.random, self._write = seed, Random(seed), write
        self.steps = self.asked = self.elapsed = self.depth = 0
        self.busy: set[str] = set()
        """The users of operations that have begun: other processes serve other users in between."""
        partitions = self.random.choice((1, 3, 3))
        self.disk = Disk(Key(self.random.randbytes(32)), partitions)
        self.hashes = {user: self.disk.key.hash(b"user", user) for user in USERS}
        self.place = {user: self.disk.key.partition_of(self.hashes[user], partitions) for user in USERS}
        self.model = Model(self.place.__getitem__, dict.fromkeys(range(partitions), 0))
        self.loop = asyncio.new_event_loop()
        self._time = SimpleNamespace(monotonic=lambda: self.elapsed, clock_gettime=lambda which: self.elapsed)
        self.principals: dict[str, Principal] = {}
        self.processes: list[Process] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """Give the library the simulated time, and add the command that replays the seed to any error."""
        with patch.object(calendar, "time", self._time), patch.object(window_backfill, "_MOST_AT_ONCE", 40):
            try:
                yield
            except BrokenPromiseError:
                raise
            except Exception as error:
                raise BrokenPromiseError(HEALTHY, repr(error), "no error", self) from error
            finally:
                self.loop.close()

    # -- processes ----------------------------------------------------------------------------------------------

    def start(self, number: int, offset: int = 0) -> None:
        """Start a process that opens the ledger, in place of the one with this number."""
        connection = Connection(self.disk, self.random, lambda: self._let_others_run(number))
        process = Process(number, connection, self._time, offset)
        process.through.update((name, process.accountant.acting_for(each)) for name, each in self.principals.items())
        self.processes[number : number + 1] = [process]

    def restart_dead(self) -> None:
        """Start each process again that has ended. Its clock may have been set by then, or not."""
        for process in self.processes:
            if process.connection.is_dead:
                offset = self.random.choice((0, process.offset))
                self.tell(f"process {process.number} starts again, its clock at {offset:+} s")
                self.start(process.number, offset)

    def _let_others_run(self, number: int) -> None:
        if self.depth == 1 and len(self.busy) < len(USERS) and self.random.random() < 0.15:
            mine = self.processes[number]
            others = [each for each in self.processes if each is not mine and each.offset == mine.offset]
            if others:
                self.charge_one(self.random.choice(others))
                self.restart_dead()

    def charge_one(self, process: Process) -> None:
        """The operation that other processes run in between."""
        raise NotImplementedError

    # -- operations ---------------------------------------------------------------------------------------------

    def attempt(
        self,
        process: Process,
        text: str,
        call: Callable[[], Any],
        users: Iterable[str] = USERS,
        *,
        safe: bool = False,
    ) -> Any:
        """Run an operation for some users; return its result, or its error or `Crash`.

        A fault may strike in one of its transactions, unless it is `safe`.
        """
        connection, busy = process.connection, self.busy
        connection.happened, connection.fault = [], None
        if not safe and self.random.random() < 0.15:
            kind, skip = self.random.choice(list(FAULTS)), self.random.choice((0, 0, 0, 0, 1))
            connection.fault = Fault(kind, self.random.randrange(20), skip)
        self.depth, self.busy = self.depth + 1, busy.union(users)
        try:
            outcome = call()
        except (LdpBudgetError, Crash) as error:
            outcome = error
        self.depth, self.busy, connection.fault = self.depth - 1, busy, None
        if text:
            self.report(process, text, outcome)
        is_excused = self.has_failed(outcome) and (connection.happened or connection.is_dead)
        is_answer = not isinstance(outcome, BaseException) or isinstance(outcome, ANSWERS)
        self.expect(is_excused or is_answer, HEALTHY, repr(outcome), "an answer")
        return outcome

    @staticmethod
    def has_failed(outcome: Any) -> bool:
        """True if the outcome is no answer of the ledger, because something failed."""
        return isinstance(outcome, LedgerError | Crash) and not isinstance(outcome, ANSWERS)

    def report(self, process: Process, text: str, outcome: Any) -> None:
        """Add a line about an operation to the trace."""
        status = type(outcome).__name__ if isinstance(outcome, BaseException) else getattr(outcome, "status", "done")
        status += ", repeated" if getattr(outcome, "repeated", False) is True else ""
        faults = ", ".join(process.connection.happened)
        self.tell(f"process {process.number} {text}: {status}{f' [{faults}]' if faults else ''}")

    def tell(self, line: str) -> None:
        if self._write is not None:
            self._write(f"{self.steps:6}  {'    ' * self.depth}{line}")

    def expect(self, is_kept: object, promise: str, found: object = "", expected: object = "") -> None:
        """Raise `BrokenPromiseError` unless a promise is kept."""
        if not is_kept:
            self.tell(f"BROKEN: {promise}")
            raise BrokenPromiseError(promise, found, expected, self)
