"""Numeric mechanisms: what every mechanism has in common that reports one number in [lower, upper].

Reports lie on a public grid, origin + k·step for whole k, so sums of them are sums of whole numbers: aggregates
merge exactly, in any order.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from .base import Mechanism
from .errors import InvalidParameter, NotSupported
from .estimates import MeanEstimate, SumAggregate
from .fields import optional_real
from .values import as_numbers, numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray


class NumericMechanism(Mechanism):
    """A mechanism for one number. Subclasses give `grid`, `error_at` and `randomize`."""

    lower = optional_real("smallest value a user can have")
    upper = optional_real("largest value a user can have")

    def check(self) -> None:
        if self.lower is None and self.upper is None:
            return
        for name, bound in (("lower", self.lower), ("upper", self.upper)):
            if bound is None:
                raise InvalidParameter(name, "a finite number, as lower and upper go together")
        lower, upper = self.domain()
        if lower >= upper:
            raise InvalidParameter("upper", f"a number > lower = {lower}", upper)

    def domain(self) -> tuple[Decimal, Decimal]:
        """[lower, upper]; raises `NotSupported` where only a sensitivity was declared."""
        if self.lower is None or self.upper is None:
            raise NotSupported(f"{self.name}: this needs lower and upper, not a sensitivity alone")
        return self.lower, self.upper

    def grid(self) -> tuple[float, float]:
        """(origin, step) of the public grid that reports lie on."""
        raise NotImplementedError

    def error_at(self, value: float) -> tuple[float, float]:
        """(bias, MSE) of one report of a user whose value is `value`."""
        raise NotImplementedError

    def utility(self, users: int | None = None) -> dict[str, Any]:
        errors = {name: self.error_at(value) for name, value in self._landmarks()}
        result: dict[str, Any] = {
            "mse": {name: mse for name, (_, mse) in errors.items()},
            "bias": {name: bias for name, (bias, _) in errors.items()},
        }
        if users is not None:
            if users < 1:
                raise InvalidParameter("users", "a whole number >= 1", users)
            worst = max(mse - bias**2 for bias, mse in errors.values())
            result["std_error"] = (worst / users) ** 0.5
        return result

    def _landmarks(self) -> Iterator[tuple[str, float]]:
        """The edges and the centre of the domain; of [0, S] where only a sensitivity is known."""
        low, high = (0.0, 1.0) if self.lower is None or self.upper is None else map(float, self.domain())
        yield from (("lower", low), ("centre", (low + high) / 2), ("upper", high))

    def read_values(self, texts: Sequence[str]) -> NDArray[np.float64]:
        lower, upper = self.domain()
        return as_numbers(numbers_of(texts, float, f"numbers from {lower} to {upper}"), lower, upper)

    def aggregate(self, reports: Any) -> SumAggregate:
        import numpy as np

        rows = np.asarray(reports, dtype=np.float64)
        if rows.ndim != 1 or not np.isfinite(rows).all():
            raise NotSupported(f"expected finite reports of shape (n,); found {rows.dtype} {rows.shape}")
        origin, step = self.grid()
        steps = np.rint((rows - origin) / step)
        return SumAggregate(self.fingerprint, len(rows), _exact_sum(steps), 0)

    def estimate(self, reports: Any) -> MeanEstimate:
        total = self.total(reports)
        origin, step = self.grid()
        mean = origin + total.total / total.reports * step
        return MeanEstimate(total.reports, mean, self.report_std(total) / total.reports**0.5)

    def report_std(self, total: SumAggregate) -> float:
        """The standard deviation of one report around its user's value."""
        raise NotImplementedError


def _exact_sum(steps: Any) -> int:
    """The sum of whole numbers below 2**53, in blocks whose sums cannot overflow."""
    import numpy as np

    return sum(int(np.sum(block.astype(np.int64))) for block in np.array_split(steps, 1 + len(steps) // 512))
