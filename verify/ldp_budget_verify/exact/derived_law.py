"""The law that the rules derive from a client program, held against what a mechanism declares.

A rule covers every two answers, however many there are, see `ldp_budget_verify.law`. So the guarantee is checked for the
pairs that the law names, and what `compare` describes is checked against the law. A difference is a finding.
"""

from __future__ import annotations

import functools
import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ldp_budget._files import canonical_json
from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import Memoised, Unbounded
from ldp_budget.sdk.channels import Comparison, Factor
from ldp_budget.sdk.client_program import OPERATORS, Program
from ldp_budget_verify.law import Unknown, law_of
from ldp_budget_verify.law.rules import law_by_structure

from .dominance import HOLDS, UNPROVEN, VIOLATED, Finding, check, worst

if TYPE_CHECKING:
    from ldp_budget.guarantees import Guarantee
    from ldp_budget.sdk.mechanism import Mechanism
    from ldp_budget_verify.law import Law


def derived_law(program: Program) -> Law | None:
    """Return the law of any two answers, derived from the structure of the steps; None if no rule knows it."""
    return _derived(canonical_json(program.to_json()))


@functools.lru_cache(maxsize=64)
def _derived(text: str) -> Law | None:
    try:
        return law_by_structure(Program.from_json(json.loads(text)))
    except Unknown:
        return None


def answers_are_alike(program: Program) -> bool:
    """Return True if the steps show that one pair of answers covers every pair, also for reports of one secret.

    If a public hash reads the answer, the same is shown of its cells. Then the report must show the function, because
    a mixture over functions that it does not show is harder to tell apart than one of them.
    """
    law = derived_law(program)
    if law is None or not law.alike:
        return False
    hashed = [x for _, x in program.steps if isinstance(x, list) and OPERATORS[x[0]].kind == "hash"]
    if not hashed:
        return not law.public_map
    function = hashed[0][2]
    name = function[1] if isinstance(function, list) else function
    return len(hashed) == 1 and (name in law.shown or isinstance(name, int))


def check_derived(mechanism: Mechanism) -> tuple[Finding, Law | None, list[Comparison]]:
    """Check a mechanism that is its fields and its client, so that it declares no channel.

    Return the finding, the law and the comparisons of all pairs that stand for every two answers. The guarantee, derived
    or declared by the class, is checked against all of them.
    """
    guarantee = mechanism.guarantee
    try:
        law = law_of(mechanism.client_program())
        pairs = law.pairs()
    except NotSupported as error:
        return Finding(UNPROVEN, str(error)), None, []
    compared = [Comparison.rows(*zip(*pair, strict=True)) for pair in pairs]
    both = list(dict.fromkeys(each for found in compared for each in (found, found.swapped())))
    if isinstance(guarantee, Unbounded):
        return Finding(HOLDS), law, both
    if isinstance(guarantee, Memoised):
        return Finding(UNPROVEN, "the curve of memoized draws is declared, and not derived"), law, both
    found = worst(check(guarantee, each) for each in both)
    if found.verdict == HOLDS and not law.every_pair:
        found = Finding(UNPROVEN, f"the law by {law.rule} covers only the answers that were compared")
    return found, law, both


def law_within(guarantee: Guarantee, law: Law) -> Finding:
    """Check the guarantee of one report for every two answers.

    If the law is a bound that two answers need not reach, one that exceeds the guarantee leaves it open.
    """
    try:
        pairs = law.pairs()
    except NotSupported as error:
        return Finding(UNPROVEN, str(error))
    both = (Comparison.of(Factor(masses)) for pair in pairs for masses in (tuple(pair), _swapped(pair)))
    found = worst(check(guarantee, each) for each in both)
    if found.verdict == VIOLATED and not law.tight:
        return Finding(UNPROVEN, f"of two answers that share no cell, if there are any, {found.why}")
    return found


def _swapped(pair: list[tuple[Fraction, Fraction]]) -> tuple[tuple[Fraction, Fraction], ...]:
    return tuple((q, p) for p, q in pair)


def description_of(mechanism: Mechanism, law: Law, first: Any, second: Any) -> Finding:
    """Check that `compare` describes the law of two answers, outcomes with one likelihood ratio taken together."""
    described = _by_ratio(mechanism.compare(first, second).merged())
    if described == _by_ratio(law.comparison(first, second).merged()):
        return Finding(HOLDS)
    return Finding(VIOLATED, f"the law of the program is not what compare({first}, {second}) says")


def _by_ratio(masses: list[tuple[Fraction, Fraction]]) -> dict[Fraction | None, tuple[Fraction, Fraction]]:
    sums: dict[Fraction | None, tuple[Fraction, Fraction]] = {}
    for p, q in masses:
        if p or q:
            ratio = p / q if q else None
            a, b = sums.get(ratio, (Fraction(0), Fraction(0)))
            sums[ratio] = a + p, b + q
    return sums
