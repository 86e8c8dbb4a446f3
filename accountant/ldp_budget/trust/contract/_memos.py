"""Checks of mechanisms that memoise: the same secret and value bring the same permanent randomness back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...guarantees import Memoised
from ._chances import SEEDS
from ._drawing import SECRET_BYTES, draw, secrets_of, users_of
from ._losses import audited, check_audit
from ._outcome import NotChecked, expect

if TYPE_CHECKING:
    from ...authoring.base import Mechanism

REPORTS = 50
SAMPLES = 200_000
_USERS = 300
_ENOUGH = 30
"""So many users who report otherwise with another secret: then some do by chance, whatever the secrets are."""


def memo_is_kept(mechanism: Mechanism) -> None:
    """The same secrets and draws give the same reports, other secrets others, whichever byte of them is another.

    And the memo knows no neighbours.
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
    _check_every_byte(mechanism, values, secrets)


def _check_every_byte(mechanism: Mechanism, values: Any, secrets: list[bytes]) -> None:
    """A memo that comes from a part of the secret is one that can be guessed."""
    once, *others = (
        mechanism.randomize(values, rng=7, secrets=each)
        for each in (secrets, *(_with_another(secrets, place) for place in range(SECRET_BYTES)))
    )
    changed = [_differing(once, other) for other in others]
    if max(changed) < _ENOUGH:
        raise NotChecked("reports depend on the secret too rarely to see which of its bytes are used")
    for place, count in enumerate(changed):
        expect(count > 0, f"reports do not depend on byte {place} of the secret")


def _with_another(secrets: list[bytes], place: int) -> list[bytes]:
    """Each of the secrets with this byte changed."""
    return [each[:place] + bytes([each[place] ^ 0x5A]) + each[place + 1 :] for each in secrets]


def _differing(once: Any, other: Any) -> int:
    differ = np.asarray(once) != np.asarray(other)
    return int(differ.reshape(_USERS, -1).any(axis=1).sum())


def many_reports_stay_within_the_cap(mechanism: Mechanism) -> None:
    """An audit of fifty reports of one memoised value finds no more than the curve promises for them."""
    _check_memoised(mechanism)
    check_audit(mechanism, audited(mechanism, samples=SAMPLES, reports=REPORTS, seed=SEEDS[0]))


def _check_memoised(mechanism: Mechanism) -> None:
    if not isinstance(mechanism.guarantee, Memoised):
        raise NotChecked("it memoises nothing")
