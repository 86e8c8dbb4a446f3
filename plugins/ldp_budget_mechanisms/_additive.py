"""Unbounded noise: what Laplace and staircase have in common."""

from __future__ import annotations

import functools
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ldp_budget.authoring.fields import optional_real
from ldp_budget.authoring.numeric import NumericMechanism
from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees.amounts import UP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ldp_budget.authoring.estimates import NoiseMeanEstimate, SumAggregate


class AdditiveMechanism(NumericMechanism):
    """A value plus noise whose distribution does not depend on it. Subclasses give `variance` and `density`.

    The sensitivity S is upper - lower, or what was declared in their place; with S alone there is no client.
    """

    sensitivity = optional_real(
        "largest change of the value, in place of lower and upper [1]", at_least=1e-100, at_most=1e100
    )

    def check(self) -> None:
        if self.lower is not None and self.sensitivity is not None:
            raise InvalidParameter("sensitivity", "nothing beside lower and upper", self.sensitivity)
        super().check()

    @functools.cached_property
    def stretch(self) -> Decimal:
        """S, the largest distance between two values, rounded up."""
        if self.lower is not None and self.upper is not None:
            return UP.subtract(self.upper, self.lower)
        return self.sensitivity or Decimal(1)

    @property
    def variance(self) -> float:
        """The variance of the noise, whose mean is zero."""
        raise NotImplementedError

    def error_at(self, value: float) -> tuple[float, float]:
        return 0.0, self.variance

    def critical_inputs(self) -> Sequence[float]:
        return super().critical_inputs() if self.lower is not None else (0.0, float(self.stretch))

    def report_breakpoints(self, value: float) -> Sequence[float]:
        return (value,)

    def estimate(self, reports: Any) -> NoiseMeanEstimate:
        from ldp_budget.authoring.estimates import NoiseMeanEstimate

        plain = super().estimate(reports)
        return NoiseMeanEstimate(plain.reports, plain.mean, plain.std_error, mechanism=self)

    def report_std(self, total: SumAggregate) -> float:
        return float(self.variance**0.5)
