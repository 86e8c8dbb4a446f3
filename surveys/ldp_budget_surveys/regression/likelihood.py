"""Multinomial logistic regression of a hidden answer on public attributes, by the likelihood with the known channel.

P(report | x) = Σ_y P(report | y)·softmax(x'B)_y, where answer 0 is the reference; with two answers it is logistic regression.
The model is that of Blair, Imai and Zhou (JASA 2015) for randomized response, with the channel known and for any mechanism.
Weights make it a pseudo-likelihood, and errors are a sandwich (Binder, 1983).

The interval of a coefficient is that of the score test: all values that the score does not reject, with the other coefficients
estimated under the hypothesis. Few reports at a small ε may fit best with an infinite coefficient, or may not reject any; then
the interval is open.
"""

from __future__ import annotations

from math import copysign, inf, nan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from .linear import Coefficient, degrees_of_freedom
from .sample import solved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .sample import Floats, Sample

    Free = NDArray[np.bool_]

_MOST_STEPS = 200
_CLOSE = 1e-7
"""The last step, in logits; Newton's next one would be as small as its square."""
_LONGEST = 3.0
"""The longest step, in logits of the row that it moves most."""
_PRECISE = 1e-6
"""The precision of an end."""
_INFINITE = 20.0
"""The largest value that is tried, in logits between the mean of a term and its farthest value."""
_FLAT = 1e-6
"""An estimate is infinite if a fourth more fits as well, up to this difference of log-likelihoods."""


class _Point(NamedTuple):
    """The log-likelihood, the scores of each row (K, c), the observed information (c, c) and its upper bound."""

    value: float
    scores: Floats
    information: Floats
    bound: Floats


class MultinomialModel:
    """The model of rows of respondents.

    Parameters:
        likelihood: the chance of each row's report under each answer, (K, d), up to a factor of the row.
        x: the terms of each row, (K, p).
        sample: the rows.
        names: the names of the (d - 1)·p coefficients, those of answer 1 first.

    Raises:
        NotSupported: a term depends on the others, or there are too few respondents.
    """

    def __init__(self, likelihood: Floats, x: Floats, sample: Sample, names: Sequence[str]) -> None:
        self.likelihood, self.sample, self.names = likelihood, sample, names
        self.freedom = degrees_of_freedom(sample, x.shape[1])
        mean = sample.total @ x / sample.total.sum()
        spread = np.abs(x - mean).max(axis=0)
        constant = spread <= 1e-12 * np.abs(x).max(axis=0)
        scale = np.where(constant, np.maximum(np.abs(x).max(axis=0), 1e-300), spread)
        self.terms = x / scale
        solved(self.terms.T @ (self.terms * sample.total[:, None]), np.eye(x.shape[1]), names[: x.shape[1]])
        limits = _INFINITE * np.where(constant, 1 + np.abs(mean / scale)[~constant].sum(), 1.0)
        self._scale, self.limits = (np.tile(each, likelihood.shape[1] - 1) for each in (scale, limits))

    def _at(self, beta: Floats) -> _Point:
        rows, others = len(self.terms), self.likelihood.shape[1] - 1
        eta = np.concatenate((np.zeros((rows, 1)), self.terms @ beta.reshape(others, -1).T), axis=1)
        prior = np.exp(eta - eta.max(axis=1, keepdims=True))
        prior /= prior.sum(axis=1, keepdims=True)
        joint = self.likelihood * prior
        mixed = np.maximum(joint.sum(axis=1), 1e-300)
        after, before = joint[:, 1:] / mixed[:, None], prior[:, 1:]
        total, terms = self.sample.total, self.terms
        scores = ((after - before)[:, :, None] * terms[:, None, :]).reshape(rows, -1)
        shape = (others, terms.shape[1]) * 2
        information, bound = np.empty(shape), np.empty(shape)
        for a in range(others):
            for b in range(a, others):
                most, left = (float(a == b) * each[:, a] - each[:, a] * each[:, b] for each in (before, after))
                for found, each in ((bound, most), (information, most - left)):
                    found[a, :, b, :] = (terms * (total * each)[:, None]).T @ terms
                    found[b, :, a, :] = found[a, :, b, :].T
        size = scores.shape[1]
        return _Point(
            float(total @ np.log(mixed)), scores, information.reshape(size, size), bound.reshape(size, size)
        )

    def maximum(self, start: Floats, free: Free) -> tuple[Floats, _Point]:
        """Return the free coefficients with the largest likelihood, the others as in `start`, and what holds there."""
        beta, point = start.copy(), self._at(start)
        for _ in range(_MOST_STEPS if free.any() else 0):
            step = np.zeros(len(beta))
            step[free] = _step(point, self.sample.total @ point.scores, free)
            moved = float(np.abs(self.terms @ step.reshape(-1, self.terms.shape[1]).T).max())
            if (np.abs(beta) > 1.5 * self.limits)[free].any():
                break
            step *= min(1.0, _LONGEST / max(moved, _CLOSE))
            for _ in range(40):
                trial = beta + step
                found = self._at(trial)
                if found.value >= point.value - 1e-13 * abs(point.value):
                    break
                step = step / 2
            gain, beta, point = found.value - point.value, trial, found
            if moved < _CLOSE or gain < _FLAT * _CLOSE:
                break
        return beta, point

    def coefficients(self, level: float, places: Sequence[int] | None = None) -> list[Coefficient]:
        """Return the coefficients, or those at some places, with intervals of a confidence level and tests by the score."""
        every = np.ones(len(self._scale), np.bool_)
        beta, point = self.maximum(np.zeros(len(self._scale)), every)
        bread = np.linalg.pinv(point.information, hermitian=True)
        errors = np.sqrt(np.maximum((bread @ self.sample.variance(point.scores) @ bread).diagonal(), 0.0))
        most = float(-stdtrit(self.freedom, (1 - level) / 2))
        found = []
        for place in range(len(self.names)) if places is None else places:
            test, scale, best = _Test(self, beta, place), float(self._scale[place]), float(beta[place])
            finite = self._is_finite(beta, point.value, place)
            test.limit = max(test.limit, 3 * abs(best)) if finite else test.limit
            low, high = (_end(test, best, float(errors[place]) if finite else inf, most, side) for side in (-1, 1))
            estimate, error = (best, float(errors[place])) if finite else (copysign(inf, best), nan)
            p_value = float(2 * stdtr(self.freedom, -abs(test(0.0))))
            found.append(
                Coefficient(self.names[place], estimate / scale, error / scale, low / scale, high / scale, p_value)
            )
        return found

    def _is_finite(self, beta: Floats, value: float, place: int) -> bool:
        """True unless a fourth more of a coefficient, with the others as they then fit best, fits as well."""
        if abs(beta[place]) < self.limits[place] / 4:
            return True
        more = np.where(np.arange(len(beta)) == place, 1.25 * beta, beta)
        return self.maximum(more, np.arange(len(beta)) != place)[1].value < value - _FLAT

    def model_errors(self) -> Floats:
        """Return the standard errors that hold without a design if the model is right: of the observed information."""
        point = self.maximum(np.zeros(len(self._scale)), np.ones(len(self._scale), np.bool_))[1]
        found: Floats = np.sqrt(np.linalg.pinv(point.information, hermitian=True).diagonal()) / self._scale
        return found


