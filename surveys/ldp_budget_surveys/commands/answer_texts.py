"""Texts that count as answers: trimmed and in Unicode normal form NFC, like a user's name; perhaps without case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldp_budget._validation import canonical_text, check_switch
from ldp_budget.errors import InvalidParameter
from ldp_budget.sdk.domain import Categories, yes_no

if TYPE_CHECKING:
    from ldp_budget.registry.collections import Collection


def folded(text: str) -> str:
    """Return a text that is the same for all texts that differ only by case or by spaces between words."""
    return " ".join(canonical_text(text).casefold().split())


class AnswerTexts:
    """The texts that count as answers of a collection: `texts(text)` is the answer that a text counts as.

    A text is trimmed and brought into NFC. With `ignore_case`, a text that differs from a listed answer only by case
    or by spaces between words counts as that answer; without a list, all such texts count as one, in small letters.

    Raises:
        InvalidParameter: two answers of the collection differ only by case or spaces, so `ignore_case` is ambiguous.
    """

    def __init__(self, collection: Collection, *, ignore_case: bool = False) -> None:
        domain = collection.mechanism.domain
        self._ignores = check_switch("ignore_case", ignore_case)
        self._listed = frozenset(listed := collection.categories or ())
        self.unlisted = isinstance(domain, Categories) and not domain.listed
        """True if any text is an answer, so that a misspelled one is not found."""
        self._clean = yes_no(listed) | {canonical_text(each): each for each in listed}
        self._folded = {folded(each): each for each in listed}
        if ignore_case and len(self._folded) < len(listed):
            hint = "Leave --ignore-case out, or make a collection whose answers differ by more."
            alike = next(each for each in listed if self._folded[folded(each)] != each)
            found = f"{alike!r} and {self._folded[folded(alike)]!r}"
            raise InvalidParameter(
                "ignore_case", "left out, because two answers differ only by case", found, hint=hint
            )

    def __call__(self, text: str) -> str:
        if text in self._listed:
            return text
        clean = canonical_text(text)
        if clean in self._clean or not self._ignores:
            return self._clean.get(clean, clean)
        return self._folded.get(folded(clean), folded(clean) if self.unlisted else clean)

    def near(self, text: str) -> str | None:
        """Return the listed answer from which a text differs only by case or spaces; None if there is none."""
        return self._folded.get(folded(text))
