"""The contract of mechanisms: the list of checks, how to run them, and the certificate of a plugin.

Each check in `CHECKS` is a plain function of a mechanism; no test framework is needed. It returns if the mechanism
passes, and raises `Broken` if it does not. It raises `NotChecked` if it does not apply or cannot decide. A
statistical check compares reports of the shipped client from fixed seeds. It fails only if two independent samples
agree, so fewer than one in a million correct mechanisms fails. `ldp_budget.testing` makes pytest tests of the checks.

`certify` makes a certificate: the results of contract, exact verification and audits, and the versions and sources
that they apply to. `find_plugin` resolves the name of a plugin.
"""

from __future__ import annotations

import math
import platform
import random
import re
from dataclasses import dataclass, replace
from importlib import import_module, metadata
from importlib.metadata import Distribution, EntryPoint, distributions, entry_points
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import LdpBudgetError, NotSupported, UnknownName
from ldp_budget.guarantees import Memoised, Unbounded
from ldp_budget.guarantees.guarantees import AUDITED, EXACT, LEVELS, NO
from ldp_budget.registry.certification import source_digest
from ldp_budget.registry.plugins import GROUP, Plugin, load_plugin
from ldp_budget.sdk.client_mechanism import ClientMechanism, worst_report
from ldp_budget_verify.law import law_of

from .. import Broken, NotChecked
from ..exact import HOLDS, UNPROVEN, VIOLATED, verify
from . import client_checks, estimator_checks, parameter_checks, report_checks
from .parameter_checks import audited_both_ways, check_audit, claim, variations
from .report_checks import REPORTS, describes_whole_reports
from .statistics import examples_of, made

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ldp_budget.sdk.mechanism import Mechanism


__all__ = [
    "CHECKS",
    "FAILED",
    "PASSED",
    "SKIPPED",
    "Broken",
    "NotChecked",
    "Result",
    "certify",
    "examples_of",
    "find_plugin",
    "made",
    "run",
    "run_all",
    "statement_of",
]

# -- running the checks ----------------------------------------------------------------------------------------------


PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

CHECKS: dict[str, Callable[[Mechanism], None]] = {
    "parameters_round_trip": parameter_checks.parameters_round_trip,
    "bad_parameters_are_refused": parameter_checks.bad_parameters_are_refused,
    "fingerprint_is_stable": parameter_checks.fingerprint_is_stable,
    "fingerprint_is_the_same_elsewhere": parameter_checks.fingerprint_is_the_same_elsewhere,
    "calibration_is_safe": parameter_checks.calibration_is_safe,
    "guarantee_is_exact": parameter_checks.guarantee_is_exact,
    "audit_finds_no_more": parameter_checks.audit_finds_no_more,
    "memo_is_kept": report_checks.memo_is_kept,
    "many_reports_stay_within_the_cap": report_checks.many_reports_stay_within_the_cap,
    "client_matches_channel": client_checks.client_matches_channel,
    "reports_say_no_more_than_described": report_checks.reports_say_no_more_than_described,
    "reports_have_one_form": report_checks.reports_have_one_form,
    "reports_lie_on_their_grid": report_checks.reports_lie_on_their_grid,
    "users_are_drawn_alone_as_together": client_checks.users_are_drawn_alone_as_together,
    "noise_is_used_once": client_checks.noise_is_used_once,
    "program_draws_what_the_client_draws": client_checks.program_draws_what_the_client_draws,
    "program_law_is_the_channel": client_checks.program_law_is_the_channel,
    "seed_decides": client_checks.seed_decides,
    "bad_input_is_refused": report_checks.bad_input_is_refused,
    "unknown_values_do_not_leak": report_checks.unknown_values_do_not_leak,
    "inputs_are_left_alone": report_checks.inputs_are_left_alone,
    "no_users_no_reports": report_checks.no_users_no_reports,
    "estimator_is_unbiased": estimator_checks.estimator_is_unbiased,
    "aggregates_merge": estimator_checks.aggregates_merge,
    "reports_survive_the_file": estimator_checks.reports_survive_the_file,
}
"""Every check by its name, in the order in which to read the results."""


@dataclass(frozen=True)
class Result:
    """The result of a check: "passed", "failed" or "skipped", and the reason if it did not pass.

    `applies`: True if the check applies to such a mechanism. If False, it is skipped, and nothing is left open.
    """

    check: str
    verdict: str
    why: str = ""
    applies: bool = True

    def to_json(self) -> dict[str, str | bool]:
        """Return a JSON object of the fields."""
        return dict(vars(self))


