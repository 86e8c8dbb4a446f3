"""Events of an audit: the features of a report, sampling of users, and bounds of the privacy loss from counts.

Features are numbers read from any report without knowing its meaning. Events are built from them. Sampled users all
hold one value, and the client draws their reports in blocks; none of these reports is stored.

The bounds use Clopper-Pearson intervals (Biometrika 26, 1934). With k hits among n, the lower end is the p at which k
or more hits have probability `risk`. The upper end is the p at which k or fewer hits have it. Both are exact for
every n and p, without a normal approximation. Both are quantiles of beta distributions.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betainc, betaincc, betainccinv, betaincinv

from ldp_budget.errors import NotSupported
from ldp_budget.sampling import open_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from ldp_budget.sampling import RandomSource
    from ldp_budget.sdk.mechanism import Mechanism

    Floats = NDArray[np.float32]
    Keys = NDArray[np.uint64]
    Rows = NDArray[Any]
    Floats64 = NDArray[np.float64]

# The odd constant of Fibonacci hashing: 2**64 divided by the golden ratio.
_MULTIPLIER = 0x9E3779B97F4A7C15


@dataclass(frozen=True, eq=False)
class Event:
    """An event that holds or not for each user: all of `tests`, on the features of `read`, averaged over reports.

    `read` turns reports (n, ...) into numbers (n, a). A test (w, c) holds where w·mean ≥ c.
    """

    words: str
    read: Callable[[Any], Floats]
    tests: tuple[tuple[Floats, float], ...]

    def holds(self, means: Floats) -> NDArray[np.bool_]:
        """Return the users, (n,), for whom the event holds, from their means (n, a)."""
        held: NDArray[np.bool_] = np.logical_and.reduce([means @ weights >= cut for weights, cut in self.tests])
        return held


def membership(words: str, belongs: Callable[[Any], NDArray[np.bool_]]) -> Event:
    """Return the event that every report of a user is in the set for which `belongs` is True."""

    def read(reports: Any) -> Floats:
        return belongs(reports).astype(np.float32)[:, np.newaxis]

    return Event(words, read, ((np.ones(1, dtype=np.float32), 1.0),))


def anything() -> Event:
    """Return the event that there is any report. It bounds nothing."""
    return membership("any report", lambda reports: np.ones(len(reports), dtype=np.bool_))


def one_of(keys: Keys, words: str) -> Event:
    """Return the event that a report has one of these keys."""
    return membership(words, lambda reports: np.isin(keys_of(reports), keys))


def keys_of(reports: Any) -> Keys:
    """Return a number for each whole report, (n,): the report itself up to 8 bytes, otherwise a hash of its bytes."""
    rows = np.ascontiguousarray(rows_of(reports))
    data = rows.view(np.uint8).reshape(len(rows), -1)
    width = data.shape[1]
    powers = [pow(256 if width <= 8 else _MULTIPLIER, place, 1 << 64) for place in range(width)]
    keys = np.zeros(len(rows), dtype=np.uint64)
    for place, power in enumerate(powers):
        keys += data[:, place].astype(np.uint64) * np.uint64(power)
    return keys


def rows_of(reports: Any) -> NDArray[Any]:
    """Return reports of any shape as rows of numbers, (n, columns). Raises `NotSupported` if they are not numbers."""
    array = np.asarray(reports)
    if array.dtype.kind not in "biuf":
        raise NotSupported(f"reports must be numbers: got {array.dtype}")
    return array.reshape(len(array), -1)


# -- features --------------------------------------------------------------------------------------------------------


_FEW = 32
"""The most distinct values of a column that is split into them."""

_BINS = 16
_TAILS = 32
_LARGEST = 1e15
"""Columns are clipped here, so that sums of their squares are finite."""

_WIDEST_SET = 32
_MOST_HELD = 128

_PARTS = {"value", "bin"}

SCHEMES = ("values", "bits", "held")
"""Ways in which a score describes a report: every column by its values or bins, or by its bits, or all as one set."""


@dataclass(frozen=True)
class Feature:
    """A number read from a report, whose rows have been flattened to columns.

    `kind`: "value" and "bin" are 1 where the column is in [low, high], else 0; together they cover a column. "tail"
    is the same for a range without a lower end. "bit" is bit `low` of a byte. "number" is the column itself. "holds"
    is 1 where any column is `low`, for reports that are sets.
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
    """Reads features from reports, in the given order."""

    features: tuple[Feature, ...]

    def __len__(self) -> int:
        return len(self.features)

    def only(self, positions: Any) -> Reader:
        """Return a reader of some of the features."""
        return Reader(tuple(self.features[position] for position in positions))

    def __call__(self, reports: Any) -> Floats:
        """Return the features of each report, (n, a)."""
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
        """The features grouped by how they are read: their places, columns and ranges."""
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
    """Return the features of reports like these, which are a sample of all inputs together."""
    rows = rows_of(reports)
    packed = rows.dtype == "uint8" and reports.ndim > 1
    features = [feature for column in range(rows.shape[1]) for feature in _column(rows[:, column], column, packed)]
    return [*features, *_held(rows)]


