"""A universal family of hash functions whose collision probability is known exactly.

For the prime P = 2**31 - 1, the function (a, b) with 1 <= a < P and 0 <= b < P takes an answer x < P to

    h(x) = ((a·x + b) mod P) mod g                                     (Carter and Wegman 1979, Proposition 7).

*Over the draw of (a, b), uniform, any two different answers collide with the same probability*

    c = Q(P + r - g) / (P(P - 1)),    where P = Q·g + r and 0 <= r < g,

*and c <= 1/g.* For let y = (a·x + b) mod P and y' = (a·x' + b) mod P with x ≠ x'. From y and y' both a, as
(y - y')/(x - x') in the field of P elements, and b = y - a·x can be worked out, and a ≠ 0 if and only if y ≠ y'. So
(a, b) ↔ (y, y') is one to one, and (y, y') is uniform over the P(P - 1) ordered pairs of different elements. The
answers collide where y = y' mod g. Of the residues mod g, r have Q + 1 elements and g - r have Q, so that is

    r(Q + 1)Q + (g - r)Q(Q - 1) = Q(gQ - g + 2r) = Q(P + r - g)

of the pairs. And c <= 1/g, as g·Q(P + r - g) = (P - r)(P - (g - r)) = P² - gP + r(g - r), which is at most P² - P:
r(g - r) is at most g²/4, and 0 where g = 1, so at most (g - 1)P while g <= P.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sampling import Stream

PRIME = 2**31 - 1

_BITS = 31
_BLOCK = 1 << 15
"""Hashes worked out at a time: what a block takes stays in the cache."""


def collision_probability(hash_range: int) -> Fraction:
    """c, with which two different answers share a hash of `hash_range` values, 1 <= hash_range <= P."""
    q, r = divmod(PRIME, hash_range)
    return Fraction(q * (PRIME + r - hash_range), PRIME * (PRIME - 1))


def draw_functions(stream: Stream, count: int) -> NDArray[np.int64]:
    """`count` independent functions, each uniform over the family: rows (a, b), shape (count, 2)."""
    import numpy as np

    from ldp_budget.sampling import integers

    return np.stack([integers(stream, PRIME - 1, count) + 1, integers(stream, PRIME, count)], axis=1)


def hashed(functions: NDArray[Any], answers: NDArray[Any], hash_range: int) -> NDArray[np.int64]:
    """h(x) for functions (..., 2) and answers (...), which broadcast."""
    import numpy as np

    words = functions.astype(np.uint64)
    # a·x + b stays below 2**62; 2**31 is 1 mod P, so its upper bits are added to the lower ones.
    y = words[..., 0] * answers.astype(np.uint64) + words[..., 1]
    y = (y & np.uint64(PRIME)) + (y >> np.uint64(_BITS))
    y -= np.uint64(PRIME) * (y >= np.uint64(PRIME))
    # y mod g; numpy divides by one number much faster than it takes remainders.
    g = np.uint64(hash_range)
    remainders: NDArray[np.int64] = (y - y // g * g).view(np.int64)
    return remainders


def count_hits(functions: NDArray[Any], cells: NDArray[Any], answers: int, hash_range: int) -> NDArray[np.int64]:
    """For each answer 0..answers-1, how many functions (n, 2) take it to their cell (n,). Shape (answers,).

    That is n·answers hashes, in blocks, so memory does not grow with either.
    """
    import numpy as np

    hits = np.zeros(answers, dtype=np.int64)
    rows = max(1, min(len(cells), _BLOCK))
    columns = max(1, _BLOCK // rows)
    for start in range(0, len(cells), rows):
        some, targets = functions[start : start + rows], cells[start : start + rows].astype(np.int64)
        for first in range(0, answers, columns):
            block = np.arange(first, min(first + columns, answers))[:, np.newaxis]
            hits[first : first + columns] += np.count_nonzero(hashed(some, block, hash_range) == targets, axis=1)
    return hits
