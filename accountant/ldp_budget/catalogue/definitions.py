"""The public definition of a collection: what respondents are told, and the client that draws for them.

One JSON object with its own digest, signed off as a whole. A client runs the program in it, and refuses one whose
digest is not its own, or another than it was given. The collection's fingerprint covers what was declared; the digest
covers the thresholds that are drawn, and every word as well.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

from .._json import canonical_json
from ..authoring.programs import VERSION, double
from ..guarantees import ANY_INPUTS, Memoised
from ..guarantees.amounts import float_up

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..authoring.base import Mechanism
    from ..guarantees import Guarantee
    from .about import About

FORMAT = "ldp-budget client"


def definition_of(
    name: str, fingerprint: str, mechanism: Mechanism, categories: tuple[str, ...] | None, about: About
) -> dict[str, Any]:
    """The public definition of a collection with that name and fingerprint.

    Raises `NotSupported` where the mechanism has no client program.
    """
    definition = {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "title": about.title or name,
        "question": about.question,
        "purpose": about.purpose,
        "contact": about.contact,
        "languages": {language: dict(words) for language, words in about.languages.items()},
        "answers": None if categories is None else list(categories),
        "mechanism": mechanism.name,
        "fingerprint": fingerprint,
        "context": mechanism.fingerprint,
        **mechanism.client_program().to_json(),
        "guarantee": guarantee_in_words(mechanism.guarantee),
    }
    return {**definition, "digest": digest_of(definition)}


def digest_of(definition: Mapping[str, Any]) -> str:
    """SHA-256 over the canonical JSON of a definition without its digest: keys in order, no spaces, ASCII alone.

    There is no floating-point number in it, so that it is the same text in every language.
    """
    rest = {name: value for name, value in definition.items() if name != "digest"}
    return hashlib.sha256(canonical_json(rest).encode()).hexdigest()


def guarantee_in_words(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee for respondents: a sentence, and its figures as text, null where unbounded.

    `answer_epsilon` is what all reports of one memoised answer lose together, which is what a device charges.
    """
    found = guarantee.describe()
    if isinstance(guarantee, Memoised):
        found["answer_epsilon"] = float_up(guarantee.cap)
    figures = {name: double(value) if isinstance(value, float) else value for name, value in found.items()}
    return {**figures, "words": _sentence(guarantee, found)}


def _sentence(guarantee: Guarantee, figures: Mapping[str, Any]) -> str:
    epsilon, delta = figures["epsilon"], figures["delta"]
    if epsilon is None:
        return "Nothing is promised about what a report gives away."
    said = (
        f"A report is at most {_times(epsilon)} times as likely with your answer as with any other (ε = {epsilon:g}"
    )
    said += ")." if not delta else f"), but for a part of {delta:g} (δ)."
    if not isinstance(guarantee, Memoised):
        return said
    if guarantee.values is not None and guarantee.relation == ANY_INPUTS:
        said += " However many reports are sent, together they are at most"
        return f"{said} {_times(figures['lifetime_epsilon'])} times as likely."
    # Nothing bounds how many different answers are kept, or what it gives away that they change.
    said += " However many reports of one and the same answer are sent, together they are at most"
    return f"{said} {_times(figures['answer_epsilon'])} times as likely."


def _times(epsilon: float) -> str:
    """e^ε, rounded up."""
    if epsilon > 700:
        return f"e^{epsilon:g}"
    times = math.exp(epsilon)
    step = 10.0 ** (math.floor(math.log10(times)) - 2)
    return f"{math.ceil(times / step) * step:.3g}"
