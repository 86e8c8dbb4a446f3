"""A client in another program, such as a page's or a phone's, drawn from over pipes so that it can be audited.

The program reads lines of JSON: first ``{"collection": …}``, the public definition, to which it need say nothing;
then ``{"answer": …, "secret": hex?}``, each of which it answers with ``{"report": hex}``. What goes wrong it says as
``{"error": …}``.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ...errors import NotSupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ...registry.collections import Collection
    from ...sdk.mechanism import Mechanism

_SECONDS = 60
"""So long a program may say nothing before it is ended."""
_LAST_SECONDS = 5
"""So long it may take to end when nothing more is asked."""
_LINE = 1 << 16
"""Characters of a line, beside those of the report."""


class ExternalClient:
    """Draws a collection's reports from a program. Raises `NotSupported`, with what it said, where it fails."""

    def __init__(self, collection: Collection, command: str) -> None:
        self._definition = collection.definition()
        layout = self._definition["report"]
        self._size = np.dtype(layout["dtype"]).itemsize * int(np.prod(layout["shape"]))
        try:
            self._words = shlex.split(command)
            self._process = subprocess.Popen(
                self._words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # so that what it starts ends with it
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
                with suppress(OSError):  # what was not taken any more
                    pipe.close()
        self._process.wait()

    def finish(self) -> None:
        """Ask nothing more. Raises `NotSupported` where it has said more than it was asked."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        with self._watched(_LAST_SECONDS):
            more = self._process.stdout.readline(80)
        if more:
            raise NotSupported(f"the client says more than it is asked: {more!r}")

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    @contextmanager
    def _watched(self, seconds: float) -> Iterator[None]:
        """End the program when it has said nothing for so long."""
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
        """A report for each value, as the mechanism's own client would return them."""
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
            raise NotSupported(f'expected {{"report": hex}} of the client; found {said}') from None
        if len(row) != self._size:  # each: a length says something too
            raise NotSupported(f"expected reports of {self._size} bytes; found one of {len(row)}")
        return row

    def _ask(self, lines: Iterable[Any]) -> list[dict[str, Any]]:
        """What it answers to each of the lines."""
        if self._failed is not None:
            raise self._failed  # an audit that has tried one way tries another
        pipe = self._process.stdout
        assert pipe is not None
        asked = [json.dumps(line) for line in lines]
        # Whoever writes all before it reads may wait for a program that does the same.
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
        """The next answer; what a client may say of the collection, before the first one, is passed over."""
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
            pass  # it has ended, which whoever reads is told

    def _read(self, line: str) -> dict[str, Any]:
        self._heard = time.monotonic()
        if not line:
            raise NotSupported(f"the client {self._words[0]} ended, or said nothing for {_SECONDS} s")
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            raise NotSupported(f"expected a line of JSON of the client; found {line[:80]!r}") from None
        if not isinstance(said, dict) or "error" in said:
            raise NotSupported(f"the client says: {said['error'] if isinstance(said, dict) else said}")
        return said


@contextmanager
def drawn_by(collection: Collection, command: str) -> Iterator[Mechanism]:
    """The collection's mechanism, with its promise and its channel, whose reports come from a program."""
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
