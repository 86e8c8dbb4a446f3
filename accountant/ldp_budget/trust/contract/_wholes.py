"""Does a report say more than its description? Looked for in whole reports, bit by bit and bits together.

`compare` claims to list *all* that a report can say of one input against another. Then reports of the two that have
the same outcome are drawn alike: whatever else stands in them says nothing. So reports of one outcome are held
against each other, those of one input against those of the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import NotSupported
from ...guarantees import Memoised, Unbounded
from ._chances import twice
from ._drawing import draw, inputs_of, others_of
from ._likeness import Evidence, compare_samples, keys_of
from ._outcome import NO_TWO_INPUTS, NOTHING_PROMISED, NotChecked
from ._reading import codes_of, has_density, low_bytes, on_a_grid, some_columns, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...authoring.base import Mechanism

_USERS = 8_000
_ENOUGH = 400
_OTHERS = 2
_TRIPLES = 2
_FEW = 4_000


def reports_say_no_more_than_described(mechanism: Mechanism) -> None:
    """Reports with one outcome of `compare` are alike whichever input they are of: whole, and any three bits of them.

    Of a density the last bits of the steps are looked at, too, which no density decides. At most 32 bits of a long
    report are taken, in threes for two pairs of inputs, and 8,000 reports of each input.
    """
    if isinstance(mechanism.guarantee, Unbounded):
        raise NotChecked(NOTHING_PROMISED, applies=False)
    pairs = _pairs(mechanism)
    one = draw(mechanism, np.full(_USERS, pairs[0][0]), 11)
    if codes_of(mechanism, one, pairs[0]) is None and not on_a_grid(mechanism, one):
        raise NotChecked(f"{mechanism.name} does not describe what its reports say; define `compare` and `outcomes`")
    try:
        columns = some_columns(mechanism, whole(mechanism, one))
    except NotSupported as error:
        raise NotChecked(str(error)) from None
    twice(lambda seed: _look(mechanism, pairs, columns, seed))


def _pairs(mechanism: Mechanism) -> list[tuple[Any, Any]]:
    inputs = inputs_of(mechanism)
    others = [] if isinstance(mechanism.guarantee, Memoised) else others_of(mechanism, _OTHERS)
    pairs = [(inputs[0], value) for value in (inputs[1], inputs[len(inputs) // 2], inputs[-1], *others)]
    found = [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1]]
    if not found:
        raise NotChecked(NO_TWO_INPUTS)
    return found


def _look(mechanism: Mechanism, pairs: list[tuple[Any, Any]], columns: Any, seed: int) -> str:
    evidence = Evidence()
    for place, pair in enumerate(pairs):
        samples = [
            draw(mechanism, np.full(_USERS, value), seed + 2 * place + side) for side, value in enumerate(pair)
        ]
        for one, other, words in _alike(mechanism, samples, pair, columns):
            compare_samples(evidence, one, other, words, 3 if place < _TRIPLES else 2)
    return evidence.verdict()


def _alike(
    mechanism: Mechanism, samples: list[Any], pair: tuple[Any, Any], columns: Any
) -> Iterator[tuple[Any, Any, str]]:
    """Parts of the two samples that the description says are drawn alike, as rows of bytes, with words for them."""
    codes = [codes_of(mechanism, reports, pair) for reports in samples]
    words = f"reports of {pair[0]} and of {pair[1]}"
    beyond: list[int] = []
    if has_density(mechanism) and on_a_grid(mechanism, samples[0]):
        first, second = low_bytes(mechanism, *samples)
        yield first, second, f"the last places of {words}"
        if codes[0] is not None and mechanism.report_period is not None:  # type: ignore[attr-defined]
            # What is repeated for ever is listed up to some place: the first and the last outcome are all the rest.
            beyond = [0, mechanism.compare(*pair).size - 1]
    numbers = [each for each in codes if each is not None]
    if len(numbers) < 2:
        return
    rows = [whole(mechanism, reports)[:, columns] for reports in samples]
    for code in sorted({*numbers[0].tolist()} & {*numbers[1].tolist()} - {*beyond}):
        own, theirs = (each[outcome == code] for each, outcome in zip(rows, numbers, strict=True))
        if min(len(own), len(theirs)) >= _ENOUGH:
            yield own, theirs, f"{words} with outcome {code}"


def describes_whole_reports(mechanism: Mechanism) -> bool:
    """Whether a report is nothing but its outcome: of a few thousand reports none with one outcome differ."""
    try:
        inputs = inputs_of(mechanism)
        pair = inputs[0], inputs[-1]
        reports = np.concatenate([draw(mechanism, np.full(_FEW, value), 5 + side) for side, value in enumerate(pair)])
        codes = codes_of(mechanism, reports, pair)
        keys = keys_of(whole(mechanism, reports))
    except (NotChecked, NotSupported):
        return False
    if codes is None:
        return False
    kinds = len(np.unique(codes))
    together = np.unique(np.stack([codes.astype(np.uint64), keys]), axis=1).shape[1]
    return bool(kinds == together == len(np.unique(keys)))
