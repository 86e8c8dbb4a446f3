"""Rows as NDJSON: a line of JSON each, of any number and in constant memory."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from fastapi.responses import StreamingResponse

from ldp_budget import LdpBudgetError

from .answers import POSITION
from .kinds import as_json, problem_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MEDIA_TYPE = "application/x-ndjson"
_TOGETHER = 500

DOCUMENTED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A line of JSON for each row. Where it cannot go on, the last line is a `problem`.",
        "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
    }
}


def streamed(position: str, rows: Iterable[dict[str, Any]]) -> StreamingResponse:
    """The answer of rows. What is wrong before the first one is raised; later there is a status already."""
    iterator = iter(rows)
    first = list(islice(iterator, 1))
    lines = _lines(chain(first, iterator))
    return StreamingResponse(lines, headers={POSITION: position}, media_type=MEDIA_TYPE)


def _lines(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    # Many rows a piece: each piece goes from a thread to the loop.
    written: list[str] = []
    try:
        for row in rows:
            written.append(as_json(row))
            if len(written) == _TOGETHER:
                yield "\n".join(written) + "\n"
                written = []
    except LdpBudgetError as error:
        written.append(as_json({"problem": problem_of(error)}))
    if written:
        yield "\n".join(written) + "\n"
