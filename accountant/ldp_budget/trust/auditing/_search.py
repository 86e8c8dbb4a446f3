"""The search for a pair of inputs and an event that tell much, where nothing is declared or believed.

A few reports of every candidate input say which pairs are looked at closely. Of these inputs more are drawn and
split: one part proposes events, the other says which of them gives the largest lower bound. What is chosen here is
certified by other reports.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ._bounds import likely_bounds
from ._declared import Choice
from ._events import anything, keys_of
from ._features import Reader, features_of
from ._inputs import Pair, candidate_pairs
from ._proposals import Sample, Searcher, counts_above, cuts_between, proposals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._sampling import Sampler

_SHARE = 0.3
"""Of the users, how many are spent on searching."""

_PILOT = 512
_LEAST_PILOT = 32
_PILOT_CONFIDENCE = 0.9
_FIRST_PAIRS = 2
"""So many pairs are looked at closely whatever the pilot says of them."""
_MOST_PAIRS = 12
_MOST_FEATURES = 256
_MOST_CELLS = 1 << 21
"""Features of all the users of an input: 8 MB."""

_ENOUGH = 400
"""Users of an input without whom another pair is not worth its share of the search."""

_CUTS = 16


def searched_choice(sampler: Sampler, users: int, confidence: float, delta: float) -> Choice:
    """The best pair and event found with a part of `users` users. Raises `NotSupported` where no inputs are known."""
    budget = int(_SHARE * users)
    share, pairs = budget // 4, candidate_pairs(sampler.mechanism, sampler.stream)
    # One report of a memoised value does not say which pair many of them tell apart: there the first pairs it is.
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
    """The first of the pairs, as many as leave each of their inputs enough users; with few users the first two."""
    fitting = [count for count in range(2, len(pairs) + 1) if len(_values(pairs[:count])) * enough <= budget]
    return pairs[: max(fitting, default=2)]


def _values(pairs: list[Pair]) -> list[Any]:
    return list(dict.fromkeys(value for pair in pairs for value in pair))


def _pilot(sampler: Sampler, values: list[Any], users: int) -> dict[Any, Any]:
    """The first report of some users of each input."""
    return {value: np.concatenate([next(turns) for turns in sampler.users(value, users)]) for value in values}


def _useful_reader(drawn: list[Any]) -> Reader:
    """The features of a first sample; of very many those whose means lie furthest apart among the inputs."""
    reader = Reader(tuple(features_of(np.concatenate(drawn))))
    if len(reader) <= _MOST_FEATURES:
        return reader
    means = [np.mean(reader(reports), axis=0) for reports in drawn]
    order = np.argsort(np.min(means, axis=0) - np.max(means, axis=0), kind="stable")
    return reader.only(np.sort(order[:_MOST_FEATURES]))


def _promising(pairs: list[Pair], drawn: dict[Any, Any], reader: Reader, delta: float) -> list[Pair]:
    """The first pairs, and of the others those that a single feature of the pilot tells apart best."""
    if len(pairs) <= _MOST_PAIRS or not len(reader):
        return pairs[:_MOST_PAIRS]
    read = {value: reader(reports) for value, reports in drawn.items()}
    cuts = _all_cuts([Sample(means, np.zeros(0, dtype=np.uint64)) for means in read.values()])
    above = {value: counts_above(means, cuts) for value, means in read.items()}

    def told_apart(pair: Pair) -> float:
        totals = len(read[pair[0]]), len(read[pair[1]])
        sides = [(above[pair[0]], above[pair[1]]), (totals[0] - above[pair[0]], totals[1] - above[pair[1]])]
        bounds = [likely_bounds(*hits, totals, _PILOT_CONFIDENCE, delta).max(initial=-np.inf) for hits in sides]
        return float(max(bounds))

    others = sorted(pairs[_FIRST_PAIRS:], key=told_apart, reverse=True)
    return [*pairs[:_FIRST_PAIRS], *others[: _MOST_PAIRS - _FIRST_PAIRS]]


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
