"""Random substitution with any matrix (Agrawal and Haritsa 2005).

Column k of the matrix is the distribution of the report of a user whose answer is k. The loss is the largest
ln(m[h][k]/m[h][k']) over the reports h and the answers k, k'. With W a left inverse of the matrix and C the counts
of the reports, W·C is an unbiased estimate of how many users hold each answer.
"""

from __future__ import annotations

import functools
import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees import Guarantee, Pure, Unbounded
from ldp_budget.guarantees.dominating_pairs import dominating_pair
from ldp_budget.guarantees.fixed_point import UP, ln_up
from ldp_budget.sdk.channels import Comparison
from ldp_budget.sdk.frequency_oracle import FrequencyMechanism
from ldp_budget.sdk.parameters import matrix

from ._citations import RANDOM_SUBSTITUTION

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sdk.channel_estimator import ChannelEstimator
    from ldp_budget.sdk.client_program import Program

_SLACK = Fraction(1, 10**9)
_MOST_WEIGHT = 2**63
_ROUNDED_WEIGHT = 2**62
_WORST_CONDITION = 1e10
# Beyond these, the pair of every two columns takes too much exact arithmetic, and ε alone is stated.
_PAIR_ANSWERS = 16
_PAIR_REPORTS = 256


class MatrixSubstitution(FrequencyMechanism):
    """Reports drawn from the columns of a matrix: entry (h, k) is the probability of report h for answer k.

    Columns must sum to 1 within 1e-9, and are then divided by their sums, so thirds may be written as decimals. There
    may
    be more reports than answers; the estimate is then that of least squares. Guarantee and estimate are those of the
    matrix *as drawn*. It is exactly the given matrix if its entries have a common denominator up to 2**63, else the
    nearest with the denominator 2**62; no possible report becomes impossible or the reverse.
    """

    name = "matrix-substitution"
    summary = "a report drawn from the column of the answer in any matrix of probabilities"
    source = f"Agrawal and Haritsa, ICDE 2005; Dowd, Xu and Zhang, ETRICS 2006; {RANDOM_SUBSTITUTION}, Algorithm 1"

    matrix = matrix("probabilities: entry (h, k) is that of report h for answer k; columns sum to 1 within 1e-9")

    def check(self) -> None:
        reports, answers = len(self.matrix), len(self.matrix[0])
        if answers < 2 or reports < answers:
            expected = "a table of at least two columns, with at least as many rows as columns"
            raise InvalidParameter("matrix", expected, f"{reports} rows and {answers} columns")
        for number, row in enumerate(self.matrix):
            if not any(row):
                raise InvalidParameter("matrix", "a table without rows of zeros", f"only zeros in row {number}")
        for number, column in enumerate(self._columns()):
            self._check_column(number, column)
        if self._condition_number > _WORST_CONDITION:
            expected = f"a table with a condition number <= {_WORST_CONDITION:g}"
            raise InvalidParameter(
                "matrix",
                expected,
                f"condition number {self._condition_number:.3g}",
                hint="Make its columns differ more.",
            )

    def _columns(self) -> list[tuple[Fraction, ...]]:
        return list(zip(*self.matrix, strict=True))

    def _check_column(self, number: int, column: tuple[Fraction, ...]) -> None:
        if min(column) < 0:
            raise InvalidParameter("matrix", "a table of probabilities", f"{float(min(column))} in column {number}")
        total = sum(column, Fraction(0))
        if abs(total - 1) > _SLACK:
            found = f"column {number}, which sums to {float(total):.12g}"
            raise InvalidParameter("matrix", "a table whose columns sum to 1 within 1e-9", found)

    # -- the matrix as drawn ----------------------------------------------------------------------------

    @functools.cached_property
    def _weights(self) -> tuple[int, list[list[int]]]:
        """The common denominator and, for each answer, the numerators of its reports, from which the client draws."""
        columns = [_normalised(column) for column in self._columns()]
        total = math.lcm(*(entry.denominator for column in columns for entry in column))
        if total <= _MOST_WEIGHT:
            return total, [[int(entry * total) for entry in column] for column in columns]
        return _ROUNDED_WEIGHT, [_rounded(column) for column in columns]

    @functools.cached_property
    def _channel(self) -> list[list[Fraction]]:
        """For each answer, the probability of each report."""
        total, weights = self._weights
        return [[Fraction(weight, total) for weight in column] for column in weights]

    @functools.cached_property
    def _estimator(self) -> ChannelEstimator:
        from ldp_budget.sdk.channel_estimator import ChannelEstimator

        return ChannelEstimator(self._channel)

    @functools.cached_property
    def _condition_number(self) -> float:
        return self._estimator.condition_number

    @property
    def answers(self) -> int:
        return len(self.matrix[0])

    @property
    def guarantee(self) -> Guarantee:
        reports = list(zip(*self._channel, strict=True))
        if any(min(entries) == 0 for entries in reports):
            return Unbounded()
        if self.answers <= _PAIR_ANSWERS and len(reports) <= _PAIR_REPORTS:
            return dominating_pair(self._channel)
        worst = max(Fraction(max(entries), min(entries)) for entries in reports)
        return Pure(ln_up(UP.divide(Decimal(worst.numerator), Decimal(worst.denominator))))

    @property
    def notes(self) -> tuple[str, ...]:
        notes: tuple[str, ...] = ()
        if isinstance(self.guarantee, Unbounded):
            notes += ("Some report is possible for one answer and impossible for another, so no loss is promised.",)
        if any(sum(column) != 1 for column in self._columns()):
            notes += ("Columns were divided by their sums, which are not exactly 1.",)
        if self._weights[0] == _ROUNDED_WEIGHT:
            notes += ("Entries were rounded to multiples of 2**-62; the loss and the estimate are of those.",)
        return notes

    def utility(self, users: int | None = None) -> dict[str, Any]:
        result = {**super().utility(), "condition_number": self._condition_number}
        return {**result, **super().utility(users)}

    # -- client and server ------------------------------------------------------------------------------

    def client_program(self) -> Program:
        """Return the client program; reports are row numbers of the matrix, unsigned integers (n,)."""
        from itertools import accumulate

        from ldp_budget.sdk.client_program import Program, answers, uint, whole

        total, weights = self._weights
        steps: tuple[tuple[str, Any], ...] = (
            ("u", ["below", whole(total)]),
            ("report", ["rank", ["at", "totals", "value"], "u"]),
        )
        tables = {"totals": [[whole(part) for part in accumulate(column)] for column in weights]}
        return Program(answers(self.domain), steps, uint("report", len(weights[0]) - 1), tables)

    def critical_inputs(self) -> Sequence[int]:
        """Return every answer if the pair of every two is guaranteed; else the two furthest apart, and a few."""
        if self.answers <= _PAIR_ANSWERS:
            return range(self.answers)
        worst = max(zip(*self._channel, strict=True), key=_odds)
        furthest = (worst.index(max(worst)), worst.index(min(worst)))
        return sorted({*furthest, 0, self.answers // 2, self.answers - 1})

    def compare(self, first: int, second: int) -> Comparison:
        return Comparison.rows(self._channel[first], self._channel[second])

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        return reports

    def support(self, reports: Any) -> tuple[int, NDArray[np.int64]]:
        """Return the number of reports, and the count of each report, shape (rows of the matrix,)."""
        import numpy as np

        from ._sketch_reports import read_numbers

        rows = read_numbers(reports, self.name, len(self.matrix))
        return len(rows), np.bincount(rows.astype(np.intp), minlength=len(self.matrix))

    @property
    def report_bits(self) -> int:
        return (len(self.matrix) - 1).bit_length()


def _odds(chances: Sequence[Fraction]) -> tuple[bool, Fraction]:
    """Return the odds of a report between two answers; a report that is impossible for one answer sorts first."""
    least = min(chances)
    return not least, max(chances) / (least or 1)


def _normalised(column: Sequence[Fraction]) -> list[Fraction]:
    total = sum(column, Fraction(0))
    return [entry / total for entry in column]


def _rounded(column: Sequence[Fraction]) -> list[int]:
    """Return `column` in units of 2**-62: each entry rounded down but positive, the largest takes the rest."""
    weights = [max(int(entry * _ROUNDED_WEIGHT), int(entry > 0)) for entry in column]
    weights[weights.index(max(weights))] += _ROUNDED_WEIGHT - sum(weights)
    return weights
