"""Takes checkpoints of a ledger of several partitions, while somebody writes to it here."""

from __future__ import annotations

import os
import queue
import threading
import time
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

from ..errors import LdpBudgetError
from . import checkpoints

if TYPE_CHECKING:
    from .ledger import Ledger

SECONDS = 60.0
NAME = "ldp-budget checkpoints"


class Keeper:
    """A thread that takes a checkpoint when the newest one of anybody is `seconds` old and something was written."""

    def __init__(self, ledger: Ledger, seconds: float = SECONDS) -> None:
        self._ledger = weakref.ref(ledger)
        self._seconds = seconds
        # Not an event, which is Python's own code: an interrupt (Ctrl-C) within could leave it locked for ever.
        self._ended: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._pid = 0

    def wake(self) -> None:
        """Say that something was written; the thread is begun with the first time, and anew after a fork."""
        if self._pid != os.getpid():
            self._pid, self._ended = os.getpid(), queue.SimpleQueue()
            threading.Thread(target=self._keep, args=(self._ended,), name=NAME, daemon=True).start()

    def close(self) -> None:
        """End the thread."""
        self._ended.put(None)

    def _keep(self, ended: queue.SimpleQueue[None]) -> None:
        while True:
            with suppress(queue.Empty):
                ended.get(timeout=self._seconds)
                return
            ledger = self._ledger()
            if ledger is None:
                return
            with suppress(LdpBudgetError):  # it is taken the next time, or by the next who asks
                if checkpoints.age(ledger, time.time()) >= self._seconds:
                    checkpoints.take(ledger)
            del ledger
