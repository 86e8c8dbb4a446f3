"""A client in another program, such as a page's or a phone's, drawn from over pipes so that it can be audited.

The program reads lines of JSON and answers each with one: first ``{"collection": …}``, the public definition, then
``{"answer": …, "secret": hex?}`` with ``{"report": hex}``. What goes wrong it says as ``{"error": …}``.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import NotSupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ...authoring.base import Mechanism
    from ...catalogue.collections import Collection

_SECONDS = 60
"""So long a program may take for the reports of a block before it is ended."""


class ExternalClient:
    """Draws a collection's reports from a program. Raises `NotSupported`, with what it said, where it fails."""

    def __init__(self, collection: Collection, command: str) -> None:
        self._definition = collection.definition()
        self._words = shlex.split(command)
        try:
            self._process = subprocess.Popen(
                self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
            )
        except (OSError, IndexError) as error:
            raise NotSupported(f"the client {command!r} cannot be started: {error}") from None
        try:
            self._ask([{"collection": self._definition}])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the program."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was not taken any more
                    pipe.close()
        self._process.wait()

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
        shape = (len(values), *layout["shape"])
        size = np.dtype(layout["dtype"]).itemsize * int(np.prod(shape))
        if len(rows) != size:
            raise NotSupported(f"expected {size} bytes of {len(values)} reports; found {len(rows)}")
        reports = np.frombuffer(rows, layout["dtype"]).reshape(shape)
        return reports.astype(reports.dtype.newbyteorder("="))

    @staticmethod
    def _row(said: dict[str, Any]) -> bytes:
        try:
            return bytes.fromhex(said["report"])
        except (KeyError, TypeError, ValueError):
            raise NotSupported(f'expected {{"report": hex}} of the client; found {said}') from None

    def _ask(self, lines: Iterable[Any]) -> list[dict[str, Any]]:
        """What it answers to each of the lines."""
        pipe = self._process.stdout
        assert pipe is not None
        asked = [json.dumps(line) for line in lines]
        # Whoever writes all before it reads may wait for a program that does the same.
        writer = threading.Thread(target=self._write, args=(asked,), daemon=True)
        watch = threading.Timer(_SECONDS, self._process.kill)
        watch.start()
        writer.start()
        try:
            return [self._read(pipe.readline()) for _ in asked]
        finally:
            watch.cancel()
            writer.join(1)

    def _write(self, asked: list[str]) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        try:
            pipe.write("".join(f"{line}\n" for line in asked))
            pipe.flush()
        except (OSError, ValueError):
            pass  # it has ended, which whoever reads is told

    def _read(self, line: str) -> dict[str, Any]:
        if not line:
            raise NotSupported(f"the client {self._words[0]} ended, or said nothing for {_SECONDS} s")
        try:
            said = json.loads(line)
        except ValueError:
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
    finally:
        client.close()
