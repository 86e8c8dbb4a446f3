"""A certificate: what contract, exact verification and audits came to, and for which versions and sources."""

from __future__ import annotations

import math
import platform
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from ...catalogue.certificates import source_digest
from ...errors import LdpBudgetError, NotSupported
from ...guarantees import Memoised, Unbounded
from ...guarantees.evidence import AUDITED, EXACT, LEVELS, NO
from ..verification import UNPROVEN, verify
from ._checks import FAILED, PASSED, SKIPPED, Result, run_all
from ._examples import examples_of, made
from ._losses import audited_both_ways, check_audit, claim
from ._memos import REPORTS
from ._outcome import Broken, NotChecked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...authoring.base import Mechanism


# The certificate has audits of its own, with their figures.
_LEFT_OUT = ("audit_finds_no_more", "many_reports_stay_within_the_cap")
_LEAST_USERS = 100


def certify(
    mechanisms: Sequence[type[Mechanism]],
    *,
    distribution: str,
    version: str,
    samples: int = 200_000,
    told: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Check every mechanism with each of its examples; the certificate as a JSON object.

    `samples`: reports of each audit; a mechanism that describes its reports is audited twice, by that and by a
    search. `told` is called with a line for each example before it is checked.

    A mechanism is checked "exact" where no check fails, every guarantee is proved and every client was seen to draw
    what the proof is about; "audited" where no check fails and every client was audited; else "no".
    """
    return {
        "distribution": distribution,
        "version": version,
        "ldp_budget": metadata.version("ldp-budget"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "mechanisms": [_mechanism(cls, samples, told) for cls in mechanisms],
    }


def _mechanism(cls: type[Mechanism], samples: int, told: Callable[[str], None]) -> dict[str, Any]:

    found: dict[str, Any] = {"mechanism": cls.name, "checked": NO, "sources": source_digest(cls), "examples": []}
    try:
        examples = examples_of(cls)
    except NotSupported as error:
        return {**found, "problem": str(error)}
    for parameters in examples:
        words = ", ".join(f"{name}={value}" for name, value in parameters.items())
        told(f"{cls.name}({words})")
        found["examples"].append(_example(cls, parameters, samples))
    return {**found, "checked": _worst([example["checked"] for example in found["examples"]])}


def _worst(checked: Sequence[str]) -> str:
    return min(checked, key=LEVELS.index, default=NO)


def _example(cls: type[Mechanism], parameters: dict[str, Any], samples: int) -> dict[str, Any]:
    try:
        mechanism = made(cls, parameters)
        declared = mechanism.declared
        claimed = mechanism.guarantee.epsilon
    except LdpBudgetError as error:
        failed = Result("parameters_round_trip", FAILED, f"{parameters}: {error}")
        return {"declared": {}, "checked": NO, "checks": [failed.to_json()], "audits": []}
    checks = run_all(mechanism, leave_out=_LEFT_OUT)
    audits = [_audit(mechanism, samples, reports) for reports in _lengths(mechanism, samples)]
    checked = _checked(mechanism, {each.check: each.verdict for each in checks}, [each["verdict"] for each in audits])
    return {
        "declared": declared,
        "checked": checked,
        "claimed": claimed if math.isfinite(claimed) else None,
        "exact": _exact(mechanism),
        "checks": [each.to_json() for each in checks],
        "audits": audits,
    }


def _exact(mechanism: Mechanism) -> dict[str, Any]:
    try:
        return verify(mechanism).to_json()
    except NotSupported as error:
        return {"verdict": UNPROVEN, "problems": [str(error)]}
    except Exception as error:  # a description that contradicts itself; the check says the same
        return {"verdict": FAILED, "problems": [f"{type(error).__name__}: {error}"]}


def _lengths(mechanism: Mechanism, samples: int) -> list[int]:
    """One report, and of memoised values as many as the samples are enough for."""
    many = min(REPORTS, samples // _LEAST_USERS)
    return [1, many] if isinstance(mechanism.guarantee, Memoised) and many > 1 else [1]


def _audit(mechanism: Mechanism, samples: int, reports: int) -> dict[str, Any]:
    promised = claim(mechanism, reports)
    found = {"reports": reports, "claimed": promised if math.isfinite(promised) else None}
    try:
        audit = audited_both_ways(mechanism, samples=samples, reports=reports, seed=None)
        found |= {name: getattr(audit, name) for name in ("lower_bound", "confidence", "samples")}
        check_audit(mechanism, audit)
    except NotChecked as reason:
        return {**found, "verdict": SKIPPED, "why": str(reason)}
    except Broken as reason:
        return {**found, "verdict": FAILED, "why": str(reason)}
    except Exception as error:
        return {**found, "verdict": FAILED, "why": f"{type(error).__name__}: {error}"}
    return {**found, "verdict": PASSED}


def _checked(mechanism: Mechanism, checks: dict[str, str], audits: list[str]) -> str:
    if FAILED in (*checks.values(), *audits):
        return NO
    promises = not isinstance(mechanism.guarantee, Unbounded)
    if checks["guarantee_is_exact"] == PASSED and (checks["client_matches_channel"] == PASSED or not promises):
        return EXACT
    return AUDITED if audits and all(verdict == PASSED for verdict in audits) else NO
