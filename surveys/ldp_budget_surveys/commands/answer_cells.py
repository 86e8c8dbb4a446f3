"""Conversion of table columns to answers of a collection; each distinct text is read once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ldp_budget.errors import OutsideDomain

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from numpy.typing import NDArray

    from ldp_budget.registry.collections import Collection

    from ..arrow_tables import Stretch


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
    none: Container[str] = frozenset(),
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
