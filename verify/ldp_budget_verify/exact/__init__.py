"""Exact verification of a mechanism's guarantee, from its channel or its density.

`verify` compares ordered pairs of inputs. With at most 64 answers it compares every pair. With more answers, or
numbers, it compares pairs of the mechanism's critical inputs. Then the guarantee is unproven, unless the law of the
client program covers every input, or its steps show that all answers are treated alike.

If a pair has finitely many outcomes, the probabilities are exact fractions of the integer thresholds that the client
draws with, and nothing is rounded. A density is checked in double precision, to 1e-9. The audit of the client needs
no description at all, see `verification.audit`.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ldp_budget._validation import check_instance
from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import ANY_INPUTS, SAME_CHANGE_PATTERN, Memoised, OneSided, Unbounded
from ldp_budget.guarantees.fixed_point import float_up
from ldp_budget.sdk.domain import Categories
from ldp_budget.sdk.frequency_oracle import FrequencyMechanism
from ldp_budget.sdk.mechanism import Mechanism
from ldp_budget.sdk.numeric_mechanism import NumericMechanism
from ldp_budget_verify.law.all_outcomes import AllOutcomes

from .. import TWO_INPUTS, undefined
from .densities import DensityPair, check_density, largest_loss
from .derived_law import check_derived
from .dominance import HOLDS, UNPROVEN, VIOLATED, Finding, check, check_ratio, loss_at, worst
from .estimators import check_estimator
from .memoisation_checks import hashes_the_answer
from .one_sided import check_one_sided
from .program_checks import ProgramFinding, check_given_memos, check_program, flip_hides_all, stand_for_all

if TYPE_CHECKING:
    from ldp_budget.guarantees import Guarantee
    from ldp_budget.sdk.channels import Comparison

__all__ = ["HOLDS", "UNPROVEN", "VIOLATED", "Verification", "verify"]

# The number of points of a memoised guarantee's curve that are checked, besides its cap.
_LONGEST = 40
_UNFORESEEN = 4
_FEW_ANSWERS = 64
"""The most answers for which every pair is compared."""
_FEW_COVER_ALL = "it is not shown that these cover all other inputs. Show it by a client program"
_OTHERWISE = f"promise it for {SAME_CHANGE_PATTERN}, if that will do"


@dataclass(frozen=True)
class Verification:
    """The result of `verify`.

    `verdict`: "holds", "violated" or "unproven" for the guarantee. `lower` and `upper`: bounds of the loss of one
    report over all pairs compared, None if not known; with a δ, of the ε at that δ.

    `method`: "channel", "density" or "channel and density", "" if the mechanism describes neither. `pairs`: the
    number of ordered pairs of inputs that were compared. `looked_at`: the inputs that the verdict covers, in words.

    `estimator`: the same verdicts for `estimate` being unbiased with true standard errors. `program`: the same for
    the client program, by the law of whole reports. If the program is "violated", so is the verdict; if it is
    "unproven", the verdict does not change. `program_open`: why a program is "unproven", in words. `problems`: the
    evidence against each, in words.
    """

    verdict: str
    method: str = ""
    lower: float | None = None
    upper: float | None = None
    pairs: int = 0
    estimator: str = UNPROVEN
    problems: tuple[str, ...] = ()
    program: str = UNPROVEN
    program_open: str = ""
    looked_at: str = ""

    def __repr__(self) -> str:
        bounds = "not known" if self.upper is None else f"from {self.lower!r} to {self.upper!r}"
        how = f" by {self.method}, over {self.pairs} pairs" if self.method else ""
        problems = f"; {self.problems[0]}" + "; …" * (len(self.problems) > 1) if self.problems else ""
        return f"<Verification: {self.verdict}{how}; loss {bounds}; estimator {self.estimator}{problems}>"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object of the fields."""
        return {**vars(self), "problems": list(self.problems)}


