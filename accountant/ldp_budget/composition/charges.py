"""Lists of charges in one canonical form, so that every regrouping of a list gives the same total."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from .._json import canonical_json
from ..errors import InvalidParameter
from ..guarantees import ANY_INPUTS, Copies, Guarantee

if TYPE_CHECKING:
    from collections.abc import Iterable

    Charges = tuple[tuple[Guarantee, int], ...]


def canonical_charges(charges: Iterable[tuple[Guarantee, int]]) -> Charges:
    """Each guarantee once with all its reports, copies resolved, ordered by canonical JSON."""
    counts: dict[Guarantee, int] = {}
    for guarantee, count in charges:
        reports = whole(count)
        while isinstance(guarantee, Copies):
            reports *= guarantee.count
            guarantee = guarantee.of
        if not isinstance(guarantee, Guarantee):
            raise InvalidParameter("charges", "pairs of a guarantee and a count", repr(guarantee))
        counts[guarantee] = counts.get(guarantee, 0) + reports
    return tuple(sorted(counts.items(), key=lambda charge: canonical_json(charge[0].to_json())))


def whole(count: Any) -> int:
    """A number of reports. Raises `InvalidParameter` unless it is a whole number >= 1."""
    try:
        reports = operator.index(count)
    except TypeError:
        raise InvalidParameter("count", "a whole number >= 1", repr(count)) from None
    if reports < 1 or isinstance(count, bool):
        raise InvalidParameter("count", "a whole number >= 1", repr(count))
    return reports


def weakest_relation(charges: Charges) -> str:
    """The neighbours for which the whole list is promised: those of its narrowest guarantee."""
    return next((guarantee.relation for guarantee, _ in charges if guarantee.relation != ANY_INPUTS), ANY_INPUTS)
