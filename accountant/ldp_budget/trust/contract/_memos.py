"""Checks of mechanisms that memoise: the same secret and value bring the same permanent randomness back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import LdpBudgetError
from ...guarantees import Memoised
from .._advice import SMALLER
from ._chances import SEEDS, twice
from ._drawing import SECRET_BYTES, draw, inputs_of, secrets_of, users_of
from ._likeness import Evidence, equal_p, keys_of, relate
from ._losses import audited, check_audit
from ._outcome import NotChecked, expect
from ._parameters import variations
from ._reading import codes_of, features, whole

if TYPE_CHECKING:
    from ...authoring.base import Mechanism

REPORTS = 50
SAMPLES = 200_000
_USERS = 300
_MANY = 6_000
_VARIATIONS = 2
_LEAST_ALIKE = 300
_CODES = 8
_AGREES = 1e-6
_ENOUGH = 30
"""So many users who report otherwise with another secret: then some do by chance, whatever the secrets are."""


def memo_is_kept(mechanism: Mechanism) -> None:
    """The same secrets and draws give the same reports, other secrets others, whichever byte of them is another.

    And the memo knows no neighbours. What is kept for a value tells nothing of what is kept for another one, or in
    another mechanism. Where the promise does not grow with the reports, it is kept with every generator: two reports
    of one value are the same more often than those of two users.
    """
    _check_memoised(mechanism)
    values = users_of(mechanism, _USERS)
    draw(mechanism, values, 7)  # not checked where there is no client, or no room
    secrets, others = secrets_of(_USERS, SEEDS[0]), secrets_of(_USERS, SEEDS[1])
    once = mechanism.randomize(values, rng=7, secrets=secrets)
    expect(np.array_equal(once, mechanism.randomize(values, rng=7, secrets=secrets)), "a memo is not drawn again")
    other = mechanism.randomize(values, rng=7, secrets=others)
    expect(not np.array_equal(once, other), "reports do not depend on the secret")
    memo = np.asarray(mechanism.memoised(values, secrets))
    alone = np.concatenate([mechanism.memoised(values[i : i + 1], secrets[i : i + 1]) for i in range(_USERS)])
    expect(np.array_equal(memo, alone), "which memo a user reports depends on who else is in the call")
    _check_apart(mechanism)
    _check_every_byte(mechanism, values, secrets)


def _check_every_byte(mechanism: Mechanism, values: Any, secrets: list[bytes]) -> None:
    """A memo that comes from a part of the secret is one that can be guessed."""
    once, *others = (
        mechanism.randomize(values, rng=7, secrets=each)
        for each in (secrets, *(_with_another(secrets, place) for place in range(SECRET_BYTES)))
    )
    changed = [_differing(once, other) for other in others]
    if max(changed) < _ENOUGH:
        raise NotChecked(f"reports depend on the secret too rarely to see which of its bytes are used; {SMALLER}")
    for place, count in enumerate(changed):
        expect(count > 0, f"reports do not depend on byte {place} of the secret")


def _with_another(secrets: list[bytes], place: int) -> list[bytes]:
    """Each of the secrets with this byte changed."""
    return [each[:place] + bytes([each[place] ^ 0x5A]) + each[place + 1 :] for each in secrets]


def _differing(once: Any, other: Any) -> int:
    differ = np.asarray(once) != np.asarray(other)
    return int(differ.reshape(_USERS, -1).any(axis=1).sum())


# -- what one memo tells of another ---------------------------------------------------------------------------


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
            continue  # it does not take this value
        words = f"with one secret reports to {mechanism!r} and to {other!r}"
        _relate(evidence, (mechanism, first), (other, theirs), pair, words)
    return evidence.verdict()


def _relate(evidence: Evidence, one: tuple[Any, Any], other: tuple[Any, Any], pair: Any, words: str) -> None:
    """Whether they tell of each other, beside the cases of `compare`, which are public and so may be kept."""
    cases = [_cases(*each, pair) for each in (one, other)]
    for kind in np.unique(cases[0]):
        for their in np.unique(cases[1]):
            same = (cases[0] == kind) & (cases[1] == their)
            if np.count_nonzero(same) < _LEAST_ALIKE:
                continue
            relate(evidence, _outcomes(*one, pair, same), _outcomes(*other, pair, same), words)


def _cases(mechanism: Mechanism, reports: Any, pair: Any) -> Any:
    """Which case of `compare` each report is; all are one where it describes none."""
    codes = codes_of(mechanism, reports, pair)
    if codes is None:
        return np.zeros(len(reports), dtype=np.int64)
    sizes = [np.prod([len(factor.masses) for factor in case.factors]) for case in mechanism.compare(*pair).cases]
    return np.searchsorted(np.cumsum(sizes), codes, side="right")


def _outcomes(mechanism: Mechanism, reports: Any, pair: Any, same: Any) -> Any:
    """The outcomes as features; of a mechanism that describes none, whatever can be read off its reports."""
    reports = np.asarray(reports)[same]
    codes = codes_of(mechanism, reports, pair)
    if codes is None:
        return features(mechanism, reports, pair, reports)
    common = np.argsort(-np.bincount(codes), kind="stable")[:_CODES]
    return np.column_stack([codes == code for code in common])


def _check_generators(mechanism: Mechanism, value: Any) -> None:
    guarantee = mechanism.guarantee
    if not isinstance(guarantee, Memoised) or guarantee.cap > guarantee.curve[0]:
        return  # some of the noise is drawn afresh for every report, and an audit looks at many of them
    values, secrets = np.full(_MANY, value), secrets_of(_MANY, SEEDS[0])
    keys = [keys_of(whole(mechanism, mechanism.randomize(values, rng=seed, secrets=secrets))) for seed in (5, 6)]
    same = int((keys[0] == keys[1]).sum())
    if same == _MANY:
        return
    counts = np.unique(keys[0], return_counts=True)[1]
    chance = float((counts * (counts - 1.0)).sum()) / (_MANY * (_MANY - 1.0))
    expect(
        equal_p(same, _MANY, chance) < _AGREES,
        f"what is kept is drawn anew with every generator: {same} of {_MANY} users report the same again, as many as "
        f"of different users ({chance * _MANY:.0f})",
    )


def many_reports_stay_within_the_cap(mechanism: Mechanism) -> None:
    """An audit of fifty reports of one memoised value finds no more than the curve promises for them."""
    _check_memoised(mechanism)
    check_audit(mechanism, audited(mechanism, samples=SAMPLES, reports=REPORTS, seed=SEEDS[0]))


def _check_memoised(mechanism: Mechanism) -> None:
    if not isinstance(mechanism.guarantee, Memoised):
        raise NotChecked("it memoises nothing", applies=False)
