"""Checks of who is asked with whom, and how often: every user's noise is their own, and drawn for one report."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import NotSupported
from ...guarantees import Unbounded
from ...randomness import integers, open_stream
from ._chances import twice
from ._drawing import draw, expect_to_fit, inputs_of, others_of, secrets_of
from ._likeness import Evidence, compare_counts, compare_samples, equal_p, keys_of, relate
from ._outcome import NO_TWO_INPUTS, NOTHING_PROMISED, NotChecked
from ._reading import codes_of, features, low_bytes, on_a_grid, some_columns, whole

if TYPE_CHECKING:
    from ...authoring.base import Mechanism

_TOGETHER = 6_000
_ALONE = 400
_SIZES = ((2, 100), (3, 80), (16, 60))
"""Batches of so many users, and how many of them are drawn."""
_BINS = 16


def users_are_drawn_alone_as_together(mechanism: Mechanism) -> None:
    """A device that asks for one report gets it by the same law as a user of a batch of thousands.

    So does the first of a few users, the last, and any other, whoever the others are. Looked at: outcomes, whole
    reports where they are few, bits and pairs of bits, and of numbers how they are spread.
    """
    if isinstance(mechanism.guarantee, Unbounded):
        raise NotChecked(NOTHING_PROMISED, applies=False)
    inputs = inputs_of(mechanism)
    values = list(dict.fromkeys([inputs[0], inputs[-1], *others_of(mechanism, 1)]))
    if len(values) < 2:
        raise NotChecked(NO_TWO_INPUTS)
    expect_to_fit(mechanism, np.array(values[:1]), _TOGETHER)
    try:
        for value in values:
            other = next(each for each in values if each != value)
            twice(lambda seed, value=value, other=other: _company(mechanism, value, other, seed))  # type: ignore[misc]
    except NotSupported as error:
        raise NotChecked(str(error)) from None


def _company(mechanism: Mechanism, value: Any, other: Any, seed: int) -> str:
    together = draw(mechanism, np.full(_TOGETHER, value), seed)
    evidence = Evidence()
    for words, few in _few(mechanism, value, other, seed).items():
        _compare(evidence, mechanism, (value, other), together, few, f"reports of {value} {words}, and in a batch,")
    return evidence.verdict()


def _few(mechanism: Mechanism, value: Any, other: Any, seed: int) -> dict[str, Any]:
    """Reports of `value`, of users alone, of the first and the last of a few, and of any of a few."""
    stream = open_stream(seed + 1)
    alone = [_raw(mechanism, [value], stream) for _ in range(_ALONE)]
    found: dict[str, list[Any]] = {"of the first of a few": [], "of the last of a few": [], "among a few": []}
    for size, batches in _SIZES:
        coins = integers(stream, 2, size * batches).reshape(batches, size) == 1
        for row in coins:
            reports = _raw(mechanism, [value if own else other for own in row], stream)
            found["among a few"].append(reports[row])
            if row[0]:
                found["of the first of a few"].append(reports[:1])
            if row[-1]:
                found["of the last of a few"].append(reports[-1:])
    found = {"of a user alone": alone, **found}
    return {words: np.concatenate(reports) for words, reports in found.items() if reports}


def _raw(mechanism: Mechanism, values: Any, stream: Any) -> Any:
    secrets = [bytes(stream.read(32)) for _ in values]
    return np.asarray(mechanism.randomize(np.array(values), rng=stream, secrets=secrets))


def _compare(evidence: Evidence, mechanism: Mechanism, pair: Any, together: Any, few: Any, words: str) -> None:
    codes = [codes_of(mechanism, reports, pair) for reports in (together, few)]
    if codes[0] is not None and codes[1] is not None:
        most = int(max(each.max() for each in codes if each is not None)) + 1
        first, second = (np.bincount(each, minlength=most) for each in codes if each is not None)
        compare_counts(evidence, first, second, f"outcomes of {words}")
    if on_a_grid(mechanism, together):
        cuts = np.unique(np.quantile(together, np.linspace(0, 1, _BINS + 1)[1:-1]))
        first, second = (
            np.bincount(np.searchsorted(cuts, each), minlength=len(cuts) + 1) for each in (together, few)
        )
        compare_counts(evidence, first, second, words)
        one, other = low_bytes(mechanism, together, few)
        compare_samples(evidence, one, other, f"the last places of {words}", 2)
        return
    one, other = whole(mechanism, together), whole(mechanism, few)
    columns = some_columns(mechanism, one)
    compare_samples(evidence, one[:, columns], other[:, columns], words, 2)


# -- one user's noise is nobody else's, and no earlier one ---------------------------------------------------

_CALLS = 36
_USERS = 400
_BATCH = 4_096
_LAGS = (1, 2, 3, 4, 5, 7, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)


def noise_is_used_once(mechanism: Mechanism) -> None:
    """Reports of different users, and of different calls, are independent: neighbours in a batch, and 36 calls.

    The calls are made with the client's own randomness and on one stream; half of them for other values than the
    call before. Users have secrets of their own in every call.
    """
    if isinstance(mechanism.guarantee, Unbounded):
        raise NotChecked(NOTHING_PROMISED, applies=False)
    inputs = inputs_of(mechanism)
    pair = inputs[0], inputs[-1]
    if pair[0] == pair[1]:
        raise NotChecked(NO_TWO_INPUTS)
    expect_to_fit(mechanism, np.array(pair[:1]), _CALLS * _USERS)
    try:
        twice(lambda seed: _again(mechanism, pair, seed))
    except NotSupported as error:
        raise NotChecked(str(error)) from None


def _again(mechanism: Mechanism, pair: tuple[Any, Any], seed: int) -> str:
    evidence = Evidence()
    for mixed in (False, True):
        users = np.resize(np.array(pair if mixed else pair[:1]), _BATCH)
        reports = draw(mechanism, users, seed)
        _neighbours(evidence, mechanism, reports, pair, mixed)
    halves = [pair[0]] * (_CALLS // 2) + [pair[1]] * (_CALLS - _CALLS // 2)
    turns = [pair[call % 2] for call in range(_CALLS)]
    stream = open_stream(seed + 2)
    _calls(evidence, mechanism, [(value, None) for value in halves], pair, "with the client's own randomness")
    _calls(evidence, mechanism, [(value, stream) for value in turns], pair, "on one stream")
    return evidence.verdict()


def _neighbours(evidence: Evidence, mechanism: Mechanism, reports: Any, pair: Any, mixed: bool) -> None:
    read = features(mechanism, reports, pair, reports)
    keys = keys_of(whole(mechanism, reports))
    chance = _chance(keys)
    for lag in _LAGS:
        words = f"reports of users {lag} places apart in a batch"
        own, theirs = _apart(read, lag, mixed)
        relate(evidence, own, theirs, words)
        if not mixed:
            hits = int((keys[lag:] == keys[:-lag]).sum())
            evidence.add(equal_p(hits, len(keys) - lag, chance), f"{hits} of {len(keys) - lag} {words} are the same")


def _apart(read: Any, lag: int, mixed: bool) -> tuple[Any, Any]:
    """Features of users and of those so many places on; where values take turns, of those with the first value."""
    step = 2 if mixed else 1
    return read[:-lag:step], read[lag::step]


def _calls(evidence: Evidence, mechanism: Mechanism, calls: Any, pair: Any, how: str) -> None:
    drawn = []
    for value, stream in calls:
        secrets = secrets_of(_USERS, None) if stream is None else [bytes(stream.read(32)) for _ in range(_USERS)]
        drawn.append(np.asarray(mechanism.randomize(np.full(_USERS, value), rng=stream, secrets=secrets)))
    like = np.concatenate(drawn)
    read = [features(mechanism, reports, pair, like) for reports in drawn]
    keys = [keys_of(whole(mechanism, reports)) for reports in drawn]
    alike = {
        value: _chance(np.concatenate([each for each, call in zip(keys, calls, strict=True) if call[0] == value]))
        for value in pair
    }
    for one, other in combinations(range(len(calls)), 2):
        words = f"reports of call {one + 1} and call {other + 1} {how}"
        relate(evidence, read[one], read[other], words)
        if calls[one][0] == calls[other][0]:
            hits = int((keys[one] == keys[other]).sum())
            p = equal_p(hits, _USERS, alike[calls[one][0]])
            evidence.add(p, f"{hits} of {_USERS} {words} are the same")


def _chance(keys: Any) -> float:
    """How likely two of these are the same, a little more than what is seen: what is seen may be less than it is."""
    counts = np.unique(keys, return_counts=True)[1]
    total = len(keys)
    pairs = float((counts.astype(float) * (counts - 1)).sum())
    chance: float = (pairs + 10) / (total * (total - 1.0))
    more: float = 4 * math.sqrt(chance * max(0.0, 1 - chance) / total)
    return min(1.0, chance + more)
