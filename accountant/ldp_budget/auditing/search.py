"""The search for a pair of inputs and an event that tell much, where nothing is declared or believed.

Reports of each candidate input are drawn and split: one part proposes events, the other says which of them gives the
largest lower bound. What is chosen here is certified by other reports.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .declared import Choice
from .events import anything, keys_of
from .features import Reader, features_of
from .inputs import Pair, candidate_pairs
from .proposals import Sample, Searcher, cuts_between, proposals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .sampling import Sampler

_SHARE = 0.3
"""Of the users, how many are spent on searching."""

_PILOT = 512
_MOST_FEATURES = 256
_MOST_CELLS = 1 << 21
"""Features of all the users of an input: 8 MB."""

_ENOUGH = 400
"""Users of an input without whom another pair is not worth its share of the search."""

_CUTS = 16


def searched_choice(sampler: Sampler, users: int, confidence: float, delta: float) -> Choice:
    """The best pair and event found with a part of `users` users. Raises `NotSupported` where no inputs are known."""
    budget = int(_SHARE * users)
    pairs = _affordable(candidate_pairs(sampler.mechanism, sampler.stream), budget)
    values = _values(pairs)
    each = max(2, budget // len(values))
    pilot = min(_PILOT, each // 4 + 1)
    reader = _useful_reader(sampler, values, pilot)
    each = max(2, min(each - pilot, _MOST_CELLS // max(1, len(reader))))
    samples = {value: _sample(sampler, value, each, reader).halves() for value in values}
    cuts = _all_cuts([fit for fit, _ in samples.values()])
    searcher = Searcher(reader, cuts, sampler.reports > 1, confidence, delta)
    best = Choice(pairs[0], anything(), -math.inf)
    for first, second in pairs:
        for bound, event in proposals(searcher, samples[first], samples[second]):
            if bound > best.bound:
                best = Choice((first, second), event, bound)
    return best


def _affordable(pairs: list[Pair], budget: int) -> list[Pair]:
    """The first of the pairs, as many as leave each of their inputs enough users; with few users the first two."""
    fitting = [count for count in range(2, len(pairs) + 1) if len(_values(pairs[:count])) * _ENOUGH <= budget]
    return pairs[: max(fitting, default=2)]


def _values(pairs: list[Pair]) -> list[Any]:
    return list(dict.fromkeys(value for pair in pairs for value in pair))


def _useful_reader(sampler: Sampler, values: list[Any], users: int) -> Reader:
    """The features of a first sample; of very many those whose means lie furthest apart among the inputs."""
    import numpy as np

    drawn = [[next(turns) for turns in sampler.users(value, users)] for value in values]
    pooled = np.concatenate([reports for blocks in drawn for reports in blocks])
    reader = Reader(tuple(features_of(pooled)))
    if len(reader) <= _MOST_FEATURES:
        return reader
    means = [np.mean(np.concatenate([reader(part) for part in blocks]), axis=0) for blocks in drawn]
    order = np.argsort(np.min(means, axis=0) - np.max(means, axis=0), kind="stable")
    return reader.only(np.sort(order[:_MOST_FEATURES]))


def _sample(sampler: Sampler, value: Any, users: int, reader: Reader) -> Sample:
    import numpy as np

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
    import numpy as np

    pooled = np.concatenate([sample.means for sample in samples])
    return [cuts_between(pooled[:, place], np.linspace(0, 1, _CUTS + 1)) for place in range(pooled.shape[1])]
