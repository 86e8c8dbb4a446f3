"""The reports of random substitution: drawn by the client with integers only, checked and counted by the server.

The client draws everything for everybody, whatever the answer is and whether or not the draw is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.authoring.packing import as_reports
from ldp_budget.errors import NotSupported
from ldp_budget.randomness import bernoulli, integers, subsets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ldp_budget.randomness import Stream

    Answers = NDArray[np.int64]
    Reports = NDArray[Any]

_BLOCK = 1 << 16
_LEAST_ROWS = 256
_COUNTED = 1 << 20


def substitutes(stream: Stream, answers: Answers, size: int, keep: int, draws: int = 1) -> Reports:
    """Each answer kept with probability `keep`/2**64, else one of the `size` - 1 others; shape (n,).

    `draws`: so many are one user's, whose draws are made at a time, as in the client program.
    """
    reports = np.empty(len(answers), dtype=np.min_scalar_type(size - 1))
    step = max(_BLOCK, draws)
    for start in range(0, len(answers), step):
        own = answers[start : start + step].astype(reports.dtype)
        kept = bernoulli(stream, keep, len(own))
        others = integers(stream, size - 1, len(own)).astype(reports.dtype)
        others += others >= own
        np.copyto(others, own, where=kept)
        reports[start : start + step] = others
    return reports


def substitute_sets(stream: Stream, answers: Answers, size: int, draws: int, include: int) -> Reports:
    """Sets of `draws` answers, ascending, shape (n, draws): the own one is in with probability `include`/2**64."""
    reports = _empty(len(answers), size, draws)
    for part in _parts(len(answers), draws):
        own = answers[part]
        others = subsets(stream, size - 1, draws, len(own))
        included = bernoulli(stream, include, len(own))
        place = integers(stream, draws, len(own))
        # Leaving out one of a uniform set leaves a uniform set; sorting hides which one the own answer replaced.
        reports[part] = np.sort(_with_own(others, own, included, place), axis=1)
    return reports


def substitute_sequences(stream: Stream, answers: Answers, size: int, hazards: Sequence[int]) -> Reports:
    """Distinct answers in the order of drawing, shape (n, draws).

    Draw i is the own answer, if none before was, with probability `hazards[i]`/2**64; the others are a uniform
    sequence of distinct answers whatever its place is.
    """
    draws = len(hazards)
    reports = _empty(len(answers), size, draws)
    for part in _parts(len(answers), draws):
        own = answers[part]
        others = subsets(stream, size - 1, draws, len(own))
        _shuffle(stream, others)
        included, place = _own_place(stream, hazards, len(own))
        reports[part] = _with_own(others, own, included, place)
    return reports


def _empty(count: int, size: int, draws: int) -> Reports:
    return np.empty((count, draws), dtype=np.min_scalar_type(size - 1))


def _parts(count: int, draws: int) -> list[slice]:
    step = max(_LEAST_ROWS, _BLOCK // draws)
    return [slice(start, start + step) for start in range(0, count, step)]


def _with_own(others: Answers, own: Answers, included: NDArray[np.bool_], place: Answers) -> Answers:
    """Rows over the `size` - 1 others become rows over all answers, the own one at `place` where it is included."""
    others += others >= own[:, np.newaxis]
    rows = np.arange(len(own))
    others[rows, place] = np.where(included, own, others[rows, place])
    return others


def _shuffle(stream: Stream, rows: Answers) -> None:
    """Put every row into a uniform order (Fisher and Yates)."""
    index = np.arange(len(rows))
    for last in range(rows.shape[1] - 1, 0, -1):
        chosen = integers(stream, last + 1, len(rows))
        moved = rows[index, chosen]
        rows[index, chosen] = rows[:, last]
        rows[:, last] = moved


def _own_place(stream: Stream, hazards: Sequence[int], count: int) -> tuple[NDArray[np.bool_], Answers]:
    """Whether the own answer is drawn at all, and at which draw."""
    drawn = np.stack([bernoulli(stream, hazard, count) for hazard in hazards])
    place: Answers = drawn.argmax(axis=0)
    return drawn[place, np.arange(count)], place


def checked_reports(reports: Any, size: int, draws: int, *, distinct: bool) -> Reports:
    """`reports` as an array, each row of `draws` answers 0..`size` - 1, different ones where `distinct`.

    Raises `NotSupported` for any others.
    """
    rows = as_reports(reports)
    shape = () if draws == 1 else (draws,)
    if rows.dtype.kind not in "iu" or rows.ndim != 1 + len(shape) or rows.shape[1:] != shape:
        expected = ", ".join(["n", *map(str, shape)])
        raise NotSupported(f"expected reports of integers, shape ({expected}); found {rows.dtype} {rows.shape}")
    if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < size:
        raise NotSupported(f"expected reports from 0 to {size - 1}; found {rows.min()} to {rows.max()}")
    if distinct and draws > 1:
        ascending = np.sort(rows, axis=1)
        if (ascending[:, 1:] == ascending[:, :-1]).any():
            raise NotSupported("expected reports of distinct answers; found a report that repeats one")
    return rows


def count_answers(answers: Reports, size: int) -> NDArray[np.int64]:
    """How often each of 0..`size` - 1 occurs."""
    counts = np.zeros(size, dtype=np.int64)
    step = max(_COUNTED, size)
    for start in range(0, len(answers), step):
        # numpy counts machine integers; a block at a time keeps the wider copy small.
        counts += np.bincount(answers[start : start + step].astype(np.intp), minlength=size)
    return counts
