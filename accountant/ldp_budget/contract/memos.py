"""Checks of mechanisms that memoise: the same secret and value bring the same permanent randomness back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..guarantees import Memoised
from .chances import SEEDS
from .drawing import secrets_of, users_of
from .losses import audited, check_audit
from .outcome import NotChecked, expect

if TYPE_CHECKING:
    from ..base import Mechanism

REPORTS = 50
SAMPLES = 200_000
_USERS = 300


def memo_is_kept(mechanism: Mechanism) -> None:
    """The same secrets and draws give the same reports, other secrets others; and the memo knows no neighbours."""
    import numpy as np

    _check_memoised(mechanism)
    values = users_of(mechanism, _USERS)
    secrets, others = secrets_of(_USERS, SEEDS[0]), secrets_of(_USERS, SEEDS[1])
    once = mechanism.randomize(values, rng=7, secrets=secrets)
    expect(np.array_equal(once, mechanism.randomize(values, rng=7, secrets=secrets)), "a memo is not drawn again")
    other = mechanism.randomize(values, rng=7, secrets=others)
    expect(not np.array_equal(once, other), "reports do not depend on the secret")
    memo = np.asarray(mechanism.memoised(values, secrets))
    alone = np.concatenate([mechanism.memoised(values[i : i + 1], secrets[i : i + 1]) for i in range(_USERS)])
    expect(np.array_equal(memo, alone), "which memo a user reports depends on who else is in the call")


def many_reports_stay_within_the_cap(mechanism: Mechanism) -> None:
    """An audit of fifty reports of one memoised value finds no more than the curve promises for them."""
    _check_memoised(mechanism)
    check_audit(mechanism, audited(mechanism, samples=SAMPLES, reports=REPORTS, seed=SEEDS[0]))


def _check_memoised(mechanism: Mechanism) -> None:
    if not isinstance(mechanism.guarantee, Memoised):
        raise NotChecked("it memoises nothing")
