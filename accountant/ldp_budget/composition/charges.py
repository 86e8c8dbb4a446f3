"""Lists of charges in one canonical form, so that every regrouping of a list gives the same total."""

from __future__ import annotations

import dataclasses
import operator
from typing import TYPE_CHECKING, Any

from .._checks import check_many, shown
from .._json import canonical_json
from ..errors import InvalidParameter
from ..guarantees import ANY_INPUTS, Copies, Guarantee, Memoised
from ..guarantees.amounts import UP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Charges = tuple[tuple[Guarantee, int], ...]


def canonical_charges(charges: Iterable[tuple[Guarantee, int]]) -> Charges:
    """Each guarantee once with all its reports, copies resolved, ordered by canonical JSON."""
    counts: dict[Guarantee, int] = {}
    for guarantee, count in in_pairs(charges):
        reports = whole(count)
        while isinstance(guarantee, Copies):
            reports *= guarantee.count
            guarantee = guarantee.of
        if not isinstance(guarantee, Guarantee):
            raise InvalidParameter("charges", _PAIRS, shown(guarantee))
        counts[guarantee] = counts.get(guarantee, 0) + reports
    return tuple(sorted(counts.items(), key=lambda charge: canonical_json(charge[0].to_json())))


def of_one_question(guarantee: Guarantee, reports: int, rule: str) -> tuple[Guarantee, int]:
    """What to compose for `reports` reports of one question, by one secret: no more than all of them can ever lose.

    Reports of a memoised value are drawn from what was drawn for that value once, and need nothing of the input but
    that. Of `values` such draws each is `cap`-DP, given all that was seen before it, whichever value comes next and
    whoever chose it after which report: so the reports of any number are a post-processing of `values` adaptive steps
    at most, which compose as independent ones at the cap do. Under `basic` that is charged where it is less than
    each report as the first of another value.

    It holds for neighbours of the guarantee's `relation`, and never for the reports of two questions, or of two
    secrets, together: what is drawn for those has nothing in common, though their guarantees are equal.
    """
    if not isinstance(guarantee, Memoised) or guarantee.values is None or reports <= guarantee.values:
        return guarantee, reports
    most = UP.multiply(guarantee.cap, guarantee.values)
    if rule == "basic" and UP.multiply(guarantee.loss()[0], reports) <= most:
        return guarantee, reports
    return dataclasses.replace(guarantee, curve=(guarantee.cap,)), guarantee.values


_PAIRS = "pairs of a guarantee and a count"


def in_pairs(charges: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """The charges one by one. Raises `InvalidParameter` for what is no list of pairs."""
    for charge in check_many("charges", charges, _PAIRS):
        if not isinstance(charge, tuple | list) or len(charge) != 2:
            raise InvalidParameter("charges", _PAIRS, shown(charge))
        first, second = charge
        yield first, second


def whole(count: Any) -> int:
    """A number of reports. Raises `InvalidParameter` unless it is a whole number >= 1."""
    try:
        reports = operator.index(count)
    except TypeError:
        raise InvalidParameter("count", "a whole number >= 1", shown(count)) from None
    if reports < 1 or isinstance(count, bool):
        raise InvalidParameter("count", "a whole number >= 1", shown(count))
    return reports


def weakest_relation(charges: Charges) -> str:
    """The neighbours for which the whole list is promised: those of its narrowest guarantee."""
    return next((guarantee.relation for guarantee, _ in charges if guarantee.relation != ANY_INPUTS), ANY_INPUTS)
