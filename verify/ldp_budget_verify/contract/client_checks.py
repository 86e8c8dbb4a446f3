"""Checks of the client: its reports follow the channel or the density, and its draws come from the given stream.

They also check that noise is independent between users and never reused between reports. And they check the client
program: it draws the same as the client, to the last byte, and its law is the channel of the proof.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.integrate import quad

from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import Memoised, Unbounded
from ldp_budget.sampling import integers, open_stream
from ldp_budget.sampling.rng import SeededStream, Stream
from ldp_budget.sdk.interpreter import StreamDraws, read, run

from .. import NO_TWO_INPUTS, NOTHING_PROMISED, SMALLER, Broken, NotChecked, expect, undefined
from ..audit.events import keys_of
from ..exact.dominance import UNPROVEN, VIOLATED
from ..exact.program_checks import check_program
from .parameter_checks import claim
from .statistics import (
    LEAST_EXPECTED,
    LEAST_P,
    Evidence,
    chi_square_p,
    codes_of,
    compare_counts,
    compare_samples,
    draw,
    equal_p,
    expect_to_fit,
    features,
    has_density,
    inputs_of,
    low_bytes,
    on_a_grid,
    others_of,
    relate,
    secrets_of,
    some_columns,
    twice,
    users_of,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.mechanism import Mechanism
    from ldp_budget.sdk.numeric_mechanism import NumericMechanism

    Floats = NDArray[np.float64]

_USERS = 20_000
_MOST_INPUTS = 64
_OTHERS = 4
_SAME = 300
_SURE = 6.0
"""A loss at which some of 20,000 reports certainly differ between two draws."""
_BINS = 24
_FINE = 1e-3
_DOUBLINGS = 20


def client_matches_channel(mechanism: Mechanism) -> None:
    """Check that reports are as likely as `compare` or the density says (chi-square), in uniform and mixed batches.

    Every critical input is checked, and some others. Statements about fewer than about one in 2000 reports are not
    checked, if no other evidence remains.
    """
    inputs = inputs_of(mechanism)[:_MOST_INPUTS]
    # The secret may round a memoised value between two critical ones, and `compare` does not describe that.
    others = [] if isinstance(mechanism.guarantee, Memoised) else others_of(mechanism, _OTHERS)
    try:
        rare = _match_channel(mechanism, inputs, others)
    except NotSupported as error:
        if not has_density(mechanism):
            raise NotChecked(undefined(mechanism, error, "compare", "outcomes")) from None
        rare = _match_density(mechanism, [*inputs, *others])
    if rare:
        raise NotChecked(rare)


# -- against a channel ----------------------------------------------------------------------------------------


def _match_channel(mechanism: Mechanism, inputs: list[Any], others: list[Any]) -> str:
    """Return a part of the channel that is too rare to check; "" if there is none."""
    pairs = _pairs(inputs, others)
    least = LEAST_P / (3 * len(pairs))
    for pair in pairs:
        masses = _masses(mechanism, pair)
        twice(lambda seed, pair=pair, masses=masses: _against_channel(mechanism, pair, masses, seed, least))  # type: ignore[misc]
    return next(filter(None, (_too_rare(mechanism, value, (inputs[0], inputs[-1])) for value in inputs)), "")


def _pairs(inputs: list[Any], others: list[Any]) -> list[tuple[Any, Any]]:
    """Return each input against the first, the first against the last, and some others against the first."""
    first = inputs[0]
    pairs = [*((value, first) for value in (*inputs[1:], *others)), (first, inputs[-1])]
    return list(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))


def _masses(mechanism: Mechanism, pair: tuple[Any, Any]) -> Floats:
    return np.array([(float(p), float(q)) for p, q in mechanism.compare(*pair).masses()])


def _too_rare(mechanism: Mechanism, value: Any, others: tuple[Any, Any]) -> str:
    """Return a reason if reports of `value` that favor another input are too rare to notice a client without them."""
    against = 0.0
    for other in others:
        if other != value:
            masses = _masses(mechanism, (value, other))
            against = max(against, float(masses[masses[:, 0] < masses[:, 1], 0].sum()))
    if 0 < against * _USERS < LEAST_EXPECTED:
        return f"too rare to be seen: one in {1 / against:.3g} reports of {value} speaks against it; {SMALLER}"
    return ""


def _against_channel(mechanism: Mechanism, pair: tuple[Any, Any], masses: Floats, seed: int, least: float) -> str:
    """Return the evidence against the client, in words; "" if there is none."""
    for who, values in (("alone", np.full(_USERS, pair[0])), ("among others", np.resize(np.array(pair), _USERS))):
        reports = draw(mechanism, values, seed)
        codes = np.asarray(mechanism.outcomes(reports, *pair)).astype(np.int64)
        if len(codes) != _USERS or not ((codes >= 0) & (codes < len(masses))).all():
            raise Broken(f"outcomes of {pair} are not {_USERS} numbers from 0 to {len(masses) - 1}")
        for side, value in enumerate(pair):
            own = codes[values == value]
            counts = np.bincount(own, minlength=len(masses)).astype(np.float64)
            p = chi_square_p(counts, len(own) * masses[:, side]) if len(own) else None
            if p is not None and p < least:
                return f"reports of {value} ({who}) are not as compare{pair} says: chi-square p = {p:.3g}"
    return ""


# -- against a density ----------------------------------------------------------------------------------------


def _match_density(mechanism: Any, inputs: list[Any]) -> str:
    for value in inputs:
        twice(lambda seed, value=value: _against_density(mechanism, value, seed))  # type: ignore[misc]
    return ""


def _against_density(mechanism: Any, value: float, seed: int) -> str:
    """Return the evidence against a density: half of the reports determine the cuts, the other half is counted."""
    reports = np.sort(draw(mechanism, np.full(_USERS, value), seed).reshape(2, -1), axis=1)
    if mechanism.grid()[1] > _FINE * reports[0].std():
        raise NotChecked("its grid is too coarse to hold reports against a density; define `compare` and `outcomes`")
    cuts = np.quantile(reports[0], np.linspace(0, 1, _BINS + 1)[1:-1])
    edges = np.unique([*cuts, *mechanism.report_breakpoints(value)])
    counts = np.bincount(np.searchsorted(edges, reports[1], side="right"), minlength=len(edges) + 1)
    scale = float(cuts[-1] - cuts[0]) or float(reports[0].std())
    masses = np.array(list(_integrals(mechanism, value, edges, scale)))
    if abs(masses.sum() - 1) > _FINE:
        raise Broken(f"the density for {value} adds up to {masses.sum():.6g}")
    p = chi_square_p(counts.astype(np.float64), len(reports[1]) * masses)
    if p is None:
        raise NotChecked(f"too rare to be seen: reports of {value} hardly differ; {SMALLER}")
    return f"reports of {value} are not as its density says: chi-square p = {p:.3g}" if p < LEAST_P else ""


def _integrals(mechanism: NumericMechanism, value: float, edges: Floats, scale: float) -> Iterator[float]:
    """Yield the density's integral between neighboring edges, and beyond the last ones.

    `scale` is the width of most of the density. It is integrated in pieces that double outward, because a rule on a
    long range would miss it.
    """
    low, high = float(edges[0]), float(edges[-1])
    steps = [scale * 2.0**power for power in range(_DOUBLINGS)]
    # Beyond a million times its width, a density has no mass that a sample of 10,000 could show.
    borders = [low - step for step in reversed(steps)], [high + step for step in steps]
    yield _integral(mechanism, value, [*borders[0], low])
    for left, right in pairwise(edges.tolist()):
        inner = {left + step for step in steps if left + step < right} | {
            right - step for step in steps if left < right - step
        }
        yield _integral(mechanism, value, sorted({left, right} | inner))
    yield _integral(mechanism, value, [high, *borders[1]])


def _integral(mechanism: NumericMechanism, value: float, points: list[float]) -> float:
    pieces = (quad(mechanism.density, *piece, args=(value,), full_output=1)[0] for piece in pairwise(points))
    return max(0.0, float(sum(pieces)))


# -- where the draws come from --------------------------------------------------------------------------------


def seed_decides(mechanism: Mechanism) -> None:
    """Check that a seed repeats its reports, another seed gives others, and runs without a seed differ."""
    values = users_of(mechanism, _SAME)
    expect(
        np.array_equal(draw(mechanism, values, 7), draw(mechanism, values, 7)), "the same seed gives other reports"
    )
    if isinstance(mechanism.guarantee, Unbounded):
        raise NotChecked(NOTHING_PROMISED, applies=False)
    _differ(mechanism, (7, 8), "another seed gives the same reports")
    _differ(mechanism, (None, None), "without a seed two runs give the same reports")


def _differ(mechanism: Mechanism, seeds: tuple[int | None, int | None], otherwise: str) -> None:
    """Check that reports from the two seeds differ; if some are equal, more are drawn."""
    for users in (_SAME, _USERS):
        values = users_of(mechanism, users)
        if not np.array_equal(*(draw(mechanism, values, seed) for seed in seeds)):
            return
    if claim(mechanism, 1) > _SURE:
        raise NotChecked(f"of {_USERS} reports none is drawn otherwise, which may be so at so large an ε; {SMALLER}")
    raise Broken(otherwise)


# -- users alone and in a batch --------------------------------------------------------------------------------------


_TOGETHER = 6_000
_ALONE = 400
_SIZES = ((2, 100), (3, 80), (16, 60))
"""(users of a batch, number of batches)."""
_INDEPENDENCE_BINS = 16


def users_are_drawn_alone_as_together(mechanism: Mechanism) -> None:
    """Check that a user alone gets a report by the same law as a user in a batch of thousands.

    The same must hold for the first of a few users, the last, and any other, in any company. The check compares
    outcomes, whole reports where there are few, bits and pairs of bits, and the distribution of numbers.
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
    """Return reports of `value`: of users alone, of the first and the last of a few, and of any of a few."""
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
        cuts = np.unique(np.quantile(together, np.linspace(0, 1, _INDEPENDENCE_BINS + 1)[1:-1]))
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


