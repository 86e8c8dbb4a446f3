"""A stretch of a column as answers to a collection: each different text is read once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import OutsideDomain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ..registry.collections import Collection
    from .arrow_tables import Stretch


class Cells(NamedTuple):
    """The answers of a stretch.

    `values`: of the rows that hold one, as the mechanism takes them. `kept`: which rows these are. `wrong`: the other
    rows, each with its text. `changed`: how many of the kept ones count as something else than they say.
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
    """The answers of a stretch of a column, and where there are none.

    Parameters:
        collection: what was asked.
        found: the column.
        counts_as: what is taken in a text's place.
        none: texts that are no answers whatever is asked.
        without: rows that are left out whatever they hold.

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
    """The values of several stretches, of which there is at least one, one after the other.

    Parameters:
        parts: as `Cells` has them.

    Raises:
        Nothing.
    """
    return np.concatenate(parts)
