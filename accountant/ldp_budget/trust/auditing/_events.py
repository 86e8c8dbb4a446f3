"""Events: what is read off the reports of a user, and when it counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import NotSupported

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Keys = NDArray[np.uint64]

# An odd constant of Fibonacci hashing: 2**64 over the golden ratio.
_MULTIPLIER = 0x9E3779B97F4A7C15


@dataclass(frozen=True, eq=False)
class Event:
    """Something that holds or not of each user: all of `tests`, on what `read` reads, averaged over reports.

    `read` turns reports (n, ...) into numbers (n, a). A test (w, c) holds where w·mean ≥ c.
    """

    words: str
    read: Callable[[Any], Floats]
    tests: tuple[tuple[Floats, float], ...]

    def holds(self, means: Floats) -> NDArray[np.bool_]:
        """Of which of the users, (n,), the event holds, from their means (n, a)."""
        held: NDArray[np.bool_] = np.logical_and.reduce([means @ weights >= cut for weights, cut in self.tests])
        return held


def membership(words: str, belongs: Callable[[Any], NDArray[np.bool_]]) -> Event:
    """The event that every report of a user is one of those that `belongs` says."""

    def read(reports: Any) -> Floats:
        return belongs(reports).astype(np.float32)[:, np.newaxis]

    return Event(words, read, ((np.ones(1, dtype=np.float32), 1.0),))


def anything() -> Event:
    """The event that there is a report, from which nothing follows."""
    return membership("any report", lambda reports: np.ones(len(reports), dtype=np.bool_))


def one_of(keys: Keys, words: str) -> Event:
    """The event that a report is one of those with these keys."""
    return membership(words, lambda reports: np.isin(keys_of(reports), keys))


def keys_of(reports: Any) -> Keys:
    """A number for each whole report, (n,): of up to 8 bytes the report itself, of more a hash of its bytes."""
    rows = np.ascontiguousarray(rows_of(reports))
    data = rows.view(np.uint8).reshape(len(rows), -1)
    width = data.shape[1]
    powers = [pow(256 if width <= 8 else _MULTIPLIER, place, 1 << 64) for place in range(width)]
    keys = np.zeros(len(rows), dtype=np.uint64)
    for place, power in enumerate(powers):
        keys += data[:, place].astype(np.uint64) * np.uint64(power)
    return keys


def rows_of(reports: Any) -> NDArray[Any]:
    """Reports of any shape as rows of numbers, (n, columns). Raises `NotSupported` for anything but numbers."""
    array = np.asarray(reports)
    if array.dtype.kind not in "biuf":
        raise NotSupported(f"expected reports of numbers; found {array.dtype}")
    return array.reshape(len(array), -1)
