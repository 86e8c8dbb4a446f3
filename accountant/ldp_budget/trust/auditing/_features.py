"""Features: numbers read off any report without knowing what it means, the letters that events are spelt with."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ._events import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Rows = NDArray[Any]

_FEW = 32
"""A column with at most as many different values is taken apart into them."""

_BINS = 16
_TAILS = 32
_LARGEST = 1e15
"""Columns are cut off here, so that sums of their squares are finite."""

_WIDEST_SET = 32
_MOST_HELD = 128

_PARTS = {"value", "bin"}

SCHEMES = ("values", "bits", "held")
"""How a score may describe a report: every column by its values or bins, or by its bits, or all as one set."""


@dataclass(frozen=True)
class Feature:
    """One number read off a report, whose rows have been flattened to columns.

    `kind`: "value" and "bin" (1 where the column lies in [low, high], else 0) make up a column together; "tail" is
    the same for a range without a lower end; "bit" is bit `low` of a byte; "number" the column itself; "holds" is 1
    where any column is `low`, for reports that are sets.
    """

    kind: str
    column: int
    low: float = 0.0
    high: float = 0.0

    @property
    def words(self) -> str:
        if self.kind == "bit":
            return f"bit {8 * self.column + int(self.low)}"
        column = f"column {self.column}"
        if self.kind == "number":
            return column
        if self.kind == "holds":
            return f"some column = {self.low:.6g}"
        if self.low == self.high:
            return f"{column} = {self.low:.6g}"
        return (
            f"{column} <= {self.high:.6g}"
            if self.kind == "tail"
            else f"{column} in [{self.low:.6g}, {self.high:.6g}]"
        )


@dataclass(frozen=True)
class Reader:
    """Reads these features off reports, in this order."""

    features: tuple[Feature, ...]

    def __len__(self) -> int:
        return len(self.features)

    def only(self, positions: Any) -> Reader:
        """A reader of some of the features."""
        return Reader(tuple(self.features[position] for position in positions))

    def __call__(self, reports: Any) -> Floats:
        """The features of each report, (n, a)."""
        rows = rows_of(reports)
        result = np.empty((len(rows), len(self)), dtype=np.float32)
        for kind, (places, columns, low, high) in self._groups.items():
            found = rows[:, columns]
            if kind == "bit":
                result[:, places] = (found >> low.astype(np.uint8)) & 1
            elif kind == "number":
                result[:, places] = np.nan_to_num(np.clip(found, -_LARGEST, _LARGEST))
            elif kind == "holds":
                result[:, places] = np.stack([(rows == value).any(axis=1) for value in low], axis=1)
            else:
                result[:, places] = (found >= low) & (found <= high)
        return result

    @functools.cached_property
    def _groups(self) -> dict[str, tuple[NDArray[Any], ...]]:
        """The features that are read alike: their places, columns and ranges."""
        groups: dict[str, list[tuple[int, Feature]]] = {}
        for place, feature in enumerate(self.features):
            alike = feature.kind if feature.kind in ("bit", "number", "holds") else "range"
            groups.setdefault(alike, []).append((place, feature))
        return {
            kind: (
                np.array([place for place, _ in group]),
                np.array([feature.column for _, feature in group]),
                np.array([feature.low for _, feature in group]),
                np.array([feature.high for _, feature in group]),
            )
            for kind, group in groups.items()
        }


def features_of(reports: Any) -> list[Feature]:
    """What can be read off reports like these, which are a sample of all inputs together."""
    rows = rows_of(reports)
    packed = rows.dtype == "uint8" and reports.ndim > 1
    features = [feature for column in range(rows.shape[1]) for feature in _column(rows[:, column], column, packed)]
    return [*features, *_held(rows)]


def _held(rows: Rows) -> list[Feature]:
    """Of reports of several integers, each of these, if they are few."""
    if rows.dtype.kind not in "iu" or not 1 < rows.shape[1] <= _WIDEST_SET:
        return []
    distinct = np.unique(rows)
    return [Feature("holds", 0, float(value)) for value in distinct] if len(distinct) <= _MOST_HELD else []


def _column(values: Rows, column: int, packed: bool) -> Iterator[Feature]:
    if values.dtype.kind == "f":
        values = values[np.isfinite(values)]
    distinct = np.unique(values)
    if packed and len(distinct) > 1:
        shown = int(np.bitwise_or.reduce(distinct ^ distinct[0]))
        yield from (Feature("bit", column, bit) for bit in range(8) if shown >> bit & 1)
    if 1 < len(distinct) <= _FEW:
        yield from (Feature("value", column, float(value), float(value)) for value in distinct)
    elif len(distinct) > 1 and not packed:
        yield from _ranges(values.astype(np.float64), column)


def _ranges(values: NDArray[np.float64], column: int) -> Iterator[Feature]:
    """A column of many values: the number, how far up it goes, and bins that lie side by side."""
    yield Feature("number", column)
    for end in np.unique(np.quantile(values, np.linspace(0, 1, _TAILS + 1)[1:-1])):
        yield Feature("tail", column, -np.inf, float(end))
    ends = np.unique(np.quantile(values, np.linspace(0, 1, _BINS + 1)[1:-1]))
    lows = [-np.inf, *np.nextafter(ends, np.inf)]
    for low, high in zip(lows, [*ends, np.inf], strict=True):
        yield Feature("bin", column, float(low), float(high))


def describing(features: tuple[Feature, ...], scheme: str) -> NDArray[np.bool_]:
    """Which features describe a report once, in one of the `SCHEMES`; none where it does not apply."""
    if scheme == "held":
        return np.array([feature.kind == "holds" for feature in features], dtype=np.bool_)
    by_bits = scheme == "bits"
    kinds = {feature.column: set[str]() for feature in features}
    for feature in features:
        kinds[feature.column].add(feature.kind)
    used = {column: "bit" in kinds_ and (by_bits or not kinds_ & _PARTS) for column, kinds_ in kinds.items()}
    wanted = [feature.kind == "bit" if used[feature.column] else feature.kind in _PARTS for feature in features]
    return np.array(wanted, dtype=np.bool_)
