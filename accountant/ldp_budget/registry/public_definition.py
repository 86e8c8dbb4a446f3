"""The public definition of a collection: texts for the respondents, and the client program that draws for them.

The definition is one JSON object with its own digest, signed off as a whole. A client runs the program in it. The
client refuses a definition whose digest does not match, or differs from the digest it was given. The collection's
fingerprint covers the declaration. The digest also covers the drawn thresholds and every text.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .._files import json_digest
from ..errors import InvalidParameter
from ..guarantees import ANY_INPUTS, Memoised, OneSided
from ..guarantees.fixed_point import float_up

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..guarantees import Guarantee
    from ..sdk.client_program import Program
    from ..sdk.mechanism import Mechanism


_WORDS = ("title", "question", "purpose", "contact")
_TRANSLATED = ("title", "question", "purpose", "answers")
# Also because only names of these letters sort alike in every programming language.
_TAG = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class About:
    """Texts of a collection for its respondents. Each may be empty.

    `languages`: for each language tag (`ko`, `de-AT`) a mapping of `title`, `question`, `purpose` and `answers`;
    `answers` in the order of the collection's categories. Raises `InvalidParameter` for anything else.
    """

    title: str = ""
    question: str = ""
    purpose: str = ""
    contact: str = ""
    languages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name in _WORDS:
            if not _is_text(getattr(self, name)):
                raise InvalidParameter(name, "a string", ascii(getattr(self, name)))
        if not isinstance(self.languages, dict):
            raise InvalidParameter("languages", "a dict from language tags to texts", ascii(self.languages))
        for language, words in self.languages.items():
            if not isinstance(language, str) or not _TAG.fullmatch(language):
                raise InvalidParameter(
                    "languages", "a dict from language tags, such as ko and de-AT, to texts", ascii(language)
                )
            if not isinstance(words, dict) or not set(words) <= set(_TRANSLATED):
                raise InvalidParameter(
                    "languages", f"a dict of {', '.join(_TRANSLATED)} for {language}", ascii(words)
                )
            for name, said in words.items():
                if not (_are_texts(said) if name == "answers" else _is_text(said)):
                    kind = "a list of strings" if name == "answers" else "a string"
                    expected = f"texts with {kind} as {name} in {language}"
                    raise InvalidParameter("languages", expected, ascii(said))

    def check(self, categories: tuple[str, ...] | None) -> None:
        """Raise `InvalidParameter` unless every translation has as many answers as there are categories."""
        for language, words in self.languages.items():
            answers = words.get("answers")
            if answers is not None and len(answers) != len(categories or ()):
                expected = f"texts with {len(categories or ())} answers in {language}, one for each category"
                raise InvalidParameter("languages", expected, f"{len(answers)} answers")

    def to_json(self) -> dict[str, Any]:
        """A JSON object of the non-empty texts."""
        said = {name: getattr(self, name) for name in (*_WORDS, "languages")}
        return {name: value for name, value in said.items() if value}


def _is_text(value: Any) -> bool:
    """True if the value is a text that UTF-8 can encode."""
    return isinstance(value, str) and not _SURROGATES.search(value)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_text, value))


NOTHING = About()

MINIMUM_GROUP = 20
"""The default minimum group of a survey or collection: no round has fewer reports."""
MOST_GROUP = 10**6


FORMAT = "ldp-budget client"


def definition_of(
    name: str,
    fingerprint: str,
    mechanism: Mechanism,
    categories: tuple[str, ...] | None,
    about: About,
    *,
    labels: bool = False,
    program: Program | None = None,
) -> dict[str, Any]:
    """The public definition of a collection with that name and fingerprint; `labels` if devices send them.

    `program` is that of the device, if it is not that of the mechanism alone.

    Raises `NotSupported` if the mechanism has no client program.
    """
    from ..sdk.client_program import VERSION  # a charge needs no program
    from ..sdk.tick_sets import TickSets

    domain = mechanism.domain
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
        **(program or mechanism.client_program()).to_json(),
        "guarantee": guarantee_in_words(mechanism.guarantee),
        **({"labels": True} if labels else {}),
        **({"at_most": domain.most} if isinstance(domain, TickSets) else {}),
    }
    return {**definition, "digest": digest_of(definition)}


def digest_of(definition: Mapping[str, Any]) -> str:
    """SHA-256 over the canonical JSON of a definition without its digest: sorted keys, no spaces, ASCII only.

    The definition holds no floating-point number, so every programming language gives the same text.
    """
    rest = {name: value for name, value in definition.items() if name != "digest"}
    return json_digest(rest)


def guarantee_in_words(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee for respondents: a sentence, and the figures as text; null where unbounded.

    `answer_epsilon` is the loss of all reports of one memoised answer together, which a device charges.
    """
    from ..sdk.client_program import double

    found = guarantee.describe()
    if isinstance(guarantee, Memoised):
        found["answer_epsilon"] = float_up(guarantee.cap)
    figures = {name: double(value) if isinstance(value, float) else value for name, value in found.items()}
    return {**figures, "words": _sentence(guarantee, found)}


def _sentence(guarantee: Guarantee, figures: Mapping[str, Any]) -> str:
    epsilon, delta = figures["epsilon"], figures["delta"]
    if isinstance(guarantee, OneSided):
        return (
            f"Only one answer is protected: a report is at most {_times(figures['eta'])} times as likely with it as with "
            f"another (η = {figures['eta']:g}). With another answer, a report can prove that you gave it."
        )
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
    # No bound holds for the number of different memoised answers, or for what a change of answer reveals.
    said += " However many reports of one and the same answer are sent, together they are at most"
    return f"{said} {_times(figures['answer_epsilon'])} times as likely."


def _times(epsilon: float) -> str:
    """e^ε, rounded up."""
    if epsilon > 700:
        return f"e^{epsilon:g}"
    times = math.exp(epsilon)
    step = 10.0 ** (math.floor(math.log10(times)) - 2)
    return f"{math.ceil(times / step) * step:.3g}"