def _held(rows: Rows) -> list[Feature]:
    """Return features for the distinct integers of reports with several columns, if they are few."""
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
    """Yield the features of a column of many values: the number itself, tails, and adjacent bins."""
    yield Feature("number", column)
    for end in np.unique(np.quantile(values, np.linspace(0, 1, _TAILS + 1)[1:-1])):
        yield Feature("tail", column, -np.inf, float(end))
    ends = np.unique(np.quantile(values, np.linspace(0, 1, _BINS + 1)[1:-1]))
    lows = [-np.inf, *np.nextafter(ends, np.inf)]
    for low, high in zip(lows, [*ends, np.inf], strict=True):
        yield Feature("bin", column, float(low), float(high))


def describing(features: tuple[Feature, ...], scheme: str) -> NDArray[np.bool_]:
    """Select the features that describe a report exactly once, in one of the `SCHEMES`; none if it does not apply."""
    if scheme == "held":
        return np.array([feature.kind == "holds" for feature in features], dtype=np.bool_)
    by_bits = scheme == "bits"
    kinds = {feature.column: set[str]() for feature in features}
    for feature in features:
        kinds[feature.column].add(feature.kind)
    used = {column: "bit" in kinds_ and (by_bits or not kinds_ & _PARTS) for column, kinds_ in kinds.items()}
    wanted = [feature.kind == "bit" if used[feature.column] else feature.kind in _PARTS for feature in features]
    return np.array(wanted, dtype=np.bool_)


# -- sampling of users -----------------------------------------------------------------------------------------------


SECRET_BYTES = 32

_MOST_BLOCK = 1 << 15
_BLOCK_BYTES = 1 << 22


