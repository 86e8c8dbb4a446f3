"""Protection of the answers of a survey, in plain words: a section of its page.

After NIST SP 800-226, the section states the unit of privacy, the trust model, the meaning of ε, what the server sees,
and what is not covered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ldp_budget.guarantees import ANY_INPUTS, Memoised
from ldp_budget.guarantees.guarantees import AUDITED, EXACT
from ldp_budget.registry.certification import checked_at

from .summary_blocks import Block, Facts, Grid, Note, Section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldp_budget.guarantees import Guarantee

    from .survey_summary import Subject, Summary
    from .translations import Texts


_WAYS = {
    **dict.fromkeys(("laplace", "gaussian", "staircase", "bounded-laplace", "bounded-staircase"), "noise"),
    **dict.fromkeys(("unary-encoding", "sue", "oue", "d-bit-flip"), "bits"),
    **dict.fromkeys(("cms", "hcms", "olh", "loloha", "heavy-hitters", "rappor"), "hash"),
    **dict.fromkeys(("subset-selection", "pgr", "ticks"), "set"),
    **dict.fromkeys(("random-substitution", "matrix-substitution"), "another"),
    "randomized-response": "coin",
    "one-bit-mean": "bit",
    "hybrid": "average",
    "rounded-response": "average",
    "square-wave": "near",
}
"""How each mechanism randomizes, as the end of a key of the texts."""
_MUCH = 2.944
"""From this ε on, an observer of a report can be 95 % sure: ln 19, rounded down."""
_CHECKS = {EXACT: "check.exact", AUDITED: "check.audited"}
_UNCHECKED = "check.none"


def protection(say: Texts, summary: Summary) -> Section:
    """Return the section about how each answer is protected."""
    subject = summary.subject
    blocks: list[Block] = [Note(say("protection.about")), *_ways(say, subject), *_how_much(say, subject)]
    if len(subject.questions) > 1:
        blocks.append(_each_question(say, subject))
    blocks += [Note(say("protection.terms")), _terms(say, summary)]
    return Section("protection", say("protection.title"), tuple(blocks))


def _ways(say: Texts, subject: Subject) -> Iterator[Note]:
    """Yield how the answers are randomized, with the numbers of the questions."""
    numbers: dict[str, list[str]] = {}
    for at, each in enumerate(subject.questions, 1):
        numbers.setdefault(_WAYS.get(each.collection.mechanism.name, "other"), []).append(str(at))
    for way, of in numbers.items():
        key = "protection.question" if len(of) == 1 else "protection.questions"
        which = "" if len(subject.questions) == 1 else f"{say(key, numbers=', '.join(of))}: "
        yield Note(which + say(f"way.{way}"))


def _how_much(say: Texts, subject: Subject) -> Iterator[Note]:
    """Yield a warning if one response reveals much, or without a bound."""
    epsilon = subject.guarantee.describe()["epsilon"]
    if epsilon is None:
        yield Note(say("protection.unbounded"), True)
    elif epsilon >= _MUCH:
        many = len(subject.questions) > 1
        yield Note(say("protection.much_all" if many else "protection.much", sure=say.certainty(epsilon)), True)


def _each_question(say: Texts, subject: Subject) -> Grid:
    """Return the loss of each question alone, and how it was checked."""
    rows = []
    for each in subject.questions:
        mechanism = each.collection.mechanism
        found = mechanism.guarantee.describe()
        check = say(_CHECKS.get(checked_at(mechanism), _UNCHECKED))
        rows.append((each.text, mechanism.name, say.loss(found["epsilon"]), _sure(say, found), check))
    header = ("column.alone", "column.method", "column.epsilon", "column.guess", "column.check")
    return Grid(tuple(map(say, header)), tuple(rows))


def _sure(say: Texts, found: dict[str, Any]) -> str:
    if found["epsilon"] is None:
        return say("no_bound")
    return say.certainty(found["epsilon"]) + but_for(say, found["delta"])


def but_for(say: Texts, delta: float | None) -> str:
    """Return the exception of a guarantee with δ; empty without one."""
    return say("but_for", delta=say.figure(f"{delta:g}")) if delta else ""


def _check_text(say: Texts, subject: Subject) -> str:
    if len(subject.questions) > 1:
        return say("check.survey")
    found = _CHECKS.get(checked_at(subject.questions[0].collection.mechanism), _UNCHECKED)
    return say("check.response", found=say(found))


def _meaning(say: Texts, subject: Subject) -> str:
    """Return what the guarantee of a response means for a belief of an observer."""
    guarantee: Guarantee = subject.guarantee
    found = guarantee.describe()
    if found["epsilon"] is None:
        return say("meaning.none")
    key = "meaning.several" if len(subject.questions) > 1 else "meaning.single"
    sure, but = say.certainty(found["epsilon"]), but_for(say, found["delta"])
    said = say(key, epsilon=say.loss(found["epsilon"]), sure=sure, but=but)
    if not isinstance(guarantee, Memoised):
        return said
    # Without a bound on the number of different memoized answers, only the reports of one answer are bounded together.
    every = guarantee.values is not None and guarantee.relation == ANY_INPUTS
    together = found["lifetime_epsilon"] if every else guarantee.cap
    key = "meaning.repeated" if every else "meaning.same_answer"
    return f"{said} {say(key, epsilon=say.loss(together), sure=say.certainty(float(together)))}"


def _terms(say: Texts, summary: Summary) -> Facts:
    """Return the terms of NIST SP 800-226, as they apply to the survey."""
    subject = summary.subject
    organization = subject.organisation or say("the_organization")
    many = len(subject.questions) > 1
    seen = say("terms.seen") + _seen_without_noise(say, summary)
    rows = (
        ("method", ", ".join(dict.fromkeys(each.collection.mechanism.name for each in subject.questions))),
        ("unit", say("terms.unit_several" if many else "terms.unit_one")),
        ("trust", say("terms.trust_model", organization=organization)),
        ("epsilon", _meaning(say, subject)),
        ("server", seen),
        ("uncovered", say("terms.not_covered") + _not_covered(say, summary)),
        ("checked", _check_text(say, subject)),
    )
    return Facts(tuple((say(f"terms.{name}"), said) for name, said in rows))


def _seen_without_noise(say: Texts, summary: Summary) -> str:
    """Return the sentences about the public columns, which the server sees as they are."""
    public = summary.public
    if public is None:
        return "" if summary.files else f" {say('public.planned')}"
    key = "public.columns" if len(public.names) > 1 else "public.column"
    return f" {say(key, names=', '.join(public.names), reports=say.count('reports', public.smallest))}"


def _not_covered(say: Texts, summary: Summary) -> str:
    if summary.public is None:
        return ""
    names = summary.public.names
    key = "public.columns_uncovered" if len(names) > 1 else "public.column_uncovered"
    return f" {say(key, names=', '.join(names))}"