class _Test:
    """The score test of one coefficient: positive where the reports speak for a larger value."""

    def __init__(self, model: MultinomialModel, best: Floats, place: int) -> None:
        self._model, self._place = model, place
        self._start = np.clip(best, -model.limits, model.limits)
        self._free = np.arange(len(best)) != place
        self.limit = float(model.limits[place])

    def __call__(self, value: float) -> float:
        """Return the statistic of the hypothesis that the coefficient of the scaled term is `value`."""
        model, start = self._model, self._start.copy()
        start[self._place] = value
        point = model.maximum(start, self._free)[1]
        own, rest = point.scores[:, self._place], point.scores[:, self._free]
        inner = point.information[np.ix_(self._free, self._free)]
        slope = np.linalg.pinv(inner, hermitian=True) @ point.information[self._free, self._place]
        scores = own - rest @ slope
        spread = float(model.sample.variance(scores[:, None], known_mean=True)[0, 0])
        return float((model.sample.total @ scores) / max(spread, 1e-300) ** 0.5)


def _step(point: _Point, gradient: Floats, free: Free) -> Floats:
    """Return Newton's step of the free coefficients; where the likelihood is not concave, that of EM's quadratic bound."""
    inside = np.ix_(free, free)
    for matrix in (point.information[inside], point.bound[inside]):
        ridge = 1e-12 * max(1e-300, float(np.trace(matrix)) / len(matrix)) * np.eye(len(matrix))
        try:
            np.linalg.cholesky(matrix - ridge)
        except np.linalg.LinAlgError:
            continue
        return np.asarray(np.linalg.solve(matrix, gradient[free]), np.float64)
    return np.asarray(np.linalg.lstsq(point.bound[inside], gradient[free], rcond=None)[0], np.float64)


def _end(test: _Test, best: float, error: float, most: float, side: int) -> float:
    """Return the end of the accepted values on one side of the estimate; ±∞ if the values up to the largest are accepted."""

    def beyond(value: float) -> float:
        return -side * test(value) - most

    inner, at_inner = max(min(best, test.limit), -test.limit), -most
    step = min(error * most, 1.0) if error else 0.1
    while True:
        outer = inner + side * step
        if abs(outer) > test.limit and outer * side > 0:
            return side * inf
        at_outer = beyond(outer)
        if at_outer > 0:
            break
        inner, at_inner, step = outer, at_outer, min(2 * step, 1.0)
    # A secant within the bracket, with a bisection each third time: the statistic may jump where the likelihood has two maxima.
    for turn in range(100):
        if abs(outer - inner) <= _PRECISE * max(1.0, abs(inner)):
            break
        part = 0.5 if turn % 3 == 2 else min(max(at_inner / (at_inner - at_outer), 0.02), 0.98)
        middle = inner + part * (outer - inner)
        at_middle = beyond(middle)
        if abs(at_middle) < _PRECISE:
            return middle
        if at_middle > 0:
            outer, at_outer = middle, at_middle
        else:
            inner, at_inner = middle, at_middle
    return inner
