"""Linear hashing over a finite field: answers are points of an affine space, and reports are slabs of it.

Let q be a prime or 4, 8 or 16, and m >= 1. An answer is a number below q^m, and its m digits in base q are a point x
of the affine space AG(m, q). A report is a direction y other than 0 and a value b of the field. It supports the points
of its *slab*

    S(y, b) = {x : <x, y> + b is one of the numbers 0..k-1},

which is k parallel hyperplanes. For k = 1 a multiple of y has the same hyperplanes, so only those y are directions
whose last digit that is not 0 is 1: (q^m - 1)/(q - 1) of them. For k > 1 all q^m - 1 vectors are.

A client draws a slab that holds its answer with probability p, and another one otherwise, each uniformly. The affine
maps of the space take any two points to any two others, and slabs to slabs. So such a report tells any two answers
apart as well as any other two (`linear_law`). Of uniform slabs, the share k/q holds a point, and the share

    r = (k/q)(c + (1 - c)(k-1)/(q-1)),      c = (q^{m-1} - 1)/(q^m - 1),

holds two given points: c is the share of the directions in which the two have the same <x, y>.

`supports` counts the slabs of every answer. With H[y, v] the reports of y that support the points with <x, y> = v, the
counts are the sums over y of H[y, <x, y>], and one digit of y is exchanged for one of x at a time: about (m-1)q^{m+1}
additions for k = 1, in place of one for every pair of an answer and a report (Feldman, Nelson, Nguyen and Talwar, ICML
2022, section 4).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..guarantees.fixed_point import ONE
from .channels import Factor
from .client_program import Program, record, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.integer[Any]]

_POLYNOMIALS = {4: 0b111, 8: 0b1011, 16: 0b10011}
"""For each order that is no prime, an irreducible polynomial over GF(2), whose bits are its coefficients."""
MOST_SLABS = 2**24
_MOST_ADDITIONS = 2**32
_LARGE_TABLE, _SMALL_TABLE = 256, 16
"""The most numbers whose products are listed: by the server, so that they stay in the cache; and in a program."""
_SHORT = 256


def is_order(number: int) -> bool:
    """Return True if there is a field of this order here: of a prime, or of 4, 8 or 16."""
    if number in _POLYNOMIALS:
        return True
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def _exponent(power: int, order: int) -> int:
    return round(math.log(power, order))


def _digits_product(base: int, place: int, table: Any) -> list[Any]:
    """Return the expression of the product of two digits in that base, of the direction and of the answer."""
    a, b = (["mod", ["div", name, base**place] if place else name, base] for name in ("vector", "value"))
    return ["mul", a, b] if table is None else ["at", "times", ["add", ["mul", a, base], b]]


@dataclass(frozen=True)
class LinearHashing:
    """The slabs of `width` = k hyperplanes in the space of q^m points, q = `order` and m = `digits`."""

    order: int
    digits: int
    width: int = 1

    @property
    def points(self) -> int:
        """q^m, the most answers."""
        return int(self.order**self.digits)

    @property
    def directions(self) -> int:
        """The number of directions."""
        return (self.points - 1) // (self.order - 1) if self.width == 1 else self.points - 1

    @property
    def slabs(self) -> int:
        """The number of possible reports."""
        return self.directions * self.order

    @property
    def shares(self) -> tuple[Fraction, Fraction]:
        """(k/q, r): the shares of the slabs that hold a given point, and that hold two given points."""
        q, k = self.order, self.width
        same = Fraction(q ** (self.digits - 1) - 1, self.points - 1)
        return Fraction(k, q), Fraction(k, q) * (same + (1 - same) * Fraction(k - 1, q - 1))

    @property
    def fits(self) -> bool:
        """True if a report takes at most three bytes, and the answers of reports are counted in seconds."""
        additions = (self.digits - 1) * self.points * self.order ** min(self.width, 2)
        return self.slabs <= MOST_SLABS and additions <= _MOST_ADDITIONS

    @functools.cached_property
    def starts(self) -> list[int]:
        """Of k = 1, the first direction whose last digit is digit 0, 1, …; and the number of directions."""
        return [(self.order**digit - 1) // (self.order - 1) for digit in range(self.digits + 1)]

    @functools.cached_property
    def _shifts(self) -> list[int]:
        """Of k = 1, a direction as a number in base q, less the number of the direction."""
        return [self.order**digit - start for digit, start in enumerate(self.starts[:-1])]

    # -- the field ----------------------------------------------------------------------------------------

    @property
    def _prime(self) -> bool:
        return self.order not in _POLYNOMIALS

    @functools.cached_property
    def _products(self) -> list[list[int]]:
        """The multiplication table of a field whose order is no prime."""
        return [[self._product(a, b) for b in range(self.order)] for a in range(self.order)]

    def _product(self, a: int, b: int) -> int:
        product = 0
        for place in reversed(range(self.order.bit_length() - 1)):
            product = product << 1 ^ (a if b >> place & 1 else 0)
            if product >= self.order:
                product ^= _POLYNOMIALS[self.order]
        return product

    def _plus(self, a: Any, b: Any) -> Any:
        """Return a + b, of numbers or arrays."""
        return (a + b) % self.order if self._prime else a ^ b

    def _minus(self, a: Any, b: Any) -> Any:
        return (a - b) % self.order if self._prime else a ^ b

    def _times(self, a: Any, b: Any) -> Any:
        import numpy as np

        return a * b % self.order if self._prime else np.array(self._products)[a, b]

    def law(self, keep: int) -> Factor:
        """Return the law of a report of one answer against that of another one, with p = `keep` / 2**64.

        A report holds the first answer alone, the second alone, both, or neither.
        """
        p, (held, both) = Fraction(keep, ONE), self.shares
        inside, outside = p / held, (1 - p) / (1 - held)
        one, neither = held - both, 1 - 2 * held + both
        masses = ((inside, outside, one), (outside, inside, one), (inside, inside, both), (outside, outside, neither))
        return Factor(tuple((first * share, second * share) for first, second, share in masses))

    # -- the client ---------------------------------------------------------------------------------------

    def program(self, given: Mapping[str, Any], keep: int) -> Program:
        """Return the client that draws a slab of its answer with probability `keep` / 2**64, and else another one.

        `given`: the input of the program. A report is the number of the slab, q·direction + b.
        """
        q, prime = self.order, self._prime
        size, table = self._table(_SMALL_TABLE)
        places = range(-(-self.digits // _exponent(size, q)))
        products = [_digits_product(size, place, table) for place in places]
        added = functools.reduce(lambda total, product: ["add" if prime else "xor", total, product], products)
        moved = ["sub" if prime else "xor", "place", "hash"]
        short: list[Any] = ["add", "direction", ["at", "shifts", ["rank", "starts", "direction"]]]
        is_short = self.width == 1 < self.digits
        steps: tuple[tuple[str, Any], ...] = (
            ("direction", ["below", self.directions]),
            ("vector", short if is_short else ["add", "direction", 1]),
            ("hash", ["mod", added, q] if prime else added),
            ("kept", ["bit", whole(keep)]),
            ("inside", ["below", self.width]),
            ("outside", ["below", q - self.width]),
            ("place", ["where", "kept", "inside", ["add", "outside", self.width]]),
            ("b", ["mod", moved, q]),
            ("report", ["add", ["mul", q, "direction"], "b"]),
        )
        tables: dict[str, Any] = {} if table is None else {"times": table.tolist()}
        if is_short:
            tables |= {"starts": self.starts[1:-1], "shifts": self._shifts}
        return Program(given, steps, record([["uint", "report", self.report_bytes, 1]]), tables)

    @property
    def report_bytes(self) -> int:
        """The number of bytes for the number of any slab."""
        return max(1, -(-(self.slabs - 1).bit_length() // 8))

    def holds(self, slabs: Ints, points: Ints) -> NDArray[np.bool_]:
        """Return True where a slab holds a point; slabs and points broadcast."""
        directions = slabs // self.order
        held: NDArray[np.bool_] = self._plus(self.hashed(directions, points), slabs - directions * self.order)
        return held < self.width

    def hashed(self, directions: Ints, values: Ints) -> NDArray[np.int32]:
        """Return <x, y> for each direction and point, which broadcast."""
        import numpy as np

        shifts: Any = 1
        if self.width == 1:
            shifts = np.take(self._shifts, np.searchsorted(self.starts[:-1], directions, side="right") - 1)
        return self._summed(
            (directions + shifts).astype(np.int32), values.astype(np.int32), *self._table(_LARGE_TABLE)
        )

    @functools.cache  # noqa: B019 - a few spaces, which `best_space` keeps anyway
    def _table(self, most: int) -> tuple[int, NDArray[np.int32] | None]:
        """Return the largest power of q up to `most`, or q; and the products <a, b> of the numbers below it.

        None in place of the products that are those of whole numbers.
        """
        import numpy as np

        size = self.order
        while size * self.order <= min(most, self.points):
            size *= self.order
        if size == self.order and self._prime:
            return size, None
        numbers = np.arange(size, dtype=np.int32)
        single = None if self._prime else np.array(self._products, np.int32).reshape(-1)
        return size, self._summed(numbers[:, None], numbers, self.order, single).reshape(-1)

    def _summed(self, vectors: Ints, points: Ints, size: int, table: Ints | None) -> NDArray[np.int32]:
        """Return <x, y>, as the sum of the products in `table` of their digits in base `size`, a power of q."""
        import numpy as np

        total = np.zeros(np.broadcast_shapes(vectors.shape, points.shape), np.int32)
        for left in reversed(range(0, self.digits, _exponent(size, self.order))):
            higher, others = vectors // size, points // size
            a, b = (vectors - higher * size, points - others * size) if left else (vectors, points)
            product = a * b if table is None else table[a * size + b]
            total = total + product if self._prime else total ^ product
            vectors, points = higher, others
        return total % self.order if self._prime else total

    # -- the server ---------------------------------------------------------------------------------------

    def supports(self, counts: Ints, answers: int, listed: Ints | None = None) -> NDArray[np.int64]:
        """Return how many of the reported slabs hold each of the points 0..answers-1.

        `counts`: how often each slab was reported, by its number, or how often each of the `listed` ones was.
        """
        import numpy as np

        q = self.order
        if listed is not None:
            if len(listed) * answers <= self.slabs:
                return (counts @ self.holds(listed[:, None], np.arange(answers))).astype(np.int64)
            given, counts = counts, np.zeros(self.slabs, np.int64)
            counts[listed] = given
        kind: Any = np.int32 if self.width * int(counts.sum()) < 2**31 else np.int64
        lines: Ints = counts.astype(kind, copy=False).reshape(-1, q)
        if self.width > 1:
            block = self._by_hash(np.concatenate((np.zeros((1, q), kind), lines)))
            for left in reversed(range(self.digits)):
                block = self._exchange(block, q if left else 1)
            return block.reshape(-1)[:answers].astype(np.int64)
        found = np.zeros(1, np.int64)
        for digit, (start, end) in enumerate(pairwise(self.starts)):
            rows = q if digit < self.digits - 1 else -(-answers // q**digit)
            block = self._by_hash(lines[start:end])
            for left in reversed(range(digit)):
                block = self._exchange(block, q if left else rows)
            found = (block[:rows] + found).reshape(-1)
        return found[:answers]

    def _by_hash(self, lines: Ints) -> Ints:
        """Return H[v, y], the reports of y that support the points with <x, y> = v."""
        import numpy as np

        values, columns = np.arange(self.order), np.ascontiguousarray(lines.T)
        block: Ints = columns[self._minus(0, values)]
        for place in range(1, self.width):
            block += columns[self._minus(place, values)]
        return block

    def _exchange(self, block: Ints, rows: int) -> Ints:
        """Return F[v, …, x] = Σ H[v + x·z, z, …] for v < rows: the slowest digit z becomes the fastest digit x."""
        import numpy as np

        q = self.order
        given, digits, values = block.reshape(q, q, -1), np.arange(q), np.arange(rows)
        found = np.zeros((q, rows, given.shape[2]), block.dtype)
        for z in range(q):
            part, shifts = np.ascontiguousarray(given[:, z]), self._times(digits, z)
            if found[0].size < _SHORT:  # many short rows: all at once
                found += part[self._plus(shifts[:, None], values)]
                continue
            part = np.concatenate((part, part)) if self._prime else part
            for x, shift in enumerate(shifts.tolist()):
                found[x] += part[shift : shift + rows] if self._prime else part[shift ^ values]
        return np.ascontiguousarray(found.transpose(1, 2, 0)).reshape(rows, -1)


def linear_law(program: Program) -> Factor | None:
    """Return the law of any two answers if these are the steps of `LinearHashing.program`; else None.

    All answers must be points of the space. Then any two of them are told apart as well as any other two.
    """
    steps: dict[str, Any] = dict(program.steps)
    try:
        order, width, keep = int(steps["report"][1][1]), int(steps["inside"][1]), int(steps["kept"][1])
        directions = int(steps["direction"][1])
        spaces = (LinearHashing(order, digits, width) for digits in range(1, MOST_SLABS.bit_length()))
        hashing = next(space for space in spaces if space.directions >= directions)
        known = hashing.slabs <= MOST_SLABS and 2 <= 2 * width <= order and is_order(order)
        if not known or int(program.input["count"]) > hashing.points:
            return None
        return hashing.law(keep) if hashing.program(program.input, keep) == program else None
    except (ArithmeticError, LookupError, StopIteration, TypeError, ValueError):
        return None
