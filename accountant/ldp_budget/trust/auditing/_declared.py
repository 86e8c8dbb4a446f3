"""Pair and event from the channel that a mechanism declares: its masses say where to look, and nothing more."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import NotSupported
from ._bounds import likely_bounds
from ._events import Event, membership
from ._inputs import candidate_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ...authoring.base import Mechanism
    from ...authoring.channels import Comparison
    from ._sampling import Sampler

    Floats = NDArray[np.float64]

_MOST_PAIRS = 1024
_MOST_LISTED = 1 << 16
_MOST_LEVELS = 512


@dataclass(frozen=True, eq=False)
class Choice:
    """What an audit is to count: the ordered pair of inputs, the event, and the bound that is expected of it."""

    pair: tuple[Any, Any]
    event: Event
    bound: float


def declared_choice(sampler: Sampler, users: int, confidence: float, delta: float) -> Choice | None:
    """The best choice that the mechanism's own description leads to, for `users` users of each input.

    None where it describes nothing, or more than can be listed.
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
    # A mechanism may describe its odds and not say which outcome a report is.
    sampler.hits(pair[0], 1, event)
    return Choice(pair, event, expected)


def _worst_pairs(sampler: Sampler) -> Iterator[tuple[tuple[Any, Any], Comparison]]:
    """Ordered pairs of inputs, those with the largest loss first, as long as they can be listed.

    Besides the critical inputs they are those that a search would try: the worst pair may be told apart only by
    reports that hardly ever occur.
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
    """Of the events {P/Q ≥ c} the one whose bound is expected to be largest: that bound, its outcomes, and c.

    By the lemma of Neyman and Pearson nothing is gained by other events.
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
    """Where each level of equal ratios ends; of many levels, some."""
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
