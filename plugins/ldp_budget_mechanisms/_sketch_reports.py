"""Reports to count mean sketches: hash functions, the client's draws, exact sums, and counts with standard errors.

A report to the count mean sketch is the number of a hash function and the cell as m randomized bits. A report to the
Hadamard count mean sketch is the numbers of a hash function and of a coefficient, and the coefficient's sign.

The hash functions are those of `ldp_budget.sdk.hash_families`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import NotSupported
from ldp_budget.sdk.channels import Case, Comparison, Factor
from ldp_budget.sdk.estimates import CountEstimate, StudentLaw, check_same
from ldp_budget.sdk.interpreter import as_reports, check_rows, column_sums
from ldp_budget.sdk.parities import parities

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from ldp_budget.sdk.estimates import SupportLaw
    from ldp_budget.sdk.hash_families import HashFamily, Words

    Cells = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Reports = NDArray[Any]

_BLOCK = 1 << 15


@dataclass
class SketchAggregate:
    """The exact sketch of `reports` reports: `cells`, integers (k, m), zero outside the rows `functions`."""

    fingerprint: str
    reports: int
    functions: NDArray[np.int64]
    cells: Cells

    @classmethod
    def of(cls, fingerprint: str, functions: Cells, cells: Cells, shape: tuple[int, int]) -> SketchAggregate:
        """Count reports of one cell of one function; `shape` is (k, m)."""
        counts = np.bincount(functions * shape[1] + cells, minlength=shape[0] * shape[1]).reshape(shape)
        return cls(fingerprint, len(cells), np.flatnonzero(counts.any(axis=1)), counts)

    def merge(self, other: SketchAggregate) -> SketchAggregate:
        """Add `other`, whose cells stay unchanged; raises `NotSupported` if another mechanism made it."""
        check_same(self, other)
        self.reports += other.reports
        self.functions = np.union1d(self.functions, other.functions)
        # Row by row: a sketch may have millions of cells, and a few reports touch a few rows.
        for function in other.functions:
            self.cells[function] += other.cells[function]
        return self

    def parts(self, each: int) -> Iterator[NDArray[np.int64]]:
        """Yield the functions that reports used, a few at a time if each takes `each` words."""
        step = max(1, _BLOCK // each)
        for start in range(0, len(self.functions), step):
            yield self.functions[start : start + step]


def cell_sums(
    total: SketchAggregate, family: HashFamily, points: Words, sums_of: Callable[[Cells], Cells]
) -> NDArray[np.int64]:
    """Return the sum of the cells of each value at these points, (n,); `sums_of` reads the cells of a row."""
    sums = np.zeros(len(points), dtype=np.int64)
    for functions in total.parts(max(len(points), family.width)):
        cells = family(functions[:, np.newaxis], points)
        spoken = sums_of(total.cells[functions])
        sums += np.take_along_axis(spoken, cells, axis=1).sum(axis=0)
    return sums


def with_errors(
    counts: Floats, reports: int, law: SupportLaw, same_pairs: float, places: int, *, few: bool
) -> CountEstimate:
    """Return `counts` with their standard errors; `same_pairs` estimates Σ f(f-1) over all values.

    `places` is k(m-1), the number of free numbers in a sketch. `few` is True if they are so few that errors are
    bounds.
    One pair of users of one other value adds 1/places to a count's variance. So v = a + P/places, where a is the
    noise of
    the reports and P the pairs of the other values. The square of an estimated count is f² + v on average, so f(f-1)
    must
    not be read from the estimate directly: P = same_pairs - count·(count-1) + v, which is solved for v,

        v = a + (same_pairs - count·(count-1) + a)/(places - 1).

    With an a linear in the count this is the variance on average, for any number of cells. So no value is cut off
    from
    above, even if n users cannot produce it: the average of the rest would be too small. A result below a is replaced
    by
    a, which makes it a bound. Unless there are `few`, that hardly ever happens. If it moves the average by less than
    is
    visible, figures are limited to what is possible: pairs to 0 and more, a to a share of one.

    The rest of the sketch, without the part that gave the count, is `places` - 1 numbers. Their mean square is v:
    noise and
    collisions. So the intervals are Student's. One function of two cells shows the size of a count and nothing else,
    for
    any values of the others: there v is its largest possible value, as if all others held one value.
    """
    if places == 1:
        most = reports * (float(max(law.at_zero[0], law.at_one[0])) + reports - 1.0)
        return CountEstimate(reports, counts, np.full(len(counts), most**0.5))
    least = law.variance(counts, reports)
    if few:
        noise = reports * law.at_zero + counts * (law.at_one - law.at_zero)
    else:
        noise, same_pairs = least, max(0.0, same_pairs)
    collisions = (same_pairs - counts * (counts - 1) + noise) / (places - 1)
    errors = np.sqrt(np.maximum(noise + collisions, least))
    return CountEstimate(reports, counts, errors, law=StudentLaw(places - 1))


# -- reports of one cell ---------------------------------------------------------------------------------------------


def compare_cells(own: Fraction, other: Fraction, apart: Fraction) -> Comparison:
    """Compare the first value's cell, the second one's and another; where they share a cell, that and another.

    `own` and `other` are the probabilities of a value's cell and of a given other one; `apart` is the share of the
    functions under which the values have two cells.
    """
    rest = 1 - own - other
    separate = Factor(((own, other), (other, own), (rest, rest)))
    return Comparison((Case(apart, (separate,)), Case(1 - apart, (Factor(((own, own), (1 - own, 1 - own))),))))


def number_cells(cells: Cells, own: Cells, other: Cells) -> Cells:
    """Number the reported cells by `compare_cells`, given the cells of both values under the functions of the reports."""
    apart = np.select([cells == own, cells == other], [0, 1], 2)
    return np.where(own == other, np.where(cells == own, 3, 4), apart)


# -- count mean sketch -----------------------------------------------------------------------------------------------


def index_bytes(family: HashFamily) -> int:
    """Return the number of bytes for the number of any function."""
    return max(1, -(-(family.count - 1).bit_length() // 8))


def number_cms_reports(reports: Reports, family: HashFamily, first: int, second: int) -> Cells:
    """Number the bits of the cells of two values, 0..3, or 4 if they collide."""
    functions, bits = _read_cms(reports, family)
    rows = np.arange(len(reports))
    own, other = (family.cells_of(value)[functions] for value in (first, second))
    told = [bits[rows, cells >> 3] >> (cells & 7) & 1 for cells in (own, other)]
    return np.where(own == other, 4, 2 * told[0] + told[1])


def check_cms_reports(reports: Any, family: HashFamily) -> None:
    """Raise `NotSupported` for anything but reports."""
    check_rows(_read_cms(reports, family)[1], family.width)


def count_cms_reports(reports: Any, family: HashFamily, fingerprint: str) -> SketchAggregate:
    """Count the reports of each function with each bit set. Raises `NotSupported` for anything but reports."""
    numbers, rows = _read_cms(reports, family)
    order = np.argsort(numbers, kind="stable")
    functions, starts = np.unique(numbers[order], return_index=True)
    cells = np.zeros((family.count, family.width), dtype=np.int64)
    bits = rows[order]
    for function, start, end in zip(functions, starts, [*starts[1:], len(rows)], strict=False):
        cells[function] = column_sums(bits[start:end], family.width)
    return SketchAggregate(fingerprint, len(rows), functions, cells)


def _read_cms(reports: Any, family: HashFamily) -> tuple[Cells, NDArray[np.uint8]]:
    """Return the number of the hash function of each report, and its packed bits."""
    (functions,), bits = read_record(reports, "cms", [function_part(family)], -(-family.width // 8))
    return functions, bits


def function_part(family: HashFamily) -> tuple[str, int, int]:
    """Return the part of a report that is the number of a hash function, for `read_record`."""
    return "hash function", index_bytes(family), family.count


def read_record(
    reports: Any, name: str, parts: Sequence[tuple[str, int, int]], rest: int = 0
) -> tuple[list[Cells], NDArray[np.uint8]]:
    """Return the numbers in reports, and the other `rest` bytes. Raises `NotSupported` for anything but reports of `name`.

    `parts`: for each number its noun, its bytes, of which the lowest comes first, and how many values it has.
    """
    rows, width = as_reports(reports), sum(size for _, size, _ in parts) + rest
    if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != width:
        expected = f"uint8 of shape (n, {width})"
        raise NotSupported(f"reports of {name} must be {expected}: got {rows.dtype} of shape {rows.shape}")
    found, start = [], 0
    for noun, size, count in parts:
        numbers = np.zeros(len(rows), dtype=np.int64)
        for place in range(size):
            numbers |= rows[:, start + place].astype(np.int64) << 8 * place
        if numbers.size and numbers.max() >= count:
            raise NotSupported(f"the {noun} of a report must be from 0 to {count - 1}: got {numbers.max()}")
        found.append(numbers)
        start += size
    return found, rows[:, start:]


def read_numbers(reports: Any, name: str, count: int) -> Reports:
    """Return reports that are numbers 0..count-1 as an array. Raises `NotSupported` for anything else."""
    rows = as_reports(reports)
    if rows.dtype.kind not in "iu" or rows.ndim != 1:
        raise NotSupported(
            f"reports of {name} must be integers of shape (n,): got {rows.dtype} of shape {rows.shape}"
        )
    if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < count:
        raise NotSupported(f"reports of {name} must be from 0 to {count - 1}: got {rows.min()} to {rows.max()}")
    return rows


# -- Hadamard count mean sketch --------------------------------------------------------------------------------------


_COUNTED = 1 << 20


def cell_bits(family: HashFamily) -> int:
    """Return the number of bits of a cell number, the lowest bits of a place."""
    return family.width.bit_length() - 1


def number_hcms_reports(reports: Reports, family: HashFamily, first: int, second: int) -> Cells:
    """Return 1 if the sign is that of the first of two values, 0 if of the second; 2 if theirs are the same."""
    rows = reports.astype(np.int64)
    places = rows >> 1
    own, other = (parities(places & family.cells_of(value)[places >> cell_bits(family)]) for value in (first, second))
    return np.where(own == other, 2, own == rows & 1)


def count_hcms_reports(reports: Any, family: HashFamily, fingerprint: str) -> SketchAggregate:
    """Sum the signs sent for each coefficient. Raises `NotSupported` for anything but reports."""
    rows = read_hcms(reports, family)
    signs = np.zeros(family.count * family.width, dtype=np.int64)
    used = np.zeros(family.count, dtype=np.int64)
    for start in range(0, len(rows), _COUNTED):
        block = rows[start : start + _COUNTED].astype(np.int64)
        np.add.at(signs, block >> 1, 1 - 2 * (block & 1))
        used += np.bincount(block >> (1 + cell_bits(family)), minlength=family.count)
    return SketchAggregate(fingerprint, len(rows), np.flatnonzero(used), signs.reshape(family.count, -1))


def read_hcms(reports: Any, family: HashFamily) -> Reports:
    """Return reports as an array. Raises `NotSupported` for anything but reports."""
    return read_numbers(reports, "hcms", 2 * family.count * family.width)