def verify(mechanism: Mechanism) -> Verification:
    """Check the guarantee of a mechanism exactly, as far as it describes what it draws.

    Parameters:
        mechanism: the mechanism to check. One that describes nothing is `unproven`, which is not an error.

    Returns:
        The verdict, and the evidence for it.

    Raises:
        InvalidParameter: `mechanism` is not a mechanism with its parameters.
        ValueError: its description contradicts itself.
    """
    check_instance("mechanism", mechanism, Mechanism, "a mechanism with its parameters")
    guarantee = mechanism.guarantee
    if mechanism.derived and not isinstance(guarantee, Memoised):
        return _derived(mechanism)
    try:
        pairs = list(combinations(_inputs(mechanism), 2))
    except NotSupported as error:
        why = undefined(mechanism, error, "critical_inputs")
        return Verification(HOLDS if isinstance(guarantee, Unbounded) else UNPROVEN, problems=(why,))
    program = check_program(mechanism, list(dict.fromkeys(value for pair in pairs for value in pair)))
    comparisons, findings = _compared(mechanism, pairs)
    densities = _densities(mechanism, pairs)
    smooth = [check_density(guarantee, density) for density in densities]
    if (comparisons and worst(findings).verdict == HOLDS) or program.every:
        # The law of the draws is proved in fractions, so a density that double precision leaves open does not matter.
        smooth = [found for found in smooth if found.verdict != UNPROVEN]
    findings += smooth
    if isinstance(guarantee, OneSided):
        findings += check_one_sided(mechanism, guarantee)
    if isinstance(guarantee, Memoised):
        findings += _over_time(mechanism, guarantee, pairs)
    elif not isinstance(guarantee, Unbounded):
        findings.append(check_given_memos(mechanism, list(dict.fromkeys(value for pair in pairs for value in pair))))
    methods = [name for name, found in (("channel", comparisons), ("density", densities)) if found]
    finding = worst(findings) if methods else Finding(UNPROVEN, _silent(mechanism, pairs))
    every, looked_at = _looked_at(mechanism, pairs, program)
    if finding.verdict == HOLDS and not every and not isinstance(guarantee, Unbounded):
        finding = Finding(UNPROVEN, f"{looked_at} were compared, and {_FEW_COVER_ALL}")
    if program.verdict == VIOLATED:
        finding = worst([finding, program])
    shown = largest_loss(guarantee, densities) if densities and not comparisons else _loss(guarantee, comparisons)
    lower, upper = shown or (None, None)
    try:
        estimator = check_estimator(mechanism, program.laws)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        if program.verdict != VIOLATED:
            raise
        estimator = Finding(UNPROVEN)  # a program that makes no report of some answer
    return Verification(
        finding.verdict,
        " and ".join(methods),
        lower,
        upper,
        2 * len(pairs) if methods else 0,
        estimator.verdict,
        tuple(dict.fromkeys(found.why for found in (finding, estimator) if found.why)),
        program.verdict,
        program.why if program.verdict == UNPROVEN else "",
        looked_at,
    )


def _derived(mechanism: Mechanism) -> Verification:
    """Return the verification of a mechanism whose law is derived from its client."""
    finding, law, comparisons = check_derived(mechanism)
    if isinstance(mechanism.guarantee, OneSided):
        finding = worst([finding, *check_one_sided(mechanism, mechanism.guarantee)])
    lower, upper = _loss(mechanism.guarantee, comparisons) or (None, None)
    estimator = check_estimator(mechanism, law.laws if isinstance(law, AllOutcomes) else ())
    size = mechanism.domain.size if isinstance(mechanism.domain, Categories) else 0
    return Verification(
        finding.verdict,
        "" if law is None else law.rule,
        lower,
        upper,
        len(comparisons),
        estimator.verdict,
        tuple(dict.fromkeys(found.why for found in (finding, estimator) if found.why)),
        finding.verdict,
        finding.why if finding.verdict == UNPROVEN else "",
        f"all pairs of its {size:,} answers" + ("" if law is None else f", by the rule of {law.rule}"),
    )


def _inputs(mechanism: Mechanism) -> list[Any]:
    """Return all answers if they are few; else the critical inputs, and a few random, unpredictable ones."""
    if not isinstance(mechanism.domain, Categories):
        return list(dict.fromkeys(mechanism.critical_inputs()))
    size = mechanism.domain.size
    # For hashed answers, the curves of many pairs are slow, and one pair that shares no cell covers all.
    hashes = not isinstance(mechanism, FrequencyMechanism) or bool(mechanism.public_seed)
    curves = isinstance(mechanism.guarantee, Memoised) and hashes
    if size <= _FEW_ANSWERS and not curves:
        return list(range(size))
    inputs = list(mechanism.critical_inputs())
    # Answers that are hashed by a public seed are all equally good.
    if isinstance(mechanism, FrequencyMechanism) and not mechanism.public_seed:
        inputs += [secrets.randbelow(size) for _ in range(_UNFORESEEN)]
    return list(dict.fromkeys(inputs))