def statement_of(check: str) -> str:
    """Return what a check tests, as a clause: the first line of its docstring."""
    first = (CHECKS[check].__doc__ or check.replace("_", " ")).partition("\n")[0]
    return f"the check that {first.removeprefix('Check that ').partition('. ')[0].rstrip('.')}"


def run(check: str, mechanism: Mechanism) -> Result:
    """Run one check. Any exception other than `NotChecked` is a failure of the mechanism."""
    try:
        CHECKS[check](mechanism)
    except NotChecked as reason:
        return Result(check, SKIPPED, str(reason), applies=reason.applies)
    except MemoryError:
        return Result(check, SKIPPED, "its reports do not fit into memory")
    except Broken as reason:
        return Result(check, FAILED, str(reason))
    except Exception as error:
        return Result(check, FAILED, f"{type(error).__name__}: {error}")
    return Result(check, PASSED)


def run_all(mechanism: Mechanism, leave_out: Iterable[str] = ()) -> list[Result]:
    """Run every check except those in `leave_out`."""
    left_out = set(leave_out)
    return [run(check, mechanism) for check in CHECKS if check not in left_out]


# -- the certificate -------------------------------------------------------------------------------------------------


# The certificate has its own audits, with their figures.
_LEFT_OUT = ("audit_finds_no_more", "many_reports_stay_within_the_cap")
_LEAST_USERS = 100
_LEAST_SAMPLES = 5_000
_CHOSEN = ((0.3, 1.0), (1.0, 3.0))
"""Ranges of ε. For the first example, ε is drawn from each at random, so that a plugin cannot foresee it."""
_OF_CLIENTS = (
    "guarantee_is_exact",
    "memo_is_kept",
    "client_matches_channel",
    "reports_say_no_more_than_described",
    "reports_have_one_form",
    "reports_lie_on_their_grid",
    "users_are_drawn_alone_as_together",
    "noise_is_used_once",
    "program_draws_what_the_client_draws",
    "program_law_is_the_channel",
    "seed_decides",
)
"""The checks that run with the randomly drawn parameters."""

_OWN_PROGRAM = (
    "the client is Python code, which samples support and no proof covers. For a proof, write the client as one "
    "method, `client(self, value, draw)`; otherwise test every possible report at small settings"
)
_OWN_BESIDE_PROVED = (
    "the guarantee of the client program is proved, and samples of the Python client agree with it. To rely on the "
    "proof, let devices run the client program"
)
_IN_PART = (
    "`compare` describes only a part of each report. Samples of the rest showed nothing more about the value. "
    "To show more, test that reports with the same described part are equally likely for every value"
)


