"""The choice of a pair of inputs and an event for an audit, from the declared channel or by a search.

The probabilities of a declared channel suggest where to look; they are not trusted. The search needs no declaration.
If only the domain is known, it takes candidate pairs from it.

A pilot draws a few reports of every candidate input, and selects the pairs to examine closely. For their inputs more
reports are drawn and split. One half proposes events, the other shows which event gives the largest lower bound. The
choice made here is certified by other reports.

Proposed events are: a feature of the report is above or below some cut. Several of these hold together. A whole
report is one of the most informative. The sum of the log-ratios of all features is large (naive Bayes). A feature is
a bit, a value or a range; with several reports of a user, its mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, islice, permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import NotSupported
from ldp_budget.sampling import integers
from ldp_budget.sdk.domain import Categories

from .events import (
    SCHEMES,
    Event,
    Feature,
    Reader,
    anything,
    describing,
    features_of,
    keys_of,
    likely_bounds,
    membership,
    one_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from ldp_budget.sampling import Stream
    from ldp_budget.sdk.channels import Comparison
    from ldp_budget.sdk.mechanism import Mechanism

    from .events import Sampler

    Floats = NDArray[np.float64]
    Floats32 = NDArray[np.float32]
    Counts = NDArray[np.int64]
    Proposal = tuple[float, Event]

Pair = tuple[Any, Any]

# -- candidate pairs -------------------------------------------------------------------------------------------------


_SMALL = 64
"""The largest domain of which all answers are tried; of a larger one a few are drawn at random."""
_DRAWN = 16
_UNDECLARED = 64
"""The number of answers that are tried where their number is not declared."""
_MOST_CRITICAL = 12
_INNER_POINTS = 8
_PRECISION = 1 << 53


def candidate_pairs(mechanism: Mechanism, stream: Stream) -> list[Pair]:
    """Return ordered pairs of different inputs, the most promising first. Raises `NotSupported` if none are known."""
    domain = mechanism.domain
    pairs: list[Pair] = []
    if isinstance(domain, Categories):
        pairs = _of_answers(domain.size if domain.listed else _UNDECLARED, stream)
    elif domain is not None:
        pairs = _of_numbers(*domain.ends, stream)
    critical = list(islice(permutations(_critical(mechanism, needed=not pairs), 2), _MOST_CRITICAL))
    return list(dict.fromkeys(pair for pair in (*pairs[:4], *critical, *pairs[4:]) if pair[0] != pair[1]))


def _critical(mechanism: Mechanism, *, needed: bool) -> list[Any]:
    try:
        return list(mechanism.critical_inputs())
    except NotSupported:
        if needed:
            raise
        return []


def _of_answers(count: int, stream: Stream) -> list[Pair]:
    """Return the first answer against others, in both orders.

    If a single answer is treated differently, one of its pairs shows it.
    """
    last = count - 1
    others = range(1, count) if count <= _SMALL else [int(answer) for answer in integers(stream, count, _DRAWN)]
    return [(0, 1), (1, 0), (0, last), (last, 0), *(pair for other in others for pair in ((0, other), (other, 0)))]


def _of_numbers(lower: float, upper: float, stream: Stream) -> list[Pair]:
    """Return the ends in both orders, and an end against inner points.

    Near an end, reports of an inner point may reveal more.
    """
    inner = [lower + (upper - lower) * share for share in (0.5, 0.25, 0.75)]
    drawn = [int(share) / _PRECISION for share in integers(stream, _PRECISION, _INNER_POINTS)]
    others = [lower + (upper - lower) * share for share in drawn]
    return [
        *((lower, upper), (upper, lower), *((lower, point) for point in inner), (inner[0], lower)),
        *(pair for other in others for pair in ((lower, other), (other, lower))),
    ]


# -- the declared channel --------------------------------------------------------------------------------------------


_MOST_PAIRS = 1024
_MOST_LISTED = 1 << 16
_MOST_LEVELS = 512


@dataclass(frozen=True, eq=False)
class Choice:
    """The choice of an audit: the ordered pair of inputs, the event to count, and the expected bound."""

    pair: tuple[Any, Any]
    event: Event
    bound: float


def declared_choice(sampler: Sampler, users: int, confidence: float, delta: float) -> Choice | None:
    """Return the best choice that the mechanism's own description suggests, for `users` users of each input.

    Return None if the mechanism describes nothing, or has too many outcomes to list.
    """
    try:
        return _best(sampler, users, confidence, delta)
    except NotSupported:
        return None


def _best(sampler: Sampler, users: int, confidence: float, delta: float) -> Choice | None:
    best: tuple[float, tuple[Any, Any], NDArray[np.bool_], float] | None = None
    for pair, comparison in _worst_pairs(sampler):
        expected, chosen, ratio = _level_set(comparison, users, confidence, delta)
        if best is None or expected > best[0]:
            best = expected, pair, chosen, ratio
    if best is None:
        return None
    expected, pair, chosen, ratio = best
    event = _event(sampler.mechanism, pair, chosen, ratio)
    # A mechanism may describe its probabilities but not define `outcomes`.
    sampler.hits(pair[0], 1, event)
    return Choice(pair, event, expected)


def _worst_pairs(sampler: Sampler) -> Iterator[tuple[tuple[Any, Any], Comparison]]:
    """Yield ordered pairs of inputs, those with the largest loss first, as long as their outcomes can be listed.

    Besides the critical inputs, these are the candidates of a search: the worst pair may differ only in very rare
    reports.
    """
    critical = islice(permutations(sampler.mechanism.critical_inputs(), 2), _MOST_PAIRS)
    pairs = dict.fromkeys((*critical, *candidate_pairs(sampler.mechanism, sampler.stream)))
    different: dict[Comparison, tuple[Any, Any]] = {}
    for pair in pairs:
        different.setdefault(sampler.mechanism.compare(*pair), pair)
    compared = [(pair, comparison) for comparison, pair in different.items() if comparison.size <= _MOST_LISTED]
    listed = 0
    for pair, comparison in sorted(compared, key=lambda item: _largest_ratio(item[1]), reverse=True):
        listed += comparison.size
        if listed > _MOST_LISTED:
            return
        yield pair, comparison


def _largest_ratio(comparison: Comparison) -> float:
    ratio = comparison.largest_ratio()
    try:
        return float("inf") if ratio is None else float(ratio)
    except OverflowError:
        return float("inf")


def _level_set(
    comparison: Comparison, users: int, confidence: float, delta: float
) -> tuple[float, NDArray[np.bool_], float]:
    """Return the event {P/Q ≥ c} with the largest expected bound: that bound, its outcomes, and c.

    By the Neyman-Pearson lemma, other events do not give more.
    """
    masses = np.array([(float(p), float(q)) for p, q in comparison.masses()])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.nan_to_num(masses[:, 0] / masses[:, 1], nan=0.0, posinf=np.inf)
    order = np.argsort(-ratios, kind="stable")
    reached = users * masses[order].cumsum(axis=0).clip(max=1.0)
    levels = _levels(ratios[order])
    bounds = likely_bounds(reached[levels, 0], reached[levels, 1], (users, users), confidence, delta)
    best = int(bounds.argmax())
    chosen = np.zeros(len(masses), dtype=np.bool_)
    chosen[order[: levels[best] + 1]] = True
    return float(bounds[best]), chosen, float(ratios[order][levels[best]])


def _levels(falling: Floats) -> NDArray[np.intp]:
    """Return the end of each level of equal ratios; of many levels, a selection."""
    with np.errstate(invalid="ignore"):
        apart = ~np.isclose(falling[1:], falling[:-1], rtol=1e-9, atol=0.0)
    ends = np.append(np.flatnonzero(apart), len(falling) - 1)
    return ends if len(ends) <= _MOST_LEVELS else ends[np.linspace(0, len(ends) - 1, _MOST_LEVELS).astype(int)]


def _event(mechanism: Mechanism, pair: tuple[Any, Any], chosen: NDArray[np.bool_], ratio: float) -> Event:
    def belongs(reports: Any) -> NDArray[np.bool_]:
        codes = np.asarray(mechanism.outcomes(reports, *pair))
        known = (codes >= 0) & (codes < len(chosen))
        return known & chosen[np.where(known, codes, 0)]

    words = f"a report at least {ratio:.6g} times likelier, as declared, of {pair[0]} than of {pair[1]}"
    if ratio == np.inf:
        words = f"a report that {pair[0]} can make and {pair[1]} cannot, as declared"
    return membership(words, belongs)


# -- proposed events -------------------------------------------------------------------------------------------------


_SCORE_CUTS = 256
_TOGETHER = 6
_MOST_WHOLE = 256
_CLEARLY = 2.5
"""The number of standard errors by which a feature's means must differ for it to count in the score."""


