"""What clients in several languages make of the same definitions: refused, or reports and failures of the same draws."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from client_cases import Recorder
from ldp_budget.sampling import SeededStream, Stream
from ldp_budget.sdk.client_program import Program
from ldp_budget.sdk.interpreter import StreamDraws, read, run
from ldp_budget_verify.shipped_checkers import checker

REFUSED, FAILED = "refused", "failed"
_OWN = bytes(range(32))
_MOST_BYTES = 1 << 14
_UNREAD = "bytes of the stream were not read"
_NOTHING_LOADED = ("the first line names the collection", "no collection")

Question = tuple[Any, bytes]
"""An answer, and the bytes of the stream."""


class _EndedError(ValueError):
    """A program read more than a test gives it."""


class _Short(Stream):
    def __init__(self, seed: int) -> None:
        self._source, self._left = SeededStream(seed), _MOST_BYTES

    def read(self, count: int) -> bytes:
        self._left -= count
        if self._left < 0:
            raise _EndedError("the test has no more bytes")
        return bytes(self._source.read(count))


def in_python(text: str, seed: int) -> tuple[list[Question], list[str]]:
    """The questions of a definition, and what Python makes of each: `refused`, `failed`, or a report in hex."""
    try:
        definition = _loaded(text)
    except Exception:
        return [(0, b"")], [REFUSED]
    program, chance = Program.from_json(definition), random.Random(seed)
    asked: list[Question] = []
    said: list[str] = []
    for answer, value in _answers(definition, program, chance):
        stream, found = Recorder(_Short(chance.randrange(2**32))), FAILED
        with suppress(ValueError, OverflowError):
            found = run(program, value, StreamDraws(stream, _OWN, definition["context"])).hex()
        asked.append((answer, stream.read_so_far))
        said.append(found)
    return asked, said


def _loaded(text: str) -> dict[str, Any]:
    """The definition in a text. Any exception means: refused."""
    check = checker("check_law")
    definition: dict[str, Any] = check.read(text.encode())
    with suppress(NotImplementedError):  # beyond the checker, not of another form
        check.check_form(definition)
    Program.from_json(definition)
    rest = {name: value for name, value in definition.items() if name != "digest"}
    assert definition["digest"] == check.sha256(_canonical(rest)).hexdigest()
    return definition


def _canonical(rest: dict[str, Any]) -> bytes:
    return json.dumps(rest, sort_keys=True, separators=(",", ":")).replace("\x7f", "\\u007f").encode()


def _answers(definition: dict[str, Any], program: Program, chance: random.Random) -> list[tuple[Any, int]]:
    """Two answers and their numbers."""
    given, names = program.input, definition["answers"]
    if given["kind"] == "number":
        lower, upper = float(given["lower"]), float(given["upper"])
        points = (lower, min(max(lower + (upper / 2 - lower / 2) * chance.random() * 2, lower), upper))
        return [(point, read(program, point)) for point in points]
    if given["kind"] == "word":
        words = ["a", "é"[: given["length"] // 2] or "z"]
        return [(word, int.from_bytes(word.encode().ljust(given["length"], b"\0"), "big")) for word in words]
    if "at_most" in definition and names:
        return [([], 0), ([names[0]], 1)]
    if names:
        return [(names[0], 0), (names[-1], len(names) - 1)]
    count = int(given["count"])
    return [(number if number < 2**53 else str(number), number) for number in (0, chance.randrange(count))]


def by_lines(command: Sequence[str], texts: Iterable[str], asked: Iterable[Sequence[Question]]) -> list[list[str]]:
    """What a client on pipes makes of these definitions, as `in_python` has it."""
    lines, counts = [], []
    for text, questions in zip(texts, asked, strict=True):
        lines.append(f'{{"collection": {text}}}')
        lines += [json.dumps({"answer": a, "own": _OWN.hex(), "stream": stream.hex()}) for a, stream in questions]
        counts.append(len(questions))
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")
    done = subprocess.run([*command], input=data, capture_output=True, timeout=900, check=False)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    found, at = [], 0
    for count in counts:
        follows = said[at + 1].get("error", "") if at + 1 < len(said) else ""
        if follows.startswith(_NOTHING_LOADED):
            found.append([REFUSED])
            at += count + 1
        else:
            found.append([_told(row) for row in said[at : at + count]])
            at += count
    assert at == len(said), (at, len(said), done.stderr[:500])
    return found


def _told(row: dict[str, Any]) -> str:
    if _UNREAD in row.get("error", ""):
        return f"a report, but {row['error']}"
    return str(row.get("report", FAILED))
