"""What respondents are told of a collection beside its mechanism."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORDS = ("title", "question", "purpose", "contact")
_TRANSLATED = ("title", "question", "purpose", "answers")


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
            if not isinstance(getattr(self, name), str):
                raise InvalidParameter(name, "a text", getattr(self, name))
        for language, words in self.languages.items():
            if not isinstance(words, dict) or not set(words) <= set(_TRANSLATED):
                raise InvalidParameter("languages", f"{', '.join(_TRANSLATED)} for {language}", words)

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


NOTHING = About()
