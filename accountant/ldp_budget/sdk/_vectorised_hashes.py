"""The public hashes of client programs for many users at once.

Hashes of few pairs of a function and a value are looked up in a table, as soon as a call has as many users. One user
alone computes one hash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._columns import BIT, LONG, Column, cast, filled, type_for
from .hash_families import BloomFilters, HashFamily, polynomial_hash
from .value_ranges import WORD, VaryingSizeError, within

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._columns import Array, Lot
    from ._vectorised_operators import Call

_FEW_USERS = 8
"""Users who are hashed one by one."""
_SMALL = 1 << 10
"""Entries of a table that is worth its time for any number of users."""
_MOST_FUNCTIONS, _MOST_WIDTH = 2**24, 2**31


def polynomial(call: Call) -> Column:
    """Compile `polynomial`."""
    function, value, width = call.columns
    one_by_one = _each_polynomial(call)
    cells, last = width.number, value.span[1]
    if cells is None or cells > _MOST_WIDTH or function.span[1] >= _MOST_FUNCTIONS:
        return one_by_one
    family = HashFamily(call.label, function.span[1] + 1, cells)
    kind = type_for([call.span], call.word)
    functions, values = filled(function, LONG), filled(value, LONG if within(value.span, WORD) else object)
    listed = last + 1 if value.span[0] >= 0 else None
    tables: dict[str, Array] = {}

    def pairs(lot: Lot) -> Array:
        """Look the hash of each pair of a function and a value up, all of which are in the table."""
        if "cells" not in tables:
            points = family.points(range(last + 1))
            tables["cells"] = family(np.arange(family.count)[:, np.newaxis], points).astype(kind).reshape(-1)
        place = functions(lot) * (last + 1) + values(lot)
        return tables["cells"].take(place)

    def points_of(lot: Lot) -> Array:
        if listed is None or listed > max(lot.total, _SMALL):
            return family.points_of(values(lot))
        if "points" not in tables:
            tables["points"] = family.points(range(last + 1))
        return tables["points"].take(values(lot))

    def step(lot: Lot) -> Array:
        if lot.n <= _FEW_USERS and "cells" not in tables:
            return one_by_one.get(lot)
        if "cells" in tables or (listed is not None and listed * family.count <= max(lot.total, _SMALL)):
            return pairs(lot)
        chosen = functions(lot)
        all_functions = "coefficients" in vars(family) or family.count <= 4 * lot.total
        return (family if all_functions else family.of_few)(chosen, points_of(lot)).astype(kind, copy=False)

    return call.result(kind, step)


def _each_polynomial(call: Call) -> Column:
    """Compile the hash of one user after the other, for any range of its arguments."""
    kind, seed = type_for([call.span], call.word), call.label
    gets: list[Callable[[Lot], Array]] = [filled(cast(each, object), object) for each in call.columns]

    def step(lot: Lot) -> Array:
        rows = zip(*(get(lot).tolist() for get in gets), strict=True)
        return np.array([polynomial_hash(seed, *row) for row in rows], kind)

    return call.result(kind, step)


def bloom(call: Call) -> Column:
    """Compile `bloom`."""
    cohort, value, size, hashes = call.columns
    bits, each = size.number, hashes.number
    if bits is None or each is None:
        raise VaryingSizeError("bloom has a length that differs between users")
    cohorts, answers = cohort.span[1] + 1, value.span[1] + 1
    if value.span[0] < 0 or cohort.span[0] < 0 or cohorts * answers > WORD[1] or not each:
        raise VaryingSizeError("bloom has values that are too many to number")
    family = BloomFilters(bits, each, call.label)
    chosen, values = filled(cohort, LONG), filled(value, LONG)
    tables: dict[str, Any] = {}

    def step(lot: Lot) -> Array:
        if "rows" not in tables and cohorts * answers > max(lot.total, _SMALL):
            return family.rows(values(lot), chosen(lot))
        if "rows" not in tables:
            every = np.arange(answers * cohorts)
            tables["rows"] = family.rows(every // cohorts, every % cohorts)
        return tables["rows"].take(values(lot) * cohorts + chosen(lot), axis=0)

    return call.result(BIT, step)


BUILDERS: dict[str, Callable[[Call], Column]] = {"polynomial": polynomial, "bloom": bloom}