class Sampler:
    """Draws users: each has a secret of its own and gives `reports` reports of its one value.

    With `rng` None, the client uses its own cryptographic randomness. A seed or a stream is for tests. It is opened
    once for all draws, because opening a seed again would repeat them.
    """

    def __init__(self, mechanism: Mechanism, reports: int, rng: RandomSource) -> None:
        self.mechanism = mechanism
        self.reports = reports
        self.stream = open_stream(rng)
        self._rng = None if rng is None else self.stream
        # The first block is one user; it shows how large a report is.
        self._block = 1
        self.drawn = 0
        """The number of users drawn so far."""

    def users(self, value: Any, count: int) -> Iterator[Iterator[Any]]:
        """Yield blocks of users, `count` in all.

        A block yields the reports of its users turn by turn, arrays (n, ...).
        """
        while count > 0:
            block = min(count, self._block)
            self.drawn += block
            yield self._turns(value, block)
            count -= block

    def _turns(self, value: Any, count: int) -> Iterator[Any]:
        secrets = self._secrets(count)
        values = np.full(count, value)
        for _ in range(self.reports):
            reports = np.asarray(self.mechanism.randomize(values, rng=self._rng, secrets=secrets))
            if reports.ndim == 0 or len(reports) != count:
                raise NotSupported(f"{count} users must give {count} reports: got shape {reports.shape}")
            self._block = min(_MOST_BLOCK, max(1, _BLOCK_BYTES * count // max(1, reports.nbytes)))
            yield reports

    def _secrets(self, count: int) -> list[bytes]:
        # numpy makes a list of raw bytes ("V") several times faster than slicing does, and keeps trailing zeros.
        data = np.frombuffer(self.stream.read(SECRET_BYTES * count), f"V{SECRET_BYTES}")
        secrets: list[bytes] = data.tolist()
        return secrets

    def hits(self, value: Any, count: int, event: Event) -> int:
        """Return the number of `count` users with that value for whom the event holds."""
        return sum(int(event.holds(self.mean(turns, event.read)).sum()) for turns in self.users(value, count))

    def mean(self, turns: Iterator[Any], read: Callable[[Any], Floats]) -> Floats:
        """Return the features of the reports of each user, averaged over their turns, (n, a)."""
        total = read(next(turns))
        for reports in turns:
            total += read(reports)
        total /= self.reports
        return total


# -- bounds from counts ----------------------------------------------------------------------------------------------


_STEP = 1e-9
"""The relative step by which an end is moved outward, until its tail shows that it is far enough out."""

_ROUNDING = 1e-12
"""More than the rounding errors of the last subtraction, division and logarithm together."""


def lower_end(hits: Any, total: int, risk: float) -> Floats64:
    """Return the lower end for each of `hits` among `total`. Expected hits need not be whole numbers."""
    counts = np.asarray(hits, dtype=np.float64)
    some = np.maximum(counts, np.finfo(np.float64).tiny)
    ends: Floats64 = np.where(counts > 0, betaincinv(some, np.maximum(total - counts, 0) + 1, risk), 0.0)
    return ends


def upper_end(hits: Any, total: int, risk: float) -> Floats64:
    """Return the upper end for each of `hits` among `total`."""
    counts = np.asarray(hits, dtype=np.float64)
    rest = np.maximum(total - counts, np.finfo(np.float64).tiny)
    ends: Floats64 = np.where(counts < total, betainccinv(counts + 1, rest, risk), 1.0)
    return ends


def likely_bounds(
    first: Any, second: Any, totals: tuple[int, int], confidence: float, delta: float
) -> NDArray[np.float64]:
    """Return the bound for each pair of counts, -∞ where there is none.

    Use it to choose; it is not rounded outward.
    """
    risk = (1 - confidence) / 2
    more = lower_end(first, totals[0], risk) - delta
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds: Floats64 = np.log(np.maximum(more, 0.0)) - np.log(upper_end(second, totals[1], risk))
    return bounds


def certified_bound(first: int, second: int, totals: tuple[int, int], confidence: float, delta: float) -> float:
    """Return a lower bound of ε, at least 0, that exceeds the true one with probability at most 1 - `confidence`.

    `first` is the number of hits among ``totals[0]`` reports of x, `second` among ``totals[1]`` reports of x'. The
    risk is split evenly over the two proportions. The result is rounded down.
    """
    risk = (1 - confidence) / 2
    more = _certain_lower_end(first, totals[0], risk) - delta
    if more <= 0:
        return 0.0
    loss = math.log(more / _certain_upper_end(second, totals[1], risk))
    return max(0.0, loss - _ROUNDING * (1 + abs(loss)) - _ROUNDING * delta / more)


def _certain_lower_end(hits: int, total: int, risk: float) -> float:
    end = float(lower_end(hits, total, risk))
    while hits and float(betainc(hits, total - hits + 1, end)) > risk * (1 - _STEP):
        end *= 1 - _STEP
    return end


def _certain_upper_end(hits: int, total: int, risk: float) -> float:
    end = float(upper_end(hits, total, risk))
    while hits < total and end < 1 and float(betaincc(hits + 1, total - hits, end)) > risk * (1 - _STEP):
        end = min(1.0, end * (1 + _STEP))
    return end
