"""What respondents are told of a collection beside its mechanism."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORDS = ("title", "question", "purpose", "contact")
_TRANSLATED = ("title", "question", "purpose", "answers")
# Also because every language sorts names of these letters alike, and no others.
_TAG = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class About:
    """Texts of a collection, all of which may be left out.

    `languages`: for each language tag (`ko`, `de-AT`) a mapping of `title`, `question`, `purpose` and `answers`, the
    last in the order of the collection's categories. Raises `InvalidParameter` for anything else.
    """

    title: str = ""
    question: str = ""
    purpose: str = ""
    contact: str = ""
    languages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name in _WORDS:
            if not _is_text(getattr(self, name)):
                raise InvalidParameter(name, "a text", ascii(getattr(self, name)))
        if not isinstance(self.languages, dict):
            raise InvalidParameter("languages", "an object with a name for each language", ascii(self.languages))
        for language, words in self.languages.items():
            if not isinstance(language, str) or not _TAG.fullmatch(language):
                raise InvalidParameter("languages", "language tags, such as ko and de-AT", ascii(language))
            if not isinstance(words, dict) or not set(words) <= set(_TRANSLATED):
                raise InvalidParameter("languages", f"{', '.join(_TRANSLATED)} for {language}", ascii(words))
            for name, said in words.items():
                if not (_are_texts(said) if name == "answers" else _is_text(said)):
                    expected = f"{'a list of texts' if name == 'answers' else 'a text'} as {name} in {language}"
                    raise InvalidParameter("languages", expected, ascii(said))

    def check(self, categories: tuple[str, ...] | None) -> None:
        """Raise `InvalidParameter` unless every translation has as many answers as there are categories."""
        for language, words in self.languages.items():
            answers = words.get("answers")
            if answers is not None and len(answers) != len(categories or ()):
                expected = f"{len(categories or ())} answers in {language}, one for each category"
                raise InvalidParameter("languages", expected, len(answers))

    def to_json(self) -> dict[str, Any]:
        """A JSON object of what was said."""
        said = {name: getattr(self, name) for name in (*_WORDS, "languages")}
        return {name: value for name, value in said.items() if value}


def _is_text(value: Any) -> bool:
    """Whether it is a text that can be written in UTF-8."""
    return isinstance(value, str) and not _SURROGATES.search(value)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_text, value))


NOTHING = About()
