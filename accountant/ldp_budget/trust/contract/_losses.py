"""Checks of the promise: calibration lands on the safe side, the guarantee is exact, and an audit finds no more."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import TYPE_CHECKING

from ...errors import InvalidParameter, NotSupported
from ...guarantees import Memoised
from ..auditing import audit
from ..verification import HOLDS, VIOLATED, verify
from ._chances import SEEDS
from ._drawing import expect_to_fit
from ._outcome import Broken, NotChecked, expect

if TYPE_CHECKING:
    from ...authoring.base import Mechanism
    from ..auditing import Audit

_TARGETS = 20
_VERIFIED = 3
_LOWEST, _HIGHEST = 0.05, 5.0

SAMPLES = 40_000
CONFIDENCE = 1 - 1e-7
"""Of an audit: the chance that an honest mechanism is called broken is what is left."""


def calibration_is_safe(mechanism: Mechanism) -> None:
    """Calibrated to random ε the mechanism promises no more than ε (and its δ), and some are verified."""
    if "epsilon" not in mechanism.declared:
        raise NotChecked("it is not calibrated to epsilon", applies=False)
    chance = random.Random(mechanism.fingerprint)
    verified = met = 0
    for _ in range(_TARGETS):
        epsilon = f"{_LOWEST * (_HIGHEST / _LOWEST) ** chance.random():.6g}"
        try:
            calibrated = mechanism.at_epsilon(epsilon)
        except InvalidParameter:
            continue  # another parameter, such as the loss of a lifetime, leaves no room for it
        _check_target(calibrated, epsilon)
        met += 1
        if verified < _VERIFIED:
            _not_violated(calibrated)
            verified += 1
    if not met:
        raise NotChecked(f"no epsilon from {_LOWEST} to {_HIGHEST} was accepted; let `check` accept some")


def _check_target(calibrated: Mechanism, epsilon: str) -> None:
    loss = calibrated.guarantee.loss()
    if loss is None:
        raise NotChecked("its loss is not bounded by an (ε, δ)", applies=False)
    expect(loss[0] <= Decimal(epsilon), f"calibrated to epsilon={epsilon} it promises {loss[0]}")
    if "delta" in calibrated.declared:
        delta = Decimal(calibrated.declared["delta"])
        expect(loss[1] <= delta, f"calibrated to delta={delta} it promises {loss[1]}")
    else:
        expect(loss[1] == 0, f"calibrated to epsilon alone it promises δ = {loss[1]}")


def _not_violated(calibrated: Mechanism) -> None:
    found = verify(calibrated)
    expect(found.verdict != VIOLATED, f"{calibrated!r}: {'; '.join(found.problems)}")


def guarantee_is_exact(mechanism: Mechanism) -> None:
    """`verify` finds that the guarantee holds; where it can prove nothing, this is not checked."""
    try:
        found = verify(mechanism)
    except NotSupported as error:
        raise NotChecked(str(error)) from None
    why = "; ".join(found.problems)
    if found.verdict == VIOLATED:
        raise Broken(why)
    if found.verdict != HOLDS:
        raise NotChecked(why or "unproven")


def claim(mechanism: Mechanism, reports: int) -> float:
    """ε that `reports` reports of one value are promised to lose together at most, at their δ."""
    guarantee = mechanism.guarantee
    if isinstance(guarantee, Memoised):
        within = reports <= len(guarantee.curve)
        return float(guarantee.curve[reports - 1] if within else guarantee.cap)
    return reports * guarantee.epsilon


def audited(mechanism: Mechanism, *, samples: int, reports: int = 1, search: bool = False, seed: int | None) -> Audit:
    """An audit of that many reports of one value; raises `NotChecked` where the client cannot be run."""
    _expect_to_fit(mechanism, samples)
    try:
        return audit(mechanism, samples=samples, confidence=CONFIDENCE, reports=reports, search=search, rng=seed)
    except NotSupported as error:
        raise NotChecked(str(error)) from None
    except MemoryError:
        raise NotChecked("its reports do not fit into memory") from None


def _expect_to_fit(mechanism: Mechanism, samples: int) -> None:
    try:
        one = mechanism.critical_inputs()[:1]
    except NotSupported:
        return  # an audit may know inputs where the mechanism names none
    expect_to_fit(mechanism, one, samples, streamed=True)


def audited_both_ways(mechanism: Mechanism, *, samples: int, reports: int = 1, seed: int | None) -> Audit:
    """The audit that finds more: from the event that is declared, or from a search that believes no declaration.

    What a client sends besides what it declares is seen by the search alone. Each has `samples` reports of its own.
    """
    found = audited(mechanism, samples=samples, reports=reports, seed=seed)
    if not found.declared:
        return found
    searched = audited(mechanism, samples=samples, reports=reports, search=True, seed=seed)
    return max(found, searched, key=lambda each: each.lower_bound)


def check_audit(mechanism: Mechanism, found: Audit) -> None:
    """Raise `Broken` where an audit found more than was promised."""
    promised = claim(mechanism, found.reports)
    expect(
        found.lower_bound <= promised,
        f"{found.reports} report(s) of one value lose at least {found.lower_bound:.6g} (at {found.pair}: "
        f"{found.event}); promised is {promised:.6g}",
    )


def audit_finds_no_more(mechanism: Mechanism) -> None:
    """A small audit of the client, one report of each user: of what it declares, and of whatever else it sends."""
    check_audit(mechanism, audited_both_ways(mechanism, samples=SAMPLES, seed=SEEDS[0]))
