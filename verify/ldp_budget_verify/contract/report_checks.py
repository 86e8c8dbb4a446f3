"""Checks of reports: their form, their inputs, leakage beyond the description, and memoisation.

Form: reports have one type and one shape for every value, and numbers are on the public grid. Inputs: no value
outside the domain gets through, and no argument is changed in place.

Leakage: `compare` claims to list *all* that a report reveals of one input against another. If so, reports of the two
inputs with the same outcome have the same law, and the rest of the report reveals nothing. So the check compares
reports of one outcome between the two inputs: whole reports, single bits, and bits together.

Memoisation: the same secret and value reproduce the same permanent randomness.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import LdpBudgetError, NotSupported
from ldp_budget.guarantees import Memoised, Unbounded
from ldp_budget.sampling import open_stream
from ldp_budget.sdk.domain import Categories
from ldp_budget.sdk.tick_sets import TickSets

from .. import NO_TWO_INPUTS, NOTHING_PROMISED, SMALLER, Broken, NotChecked, expect
from ..audit.events import SECRET_BYTES, keys_of
from .parameter_checks import audited, check_audit, variations
from .statistics import (
    SEEDS,
    Evidence,
    codes_of,
    compare_samples,
    draw,
    equal_p,
    features,
    has_density,
    inputs_of,
    low_bytes,
    on_a_grid,
    others_of,
    relate,
    secrets_of,
    some_columns,
    steps_of,
    twice,
    users_of,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldp_budget.sdk.mechanism import Mechanism


# -- form of the reports ---------------------------------------------------------------------------------------------


_MOST_VALUES = 16
_TOGETHER = (1, 2, 17)
_NUMBERS = 20_000


def reports_have_one_form(mechanism: Mechanism) -> None:
    """Check that type, byte order and shape of a report are the same for every value, alone and in every batch."""
    values = list(dict.fromkeys([*inputs_of(mechanism)[:_MOST_VALUES], *others_of(mechanism, 4)]))
    first = draw(mechanism, users_of(mechanism, 2), 7)
    form, kind = _form(first), type(_raw(mechanism, users_of(mechanism, 2), 7))
    for seed, value in enumerate(values):
        for users in _TOGETHER:
            raw = _raw(mechanism, np.full(users, value), seed)
            found = _form(np.asarray(raw))
            expect(found == form, f"{users} report(s) of {value} are {found}, others are {form}")
            expect(type(raw) is kind, f"reports of {value} are a {type(raw).__name__}, others a {kind.__name__}")
    mixed = _form(draw(mechanism, np.array(values), 7))
    expect(mixed == form, f"reports of different values together are {mixed}, others are {form}")


def _raw(mechanism: Mechanism, values: Any, seed: int) -> Any:
    return mechanism.randomize(values, rng=open_stream(seed), secrets=secrets_of(len(values), seed))


def _form(reports: Any) -> str:
    """Return the type with its byte order, and the shape of one report."""
    return f"{reports.dtype.str} of shape {reports.shape[1:]}"


def reports_lie_on_their_grid(mechanism: Mechanism) -> None:
    """Check that every number is origin + k·step of the declared grid, with a whole k, bit for bit.

    A double between two grid points may be one that only some values produce, and a spare bit may carry anything.
    Whole numbers are on their grid already.
    """
    values = [*inputs_of(mechanism), *others_of(mechanism, 4)]
    reports = draw(mechanism, np.resize(np.array(values), _NUMBERS), 7)
    if reports.dtype.kind in "biu":
        return
    if not on_a_grid(mechanism, reports):
        raise NotChecked("its reports are no numbers of a grid", applies=False)
    expect(reports.dtype.itemsize == 8, f"reports are {reports.dtype}, and the grid is one of doubles")
    origin, step = mechanism.grid()  # type: ignore[attr-defined]
    expect(bool(np.isfinite(reports).all()), "some reports are no finite numbers")
    steps = steps_of(mechanism, reports)
    off = (origin + steps * step).view(np.uint64) != np.ascontiguousarray(reports, dtype="=f8").view(np.uint64)
    place = int(off.argmax())
    expect(
        not off.any(),
        f"{int(off.sum())} of {len(reports)} reports lie off the grid of step {step!r} from {origin!r}, "
        f"such as {float(reports[place])!r}",
    )


# -- input of the client ---------------------------------------------------------------------------------------------


_USERS = 64
_UNLIKELY = 90_001
"""Added to the largest answer: a number that no report contains by chance, unless reports are small numbers."""


def bad_input_is_refused(mechanism: Mechanism) -> None:
    """Check that a value outside the domain, among valid ones, raises an error of the package; so does a table."""
    good = users_of(mechanism, _USERS)
    draw(mechanism, good, 7)
    for what, values in _bad(mechanism, good.tolist()):
        try:
            reports = _randomized(mechanism, values)
        except LdpBudgetError:
            continue
        except Exception as error:
            raise Broken(f"{what} raises {type(error).__name__} ({error}), not OutsideDomain") from None
        raise Broken(f"{what} is accepted, and gives {len(reports)} reports")


def _randomized(mechanism: Mechanism, values: Any) -> Any:
    return mechanism.randomize(values, rng=7, secrets=secrets_of(len(values), 7))


def _bad(mechanism: Mechanism, good: list[Any]) -> Iterator[tuple[str, Any]]:
    for value in (*_outside(mechanism), float("nan"), float("inf"), -float("inf"), "no value", None, b"\x00"):
        yield f"the value {value!r}", [*good[1:], value]
    yield "a table of values", np.array([good, good])
    yield "a table of one column", np.array(good).reshape(-1, 1)
    if not isinstance(mechanism.domain, TickSets):  # to which each row is a set
        yield "rows of different lengths", [good[:1], good[:2]]


def _outside(mechanism: Mechanism) -> Iterator[Any]:
    """Yield numbers just outside the declared domain; for answers also numbers between two of them."""
    domain = mechanism.domain
    if isinstance(domain, Categories):
        size = domain.size
        yield from (-1, 0.5, -(2**63), size, float(size), size + _UNLIKELY, max(size, 2**63 - 1))
    elif domain is not None:
        lower, upper = domain.ends
        yield from (math.nextafter(lower, -math.inf), math.nextafter(upper, math.inf), 2 * lower - upper, 1e300)


def unknown_values_do_not_leak(mechanism: Mechanism) -> None:
    """Check that a client that accepts an unknown value at least does not send the value itself."""
    good = users_of(mechanism, _USERS).tolist()
    draw(mechanism, np.array(good), 7)
    for value in (value for value in _outside(mechanism) if np.isfinite(value)):
        try:
            reports = np.asarray(_randomized(mechanism, [*good[1:], value]))
        except Exception:
            continue
        expect(not (reports[-1] == value).any(), f"the unknown value {value} is sent as it is")


def inputs_are_left_alone(mechanism: Mechanism) -> None:
    """Check that values and reports are only read, and may be read-only arrays."""
    values = users_of(mechanism, _USERS)
    values.flags.writeable = False
    reports = draw(mechanism, values, 7).copy()
    reports.flags.writeable = False
    before = reports.copy()
    try:
        mechanism.estimate(mechanism.aggregate(reports))
        mechanism.estimate(reports)
    except NotSupported:
        return
    expect(np.array_equal(before, reports), "the server changes the reports")


def no_users_no_reports(mechanism: Mechanism) -> None:
    """Check that no values give no reports, and that no reports give an empty aggregate."""
    kind = np.array(inputs_of(mechanism)).dtype
    full = draw(mechanism, users_of(mechanism, 1), 7)
    reports = np.asarray(mechanism.randomize(np.array([], dtype=kind), rng=open_stream(7), secrets=[]))
    expect(reports.shape == (0, *full.shape[1:]), f"no values give reports of shape {reports.shape}")
    expect(reports.dtype == full.dtype, f"no values give reports of {reports.dtype}, others of {full.dtype}")
    try:
        total = mechanism.aggregate(reports)
    except NotSupported:
        return
    expect(total.reports == 0, f"no reports give an aggregate of {total.reports}")


# -- leakage beyond the description ----------------------------------------------------------------------------------


_LEAKAGE_USERS = 8_000
_ENOUGH = 400
_OTHERS = 2
_TRIPLES = 2
_FEW = 4_000


def reports_say_no_more_than_described(mechanism: Mechanism) -> None:
    """Check that reports with one outcome of `compare` have the same law under both inputs.

    Whole reports are compared, and any three bits of them. With a density, the last bits of the steps are checked
    too, which no density determines. At most 32 bits of a long report are used, in threes for two pairs of inputs,
    and 8,000 reports of each input.
    """
    if isinstance(mechanism.guarantee, Unbounded):
        raise NotChecked(NOTHING_PROMISED, applies=False)
    pairs = _pairs(mechanism)
    one = draw(mechanism, np.full(_LEAKAGE_USERS, pairs[0][0]), 11)
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
            draw(mechanism, np.full(_LEAKAGE_USERS, value), seed + 2 * place + side)
            for side, value in enumerate(pair)
        ]
        for one, other, words in _alike(mechanism, samples, pair, columns):
            compare_samples(evidence, one, other, words, 3 if place < _TRIPLES else 2)
    return evidence.verdict()


def _alike(
    mechanism: Mechanism, samples: list[Any], pair: tuple[Any, Any], columns: Any
) -> Iterator[tuple[Any, Any, str]]:
    """Yield parts of the two samples that have the same law by the description, as rows of bytes, with a name."""
    codes = [codes_of(mechanism, reports, pair) for reports in samples]
    words = f"reports of {pair[0]} and of {pair[1]}"
    beyond: list[int] = []
    if has_density(mechanism) and on_a_grid(mechanism, samples[0]):
        first, second = low_bytes(mechanism, *samples)
        yield first, second, f"the last places of {words}"
        if codes[0] is not None and mechanism.report_period is not None:  # type: ignore[attr-defined]
            # An endless repetition is listed up to some point: the first and the last outcome contain all the rest.
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
    """True if a report is only its outcome: among a few thousand reports, no two with the same outcome differ."""
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


# -- memoisation -----------------------------------------------------------------------------------------------------


REPORTS = 50
SAMPLES = 200_000
_MEMO_USERS = 300
_MANY = 6_000
_VARIATIONS = 2
_LEAST_ALIKE = 300
_CODES = 8
_AGREES = 1e-6
_MEMO_ENOUGH = 30
"""The number of users whose reports must change with some byte of the secret.

