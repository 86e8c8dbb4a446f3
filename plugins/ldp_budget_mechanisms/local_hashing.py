"""OLH: optimal local hashing with public hash functions, for answers that cannot be listed.

The client draws one of K public hash functions, j, and reports j with the cell h_j(v) of its value among g cells, kept or
changed by generalized randomized response at ε:

    P[the report is h_j(v)] = p = e^ε/(e^ε+g-1),      P[it is another given cell] = 1/(e^ε+g-1).

The function is drawn without the value. Given it, two values are two cells or one. So the loss is ±ε with probability at
most τ = (e^ε+1)/(e^ε+g-1), and 0 otherwise. A report supports the value u if it is h_j(u); for another value that has the
probability p/g + (1 - 1/g)/(e^ε+g-1) = 1/g. So the variance of the count of a rare value is n(e^ε+g-1)²/((g-1)(e^ε-1)²). It is
least for g = e^ε + 1: 4e^ε/(e^ε-1)², the same as that of `oue`, with two to four bytes for a report.

Source: Wang, Blocki, Li and Jha, USENIX Security 2017, section 4.4. The functions are those of the sketches, see
`ldp_budget.sdk.hash_families`: values are any whole numbers or texts, and the server needs a table of K·g counts.
"""

from __future__ import annotations

import functools
import math
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees import Guarantee
from ldp_budget.guarantees.fixed_point import exp_down, float_below
from ldp_budget.sampling import ONE
from ldp_budget.sdk.parameters import optional_integer

from ._substitution_loss import keep_threshold, one_draw
from .count_mean_sketch import Sketch

if TYPE_CHECKING:
    from ldp_budget.sdk.channels import Comparison
    from ldp_budget.sdk.client_program import Program

    from ._sketch_reports import Cells, SketchAggregate

_MOST_COUNTERS = 2**26
_USUAL = 2**16
_MOST_CELLS = 2**16


class LocalHashing(Sketch):
    """A public hash of the value, kept or changed."""

    name = "olh"
    aliases = ("optimal-local-hashing", "local-hashing")
    summary = "a public hash of the value, randomized; for domains too large to list, with the variance of oue"
    source = "Wang, Blocki, Li and Jha, USENIX Security 2017, section 4.4"
    examples = ({"epsilon": 1, "domain_size": 7, "functions": 64}, {"epsilon": 3, "functions": 32, "cells": 5})

    functions = optional_integer(
        "public hash functions K; 65536 if left out, fewer for many cells", at_least=1, at_most=2**20
    )
    cells = optional_integer(
        "cells g of a hash; the whole number next to e^epsilon + 1 if left out", at_least=2, at_most=_MOST_CELLS
    )

    @classmethod
    def for_answers(cls, epsilon: Any, domain_size: int) -> Self:
        """Return the mechanism with as many functions and cells as it takes by itself."""
        return cls.calibrate(epsilon=epsilon, domain_size=domain_size)

    @functools.cached_property
    def width(self) -> int:  # type: ignore[override]  # follows from epsilon
        """g, the cells of a hash."""
        if self.cells is not None:
            return self.cells
        odds = min(exp_down(self.epsilon), Decimal(_MOST_CELLS - 1))
        return max(2, int(odds.to_integral_value(ROUND_HALF_EVEN)) + 1)

    @functools.cached_property
    def hashes(self) -> int:  # type: ignore[override]  # follows from the cells
        """K, the functions."""
        return min(_USUAL, _MOST_COUNTERS // self.width) if self.functions is None else self.functions

    def check(self) -> None:
        most = _MOST_COUNTERS // self.width
        if self.hashes > most:
            raise InvalidParameter("functions", f"at most {most} with {self.width} cells", self.functions)
        if self._keep * self.width <= ONE:
            expected = "a loss large enough to be drawn with 64-bit probabilities"
            raise InvalidParameter("epsilon", expected, self.epsilon)

    @functools.cached_property
    def _keep(self) -> int:
        """The probability that a cell is kept, in units of 2**-64, rounded down."""
        return keep_threshold(self.epsilon, self.width)

    @property
    def guarantee(self) -> Guarantee:
        return one_draw(self.epsilon, self.width)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"functions": self.hashes, "cells": self.width, "keep": float_below(Decimal(self._keep) / ONE)}

    @property
    def _cell_probabilities(self) -> tuple[Fraction, Fraction]:
        keep = Fraction(self._keep, ONE)
        return keep, (1 - keep) / (self.width - 1)

    def share_errors(self, users: int) -> tuple[float, float]:
        """Return the errors of a share; the largest is that of a common value, whose own cell varies the most."""
        worst, mean = super().share_errors(users)
        _, slope = self._per_user()
        return math.sqrt(worst**2 + max(slope, 0.0) / users), mean

    @property
    def _energies(self) -> tuple[float, float]:
        own, other = self._cell_probabilities
        share = 1 - Fraction(1, self.width)
        return float(share), float((own - other) ** 2 * share)

    def client_program(self) -> Program:
        """Return the client program; reports are bytes: the number of the function, little-endian, then the cell."""
        from ldp_budget.sdk.client_program import Program, answers, record, whole

        steps: tuple[tuple[str, Any], ...] = (
            ("function", ["below", self.hashes]),
            ("cell", ["polynomial", str(self.seed), "function", "value", self.width]),
            ("kept", ["bit", whole(self._keep)]),
            ("others", ["below", self.width - 1]),
            ("shown", ["mod", ["add", "cell", ["where", "kept", 0, ["add", 1, "others"]]], self.width]),
        )
        (_, index, _), (_, cell, _) = self._layout
        return Program(
            answers(self.domain), steps, record([["uint", "function", index, 1], ["uint", "shown", cell, 1]])
        )

    @property
    def _layout(self) -> list[tuple[str, int, int]]:
        from ._sketch_reports import function_part

        return [function_part(self._family), ("cell", 1 if self.width <= 256 else 2, self.width)]

    def _read(self, reports: Any) -> list[Cells]:
        """Return the function and the cell of each report. Raises `NotSupported` for anything else."""
        from ._sketch_reports import read_record

        return read_record(reports, self.name, self._layout)[0]

    def check_reports(self, reports: Any) -> None:
        self._read(reports)

    def aggregate(self, reports: Any) -> SketchAggregate:
        """Count the reports of each function and cell. Raises `NotSupported` for anything but reports."""
        from ._sketch_reports import SketchAggregate

        functions, shown = self._read(reports)
        return SketchAggregate.of(self.fingerprint, functions, shown, (self.hashes, self.width))

    def compare(self, first: int, second: int) -> Comparison:
        from ._sketch_reports import compare_cells

        return compare_cells(*self._cell_probabilities, self._family.share_apart(first, second))

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        from ._sketch_reports import number_cells

        functions, shown = self._read(reports)
        return number_cells(shown, *(self._family.cells_of(value)[functions] for value in (first, second)))
