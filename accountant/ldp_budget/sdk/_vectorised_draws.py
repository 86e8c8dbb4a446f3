"""The draws of client programs for many users at once: from the stream, or from each user's secret.

A step draws for all users of a lot before the next step, so of one user alone the bytes are those of the interpreter.
A draw whose chance, bound or length differs between users is compiled only where the stream defines its bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..guarantees.fixed_point import ONE
from ..sampling import bernoulli, geometric, integers, laplace, normal, subsets
from ..sampling.memoisation import memo_words
from ._columns import BIT, LONG, WIDE, bounded, cast, filled, type_for
from .operator_forms import check_draw
from .value_ranges import WORD, VaryingSizeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._columns import Array, Column, Lot
    from ._vectorised_operators import Call


def fixed(call: Call, *places: int) -> list[int]:
    """Return the arguments at these places, the same for all users. Raises `VaryingSizeError` for any other."""
    found = [call.columns[place].number for place in places]
    if any(number is None for number in found):
        raise VaryingSizeError(f"{call.name} has an argument that differs between users")
    if len(found) == len(call.columns):
        check_draw(call.name, found)
    return found  # type: ignore[return-value]


def _narrowed(call: Call, draw: Callable[[Lot], Array]) -> Column:
    """Return the column of drawn 64-bit numbers in the type that holds their range."""
    kind = type_for([call.span], call.word)
    return call.result(kind, draw if kind is LONG else lambda lot: draw(lot).astype(kind))


# -- from the stream -------------------------------------------------------------------------------------------------


def bit(call: Call) -> Column:
    """Compile a coin of a fixed chance."""
    (chance,) = fixed(call, 0)
    return call.result(BIT, lambda lot: bernoulli(lot.stream, chance, lot.n))


def bits(call: Call) -> Column:
    """Compile a vector of coins of one chance."""
    chance, size = fixed(call, 0, 1)
    return call.result(BIT, lambda lot: bernoulli(lot.stream, chance, lot.n * size).reshape(lot.n, size))


def bit_at(call: Call) -> Column:
    """Compile a coin whose chance depends on the user."""
    chances = filled(call.columns[0], WIDE)
    return call.result(BIT, lambda lot: bernoulli(lot.stream, chances(lot), lot.n))


def bits_each(call: Call) -> Column:
    """Compile a vector of coins, each of its own fixed chance."""
    chances = call.columns[0].constant
    if chances is None:  # a coin of a chance 0 reads nothing
        raise VaryingSizeError("bits_each has chances that differ between users")
    each: list[int] = list(chances)  # type: ignore[arg-type]

    def step(lot: Lot) -> Array:
        rows = np.empty((len(each), lot.n), BIT)
        for row, chance in zip(rows, each, strict=True):
            row[:] = bernoulli(lot.stream, chance, lot.n)
        return rows.T

    return call.result(BIT, step)


def below(call: Call) -> Column:
    """Compile a uniform number below a bound, which may depend on the user."""
    bound = call.columns[0]
    number = bound.number
    if number is not None:
        return _narrowed(call, lambda lot: integers(lot.stream, number, lot.n))
    bounds = cast(bound, type_for([bound.span], LONG)).get
    return _narrowed(call, lambda lot: integers(lot.stream, bounds(lot), lot.n))


def belows(call: Call) -> Column:
    """Compile a vector of uniform numbers below one bound."""
    bound, size = fixed(call, 0, 1)
    return _narrowed(call, lambda lot: integers(lot.stream, bound, lot.n * size).reshape(lot.n, size))


def belows_from(call: Call) -> Column:
    """Compile a vector of uniform numbers below bounds that grow by one."""
    bound, size = fixed(call, 0, 1)
    kind = type_for([call.span], call.word)

    def step(lot: Lot) -> Array:
        rows = np.empty((size, lot.n), kind)
        for place, row in enumerate(rows):
            row[:] = integers(lot.stream, bound + place, lot.n)
        return rows.T

    return call.result(kind, step)


def subset(call: Call) -> Column:
    """Compile a uniform subset of a fixed size, ascending."""
    members, size = fixed(call, 0, 1)
    return _narrowed(call, lambda lot: subsets(lot.stream, members, size, lot.n))


def shuffle(call: Call) -> Column:
    """Compile a vector in uniform order."""
    (vector,) = call.columns
    get = filled(vector)

    def step(lot: Lot) -> Array:
        rows = get(lot).copy()
        for last in range(rows.shape[1] - 1, 0, -1):
            chosen = integers(lot.stream, last + 1, lot.n)
            moved = rows[lot.rows, chosen]
            rows[lot.rows, chosen] = rows[:, last]
            rows[:, last] = moved
        return rows

    return call.result(vector.kind, step)


_ENDLESS: dict[str, Any] = {"geometric": geometric, "laplace": laplace, "normal": normal}


def endless(call: Call) -> Column:
    """Compile a draw without an end; refuse a number beyond its range, which comes once in 2**512 draws."""
    (given,) = fixed(call, 0)
    draw = _ENDLESS[call.name]
    plain = call.result(LONG, lambda lot: draw(lot.stream, given, lot.n))
    low, high = call.span
    wide = type(plain)((min(low, WORD[0]), WORD[1]), None, LONG, plain.get, fresh=True)
    drawn = bounded(wide, (low, high), f"{call.name} must draw a number from {low} to {high}")
    return call.result(type_for([call.span], call.word), cast(drawn, type_for([call.span], call.word)).get)


# -- from the secret -------------------------------------------------------------------------------------------------


def _words(call: Call, count: int) -> Callable[[Lot], Array]:
    """Return a function that computes `count` words of each user's secret for the value of the first argument."""
    values, label = filled(call.columns[0], LONG), call.label
    return lambda lot: memo_words(lot.secrets, f"{lot.context} {label}", values(lot), count)


