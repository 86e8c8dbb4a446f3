"""Checks of declared parameters and of the guarantee.

Parameters survive JSON, have one fingerprint, and invalid ones are refused. Calibration ends on the safe side of its
target. The guarantee is exact, and an audit finds no larger loss.
"""

from __future__ import annotations

import copy
import json
import os
import pickle
import random
import subprocess
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ldp_budget.errors import InvalidParameter, LdpBudgetError, NotSupported
from ldp_budget.guarantees import Memoised, from_json
from ldp_budget.guarantees.fixed_point import canonical, decimal
from ldp_budget.sdk.parameters import Choice, Flag, Integer, Real

from .. import TOP_LEVEL, Broken, NotChecked, expect
from ..audit import audit
from ..exact import HOLDS, VIOLATED, verify
from .statistics import SEEDS, expect_to_fit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldp_budget.sdk.mechanism import Mechanism
    from ldp_budget.sdk.parameters import Field

    from ..audit import Audit


def parameters_round_trip(mechanism: Mechanism) -> None:
    """Check that declared values survive JSON, pickle, copies and `replace`, and the guarantee survives JSON."""
    read = type(mechanism)(**json.loads(json.dumps(mechanism.declared)))
    copies = {"its JSON": read, "a deep copy": copy.deepcopy(mechanism), "replace()": mechanism.replace()}
    importable = _importable(type(mechanism))
    if importable:
        copies["pickle"] = pickle.loads(pickle.dumps(mechanism))
    for how, other in copies.items():
        expect(other == mechanism, f"{how} gives {other!r} for {mechanism!r}")
        expect(other.fingerprint == mechanism.fingerprint, f"{how} gives another fingerprint")
        expect(other.guarantee == mechanism.guarantee, f"{how} gives another guarantee")
        expect(dict(other.parameters) == dict(mechanism.parameters), f"{how} gives other parameters")
    json.dumps(mechanism.describe(1000))
    stored = json.loads(json.dumps(mechanism.guarantee.to_json()))
    expect(from_json(stored) == mechanism.guarantee, "the guarantee does not survive its JSON")
    if not importable:
        raise NotChecked(
            f"the rest passes, but {type(mechanism).__qualname__} cannot be imported, so nothing can be pickled; "
            f"{TOP_LEVEL}"
        )


def _importable(cls: type[Mechanism]) -> bool:
    """True if pickle finds the class by its name; False if it was made by `exec` or inside a function."""
    found: Any = sys.modules.get(cls.__module__)
    for name in cls.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is cls


# -- the fingerprint ------------------------------------------------------------------------------------------


def fingerprint_is_stable(mechanism: Mechanism) -> None:
    """Check that equal declarations have one fingerprint in every spelling, and other declarations another."""
    for name, spelling in _spellings(mechanism):
        other = type(mechanism)(**{**mechanism.declared, name: spelling})
        expect(other.fingerprint == mechanism.fingerprint, f"{name}={spelling!r} has another fingerprint")
    for name, other in variations(mechanism):
        expect(other.fingerprint != mechanism.fingerprint, f"{name} does not change the fingerprint")


def _spellings(mechanism: Mechanism) -> Iterator[tuple[str, Any]]:
    for name, field in mechanism.fields.items():
        value = getattr(mechanism, name)
        if value is None or name not in mechanism.declared:
            continue
        if isinstance(field, Real):
            text = canonical(value)
            yield from ((name, spelt) for spelt in (value, text, f"{text}{'0' if '.' in text else '.0'}"))
            if decimal(float(value)) == value:
                yield name, float(value)
        if isinstance(field, Integer):
            yield from ((name, spelt) for spelt in (str(value), f"{value}.0", float(value), Decimal(value)))


def variations(mechanism: Mechanism) -> Iterator[tuple[str, Mechanism]]:
    """Yield the same mechanism with one declared value changed, as far as that is allowed."""
    for name in mechanism.declared:
        for value in _others(mechanism.fields[name], getattr(mechanism, name)):
            try:
                yield name, type(mechanism)(**{**mechanism.declared, name: value})
            except LdpBudgetError:
                continue
            break


def _others(field: Field[Any], value: Any) -> list[Any]:
    if isinstance(field, Real):
        factors = (Decimal("1.01"), Decimal("0.99"), Decimal(2), Decimal("0.5"))
        return [value * factor for factor in factors] if value else [Decimal("0.01"), Decimal("-0.01")]
    if isinstance(field, Integer):
        return [value + 1, value - 1, 2 * value]
    if isinstance(field, Choice):
        return [choice for choice in field.choices if choice != value]
    return [not value] if isinstance(field, Flag) else []


_ELSEWHERE = """
import json, sys
from importlib import import_module
given = json.loads(sys.argv[1])
sys.path[:] = given["path"]
found = import_module(given["module"])
for name in given["name"].split("."):
    found = getattr(found, name)
print()
print(found(**given["declared"]).fingerprint)
"""


