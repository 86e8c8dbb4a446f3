"""Takes checkpoints of a ledger of several lanes, while somebody writes to it here."""

from __future__ import annotations

import os
import threading
import time
import weakref
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
        self._ended = threading.Event()
        self._pid = 0

    def wake(self) -> None:
        """Say that something was written; the thread is begun with the first time, and anew after a fork."""
        if self._pid != os.getpid():
            self._pid, self._ended = os.getpid(), threading.Event()
            threading.Thread(target=self._keep, args=(self._ended,), name=NAME, daemon=True).start()

    def close(self) -> None:
        """End the thread."""
        self._ended.set()

    def _keep(self, ended: threading.Event) -> None:
        while not ended.wait(self._seconds):
            ledger = self._ledger()
            if ledger is None:
                return
            try:
                if checkpoints.age(ledger, time.time()) >= self._seconds:
                    checkpoints.take(ledger)
            except LdpBudgetError:
                pass  # it is taken the next time, or by the next who asks
            del ledger
