"""The log: a JSON object a line, and no word of what a caller sent.

The lines of this service are made of fields that were chosen, and what other packages say is cut down to what cannot
repeat a request: a message may hold any value that somebody thought worth showing.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from contextlib import nullcontext, suppress
from typing import TextIO

from ..guarding.door import describe

OURS = "ldp_budget_service"
SECONDS = 0.1
"""How long a line may wait for others."""
_TRUSTED = ("uvicorn.error",)
"""Whose messages, but for errors' own, tell of the server only; its access log is another."""


class JsonLines(logging.Formatter):
    """Makes a line of JSON of a record."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        said = {"time": _moment(record.created), "level": record.levelname.lower(), "logger": record.name}
        said["event"] = self._event(record)
        if record.name.partition(".")[0] == OURS:
            said.update(getattr(record, "said", {}))
            if (error := getattr(record, "error", None)) is not None:
                said["error"] = error
        if record.exc_info and record.exc_info[1] is not None:
            said["error"] = describe(record.exc_info[1])
        return json.dumps(said, ensure_ascii=False, default=str)

    @staticmethod
    def _event(record: logging.LogRecord) -> str:
        if record.name.partition(".")[0] == OURS or record.name in _TRUSTED:
            return record.getMessage().strip()
        return f"{record.levelname.lower()} in {record.module}, line {record.lineno}"


class Together(logging.StreamHandler[TextIO]):
    """Writes lines of a tenth of a second at once, and a warning with those before it at once.

    For each write a thread lets the others run, and comes back when they let it. A process that is killed takes the
    last lines with it; what it has charged stands in the ledger.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: list[str] = []
        self._woken = threading.Event()
        threading.Thread(target=self._write_on, name="ldp-budget log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line, or write it."""
        try:
            self._lines.append(self.format(record) + self.terminator)
            if record.levelno >= logging.WARNING:
                self.flush()
            elif not self._woken.is_set():
                self._woken.set()
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Write what was kept."""
        with self.lock or nullcontext():
            lines, self._lines = self._lines, []
            if lines:
                self.stream.write("".join(lines))
                self.stream.flush()

    def _write_on(self) -> None:
        while self._woken.wait():
            time.sleep(SECONDS)
            self._woken.clear()
            with suppress(OSError, ValueError):  # nobody reads it any more
                self.flush()


def configure(stream: TextIO, *, requests: bool = True) -> None:
    """Have this process log to a stream, in JSON lines alone; with `requests`, a line for each of these."""
    handler = Together(stream)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(OURS).setLevel(logging.INFO if requests else logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "fastapi"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = name != "uvicorn.access"


def _moment(seconds: float) -> str:
    whole, micros = divmod(round(seconds * 1e6), 10**6)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{micros:06}Z"