def certify(
    mechanisms: Sequence[type[Mechanism]],
    *,
    distribution: str,
    version: str,
    samples: int = 200_000,
    own: bool = False,
    told: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Check every mechanism with each of its examples, and return the certificate as a JSON object.

    `samples`: the reports of each audit, a quarter of them at parameters that are chosen here. A mechanism that
    describes its reports is audited twice, from that description and by a search. `own`: True if each release of this
    package enumerates the law of these clients, see `registry.certification`. `told`: called with a line before each
    parameter set.

    Besides the `examples`, two parameter sets are `chosen` at random, one of them at ε >= 1, and the clients are
    checked there.

    A mechanism is checked "audited" if no check fails and every client was audited, otherwise "no". It is "exact"
    only if the law of its client is proved. That requires one of our own clients, every guarantee proved, and checks
    that the client draws what the proof covers. It also has to draw, to the last byte, what its client program draws.
    The law of a program is enumerated if it can be listed; a program that does not draw what the guarantee is about
    fails. `reasons` say why the level is not higher. A plugin whose client is in the short notation is "exact" by the same
    proof: its client is its program, and its guarantee is the law of that program.

    `verdict` is that of the proofs: "violated" if one mechanism violates its guarantee, "holds" if all are proved, else
    "unproven". `pair`, `report` and `loss` are the two answers and the report that show the largest loss of a mechanism
    that is violated, or of any if none is; null where no law is known, and a null loss is unbounded.
    """
    found = [_mechanism(cls, samples, own, told) for cls in mechanisms]
    return {
        "distribution": distribution,
        "version": version,
        "ldp_budget": metadata.version("ldp-budget"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        **_shown([each["evidence"] for each in found]),
        "mechanisms": found,
    }


_NO_EVIDENCE: dict[str, Any] = {"verdict": UNPROVEN, "pair": None, "report": None, "loss": None}


def _shown(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the evidence of the worst verdict, of the largest loss."""
    order = (VIOLATED, UNPROVEN, HOLDS)
    worst = min((each["verdict"] for each in found), key=order.index, default=UNPROVEN)
    known = [
        each for each in found if each["pair"] is not None and (worst != VIOLATED or each["verdict"] == VIOLATED)
    ]
    largest = max(known, key=lambda each: math.inf if each["loss"] is None else each["loss"], default=_NO_EVIDENCE)
    return {**largest, "verdict": worst}


def _mechanism(cls: type[Mechanism], samples: int, own: bool, told: Callable[[str], None]) -> dict[str, Any]:
    found: dict[str, Any] = {"mechanism": cls.name, "checked": NO, "sources": source_digest(cls)}
    try:
        examples = examples_of(cls)
    except LdpBudgetError as error:
        evidence = _of_error(error)
        problem = {"problem": str(error), "reasons": [str(error)], "evidence": evidence}
        return {**found, "examples": [], "chosen": [], **problem}
    tried = {"examples": examples, "chosen": _drawn(cls, examples)}
    for name, settings in tried.items():
        found[name] = []
        for parameters in settings:
            words = ", ".join(f"{field}={value}" for field, value in parameters.items())
            told(f"{cls.name}({words})")
            found[name].append(_example(cls, parameters, samples, own, name == "chosen"))
    everything = [example for name in tried for example in found[name]]
    reasons = dict.fromkeys(reason for example in everything for reason in example["reasons"])
    evidence = _shown([example["evidence"] for example in everything])
    checked = _worst([example["checked"] for example in everything])
    return {**found, "checked": checked, "reasons": [*reasons], "evidence": evidence}


def _drawn(cls: type[Mechanism], examples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first example with a random ε from the operating system; without an ε, with another parameter."""
    chance = random.SystemRandom()
    try:
        mechanism = made(cls, examples[0])
        if "epsilon" not in mechanism.declared:
            return [each.declared for _, each in variations(mechanism)][:1]
    except LdpBudgetError:
        return []
    found = []
    for low, high in _CHOSEN:
        try:
            found.append(mechanism.at_epsilon(f"{chance.uniform(low, high):.3f}").declared)
        except LdpBudgetError:
            continue  # another parameter, such as a lifetime loss, excludes this ε
    return found


def _worst(checked: Sequence[str]) -> str:
    return min(checked, key=LEVELS.index, default=NO)


def _example(
    cls: type[Mechanism], parameters: dict[str, Any], samples: int, own: bool, chosen: bool
) -> dict[str, Any]:
    try:
        mechanism = cls(**parameters) if chosen else made(cls, parameters)
        declared = mechanism.declared
        claimed = mechanism.guarantee.epsilon
    except LdpBudgetError as error:
        failed = Result("parameters_round_trip", FAILED, f"{parameters}: {error}")
        failure = {"declared": {}, "checked": NO, "reasons": [failed.why], "checks": [failed.to_json()], "audits": []}
        return {**failure, "evidence": _of_error(error)}
    checks = run_all(mechanism, leave_out=set(CHECKS) - set(_OF_CLIENTS) if chosen else _LEFT_OUT)
    if chosen:
        samples = min(samples, max(_LEAST_SAMPLES, samples // 4))
    audits = [_audit(mechanism, samples, reports) for reports in _lengths(mechanism, samples)]
    exact, whole = _exact(mechanism), mechanism.derived or describes_whole_reports(mechanism)
    one = own or isinstance(mechanism, ClientMechanism)
    held_by = "" if one else _OWN_BESIDE_PROVED if exact.get("program") == HOLDS else _OWN_PROGRAM
    checked, reasons = _checked(mechanism, {each.check: each for each in checks}, audits, held_by)
    if checked == AUDITED:
        reasons += _left_open(exact, whole)
    return {
        "declared": declared,
        "checked": checked,
        "reasons": reasons,
        "claimed": claimed if math.isfinite(claimed) else None,
        "whole": whole,
        "exact": exact,
        "evidence": _evidence(mechanism, exact["verdict"]),
        "checks": [each.to_json() for each in checks],
        "audits": audits,
    }


def _exact(mechanism: Mechanism) -> dict[str, Any]:
    try:
        return verify(mechanism).to_json()
    except NotSupported as error:
        return {"verdict": UNPROVEN, "problems": [str(error)]}
    except Exception as error:  # the description contradicts itself; a check reports the same
        return {"verdict": FAILED, "problems": [f"{type(error).__name__}: {error}"]}


def _evidence(mechanism: Mechanism, verdict: str) -> dict[str, Any]:
    """Return the verdict with the two answers, the report and the loss that show the largest loss, if the law is known."""
    verdict = verdict if verdict in (HOLDS, VIOLATED) else UNPROVEN
    if verdict != VIOLATED and not isinstance(mechanism, ClientMechanism):
        return {**_NO_EVIDENCE, "verdict": verdict}
    try:
        program = mechanism.client_program()
        pair, report, loss = worst_report(program, law_of(program))
    except NotSupported:
        return {**_NO_EVIDENCE, "verdict": verdict}
    return {"verdict": verdict, "pair": pair, "report": report, "loss": loss}


def _of_error(error: LdpBudgetError) -> dict[str, Any]:
    """Return the evidence that an error holds: of a client that loses more than it is calibrated to."""
    seen = getattr(error, "evidence", None)
    return {"verdict": VIOLATED, **seen} if seen else dict(_NO_EVIDENCE)


def _left_open(exact: dict[str, Any], whole: bool) -> list[str]:
    """Return what the proof leaves open although it holds."""
    if (
        exact["verdict"] != HOLDS or exact["method"] == "density"
    ):  # in the other case the law of the program is proved
        return []
    return [] if whole else [_IN_PART]


def _lengths(mechanism: Mechanism, samples: int) -> list[int]:
    """Return one report, and for memoised values also as many reports as the samples are enough for."""
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


def _checked(
    mechanism: Mechanism, checks: dict[str, Result], audits: list[dict[str, Any]], held_by: str
) -> tuple[str, list[str]]:
    """Return the level, and why it is not higher. `held_by`: why only samples support the client, if so."""
    failed = [f"{statement_of(each.check)}: {each.why}" for each in checks.values() if each.verdict == FAILED]
    failed += [
        f"{statement_of('audit_finds_no_more')}: {each['why']}" for each in audits if each["verdict"] == FAILED
    ]
    if failed:
        return NO, failed
    promises = not isinstance(mechanism.guarantee, Unbounded)
    # The reports of a derived client are those of its law; samples of its channel add nothing to the proof.
    seen = ("client_matches_channel",) if promises and not isinstance(mechanism, ClientMechanism) else ()
    needed = [checks[name] for name in ("guarantee_is_exact", *seen, "program_draws_what_the_client_draws")]
    open_ = [f"{statement_of(each.check)}: {each.why}" for each in needed if each.verdict != PASSED]
    if not held_by and not open_:
        return EXACT, []
    unheard = [f"no report of it was looked at: {each['why']}" for each in audits if each["verdict"] != PASSED]
    return (NO, unheard) if unheard else (AUDITED, [held_by, *open_] if held_by else open_)


# -- finding a plugin ------------------------------------------------------------------------------------------------


def find_plugin(name: str) -> Plugin:
    """Return the plugin of that name: a distribution or its entry point, otherwise a module that can be imported.

    It is loaded on its own; `Plugin.failed` says what is wrong with it. Raises `UnknownName`.
    """
    found = [_loaded(point) for point in entry_points(group=GROUP) if name in _names_of(point)]
    if found:
        return _joined(found)
    try:
        import_module(name)
    except ImportError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise UnknownName("plugin", name, _known(), why=_no_plugin(name)) from None
    except Exception:
        pass  # reported when it is loaded
    plugin = _loaded(EntryPoint(name=name, value=name, group=GROUP))
    brought_by, its_version = _brought_by(name)
    return replace(plugin, name=brought_by, version=its_version)


def _names_of(point: EntryPoint) -> tuple[str, ...]:
    return (point.name, point.value, "" if point.dist is None else point.dist.name)


def _loaded(point: EntryPoint) -> Plugin:
    return load_plugin(point)


def _joined(parts: list[Plugin]) -> Plugin:
    """Return the plugin of a distribution with several entry points; if one of them failed, the plugin failed."""
    for part in parts:
        if part.failed:
            return part
    return replace(parts[0], registered=tuple(chain(*(part.registered for part in parts))))


def _no_plugin(name: str) -> str:
    known = ", ".join(_known()) or "none"
    return f"no plugin or module is named {name!r}. Plugins and modules: {known}"


def _known() -> list[str]:
    """Return the entry points that provide mechanisms, or fail to load."""
    found = {point.name: _loaded(point) for point in entry_points(group=GROUP)}
    return [name for name, plugin in found.items() if plugin.registered or plugin.failed]


def _brought_by(module: str) -> tuple[str, str]:
    """Return the distribution and version of a module; without a distribution, its own name and no version."""
    top = module.partition(".")[0]
    found = next((each for each in distributions() if _brings(each, top)), None)
    return (module, "") if found is None else (found.metadata["Name"], found.version)


def _brings(found: Distribution, top: str) -> bool:
    """True if `top` is among the distribution's modules.

    The list of its files is searched as text, because making a path of each file is slow.
    """
    declared = (found.read_text("top_level.txt") or "").split()
    if declared:
        return top in declared
    return re.search(rf"^{re.escape(top)}(/.*)?\.py,", found.read_text("RECORD") or "", re.MULTILINE) is not None