# -- independence of the noise between users and calls -------------------------------------------------------

_CALLS = 36
_PAIRED_USERS = 400
_BATCH = 4_096
_LAGS = (1, 2, 3, 4, 5, 7, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)


def noise_is_used_once(mechanism: Mechanism) -> None:
    """Check that reports of different users and of different calls are independent, in a batch and over 36 calls.

    The calls use the client's own randomness, and one stream. For half of them the value differs from that of the
    call before. Users have fresh secrets in every call.
    """
    if isinstance(mechanism.guarantee, Unbounded):
        raise NotChecked(NOTHING_PROMISED, applies=False)
    inputs = inputs_of(mechanism)
    pair = inputs[0], inputs[-1]
    if pair[0] == pair[1]:
        raise NotChecked(NO_TWO_INPUTS)
    expect_to_fit(mechanism, np.array(pair[:1]), _CALLS * _PAIRED_USERS)
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
    """Return the features of users, and of the users `lag` places later.

    If values alternate, take every second user.
    """
    step = 2 if mixed else 1
    return read[:-lag:step], read[lag::step]


def _calls(evidence: Evidence, mechanism: Mechanism, calls: Any, pair: Any, how: str) -> None:
    drawn = []
    for value, stream in calls:
        secrets = (
            secrets_of(_PAIRED_USERS, None)
            if stream is None
            else [bytes(stream.read(32)) for _ in range(_PAIRED_USERS)]
        )
        drawn.append(np.asarray(mechanism.randomize(np.full(_PAIRED_USERS, value), rng=stream, secrets=secrets)))
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
            p = equal_p(hits, _PAIRED_USERS, alike[calls[one][0]])
            evidence.add(p, f"{hits} of {_PAIRED_USERS} {words} are the same")


