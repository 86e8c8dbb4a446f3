"""Events that a search proposes for two inputs, each with the lower bound that other reports give it.

A feature of the report (a bit, a value, a range; of several reports of a user its mean) lies above or below some cut;
several of these together; a whole report is one of the telling ones; the sum of the log-ratios of all features is
large (naive Bayes).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ._bounds import likely_bounds
from ._events import Event, one_of
from ._features import SCHEMES, Feature, Reader, describing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Counts = NDArray[np.int64]
    Proposal = tuple[float, Event]

_SCORE_CUTS = 256
_TOGETHER = 6
_MOST_WHOLE = 256
_CLEARLY = 2.5
"""A feature has a say in the score if its means lie this many standard errors apart."""


@dataclass(frozen=True, eq=False)
class Sample:
    """The features of some users of one input, (n, a), and where each gave one report, the reports' keys (n,)."""

    means: Floats
    keys: NDArray[np.uint64]

    def halves(self) -> tuple[Sample, Sample]:
        """One part to propose events, one to choose among them."""
        middle = len(self.means) // 2
        return Sample(self.means[:middle], self.keys[:middle]), Sample(self.means[middle:], self.keys[middle:])


@dataclass(frozen=True)
class Searcher:
    """What all pairs are searched with: how features are read, and where they are cut, a list for each feature."""

    reader: Reader
    cuts: list[NDArray[np.float64]]
    repeated: bool
    confidence: float
    delta: float

    def bounds(self, hits: Sequence[Any], totals: tuple[int, int]) -> NDArray[np.float64]:
        """The bound for each pair of counts, hits of the first and of the second input."""
        bounds: NDArray[np.float64] = likely_bounds(hits[0], hits[1], totals, self.confidence, self.delta)
        return bounds