def fingerprint_is_the_same_elsewhere(mechanism: Mechanism) -> None:
    """Check that a fresh interpreter, with another hash seed, computes the same fingerprint."""
    cls = type(mechanism)
    if cls.__module__ == "__main__" or "<locals>" in cls.__qualname__:
        raise NotChecked(f"{cls.__qualname__} cannot be imported by another process; {TOP_LEVEL}")
    given = {"module": cls.__module__, "name": cls.__qualname__, "declared": mechanism.declared, "path": sys.path}
    done = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE, json.dumps(given)],
        env={**os.environ, "PYTHONHASHSEED": "1234"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    last = done.stderr.strip().splitlines()[-1:] or [""]
    if done.returncode and last[0].startswith("ModuleNotFoundError"):
        raise NotChecked(f"another process cannot import {cls.__module__}; {TOP_LEVEL}")
    expect(done.returncode == 0, f"another process cannot build it: {last[0]}")
    expect(done.stdout.splitlines()[-1] == mechanism.fingerprint, "another process finds another fingerprint")


# -- refusal of invalid parameters ----------------------------------------------------------------------------


def bad_parameters_are_refused(mechanism: Mechanism) -> None:
    """Check that unknown, missing and invalid parameters raise `InvalidParameter`, and fields cannot be set later."""
    cls, declared = type(mechanism), mechanism.declared
    _refused(cls, {**declared, "no_such_parameter": 1}, "an unknown parameter")
    for name, field in cls.fields.items():
        if field.required:
            _refused(cls, {other: value for other, value in declared.items() if other != name}, f"no {name}")
        for value in _wrong(field):
            _refused(cls, {**declared, name: value}, f"{name}={value!r}")
        try:
            setattr(mechanism, name, getattr(mechanism, name))
        except AttributeError:
            continue
        raise Broken(f"{name} can be set on a mechanism, which must be frozen")


def _refused(cls: type[Mechanism], declared: dict[str, Any], what: str) -> None:
    try:
        cls(**declared)
    except InvalidParameter:
        return
    raise Broken(f"{what} is accepted")


def _wrong(field: Field[Any]) -> Iterator[Any]:
    """Yield values outside the field's range, and objects that are not values at all."""
    yield from ("nonsense", ["1"], object())
    if isinstance(field, Real):
        yield from ("nan", "inf", float("nan"), float("inf"))
        above, at_least, below, at_most = map(_bound, (field.above, field.at_least, field.below, field.at_most))
        yield from (bound for bound in (above, below) if bound is not None)
        yield from (bound - 1 - abs(bound) for bound in (above, at_least) if bound is not None)
        yield from (bound + 1 + abs(bound) for bound in (below, at_most) if bound is not None)
    if isinstance(field, Integer):
        yield from (1.5, "nan", float("inf"))
        yield from (bound - 1 for bound in (field.at_least,) if bound is not None)
        yield from (bound + 1 for bound in (field.at_most,) if bound is not None)
    if isinstance(field, Flag):
        yield 7


def _bound(bound: Any) -> Decimal | None:
    """Return a bound as a number; an author may have written it as text."""
    return None if bound is None else decimal(bound)


# -- the guarantee ---------------------------------------------------------------------------------------------------


_TARGETS = 20
_VERIFIED = 3
_LOWEST, _HIGHEST = 0.05, 5.0

SAMPLES = 40_000
CONFIDENCE = 1 - 1e-7
"""Confidence of an audit. The rest is the probability that a correct mechanism fails."""


def calibration_is_safe(mechanism: Mechanism) -> None:
    """Check that calibration to random ε promises no more than ε (and its δ); some of the results are verified."""
    if "epsilon" not in mechanism.declared:
        raise NotChecked("it is not calibrated to epsilon", applies=False)
    chance = random.Random(mechanism.fingerprint)
    verified = met = 0
    for _ in range(_TARGETS):
        epsilon = f"{_LOWEST * (_HIGHEST / _LOWEST) ** chance.random():.6g}"
        try:
            calibrated = mechanism.at_epsilon(epsilon)
        except InvalidParameter:
            continue  # another parameter, such as a lifetime loss, excludes this ε
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
    """Check that `verify` proves the guarantee. Raises `NotChecked` if it can prove nothing."""
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
    """Return the largest ε that the guarantee allows `reports` reports of one value to lose together, at their δ."""
    guarantee = mechanism.guarantee
    if isinstance(guarantee, Memoised):
        within = reports <= len(guarantee.curve)
        return float(guarantee.curve[reports - 1] if within else guarantee.cap)
    return reports * guarantee.epsilon


def audited(mechanism: Mechanism, *, samples: int, reports: int = 1, search: bool = False, seed: int | None) -> Audit:
    """Return an audit of that many reports of one value. Raises `NotChecked` if the client cannot be run."""
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
        return  # an audit may know inputs even if the mechanism names none
    expect_to_fit(mechanism, one, samples, streamed=True)


def audited_both_ways(mechanism: Mechanism, *, samples: int, reports: int = 1, seed: int | None) -> Audit:
    """Return the audit that finds more: from the declared event, or from a search that trusts no declaration.

    Only the search detects data that a client sends in addition to what it declares. Each audit has `samples` reports
    of its own.
    """
    found = audited(mechanism, samples=samples, reports=reports, seed=seed)
    if not found.declared:
        return found
    searched = audited(mechanism, samples=samples, reports=reports, search=True, seed=seed)
    return max(found, searched, key=lambda each: each.lower_bound)


def check_audit(mechanism: Mechanism, found: Audit) -> None:
    """Raise `Broken` if an audit found a larger loss than promised."""
    promised = claim(mechanism, found.reports)
    expect(
        found.lower_bound <= promised,
        f"{'one report loses' if found.reports == 1 else f'{found.reports} reports of one value lose'} at least "
        f"{found.lower_bound:.6g} (at {found.pair}: "
        f"{found.event}); promised is {promised:.6g}",
    )


def audit_finds_no_more(mechanism: Mechanism) -> None:
    """Check that an audit of single reports finds no larger loss than promised."""
    check_audit(mechanism, audited_both_ways(mechanism, samples=SAMPLES, seed=SEEDS[0]))
