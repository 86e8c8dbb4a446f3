"""Linear regression of contributions on public attributes.

The expectation of a contribution is the respondent's answer, whatever her attributes. So weighted least squares of
contributions estimate the same coefficients as those of the true answers. The errors are by Binder's linearization; they hold
the noise, the sampling, and that noise and answers vary more in some groups than in others. It is `svyglm(z ~ x, design)` of R.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from ldp_budget.errors import NotSupported

from .sample import solved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .sample import Floats, Sample


class Coefficient(NamedTuple):
    """An estimated coefficient, with its interval. An end is ±∞ where no test rejects however large a value."""

    name: str
    estimate: float
    std_error: float
    low: float
    high: float
    p_value: float


class LinearFit(NamedTuple):
    """Coefficients (p,), their covariance (p, p) and degrees of freedom."""

    values: Floats
    covariance: Floats
    freedom: int


def degrees_of_freedom(sample: Sample, terms: int) -> int:
    """Return the degrees of freedom left by so many coefficients. Raises `NotSupported` if there are none."""
    left = sample.freedom + 1 - terms
    if left < 1:
        raise NotSupported(
            f"{terms} coefficients need more respondents or clusters: {sample.freedom + 1} are left after the strata",
            hint="Leave terms out.",
        )
    return left


def linear(x: Floats, z: Floats, sample: Sample, names: Sequence[str]) -> LinearFit:
    """Return the weighted least squares of z, (K,), on the columns of x, (K, p).

    Parameters:
        x: the terms of each row.
        z: the outcome of each row, for example a contribution.
        sample: the rows.
        names: the names of the terms.

    Raises:
        NotSupported: a term depends on the others, or there are too few respondents.
    """
    freedom = degrees_of_freedom(sample, x.shape[1])
    weighted = x * sample.total[:, None]
    bread = solved(weighted.T @ x, np.eye(x.shape[1]), list(names))
    values = bread @ (weighted.T @ z)
    middle = sample.variance(x * (z - x @ values)[:, None])
    return LinearFit(values, bread @ middle @ bread.T, freedom)


def by_normal_errors(fit: LinearFit, names: Sequence[str], level: float) -> list[Coefficient]:
    """Return the coefficients with intervals and tests by Student's t."""
    width = float(-stdtrit(fit.freedom, (1 - level) / 2))
    found = []
    for name, value, square in zip(names, fit.values.tolist(), fit.covariance.diagonal().tolist(), strict=True):
        error = max(square, 0.0) ** 0.5
        p_value = float(2 * stdtr(fit.freedom, -abs(value) / error)) if error else float(value == 0)
        found.append(Coefficient(name, value, error, value - width * error, value + width * error, p_value))
    return found