Then another byte that is used also changes at least one report by chance.
"""


def memo_is_kept(mechanism: Mechanism) -> None:
    """Check that the same secrets and draws give the same reports, and that every byte of a secret matters.

    A memo must not depend on other users in the call. The memo of a value must reveal nothing of the memo of another
    value, or in another mechanism. Where the guarantee does not grow with the reports, the memo must be kept with
    every generator: two reports of one value are equal more often than those of two users.
    """
    _check_memoised(mechanism)
    values = users_of(mechanism, _MEMO_USERS)
    draw(mechanism, values, 7)  # raises `NotChecked` without a client, or without enough memory
    secrets, others = secrets_of(_MEMO_USERS, SEEDS[0]), secrets_of(_MEMO_USERS, SEEDS[1])
    once = mechanism.randomize(values, rng=7, secrets=secrets)
    expect(np.array_equal(once, mechanism.randomize(values, rng=7, secrets=secrets)), "a memo is not drawn again")
    other = mechanism.randomize(values, rng=7, secrets=others)
    expect(not np.array_equal(once, other), "reports do not depend on the secret")
    memo = np.asarray(mechanism.memoised(values, secrets))
    alone = np.concatenate([mechanism.memoised(values[i : i + 1], secrets[i : i + 1]) for i in range(_MEMO_USERS)])
    expect(np.array_equal(memo, alone), "which memo a user reports depends on who else is in the call")
    _check_apart(mechanism)
    _check_every_byte(mechanism, values, secrets)
    expect(_refuses_without_secrets(mechanism, values), "randomize draws without secrets, so it repeats no draw")


def _refuses_without_secrets(mechanism: Mechanism, values: Any) -> bool:
    """True if `randomize` refuses to draw without secrets: the guarantee holds for repeated draws only."""
    try:
        mechanism.randomize(values, rng=7)
    except LdpBudgetError:
        return True
    return False


def _check_every_byte(mechanism: Mechanism, values: Any, secrets: list[bytes]) -> None:
    """Check that the memo depends on every byte of the secret; with fewer bytes it could be guessed."""
    once, *others = (
        mechanism.randomize(values, rng=7, secrets=each)
        for each in (secrets, *(_with_another(secrets, place) for place in range(SECRET_BYTES)))
    )
    changed = [_differing(once, other) for other in others]
    if max(changed) < _MEMO_ENOUGH:
        raise NotChecked(f"reports depend on the secret too rarely to see which of its bytes are used; {SMALLER}")
    for place, count in enumerate(changed):
        expect(count > 0, f"reports do not depend on byte {place} of the secret")


def _with_another(secrets: list[bytes], place: int) -> list[bytes]:
    """Return each of the secrets with this byte changed."""
    return [each[:place] + bytes([each[place] ^ 0x5A]) + each[place + 1 :] for each in secrets]


def _differing(once: Any, other: Any) -> int:
    differ = np.asarray(once) != np.asarray(other)
    return int(differ.reshape(_MEMO_USERS, -1).any(axis=1).sum())


# -- independence of memos ------------------------------------------------------------------------------------


def _check_apart(mechanism: Mechanism) -> None:
    inputs = inputs_of(mechanism)
    pair = inputs[0], inputs[-1]
    others = [each for _, each in variations(mechanism)][:_VARIATIONS]
    twice(lambda seed: _apart(mechanism, others, pair, seed))
    _check_generators(mechanism, pair[0])


def _apart(mechanism: Mechanism, others: list[Mechanism], pair: tuple[Any, Any], seed: int) -> str:
    evidence = Evidence()
    secrets = secrets_of(_MANY, seed)
    own, values = np.full(_MANY, pair[0]), np.full(_MANY, pair[1])
    first = mechanism.randomize(own, rng=seed, secrets=secrets)
    memos = [np.asarray(mechanism.memoised(each, secrets)) for each in (own, values)]
    if not (memos[0] == memos[1]).any():
        second = mechanism.randomize(values, rng=seed + 1, secrets=secrets)
        words = f"with one secret reports of {pair[0]} and of {pair[1]}"
        _relate(evidence, (mechanism, first), (mechanism, second), pair, words)
    for other in others:
        try:
            theirs = other.randomize(own, rng=seed + 2, secrets=secrets)
        except LdpBudgetError:
            continue  # the other mechanism does not take this value
        words = f"with one secret reports to {mechanism!r} and to {other!r}"
        _relate(evidence, (mechanism, first), (other, theirs), pair, words)
    return evidence.verdict()


def _relate(evidence: Evidence, one: tuple[Any, Any], other: tuple[Any, Any], pair: Any, words: str) -> None:
    """Test the two reports for dependence, given the cases of `compare`, which are public and may be kept."""
    cases = [_cases(*each, pair) for each in (one, other)]
    for kind in np.unique(cases[0]):
        for their in np.unique(cases[1]):
            same = (cases[0] == kind) & (cases[1] == their)
            if np.count_nonzero(same) < _LEAST_ALIKE:
                continue
            relate(evidence, _outcomes(*one, pair, same), _outcomes(*other, pair, same), words)


def _cases(mechanism: Mechanism, reports: Any, pair: Any) -> Any:
    """Return the case of `compare` of each report; a single case if the mechanism describes none."""
    codes = codes_of(mechanism, reports, pair)
    if codes is None:
        return np.zeros(len(reports), dtype=np.int64)
    sizes = [np.prod([len(factor.masses) for factor in case.factors]) for case in mechanism.compare(*pair).cases]
    return np.searchsorted(np.cumsum(sizes), codes, side="right")


def _outcomes(mechanism: Mechanism, reports: Any, pair: Any, same: Any) -> Any:
    """Return the outcomes as features; without outcomes, all features of the reports."""
    reports = np.asarray(reports)[same]
    codes = codes_of(mechanism, reports, pair)
    if codes is None:
        return features(mechanism, reports, pair, reports)
    common = np.argsort(-np.bincount(codes), kind="stable")[:_CODES]
    return np.column_stack([codes == code for code in common])


def _check_generators(mechanism: Mechanism, value: Any) -> None:
    guarantee = mechanism.guarantee
    if not isinstance(guarantee, Memoised) or guarantee.cap > guarantee.curve[0]:
        return  # fresh noise is added to every report, and an audit examines many of them
    values, secrets = np.full(_MANY, value), secrets_of(_MANY, SEEDS[0])
    keys = [keys_of(whole(mechanism, mechanism.randomize(values, rng=seed, secrets=secrets))) for seed in (5, 6)]
    same = int((keys[0] == keys[1]).sum())
    if same == _MANY:
        return
    counts = np.unique(keys[0], return_counts=True)[1]
    chance = float((counts * (counts - 1.0)).sum()) / (_MANY * (_MANY - 1.0))
    expect(
        equal_p(same, _MANY, chance) < _AGREES,
        f"what is kept is drawn again with every generator: {same} of {_MANY} users report the same again, as many as "
        f"of different users ({chance * _MANY:.0f})",
    )


def many_reports_stay_within_the_cap(mechanism: Mechanism) -> None:
    """Check that an audit of fifty reports of one memoised value finds no more than its curve promises."""
    _check_memoised(mechanism)
    check_audit(mechanism, audited(mechanism, samples=SAMPLES, reports=REPORTS, seed=SEEDS[0]))


def _check_memoised(mechanism: Mechanism) -> None:
    if not isinstance(mechanism.guarantee, Memoised):
        raise NotChecked("it memoizes nothing", applies=False)
