"""Conversion of table columns to answers of a collection; each distinct text is read once.

Every text is trimmed and brought into Unicode normal form NFC first, like a user's name: see `AnswerTexts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._validation import canonical_text, check_switch
from ..errors import InvalidParameter, OutsideDomain
from ..sdk.domain import Categories

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ..registry.collections import Collection
    from .arrow_tables import Stretch


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
        self._clean = {canonical_text(each): each for each in listed}
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


class Cells(NamedTuple):
    """Answers in a stretch of a column.

    `values` are the values of the valid rows, as the mechanism takes them. `kept` are the numbers of these rows.
    `wrong` are the other rows, each with its text. `changed` is the number of kept rows that count as another text.
    """

    values: NDArray[Any]
    kept: list[int]
    wrong: list[tuple[int, str]]
    changed: int


def read_cells(
    collection: Collection,
    found: Stretch,
    *,
    counts_as: Callable[[str], str] | None = None,
    none: frozenset[str] = frozenset(),
    without: Sequence[int] = (),
) -> Cells:
    """Return the answers in a stretch of a column, and the rows without an answer.

    Parameters:
        collection: the collection whose question the column answers.
        found: the stretch of the column.
        counts_as: a function that maps a text to the text it counts as.
        none: texts that never are answers.
        without: numbers of rows to leave out.

    Raises:
        NotSupported: the mechanism has no client that reads text.
    """
    texts = [*found.texts, ""]  # the code of nothing is -1
    taken = texts if counts_as is None else [counts_as(text) for text in texts]
    asked = [number for number, text in enumerate(texts) if text and text not in none]
    try:
        read = collection.read_values([taken[number] for number in asked])
    except OutsideDomain:
        asked = [number for number in asked if _is_answer(collection, taken[number])]
        read = collection.read_values([taken[number] for number in asked])
    place = np.full(len(texts), -1)
    place[asked] = np.arange(len(asked))
    places = place[found.codes]
    if without:
        places[without] = -1
    kept = places >= 0
    changed = np.array([one != other for one, other in zip(texts, taken, strict=True)])
    wrong = np.flatnonzero(~kept).tolist()
    return Cells(
        read[places[kept]],
        np.flatnonzero(kept).tolist(),
        [(number, texts[found.codes[number]]) for number in wrong],
        int(changed[found.codes[kept]].sum()),
    )


def _is_answer(collection: Collection, text: str) -> bool:
    try:
        collection.read_values([text])
    except OutsideDomain:
        return False
    return True


def joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the concatenated values of at least one stretch.

    Parameters:
        parts: the `values` of `Cells`.
    """
    return np.concatenate(parts)
