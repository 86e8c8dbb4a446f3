"""Reports of yes and no: drawn by two coins, and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.authoring.packing import as_reports
from ldp_budget.errors import NotSupported
from ldp_budget.randomness import bernoulli

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldp_budget.randomness import Stream


def draw_coins(stream: Stream, answers: NDArray[np.int64], keep: int, noise: int) -> NDArray[np.uint8]:
    """A yes with probability `keep` / 2**64 where the answer is yes, and `noise` / 2**64 where it is no; (n,)."""
    # Both coins are drawn for everybody, so that the time taken does not depend on the answer.
    if_yes = bernoulli(stream, keep, len(answers))
    if_no = bernoulli(stream, noise, len(answers))
    return np.where(answers == 1, if_yes, if_no).astype(np.uint8)


def count_both(reports: Any) -> tuple[int, NDArray[np.int64]]:
    """How many reports there are, and how many say no and yes. Raises `NotSupported` for anything but 0 and 1."""
    rows = as_reports(reports)
    if rows.ndim != 1 or not np.isin(rows, (0, 1)).all():
        raise NotSupported(f"expected reports of 0 and 1 of shape (n,); found {rows.dtype} {rows.shape}")
    yes = int(rows.sum())
    return len(rows), np.array([len(rows) - yes, yes], dtype=np.int64)