@dataclass(frozen=True, eq=False)
class Sample:
    """The features of some users of one input, (n, a), and where each gave one report, the reports' keys (n,)."""

    means: Floats32
    keys: NDArray[np.uint64]

    def halves(self) -> tuple[Sample, Sample]:
        """Return one half to propose events, and one to choose among them."""
        middle = len(self.means) // 2
        return Sample(self.means[:middle], self.keys[:middle]), Sample(self.means[middle:], self.keys[middle:])


@dataclass(frozen=True)
class Searcher:
    """The settings that all pairs share: the reader of the features, and a list of cuts for each feature."""

    reader: Reader
    cuts: list[NDArray[np.float64]]
    repeated: bool
    confidence: float
    delta: float

    def bounds(self, hits: Sequence[Any], totals: tuple[int, int]) -> NDArray[np.float64]:
        """Return the bound for each pair of counts, hits of the first and of the second input."""
        bounds: NDArray[np.float64] = likely_bounds(hits[0], hits[1], totals, self.confidence, self.delta)
        return bounds


def cuts_between(values: NDArray[Any], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return cuts at these quantiles, each midway between two observed values, so that rounding does not matter."""
    distinct = np.unique(values).astype(np.float64)
    if len(distinct) > len(shares):
        marks = np.quantile(values, shares).astype(np.float64)
        places = np.unique(np.searchsorted(distinct, marks).clip(1, len(distinct) - 1))
    else:
        places = np.arange(1, len(distinct))
    cuts: NDArray[np.float64] = (distinct[places - 1] + distinct[places]) / 2
    return cuts


def proposals(searcher: Searcher, first: tuple[Sample, Sample], second: tuple[Sample, Sample]) -> Iterator[Proposal]:
    """Yield events for one ordered pair of inputs, each with the bound that the second halves give it."""
    fit, chosen = (first[0], second[0]), (first[1], second[1])
    singles = _singles(searcher, chosen)
    yield from singles[:1]
    yield from _conjunctions(searcher, singles, chosen)
    yield from _scores(searcher, fit, chosen)
    if not searcher.repeated:
        yield from _whole_reports(searcher, fit, chosen)


def _singles(searcher: Searcher, samples: tuple[Sample, Sample]) -> list[Proposal]:
    """Return the best event of each of the most informative features, the best first.

    Such an event is that the feature is above or below a cut.
    """
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


def counts_above(means: Floats32, cuts: list[NDArray[np.float64]]) -> NDArray[np.int64]:
    """Return the number of users above each cut of each feature, in the order of features and cuts."""
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
    """Yield the best conjunction of two or three of the best single events."""
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
    """Return the conjunction of these single events."""
    readers = [event.read for event in events if isinstance(event.read, Reader)]
    reader = Reader(tuple(reader.features[0] for reader in readers))
    tests = []
    for place, event in enumerate(events):
        weights = np.zeros(len(events), dtype=np.float32)
        weights[place] = event.tests[0][0][0]
        tests.append((weights, event.tests[0][1]))
    return Event(" and ".join(event.words for event in events), reader, tuple(tests))


def _scores(searcher: Searcher, fit: tuple[Sample, Sample], samples: tuple[Sample, Sample]) -> Iterator[Proposal]:
    """Yield naive Bayes events: the summed log-ratios of the features, cut where the bound is largest."""
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


def _log_ratios(reader: Reader, fit: tuple[Sample, Sample], scheme: str) -> Floats32:
    """Return the weight of each feature: ln of the ratio of its smoothed means; for a bit, of its odds; else 0."""
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
    """Yield the event that the report is one of the most informative frequent ones, with the best number of them."""
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
    """Return the number of occurrences of each of `ranked` among `keys`."""
    ordered = np.sort(keys)
    return np.searchsorted(ordered, ranked, side="right") - np.searchsorted(ordered, ranked, side="left")


# -- the search ------------------------------------------------------------------------------------------------------


_SHARE = 0.3
"""The share of the users that the search spends."""

_PILOT = 512
_LEAST_PILOT = 32
_PILOT_CONFIDENCE = 0.9
_FIRST_PAIRS = 2
"""The number of first pairs that are always examined closely, without regard to the pilot."""
_SEARCH_MOST_PAIRS = 12
_MOST_FEATURES = 256
_MOST_CELLS = 1 << 21
"""The most features of all users of an input: 8 MB."""

_ENOUGH = 400
"""The fewest users of an input for which another pair is worth its share of the search."""

_CUTS = 16


def searched_choice(sampler: Sampler, users: int, confidence: float, delta: float) -> Choice:
    """Return the best pair and event, found with a part of `users` users.

    Raises `NotSupported` if no inputs are known.
    """
    budget = int(_SHARE * users)
    share, pairs = budget // 4, candidate_pairs(sampler.mechanism, sampler.stream)
    # One report of a memoised value does not show which pairs many reports distinguish: take the first pairs there.
    pairs = _affordable(pairs, share, _LEAST_PILOT) if sampler.reports == 1 else _affordable(pairs, budget, _ENOUGH)
    values = _values(pairs)
    drawn = _pilot(sampler, values, min(_PILOT, max(1, share // len(values))))
    reader = _useful_reader(list(drawn.values()))
    budget -= sum(len(reports) for reports in drawn.values())
    pairs = _affordable(_promising(pairs, drawn, reader, delta), budget, _ENOUGH)
    values = _values(pairs)
    each = max(2, min(budget // len(values), _MOST_CELLS // max(1, len(reader))))
    samples = {value: _sample(sampler, value, each, reader).halves() for value in values}
    cuts = _all_cuts([fit for fit, _ in samples.values()])
    searcher = Searcher(reader, cuts, sampler.reports > 1, confidence, delta)
    best = Choice(pairs[0], anything(), -math.inf)
    for first, second in pairs:
        for bound, event in proposals(searcher, samples[first], samples[second]):
            if bound > best.bound:
                best = Choice((first, second), event, bound)
    return best


def _affordable(pairs: list[Pair], budget: int, enough: int) -> list[Pair]:
    """Return the first pairs, as many as leave each input enough users; with few users the first two."""
    fitting = [count for count in range(2, len(pairs) + 1) if len(_values(pairs[:count])) * enough <= budget]
    return pairs[: max(fitting, default=2)]


def _values(pairs: list[Pair]) -> list[Any]:
    return list(dict.fromkeys(value for pair in pairs for value in pair))


def _pilot(sampler: Sampler, values: list[Any], users: int) -> dict[Any, Any]:
    """Return the first report of some users of each input."""
    return {value: np.concatenate([next(turns) for turns in sampler.users(value, users)]) for value in values}


def _useful_reader(drawn: list[Any]) -> Reader:
    """Return the features of a first sample; of very many, those whose means differ most among the inputs."""
    reader = Reader(tuple(features_of(np.concatenate(drawn))))
    if len(reader) <= _MOST_FEATURES:
        return reader
    means = [np.mean(reader(reports), axis=0) for reports in drawn]
    order = np.argsort(np.min(means, axis=0) - np.max(means, axis=0), kind="stable")
    return reader.only(np.sort(order[:_MOST_FEATURES]))


def _promising(pairs: list[Pair], drawn: dict[Any, Any], reader: Reader, delta: float) -> list[Pair]:
    """Return the first pairs, and of the others those that a single feature of the pilot distinguishes best."""
    if len(pairs) <= _SEARCH_MOST_PAIRS or not len(reader):
        return pairs[:_SEARCH_MOST_PAIRS]
    read = {value: reader(reports) for value, reports in drawn.items()}
    cuts = _all_cuts([Sample(means, np.zeros(0, dtype=np.uint64)) for means in read.values()])
    above = {value: counts_above(means, cuts) for value, means in read.items()}

    def told_apart(pair: Pair) -> float:
        totals = len(read[pair[0]]), len(read[pair[1]])
        sides = [(above[pair[0]], above[pair[1]]), (totals[0] - above[pair[0]], totals[1] - above[pair[1]])]
        bounds = [likely_bounds(*hits, totals, _PILOT_CONFIDENCE, delta).max(initial=-np.inf) for hits in sides]
        return float(max(bounds))

    others = sorted(pairs[_FIRST_PAIRS:], key=told_apart, reverse=True)
    return [*pairs[:_FIRST_PAIRS], *others[: _SEARCH_MOST_PAIRS - _FIRST_PAIRS]]


def _sample(sampler: Sampler, value: Any, users: int, reader: Reader) -> Sample:
    means, keys = [], []
    for turns in sampler.users(value, users):
        if sampler.reports > 1:
            means.append(sampler.mean(turns, reader))
            continue
        reports = next(turns)
        means.append(reader(reports))
        keys.append(keys_of(reports))
    return Sample(np.concatenate(means), np.concatenate(keys) if keys else np.zeros(0, dtype=np.uint64))


def _all_cuts(samples: list[Sample]) -> list[NDArray[np.float64]]:
    pooled = np.concatenate([sample.means for sample in samples])
    return [cuts_between(pooled[:, place], np.linspace(0, 1, _CUTS + 1)) for place in range(pooled.shape[1])]
