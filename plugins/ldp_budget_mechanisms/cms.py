"""The count mean sketch (document 002, section 3.2.1): a hash of the value as m randomized bits."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from ldp_budget.authoring.channels import Case, Comparison, Factor
from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import Guarantee

from ._sketch import BLOCK, Sketch, SketchAggregate
from .unary import SymmetricUnaryEncoding

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.randomness import RandomSource

    from ._sketch import Cells


class CountMeanSketch(Sketch):
    """CMS: the cell as m bits, by symmetric unary encoding at ε.

    Two values differ in two of the bits or, where they collide, in none.
    """

    name = "cms"
    aliases = ("count-mean-sketch",)
    summary = "one of k hashes of the value, as m randomized bits; for domains too large to list"
    source = "document 002, section 3.2.1; Apple, Learning with Privacy at Scale (2017)"

    def check(self) -> None:
        super().check()
        _ = self._encoding.thresholds

    @functools.cached_property
    def _encoding(self) -> SymmetricUnaryEncoding:
        return SymmetricUnaryEncoding(epsilon=self.epsilon, domain_size=self.width)

    @property
    def guarantee(self) -> Guarantee:
        # The function's number is drawn without the value; given it, two values are two answers of the encoding.
        return self._encoding.guarantee

    @property
    def _cell_probabilities(self) -> tuple[Fraction, Fraction]:
        return self._encoding.support_probabilities[0]

    @property
    def _index_bytes(self) -> int:
        """Bytes that hold the number of any function."""
        return max(1, -(-(self.hashes - 1).bit_length() // 8))

    def randomize(self, values: Any, *, rng: RandomSource = None, secrets: Any = None) -> NDArray[np.uint8]:
        """Reports are uint8 (n, b + ceil(m/8)).

        The first b bytes, as many as k - 1 needs, hold the number of the hash function, little-endian; then cell i
        stands in byte i // 8 at bit i % 8.
        """
        import numpy as np

        from ldp_budget.randomness import integers, open_stream, unary_bits

        points, stream, head = self._points(self.domain.check(values)), open_stream(rng), self._index_bytes
        reports = np.empty((len(points), head + -(-self.width // 8)), dtype=np.uint8)
        for start in range(0, len(points), BLOCK):
            block, some = reports[start : start + BLOCK], points[start : start + BLOCK]
            functions = integers(stream, self.hashes, len(some))
            block[:, :head] = functions.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :head]
            cells = self._family(functions, some)
            block[:, head:] = unary_bits(stream, cells, self.width, *self._encoding.thresholds)
        return reports

    def compare(self, first: int, second: int) -> Comparison:
        """The bits of both cells where the function tells the values apart; nothing where they collide."""
        p, q = self._cell_probabilities
        apart = self._share_apart(first, second)
        return Comparison((Case(apart, (Factor.bit(p, q), Factor.bit(q, p))), Case(1 - apart, ())))

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        import numpy as np

        functions, bits = self._numbers(reports), reports[:, self._index_bytes :]
        rows = np.arange(len(reports))
        own, other = (self._cells_of(value)[functions] for value in (first, second))
        told = [bits[rows, cells >> 3] >> (cells & 7) & 1 for cells in (own, other)]
        return np.where(own == other, 4, 2 * told[0] + told[1])

    def aggregate(self, reports: Any) -> SketchAggregate:
        """How many reports of each function have each bit set. Raises `NotSupported` for anything but reports."""
        import numpy as np

        from ldp_budget.authoring.packing import column_sums

        rows = np.asarray(reports)
        numbers = self._numbers(rows)
        order = np.argsort(numbers, kind="stable")
        functions, starts = np.unique(numbers[order], return_index=True)
        cells = np.zeros((self.hashes, self.width), dtype=np.int64)
        bits = rows[order, self._index_bytes :]
        for function, start, end in zip(functions, starts, [*starts[1:], len(rows)], strict=False):
            cells[function] = column_sums(bits[start:end], self.width)
        return SketchAggregate(self.fingerprint, len(rows), functions, cells)

    def _numbers(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """The number of the hash function of each report."""
        import numpy as np

        head = self._index_bytes
        bytes_each = head + -(-self.width // 8)
        if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != bytes_each:
            expected = f"reports of {self.name}, uint8 of shape (n, {bytes_each})"
            raise NotSupported(f"expected {expected}; found {rows.dtype} of shape {rows.shape}")
        words = np.zeros((len(rows), 8), dtype=np.uint8)
        words[:, :head] = rows[:, :head]
        numbers = words.view("<i8").reshape(-1).astype(np.int64)
        if numbers.size and numbers.max() >= self.hashes:
            raise NotSupported(f"expected hash functions 0 to {self.hashes - 1}; found {numbers.max()}")
        return numbers

    def _cell_sums(self, rows: Cells) -> Cells:
        return rows

    def _energy(self, rows: Cells) -> float:
        # About the mean of the row, which takes out how many reports the row has.
        return float(((rows - rows.mean(axis=1, keepdims=True)) ** 2).sum())

    @property
    def _energies(self) -> tuple[float, float]:
        p, q = self._cell_probabilities
        m = self.width
        ones = p + (m - 1) * q
        spread = p * (1 - p) + (m - 1) * q * (1 - q)
        return float(ones - (spread + ones**2) / m), float((p - q) ** 2 * (m - 1) / m)

    def _theorem_variance(self) -> float:
        half = float(self.epsilon) / 2
        return math.exp(-half) / math.expm1(-half) ** 2 + 1 / self.width
