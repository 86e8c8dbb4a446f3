"""Laws of programs that are rebuilt from their numbers: a rule accepts only a program that equals the rebuilt one."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from ldp_budget.errors import NotSupported
from ldp_budget.sampling import ONE
from ldp_budget.sdk.channels import Comparison, Factor
from ldp_budget.sdk.report_law import Law, Pairs, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.domain import Categories

    Masses = tuple[Fraction, Fraction]


class Rebuilt(Law):
    """A law of a program that is rebuilt from its numbers."""

    every_pair = True
    form: ClassVar[str]

    def __init__(self, program: Program) -> None:
        self.program = program
        try:
            rebuilt = self._read(dict(program.steps))
        except (ArithmeticError, LookupError, TypeError, ValueError):
            raise Unknown(self.form) from None
        if rebuilt.to_json() != program.to_json():
            raise Unknown(self.form)

    def _read(self, steps: dict[str, Any]) -> Program:
        raise NotImplementedError

    @property
    def _domain(self) -> Categories:
        raise NotImplementedError

    @functools.cached_property
    def _pairs(self) -> dict[int, dict[Any, tuple[Fraction, Fraction]]]:
        """For each relation of two answers, (P, Q) of the outcomes."""
        raise NotImplementedError

    def pairs(self) -> list[Pairs]:
        """Return (P, Q) of the outcomes, for each way in which two answers may relate."""
        return [list(masses.values()) for masses in self._pairs.values()]

    def _relation(self, first: int, second: int) -> int:
        raise NotImplementedError

    def _of(self, first: int, second: int) -> dict[Any, tuple[Fraction, Fraction]]:
        domain = self._domain
        if first == second or not all(0 <= each < domain.size for each in (first, second)):
            raise NotSupported(f"these are no two different sets of ticks: {first} and {second}")
        return self._pairs[self._relation(first, second)]

    def comparison(self, first: int, second: int) -> Comparison:
        """Return the comparison of two answers."""
        return Comparison.of(Factor(tuple(self._of(first, second).values())))

    def outcomes(self, reports: Any, first: int, second: int) -> NDArray[np.int64]:
        """Return the outcome of `comparison` of each report."""
        import numpy as np

        from ldp_budget.sdk.interpreter import as_reports

        numbers = {key: place for place, key in enumerate(self._of(first, second))}
        keys = self._keys(as_reports(reports).astype(np.int64), first, second)
        return np.array([numbers[key] for key in keys], np.int64)

    def _keys(self, rows: NDArray[np.int64], first: int, second: int) -> list[Any]:
        raise NotImplementedError


def hit_chances(weights: Sequence[int], least: int, high: Fraction) -> list[Fraction]:
    """Return the probability of each number of hits. Those from `least` on share `high` by their weights; the others, the rest."""
    parts = (weights[:least], 1 - high), (weights[least:], high)
    return [share * Fraction(each, sum(part)) for part, share in parts for each in part]


def likeliest(masses: Mapping[Any, Masses]) -> tuple[Any, Masses]:
    """Return the outcome that is likelier under the first of two answers by the largest factor, with both probabilities."""
    return max(masses.items(), key=lambda each: each[1][0] / each[1][1] if each[1][1] else ONE)