def kept_bits(call: Call) -> Column:
    """Compile coins that are the same whenever the user has the value again."""
    chance = call.columns[1]
    (size,) = fixed(call, 2)
    words, number = _words(call, size), chance.number
    if number is not None:
        least = np.uint64(min(number, ONE - 1))
        return call.result(BIT, lambda lot: words(lot) < least if number < ONE else words(lot) <= least)
    if chance.span[1] >= ONE:
        raise VaryingSizeError("kept_bits has chances up to 1 that differ between users")
    chances = filled(chance, WIDE)
    return call.result(BIT, lambda lot: words(lot) < chances(lot)[:, np.newaxis])


def kept_belows(call: Call) -> Column:
    """Compile numbers below growing bounds that are the same whenever the user has the value again."""
    bound, size = fixed(call, 1, 2)
    check_draw(call.name, [0, bound, size])
    words, bounds = _words(call, size), np.uint64(bound) + np.arange(size, dtype=np.uint64)
    kind = type_for([call.span], call.word)
    # Transposed, as later steps mostly take one column after the other.
    return call.result(kind, lambda lot: np.ascontiguousarray((words(lot) % bounds).T).astype(kind, copy=False).T)


def kept_top(call: Call) -> Column:
    """Compile the highest bits of a word that is the same whenever the user has the value again."""
    (places,) = fixed(call, 1)
    words, kind = _words(call, 1), type_for([call.span], call.word)
    if not places:
        return call.result(kind, lambda lot: np.zeros(lot.n, kind))
    shift = np.uint64(64 - places)
    return call.result(kind, lambda lot: (words(lot)[:, 0] >> shift).astype(kind))


BUILDERS: dict[str, Callable[[Call], Column]] = {
    "bit": bit,
    "bits": bits,
    "bit_at": bit_at,
    "bits_each": bits_each,
    "below": below,
    "belows": belows,
    "belows_from": belows_from,
    "subset": subset,
    "shuffle": shuffle,
    **dict.fromkeys(_ENDLESS, endless),
    "kept_bits": kept_bits,
    "kept_belows": kept_belows,
    "kept_top": kept_top,
}