def _looked_at(mechanism: Mechanism, pairs: list[tuple[Any, Any]], program: ProgramFinding) -> tuple[bool, str]:
    """Return True if the pairs cover every pair of inputs, as far as a description shows; and the pairs in words."""
    if not isinstance(mechanism.domain, Categories):
        named = f"{len(pairs)} pairs of values, which the mechanism names as the ones furthest apart"
        if program.every:
            return True, f"{named}, and by the law of the client program all of them"
        if flip_hides_all(mechanism):
            return True, f"{named}, and by the last flip of each report all of them"
        return False, named
    size = mechanism.domain.size
    if len(pairs) == size * (size - 1) // 2:
        return True, f"all pairs of its {size} answers"
    found = f"{len(pairs)} of the pairs of its {size:,} answers"
    if program.every:
        return True, f"{found}, and by the law of the client program all of them"
    if stand_for_all(mechanism, pairs):
        why = "the steps of the client program tell no two answers apart better"
        return True, f"{found}, which cover all other inputs: {why}"
    collide = ", whose hashes may collide, so that other pairs may be told apart better" if _hashes(mechanism) else ""
    return False, found + collide


def _hashes(mechanism: Mechanism) -> bool:
    try:
        return hashes_the_answer(mechanism.client_program())
    except NotSupported:
        return False


def _compared(mechanism: Mechanism, pairs: list[tuple[Any, Any]]) -> tuple[list[Comparison], list[Finding]]:
    """Return the distinct comparisons of the pairs, in both orders, and the finding for each.

    A mechanism that describes only some pairs is not proved by the pairs it chose.
    """
    different: dict[Comparison, None] = {}
    silent: list[Finding] = []
    for first, second in pairs:
        try:
            different.setdefault(mechanism.compare(first, second))
        except NotSupported as error:
            silent = [Finding(UNPROVEN, str(error))]
    both = dict.fromkeys(each for found in different for each in (found, found.swapped()))
    findings = [check(mechanism.guarantee, comparison) for comparison in both]
    return list(both), findings + (silent if different else [])


def _silent(mechanism: Mechanism, pairs: list[tuple[Any, Any]]) -> str:
    """Return the reason why nothing was compared, and what the author can do."""
    if not pairs:
        return f"{mechanism.name} names no two inputs to compare; {TWO_INPUTS}"
    also = ", or a `density`" if isinstance(mechanism, NumericMechanism) else ""
    return f"{mechanism.name} describes no channel; define `compare` and `outcomes`{also}"


def _over_time(mechanism: Mechanism, guarantee: Memoised, pairs: list[tuple[Any, Any]]) -> list[Finding]:
    """Check the curve, up to `_LONGEST` reports, and the cap of a memoised guarantee, for reports of one value."""
    findings: dict[Finding, None] = {}
    if guarantee.relation == ANY_INPUTS:
        why = f"that the curve holds for {ANY_INPUTS} is not checked; {_OTHERWISE}"
        findings[Finding(UNPROVEN, why)] = None
    claims = [*enumerate(guarantee.curve[:_LONGEST], start=1), (None, guarantee.cap)]
    for length, bound in claims:
        try:
            repeated = dict.fromkeys(mechanism.compare_repeated(*pair, length) for pair in pairs)
        except NotSupported as error:
            return [*findings, Finding(UNPROVEN, undefined(mechanism, error, "compare_repeated"))]
        findings |= dict.fromkeys(check_ratio(bound, both) for each in repeated for both in (each, each.swapped()))
    return list(findings)


def _densities(mechanism: Mechanism, pairs: list[tuple[Any, Any]]) -> list[DensityPair]:
    """Return the ordered pairs of a mechanism that has a density."""
    if not isinstance(mechanism, NumericMechanism) or type(mechanism).density is NumericMechanism.density:
        return []
    return [DensityPair(mechanism, *each) for first, second in pairs for each in ((first, second), (second, first))]


def _loss(guarantee: Guarantee, comparisons: list[Comparison]) -> tuple[float, float] | None:
    """Return the largest loss of one report over all comparisons, rounded down and up; with a δ, the ε at it."""
    promised = guarantee.loss()
    try:
        if promised and promised[1]:
            losses = [loss_at(promised[1], comparison) for comparison in comparisons]
        else:
            losses = [comparison.loss() for comparison in comparisons]
    except NotSupported:
        return None
    if not losses or None in losses:
        return None
    low, high = (max(column) for column in zip(*(loss for loss in losses if loss is not None), strict=True))
    return max(0.0, -float_up(-low)), float_up(high)