def cuts_between(values: NDArray[Any], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cuts at these quantiles, each midway between two values that occur, so that rounding decides nothing."""
    distinct = np.unique(values).astype(np.float64)
    if len(distinct) > len(shares):
        marks = np.quantile(values, shares).astype(np.float64)
        places = np.unique(np.searchsorted(distinct, marks).clip(1, len(distinct) - 1))
    else:
        places = np.arange(1, len(distinct))
    cuts: NDArray[np.float64] = (distinct[places - 1] + distinct[places]) / 2
    return cuts


def proposals(searcher: Searcher, first: tuple[Sample, Sample], second: tuple[Sample, Sample]) -> Iterator[Proposal]:
    """Events for one ordered pair of inputs, each with the bound that the second halves give it."""
    fit, chosen = (first[0], second[0]), (first[1], second[1])
    singles = _singles(searcher, chosen)
    yield from singles[:1]
    yield from _conjunctions(searcher, singles, chosen)
    yield from _scores(searcher, fit, chosen)
    if not searcher.repeated:
        yield from _whole_reports(searcher, fit, chosen)


def _singles(searcher: Searcher, samples: tuple[Sample, Sample]) -> list[Proposal]:
    """For the most telling features the best event of each: it lies above or below a cut. The best one first."""
    sizes = len(samples[0].means), len(samples[1].means)
    places = np.repeat(np.arange(len(searcher.cuts)), [len(cuts) for cuts in searcher.cuts])
    if not len(places):
        return []
    cuts = np.concatenate(searcher.cuts)
    above = [counts_above(sample.means, searcher.cuts) for sample in samples]
    below = [size - count for size, count in zip(sizes, above, strict=True)]
    bounds = np.concatenate([searcher.bounds(above, sizes), searcher.bounds(below, sizes)])
    best: dict[int, Proposal] = {}
    for index in np.argsort(-bounds, kind="stable"):
        at, up = index % len(cuts), index < len(cuts)
        if places[at] not in best:
            event = _single(searcher, int(places[at]), float(cuts[at]), up=bool(up))
            best[places[at]] = float(bounds[index]), event
        if len(best) == _TOGETHER:
            break
    return list(best.values())


def counts_above(means: Floats, cuts: list[NDArray[np.float64]]) -> NDArray[np.int64]:
    """How many users lie above each cut of each feature, in the order of features and cuts."""
    counts = [
        len(means) - np.searchsorted(np.sort(column), marks) for column, marks in zip(means.T, cuts, strict=True)
    ]
    return np.concatenate(counts).astype(np.int64)


def _single(searcher: Searcher, place: int, cut: float, *, up: bool) -> Event:
    feature = searcher.reader.features[place]
    sign = 1 if up else -1
    if searcher.repeated:
        what = "mean of" if feature.kind == "number" else "share of"
        words = f"{what} {feature.words} is {'above' if up else 'below'} {cut:.6g}"
    elif feature.kind == "number":
        words = f"{feature.words} is {'above' if up else 'below'} {cut:.6g}"
    else:
        words = f"{feature.words}{' = 1' if feature.kind == 'bit' else ''}" if up else _negation(feature)
    return Event(words, searcher.reader.only([place]), ((np.array([sign], dtype=np.float32), sign * cut),))


def _negation(feature: Feature) -> str:
    return f"{feature.words} = 0" if feature.kind == "bit" else f"not {feature.words}"


def _conjunctions(searcher: Searcher, singles: list[Proposal], samples: tuple[Sample, Sample]) -> Iterator[Proposal]:
    """The best of two or three of the best single events together."""
    reader = searcher.reader
    held = []
    for _, event in singles:
        assert isinstance(event.read, Reader)
        place = reader.features.index(event.read.features[0])
        held.append([event.holds(sample.means[:, [place]]) for sample in samples])
    groups = [group for size in (2, 3) for group in combinations(range(len(singles)), size)]
    if not groups:
        return
    counts = [
        [int(np.logical_and.reduce([held[member][side] for member in group]).sum()) for group in groups]
        for side in (0, 1)
    ]
    bounds = searcher.bounds(counts, (len(samples[0].means), len(samples[1].means)))
    best = int(bounds.argmax())
    yield float(bounds[best]), _together([singles[member][1] for member in groups[best]])


def _together(events: list[Event]) -> Event:
    """All of these single events at once."""
    readers = [event.read for event in events if isinstance(event.read, Reader)]
    reader = Reader(tuple(reader.features[0] for reader in readers))
    tests = []
    for place, event in enumerate(events):
        weights = np.zeros(len(events), dtype=np.float32)
        weights[place] = event.tests[0][0][0]
        tests.append((weights, event.tests[0][1]))
    return Event(" and ".join(event.words for event in events), reader, tuple(tests))


def _scores(searcher: Searcher, fit: tuple[Sample, Sample], samples: tuple[Sample, Sample]) -> Iterator[Proposal]:
    """Naive Bayes: the summed log-ratios of the features, cut where the bound is largest."""
    sizes = len(samples[0].means), len(samples[1].means)
    for scheme in SCHEMES:
        weights = _log_ratios(searcher.reader, fit, scheme)
        places = np.flatnonzero(weights)
        if len(places) < 2:
            continue
        weights = weights[places]
        shares = np.linspace(0, 1, _SCORE_CUTS + 1)
        cuts = cuts_between(np.concatenate([sample.means[:, places] @ weights for sample in fit]), shares)
        if not len(cuts):
            continue
        counts = [counts_above((sample.means[:, places] @ weights)[:, np.newaxis], [cuts]) for sample in samples]
        bounds = searcher.bounds(counts, sizes)
        best = int(bounds.argmax())
        words = f"the log-ratios of {len(places)} features of the report add up to at least {cuts[best]:.6g}"
        yield float(bounds[best]), Event(words, searcher.reader.only(places), ((weights, float(cuts[best])),))


def _log_ratios(reader: Reader, fit: tuple[Sample, Sample], scheme: str) -> Floats:
    """The weight of each feature: ln of the ratio of its smoothed means; of a bit, of its odds; else 0."""
    more, less = ((0.5 + sample.means.sum(axis=0)) / (1 + len(sample.means)) for sample in fit)
    spread = sum(sample.means.var(axis=0) / len(sample.means) for sample in fit)
    used = describing(reader.features, scheme) & (np.abs(more - less) > _CLEARLY * np.sqrt(spread))
    bits = np.array([feature.kind == "bit" for feature in reader.features], dtype=np.bool_)
    weights = np.zeros(len(reader), dtype=np.float32)
    weights[used] = np.log(more[used] / less[used])
    odds = used & bits
    weights[odds] -= np.log((1 - more[odds]) / (1 - less[odds]))
    return weights


def _whole_reports(
    searcher: Searcher, fit: tuple[Sample, Sample], samples: tuple[Sample, Sample]
) -> Iterator[Proposal]:
    """The report is one of the most telling among those that occur most, as many of these as are best."""
    found, places = np.unique(np.concatenate([sample.keys for sample in fit]), return_inverse=True)
    middle = len(fit[0].keys)
    counts = [np.bincount(part, minlength=len(found)) for part in (places[:middle], places[middle:])]
    common = np.argsort(-np.maximum(*counts), kind="stable")[:_MOST_WHOLE]
    ratios = (counts[0][common] + 0.5) / (counts[1][common] + 0.5)
    ranked = found[common[np.argsort(-ratios, kind="stable")]]
    hits = [np.cumsum(_occurrences(sample.keys, ranked)) for sample in samples]
    bounds = searcher.bounds(hits, (len(samples[0].keys), len(samples[1].keys)))
    best = int(bounds.argmax())
    words = f"the report is one of {best + 1} that are likelier of the first input"
    yield float(bounds[best]), one_of(ranked[: best + 1], words)


def _occurrences(keys: NDArray[np.uint64], ranked: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How often each of `ranked` occurs among `keys`."""
    ordered = np.sort(keys)
    return np.searchsorted(ordered, ranked, side="right") - np.searchsorted(ordered, ranked, side="left")
