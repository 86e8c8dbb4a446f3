"""A simulated world: the processes that share one ledger, their clocks, and what goes wrong.

Everything runs from one seed, in one thread. Between two transactions of an operation, another process may run one of
its own. Each answer is compared with the reference model; a difference raises `BrokenPromiseError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from ldp_budget import Accountant
from ldp_budget.accounting.charge_request import Principal, key_hash
from ldp_budget.errors import LdpBudgetError
from ldp_budget.ledger import calendar, window_backfill
from ldp_budget.ledger.keyfile import Key
from ldp_budget.ledger.write_queue import Submission, WriteQueue

from .model import Model, Request
from .store import FAULTS, Connection, Crash, Disk, Fault

START = 1_795_262_400
"""The time at which every world begins: noon of 2026-11-21, a Saturday."""
USERS = [f"user-{number:02}" for number in range(24)]
SHARES = ("a", "b")
DRIFT = 3600
"""The seconds by which the clock of a process may drift from the monotonic clock."""


class BrokenPromiseError(AssertionError):
    """The ledger did something else than the reference model."""


class SteppedQueue(WriteQueue):
    """The write queue without its thread: a caller runs what waits, and tasks of an event loop wait for `serve`."""

    is_gathering = False

    def _start(self) -> None:
        pass

    def _run_here(self, mine: Submission) -> bool:
        was_run = super()._run_here(mine)
        self.serve()
        return was_run

    def _wake_writer(self) -> None:
        if not self.is_gathering and not self._writing._is_owned():  # type: ignore[attr-defined]
            self.serve()


class Process:
    """A process with the ledger open. Its clock may be ahead or behind, by `offset` seconds."""

    def __init__(self, number: int, connection: Connection, time: SimpleNamespace, offset: int) -> None:
        self.number, self.connection, self._time = number, connection, time
        self.offset = self._offset_at_start = offset
        clock = time.time = self.clock  # the default clock of the library, which is checked for jumps
        self.accountant = Accountant(connection, clock=clock)
        ledger = self.accountant._ledger
        self.queue = ledger._queue = SteppedQueue(ledger.name, ledger._queue._transact)
        ledger.after_commit = lambda: None  # no thread takes checkpoints: that is a step
        self.through: dict[str | None, Accountant] = {None: self.accountant}
        """The accountant as it is used through each sub-limit."""

    def clock(self) -> int:
        return START + self._time.monotonic() + self.offset

    @property
    def now(self) -> int | None:
        """The time of its clock; None if the clock has jumped since the process started."""
        return self.clock() if abs(self.offset - self._offset_at_start) <= DRIFT else None


class World:
    """The disk, the processes, the reference model, and the faults that strike."""

    def __init__(self, seed: int, tell: Callable[[str], None] | None = None) -> None:
        self.seed, self.random, self._tell = seed, Random(seed), tell
        self.steps = self.elapsed = self._depth = 0
        self.busy: set[str] = set()
        """The users of operations that have begun. What other processes do in between is for other users."""
        self.in_between: Callable[[Process], None] = lambda process: None
        partitions = self.random.choice((1, 3, 3))
        self.disk = Disk(Key(self.random.randbytes(32)), partitions)
        self.hashes = {user: self.disk.key.hash(b"user", user) for user in USERS}
        self.place = {user: self.disk.key.partition_of(self.hashes[user], partitions) for user in USERS}
        self.model = Model(self.place.__getitem__, partitions)
        self.loop = asyncio.new_event_loop()
        self._time = SimpleNamespace(monotonic=lambda: self.elapsed, clock_gettime=lambda which: self.elapsed)
        self.principals: dict[str, Principal] = {}
        self.processes: list[Process] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """Give the library the simulated time, and let it backfill long journals in several transactions."""
        with patch.object(calendar, "time", self._time), patch.object(window_backfill, "_MOST_AT_ONCE", 200):
            try:
                yield
            finally:
                self.loop.close()

    # -- processes ----------------------------------------------------------------------------------------------

    def start(self, number: int, offset: int = 0) -> Process:
        """Start a process that opens the ledger, in place of the one with this number."""
        connection = Connection(self.disk, self.random, lambda: self._let_others_run(process))
        process = Process(number, connection, self._time, offset)
        process.through.update((name, process.accountant.acting_for(each)) for name, each in self.principals.items())
        self.processes[number : number + 1] = [process]
        return process

    def restart_dead(self) -> None:
        """Start each process again that has ended. Its clock may have been set by then, or not."""
        for process in self.processes:
            if process.connection.is_dead:
                offset = self.random.choice((0, 0, process.offset))
                self.tell(f"process {process.number} starts again, with its clock at {offset:+} s")
                self.start(process.number, offset)

    def _let_others_run(self, mine: Process) -> None:
        if self._depth == 1 and self.random.random() < 0.1:
            others = [each for each in self.processes if each is not mine and each.offset == mine.offset]
            if others and len(self.busy) < len(USERS):
                self.in_between(self.random.choice(others))

    def run(self, operation: Callable[[Any, Process], None]) -> None:
        """Run an operation on any process. A read may end with the process."""
        with suppress(Crash):
            operation(self, self.random.choice(self.processes))
        self.restart_dead()

    @contextmanager
    def operation(self, process: Process, users: Iterable[str] = USERS, *, safe: bool = False) -> Iterator[None]:
        """Run an operation for users. A fault may strike in one of its transactions, unless it is `safe`."""
        connection, busy = process.connection, self.busy
        connection.happened, connection.fault = [], None
        if not safe and self.random.random() < 0.12:
            skip = self.random.choice((0, 0, 0, 1, 2))
            connection.fault = Fault(self.random.choice(list(FAULTS)), self.random.randrange(12), skip)
        self.busy = busy.union(users)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self.busy = busy
            connection.fault = None

    # -- what the disk knows ------------------------------------------------------------------------------------

    def is_durable(self, request: Request) -> bool:
        """True if a request left its trace: its idempotency record, or an entry with its note."""
        rows = self.disk.rows[self.place[request.user]]
        if request.key is None:
            return any(note.note == request.note for note in rows._notes.values())
        scope = "" if request.share is None else self.principals[request.share].name
        return (self.hashes[request.user], key_hash(self.disk.key, request.key, scope)) in rows._idempotency_records

    # -- the record of it ---------------------------------------------------------------------------------------

    def tell(self, line: str) -> None:
        if self._tell is not None:
            self._tell(f"{self.steps:6}  {'    ' * self._depth}{line}")

    def expect(self, is_kept: bool, promise: str, found: object = "", expected: object = "") -> None:
        """Raise `BrokenPromiseError` unless a promise is kept."""
        if not is_kept:
            self.tell(f"BROKEN: {promise}")
            raise BrokenPromiseError(f"{promise}\nfound:    {found}\nexpected: {expected}\n{self.replay}")

    @property
    def replay(self) -> str:
        """The command that runs the same steps again."""
        return f"replay:   python tests/helpers/simulation --seed {self.seed} --steps {self.steps} --trace"

    @contextmanager
    def errors_are_broken_promises(self) -> Iterator[None]:
        """Add the command that replays the seed to any other error."""
        try:
            yield
        except LdpBudgetError as error:
            raise BrokenPromiseError(f"no call fails without a reason\nfound:    {error!r}\n{self.replay}") from error
