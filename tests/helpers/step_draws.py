"""Draws by some steps of a client program, without a mechanism around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldp_budget.sampling import Stream
from ldp_budget.sdk.client_program import Program, float64
from ldp_budget.sdk.vectorised_client import VectorisedClient


def drawn_cells(
    stream: Stream, steps: Any, point: int, count: int, *, last: int = 0, tables: dict[str, Any] | None = None
) -> Any:
    """The step `cell` of `count` users at a point of the points up to `last`, as doubles."""
    given = {"kind": "answer", "count": max(point, last) + 1, "text": False}
    return VectorisedClient(Program(given, steps, float64("cell", 0, 1), tables or {}))(np.full(count, point), stream)
