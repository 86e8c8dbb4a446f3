"""A client in another program, such as a web page's or a phone's, which an audit runs over pipes.

The program reads lines of JSON. The first is ``{"collection": …}``, the public definition; an answer to it is
optional. Each further line is ``{"answer": …, "secret": hex?}``, and the program answers with ``{"report": hex}``. It
reports a failure as ``{"error": …}``.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import NotSupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ldp_budget.registry.collections import Collection
    from ldp_budget.sdk.mechanism import Mechanism

_SECONDS = 60
"""The time in seconds that a program may be silent before it is killed."""
_LAST_SECONDS = 5
"""The time in seconds that a program may take to exit after the last request."""
_LINE = 1 << 16
"""The most characters of a line, not counting those of the report."""


class ExternalClient:
    """A client that draws a collection's reports from a program.

    Raises `NotSupported`, with its message, if it fails.
    """

    def __init__(self, collection: Collection, command: str) -> None:
        self._definition = collection.definition()
        layout = self._definition["report"]
        self._size = np.dtype(layout["dtype"]).itemsize * int(np.prod(layout["shape"]))
        try:
            # Windows splits a command itself, and its paths have backslashes.
            self._words = [command] if sys.platform == "win32" else shlex.split(command)
            self._process = subprocess.Popen(
                command if sys.platform == "win32" else self._words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # so that its child processes are killed with it
            )
        except (OSError, IndexError, ValueError) as error:
            raise NotSupported(f"the client {command!r} cannot be started: {error}") from None
        self._greets = True
        self._failed: NotSupported | None = None
        self._write([json.dumps({"collection": self._definition})])

    def close(self) -> None:
        """End the program."""
        self._kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # output that the program did not read
                    pipe.close()
        self._process.wait()

    def finish(self) -> None:
        """Close the program's input. Raises `NotSupported` if the program has written more than it was asked for."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        with self._watched(_LAST_SECONDS):
            more = self._process.stdout.readline(80)
        if more:
            raise NotSupported(f"the client wrote more than it was asked for: {more!r}")

    def _kill(self) -> None:
        if sys.platform == "win32":
            self._process.kill()
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    @contextmanager
    def _watched(self, seconds: float) -> Iterator[None]:
        """Kill the program after that many seconds of silence."""
        self._heard, done = time.monotonic(), threading.Event()

        def watch() -> None:
            while not done.wait(max(0.0, self._heard + seconds - time.monotonic())):
                if time.monotonic() >= self._heard + seconds:
                    self._kill()
                    return

        watching = threading.Thread(target=watch, daemon=True)
        watching.start()
        try:
            yield
        finally:
            done.set()
            watching.join()

    def reports(self, values: Any, secrets: Sequence[bytes] | None) -> Any:
        """Return a report for each value, as the mechanism's own client would return them."""
        names, layout = self._definition["answers"], self._definition["report"]
        own = secrets if self._definition["memo"] and secrets is not None else [None] * len(values)
        asked = (
            {"answer": value if names is None else names[value]}
            | ({} if secret is None else {"secret": secret.hex()})
            for value, secret in zip(np.asarray(values).tolist(), own, strict=True)
        )
        rows = b"".join(self._row(said) for said in self._ask(asked))
        reports = np.frombuffer(rows, layout["dtype"]).reshape(len(values), *layout["shape"])
        return reports.astype(reports.dtype.newbyteorder("="))

    def _row(self, said: dict[str, Any]) -> bytes:
        try:
            row = bytes.fromhex(said["report"])
        except (KeyError, TypeError, ValueError):
            raise NotSupported(f'the answer of the client must be {{"report": hex}}: got {said}') from None
        if len(row) != self._size:  # every report, as a length may also carry information
            raise NotSupported(f"a report must have {self._size} bytes: got {len(row)}")
        return row

    def _ask(self, lines: Iterable[Any]) -> list[dict[str, Any]]:
        """Return the program's answers to the lines."""
        if self._failed is not None:
            raise self._failed  # an audit whose first attempt failed tries another way
        pipe = self._process.stdout
        assert pipe is not None
        asked = [json.dumps(line) for line in lines]
        # Write in a thread: if both sides write everything before they read, they block each other.
        writer = threading.Thread(target=self._write, args=(asked,), daemon=True)
        writer.start()
        try:
            with self._watched(_SECONDS):
                return [self._said(pipe) for _ in asked]
        except NotSupported as error:
            self._failed = error
            raise
        finally:
            writer.join(1)

    def _said(self, pipe: IO[str]) -> dict[str, Any]:
        """Return the next answer. An optional answer to the collection, before the first report, is skipped."""
        said = self._read(pipe.readline(2 * self._size + _LINE))
        if self._greets and "report" not in said:
            said = self._read(pipe.readline(2 * self._size + _LINE))
        self._greets = False
        return said

    def _write(self, asked: list[str]) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        try:
            pipe.write("".join(f"{line}\n" for line in asked))
            pipe.flush()
        except (OSError, ValueError):
            pass  # the program has ended, which the reading side reports

    def _read(self, line: str) -> dict[str, Any]:
        self._heard = time.monotonic()
        if not line:
            raise NotSupported(f"the client {self._words[0]} ended, or did not answer for {_SECONDS} s")
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            raise NotSupported(f"the answer of the client must be a line of JSON: got {line[:80]!r}") from None
        if not isinstance(said, dict) or "error" in said:
            raise NotSupported(f"the client reports an error: {said['error'] if isinstance(said, dict) else said}")
        return said


@contextmanager
def drawn_by(collection: Collection, command: str) -> Iterator[Mechanism]:
    """Yield the collection's mechanism, with its guarantee and its channel, whose reports come from a program."""
    client = ExternalClient(collection, command)
    kind = type(collection.mechanism)

    class Drawn(kind):  # type: ignore[misc, valid-type]
        def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
            return client.reports(values, secrets)

    try:
        yield Drawn(**collection.mechanism.declared)
        client.finish()
    finally:
        client.close()
