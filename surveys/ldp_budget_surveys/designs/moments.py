"""Moments: sums and products of contributions, for each combination of public attributes.

Weights, strata, clusters and groups are functions of the public attributes. So the number of reports, the sums and the
products of their contributions, by combination, are all that the estimates and variances of `surveys` need. Reports
are read in blocks, and no array holds a row for each report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget._lookalikes import near
from ldp_budget.errors import InvalidParameter, NotSupported

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldp_budget.reports.public_attributes import Combination, PublicAttributes

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

MOST_NUMBERS = 1 << 26
"""The most numbers that moments keep: 512 megabytes."""

SQUARES, PRODUCTS, EXCLUSIVE = "squares", "products", "exclusive"


@dataclass(frozen=True)
class Moments:
    """Sufficient statistics of contributions by combination of public attributes.

    Parameters:
        columns: the public columns.
        cells: the K combinations of their values.
        counts: the number of reports of each, (K,).
        sums: the sums of their contributions, (K, d).
        products: the sums of their squares, (K, d); or of their products with each other, (K, d, d).
        exclusive: True if the contributions are 1 for one of the answers and else 0, so that products are known.
    """

    columns: tuple[str, ...]
    cells: tuple[Combination, ...]
    counts: Floats
    sums: Floats
    products: Floats
    exclusive: bool = False

    @property
    def reports(self) -> int:
        """The number of reports."""
        return int(self.counts.sum())

    @property
    def squares(self) -> Floats:
        """The sums of the squared contributions, (K, d)."""
        if self.products.ndim == 2:
            return self.products
        diagonal: Floats = np.diagonal(self.products, axis1=1, axis2=2)
        return diagonal

    def codes(self, columns: Sequence[str], option: str = "column") -> tuple[Ints, tuple[Combination, ...]]:
        """Return the code of each cell for a cross of columns, (K,), and the combination of values of each code.

        Parameters:
            columns: public columns. With none of them, all cells have the code 0.
            option: the option that named the columns, for messages.

        Raises:
            InvalidParameter: the reports do not have such a column.
        """
        places = [self.place(column, option) for column in columns]
        values = [tuple(cell[place] for place in places) for cell in self.cells]
        levels = tuple(sorted(set(values)))
        number = {level: code for code, level in enumerate(levels)}
        return np.array([number[value] for value in values], np.int64), levels

    def place(self, column: str, option: str = "column") -> int:
        """Return the position of a public column, which an option named. Raises `InvalidParameter`."""
        if column not in self.columns:
            hint = near(column, self.columns) or "Store it with the reports: ldp-budget randomize … --public COLUMN"
            raise InvalidParameter(
                option, f"public columns of the reports ({', '.join(self.columns) or 'none'})", column, hint=hint
            )
        return self.columns.index(column)


class MomentsReader:
    """Reader of contributions in blocks, which adds them up to `Moments`.

    Parameters:
        answers: d, the number of columns of the contributions.
        products: `SQUARES` or `PRODUCTS`. Two-way tables need products. `EXCLUSIVE` for contributions that are 1 for
            one of the answers and else 0.
    """

    def __init__(self, answers: int, products: str = SQUARES) -> None:
        self._answers = answers
        self._crossed, self._exclusive = products == PRODUCTS, products == EXCLUSIVE
        self._columns: tuple[str, ...] | None = None
        self._cells: dict[Combination, tuple[Any, ...]] = {}

    def add(self, contributions: Floats, public: PublicAttributes) -> None:
        """Add the contributions of some reports, (n, d), with the public attributes of the n reports.

        Raises:
            InvalidParameter: the columns differ from those of earlier reports.
            NotSupported: there are too many combinations of public attributes.
        """
        if self._columns is None:
            self._columns = public.names
        if public.names != self._columns:
            raise InvalidParameter("public", f"the columns {', '.join(self._columns)}", ", ".join(public.names))
        order = np.argsort(public.codes, kind="stable")
        codes, starts = np.unique(public.codes[order], return_index=True)
        for code, places in zip(codes.tolist(), np.split(order, starts[1:]), strict=True):
            self._add_cell(public.combinations[code], contributions[places])

    def _add_cell(self, cell: Combination, z: Floats) -> None:
        products = z.T @ z if self._crossed else (z * z).sum(axis=0)
        added = (float(len(z)), z.sum(axis=0), products)
        before = self._cells.get(cell, (0.0,) * len(added))
        self._cells[cell] = tuple(old + new for old, new in zip(before, added, strict=True))
        if len(self._cells) * (products.size + self._answers) > MOST_NUMBERS:
            raise NotSupported(
                f"{len(self._cells)} combinations of public attributes with {self._answers} answers need too much memory",
                hint="Store fewer public columns, or columns with fewer values.",
            )

    def read(self) -> Moments:
        """Return the moments of all added contributions. Raises `NotSupported` if there are none."""
        if not self._cells:
            raise NotSupported("there are no reports to estimate from")
        cells = tuple(sorted(self._cells))
        parts = [self._cells[cell] for cell in cells]
        counts, sums, products = map(np.array, zip(*parts, strict=True))
        return Moments(self._columns or (), cells, counts, sums, products, self._exclusive)


def moments_of_counts(counts: Mapping[Combination, int], columns: tuple[str, ...]) -> Moments:
    """Return moments without contributions (d = 0), from the number of reports of each combination."""
    cells = tuple(sorted(counts))
    empty = np.zeros((len(cells), 0))
    return Moments(columns, cells, np.array([counts[cell] for cell in cells], np.float64), empty, empty)


def moments_of(
    contributions: Any, public: Mapping[str, Sequence[str]] | None = None, products: str = SQUARES
) -> Moments:
    """Return the moments of contributions that are at hand as one array.

    Parameters:
        contributions: shape (n, d), as `Mechanism.contributions` returns them.
        public: the public columns, each with a text for each report.
        products: `SQUARES`, `PRODUCTS` or `EXCLUSIVE`.

    Raises:
        InvalidParameter: a column does not have n texts.
        NotSupported: there are no reports.
    """
    from ldp_budget.reports.public_attributes import PublicAttributes

    z = np.asarray(contributions, np.float64)
    columns = {name: list(map(str, column)) for name, column in (public or {}).items()}
    for name, column in columns.items():
        if len(column) != len(z):
            raise InvalidParameter("public", f"{len(z)} values of {name}", f"{len(column)} values")
    rows = zip(*columns.values(), strict=True) if columns else [()] * len(z)
    reader = MomentsReader(z.shape[1], products)
    reader.add(z, PublicAttributes.of(tuple(columns), rows))
    return reader.read()
