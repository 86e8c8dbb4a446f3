"""Protection of the answers of a survey, in plain words: a section of its page.

After NIST SP 800-226, the section states the unit of privacy, the trust model, the meaning of ε, what the server sees,
and what is not covered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldp_budget.guarantees.guarantees import AUDITED, EXACT
from ldp_budget.registry.certification import checked_at
from ldp_budget.registry.public_definition import guarantee_in_words

from .summary_blocks import Block, Facts, Grid, Note, Section, certainty, loss, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .survey_summary import Subject, Summary


_NOISE = "The program adds random noise to the number, and sends only the noisy number."
_BITS = (
    "The program makes a list with one yes or no for each answer, flips each at random, and sends the flipped list."
)
_HASH = (
    "The program replaces the answer by a short code, changes the code at random, and sends only the changed code."
)
_SET = "The program draws a random set of answers, which holds the true answer only a little more often than others."
_WAYS = {
    **dict.fromkeys(("laplace", "gaussian", "staircase", "bounded-laplace", "bounded-staircase"), _NOISE),
    **dict.fromkeys(("unary-encoding", "sue", "oue", "d-bit-flip"), _BITS),
    **dict.fromkeys(("cms", "hcms", "loloha", "heavy-hitters", "rappor"), _HASH),
    **dict.fromkeys(("subset-selection", "pgr"), _SET),
    **dict.fromkeys(
        ("random-substitution", "matrix-substitution"),
        "The program draws at random: it sends the true answer, or another one in its place.",
    ),
    "randomized-response": "The program tosses a coin in secret: it sends the true answer, or a random yes or no.",
    "one-bit-mean": "The program turns the number into one random bit, and sends only that bit.",
    "hybrid": "The program draws a random number, whose average over many people is the true one, and sends only that.",
    "square-wave": "The program draws a random number, more often near the true one than far from it, and sends only that.",
}
_MUCH = 2.944
"""From this ε on, an observer of a report can be 95 % sure: ln 19, rounded down."""
_OTHER = "The program changes the answer at random, and sends only the changed answer."

_CHECKS = {
    EXACT: "computed exactly from the probabilities with which the program draws",
    AUDITED: "passed a statistical audit; not proved for these settings",
}
_UNCHECKED = "not checked"


def protection(summary: Summary) -> Section:
    """Return the section about how each answer is protected."""
    subject = summary.subject
    blocks: list[Block] = [
        Note("Each answer is randomized before the server sees it. Over many people the random parts cancel."),
        *_ways(subject),
        *_how_much(subject),
    ]
    if len(subject.questions) > 1:
        blocks.append(_each_question(subject))
    terms = Note("These are the terms of NIST SP 800-226, a guideline for evaluating such promises:")
    return Section("protection", "How each answer is protected", (*blocks, terms, _terms(summary)))


def _ways(subject: Subject) -> Iterator[Note]:
    """Yield how the answers are randomized, with the numbers of the questions."""
    numbers: dict[str, list[str]] = {}
    for at, each in enumerate(subject.questions, 1):
        numbers.setdefault(_WAYS.get(each.collection.mechanism.name, _OTHER), []).append(str(at))
    for way, of in numbers.items():
        which = "" if len(subject.questions) == 1 else f"Question{'s' if len(of) > 1 else ''} {', '.join(of)}: "
        yield Note(which + way)


def _how_much(subject: Subject) -> Iterator[Note]:
    """Yield a warning if one response reveals much, or without a bound."""
    epsilon = subject.guarantee.describe()["epsilon"]
    many = len(subject.questions) > 1
    if epsilon is None:
        yield Note("Nothing bounds how much one response reveals.", True)
    elif epsilon >= _MUCH and many:
        yield Note(
            f"All answers of a person together reveal much: an observer can be up to {certainty(epsilon)} sure of one "
            "of two sets of answers. The table has the figure of each question alone.",
            True,
        )
    elif epsilon >= _MUCH:
        yield Note(
            f"One response reveals much: an observer can be up to {certainty(epsilon)} sure of an answer.", True
        )


def _each_question(subject: Subject) -> Grid:
    """Return the loss of each question alone, and how it was checked."""
    rows = []
    for each in subject.questions:
        mechanism = each.collection.mechanism
        found = mechanism.guarantee.describe()
        epsilon, delta = found["epsilon"], found["delta"]
        sure = "no bound" if epsilon is None else certainty(epsilon) + (f", but for δ = {delta:g}" if delta else "")
        rows.append((each.text, mechanism.name, loss(epsilon), sure, _CHECKS.get(checked_at(mechanism), _UNCHECKED)))
    return Grid(("Question alone", "Method", "ε at most", "A guess of 50 % rises to at most", "Check"), tuple(rows))


def _check_text(subject: Subject) -> str:
    if len(subject.questions) == 1:
        found = _CHECKS.get(checked_at(subject.questions[0].collection.mechanism), _UNCHECKED)
        return f"The loss of a response: {found}."
    return (
        "Each question by itself, as the table above says. The loss of a response is at most the sum over those that a "
        "person answers; ldp-budget check does not check a survey as a whole."
    )


def _terms(summary: Summary) -> Facts:
    """Return the terms of NIST SP 800-226, as they apply to the survey."""
    subject = summary.subject
    epsilon = subject.guarantee.describe()["epsilon"]
    organization = subject.organisation or "the organization"
    together = ", all its questions together" if len(subject.questions) > 1 else ""
    words = guarantee_in_words(subject.guarantee)["words"]
    if epsilon is not None:
        words += (
            f" An observer who thought two {'sets of ' if together else ''}answers equally likely can be at most "
            f"{certainty(epsilon)} sure of one of them after seeing the report."
        )
    return Facts(
        (
            (
                "Method, as the documentation names it",
                ", ".join(dict.fromkeys(each.collection.mechanism.name for each in subject.questions)),
            ),
            (
                "Unit of privacy",
                f"One response of one person to this survey{together}. The limits protect everything that one account sends. A "
                "person with two accounts has two budgets.",
            ),
            (
                "Trust model",
                "Local: a program randomizes each answer before the server sees it. A respondent who runs the program on "
                f"an own device need not trust {organization}, the server or the network with the answer, but must trust "
                f"the program. If {organization} randomized a file of true answers, it has seen them; the guarantee then "
                "holds against all who see only the reports.",
            ),
            ("Meaning of ε", words),
            (
                "What the server sees",
                "The randomized report, the account that is charged (stored as a keyed hash), the time, and the charge."
                + _seen_without_noise(summary),
            ),
            (
                "Not covered",
                "That a person took part, and when. Network addresses. What the results say about a group to which a "
                "person belongs. Copies of true answers elsewhere. Respondents who do not tell the truth."
                + _not_covered(summary),
            ),
            ("How it was checked", _check_text(subject)),
        )
    )


def _seen_without_noise(summary: Summary) -> str:
    """Return the sentences about the public columns, which the server sees as they are."""
    public = summary.public
    if public is None:
        return "" if summary.files else " If the reports will carry public columns, also these, without noise."
    many = len(public.names) > 1
    return (
        f" Each report also carries the public {'columns' if many else 'column'} {', '.join(public.names)}, without any "
        f"noise. It hides only among the reports of the same {'combination' if many else 'value'}; the smallest "
        f"{'combination' if many else 'group'} has {plural(public.smallest, 'report')}."
    )


def _not_covered(summary: Summary) -> str:
    if summary.public is None:
        return ""
    names = summary.public.names
    columns, reveal = ("columns", "they reveal") if len(names) > 1 else ("column", "it reveals")
    return f" The public {columns} {', '.join(names)}: ε does not count what {reveal}."
