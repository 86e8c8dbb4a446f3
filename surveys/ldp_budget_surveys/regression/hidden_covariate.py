"""Linear regression of an outcome on a hidden answer and public attributes, by moments.

The categories of the hidden answer, all but the reference, are 0/1 terms x of the model. Their contributions z are unbiased
for x, but a regression on z is attenuated: z² is far from x². As x² = x and the product of two categories is 0, the normal
equations of the true terms have unbiased estimates that are linear in z. Their solution is consistent, if the noise does not
depend on the outcome, which randomization makes sure of.

The interval of a coefficient is Fieller's: all values that a test with the other coefficients estimated under the hypothesis
does not reject. It may be unbounded, when the reports say too little of the hidden answer.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr, stdtrit

from .linear import Coefficient, degrees_of_freedom
from .sample import solved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .sample import Floats, Sample


def hidden_covariate(
    y: Floats, hidden: Sequence[Floats], x: Floats, sample: Sample, names: Sequence[str], level: float
) -> tuple[list[Coefficient], int]:
    """Return the coefficients of the hidden categories and of the public terms, and the degrees of freedom.

    Parameters:
        y: the outcome of each row, (K,): a public number, or a contribution to another question.
        hidden: of each hidden question the contributions to all its categories but the reference, (K, k).
        x: the public terms, (K, p).
        sample: the rows.
        names: the names of the k + p coefficients.
        level: the confidence level of the intervals.

    Raises:
        NotSupported: a term depends on the others, or there are too few respondents.
    """
    z = np.column_stack(hidden)
    k, terms = z.shape[1], z.shape[1] + x.shape[1]
    freedom = degrees_of_freedom(sample, terms)
    equations = np.zeros((len(y), terms, terms))
    equations[:, :k, :k] = z[:, :, None] * z[:, None, :]  # unbiased between questions, whose noises are independent
    start = 0
    for each in hidden:
        end = start + each.shape[1]
        equations[:, start:end, start:end] = each[:, :, None] * np.eye(end - start)
        start = end
    equations[:, :k, k:] = z[:, :, None] * x[:, None, :]
    equations[:, k:, :k] = equations[:, :k, k:].transpose(0, 2, 1)
    equations[:, k:, k:] = x[:, :, None] * x[:, None, :]
    right = np.concatenate((z, x), axis=1) * y[:, None]
    whole, sums = np.einsum("n,nab->ab", sample.total, equations), sample.total @ right
    bread = solved(whole, np.eye(terms), list(names))
    values = bread @ sums
    covariance = bread @ sample.variance(right - equations @ values) @ bread.T
    found = []
    for place, name in enumerate(names):
        # The scores of the test that coefficient `place` is b are `at_zero` - b·`slope`, for the others estimated under it.
        rest = np.arange(terms) != place
        inner = solved(whole[np.ix_(rest, rest)], np.column_stack((sums[rest], whole[rest, place])), list(names))
        others = solved(whole[np.ix_(rest, rest)].T, whole[place, rest], list(names))
        pair = []
        for own, one in ((inner[:, 0], 0.0), (-inner[:, 1], 1.0)):
            beta = np.insert(own, place, one)
            scores = (1 - one) * right - equations @ beta
            pair.append(scores[:, place] - scores[:, rest] @ others)
        at_zero, slope = pair[0], -pair[1]
        low, high, p_value = fieller(np.column_stack((at_zero, slope)), sample, freedom, level)
        found.append(
            Coefficient(
                name, float(values[place]), max(float(covariance[place, place]), 0.0) ** 0.5, low, high, p_value
            )
        )
    return found, freedom


def fieller(scores: Floats, sample: Sample, freedom: int, level: float) -> tuple[float, float, float]:
    """Return the ends of all b for which the sum of scores[:, 0] - b·scores[:, 1] is not significant; and the p-value of 0.

    Where the accepted values are two rays or the whole line, both ends are infinite.
    """
    zero, slope = (sample.total @ scores).tolist()
    matrix = sample.variance(scores, known_mean=True)
    p_value = float(2 * stdtr(freedom, -abs(zero) / max(matrix[0, 0], 1e-300) ** 0.5))
    most = float(stdtrit(freedom, (1 - level) / 2)) ** 2
    # (zero - b·slope)² <= most·(m00 - 2b·m01 + b²·m11): a·b² - 2h·b + c <= 0
    a, h, c = slope**2 - most * matrix[1, 1], zero * slope - most * matrix[0, 1], zero**2 - most * matrix[0, 0]
    if a <= 0:
        return -inf, inf, p_value
    root = max(h * h - a * c, 0.0) ** 0.5
    return (h - root) / a, (h + root) / a, p_value