def _chance(keys: Any) -> float:
    """Return the probability that two of these keys are equal, with a margin for the sampling error."""
    counts = np.unique(keys, return_counts=True)[1]
    total = len(keys)
    pairs = float((counts.astype(float) * (counts - 1)).sum())
    chance: float = (pairs + 10) / (total * (total - 1.0))
    more: float = 4 * math.sqrt(chance * max(0.0, 1 - chance) / total)
    return min(1.0, chance + more)


# -- the client program ----------------------------------------------------------------------------------------------


_REPORTS = 60
_PROGRAM_MOST_INPUTS = 6
_MOST_OUTCOMES = 20_000


def program_draws_what_the_client_draws(mechanism: Mechanism) -> None:
    """Check that the program makes the client's report from the same bytes and secret, and reads no more bytes."""
    program = _program(mechanism)
    values = [*inputs_of(mechanism)[:_PROGRAM_MOST_INPUTS], *others_of(mechanism, _OTHERS)]
    for seed in range(_REPORTS):
        value = values[seed % len(values)]
        secret = secrets_of(1, seed)[0] if program.memo else None
        own, other = Counted(seed), Counted(seed)
        row = mechanism.randomize([value], rng=own, secrets=None if secret is None else [secret])
        report = run(program, read(program, value), StreamDraws(other, secret, mechanism.fingerprint))
        layout = (np.dtype(program.report["dtype"]), tuple(program.report["shape"]))
        found = (row.dtype.newbyteorder("<"), row.shape[1:])
        expect(found == layout, f"the client's reports are {found}, and the program's {layout}")
        same = row.astype(layout[0]).tobytes() == report
        expect(same, f"of the same bytes the program makes another report of {value} than the client")
        expect(own.count == other.count, f"for {value} the program reads {other.count} bytes, the client {own.count}")


def program_law_is_the_channel(mechanism: Mechanism) -> None:
    """Check that whole reports of the program, in exact fractions, keep the guarantee, and match `compare`."""
    found = check_program(mechanism, inputs_of(mechanism)[:_PROGRAM_MOST_INPUTS], _MOST_OUTCOMES)
    if found.verdict == VIOLATED:
        raise Broken(found.why)
    if found.verdict == UNPROVEN:
        raise NotChecked(found.why)


def _program(mechanism: Mechanism) -> Program:
    try:
        return mechanism.client_program()
    except NotSupported as error:
        raise NotChecked(undefined(mechanism, error, "client_program")) from None


class Counted(Stream):
    """A seeded stream that counts the bytes read from it."""

    def __init__(self, seed: int) -> None:
        self._source, self.count = SeededStream(seed), 0

    def read(self, count: int) -> bytes:
        self.count += count
        return bytes(self._source.read(count))
