"""Questions that may take long are worked out in processes beside this one, which are ended where they take too long.

So no question holds up a spend: neither a thread, nor the interpreter's lock, nor memory.
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
from typing import Any

from .kinds import ServiceError, Told

_MOST_ANSWERS = 512
_MOST_WAITING = 4
_MODULE = "ldp_budget_service.working"


class Workers:
    """Answers questions, as many at a time as there are processes; an answer never changes, and is kept.

    Parameters:
        processes: how many; each is started when it is needed first.
        seconds: how long an answer may take.
    """

    def __init__(self, processes: int, seconds: float) -> None:
        self._seconds = seconds
        self._free = threading.Semaphore(processes)
        # Threads that wait here are none for those who spend.
        self._room = threading.Semaphore(processes + _MOST_WAITING)
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._answers: OrderedDict[str, Any] = OrderedDict()

    def ask(self, question: str, asked: dict[str, Any]) -> Any:
        """The answer. Raises `Told` for what is wrong, and `ServiceError` where it takes too long."""
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
            raise Told(told["problem"])
        return told["answer"]

    def close(self) -> None:
        """End the processes that are at work on nothing."""
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
        """The line that it answers. Raises `TimeoutError`, and `OSError` where it has ended."""
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
        """End it, whatever it is at."""
        process = self._process
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        process.wait()
