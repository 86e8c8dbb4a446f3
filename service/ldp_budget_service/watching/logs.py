"""The log: a JSON object a line, and no word of what a caller sent.

The lines of this service are made of fields that were chosen, and what other packages say is cut down to what cannot
repeat a request: a message may hold any value that somebody thought worth showing.
"""

from __future__ import annotations

import json
import logging
import time
from typing import TextIO

from ..guarding.door import describe

OURS = "ldp_budget_service"
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


def configure(stream: TextIO, *, requests: bool = True) -> None:
    """Have this process log to a stream, in JSON lines alone; with `requests`, a line for each of these."""
    handler = logging.StreamHandler(stream)
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
