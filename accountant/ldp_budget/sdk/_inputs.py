"""Conversion of users' values, and of prior weights, to checked arrays.

A value outside the domain raises `OutsideDomain`, which names the first such value.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidParameter, OutsideDomain

if TYPE_CHECKING:
    from numpy.typing import NDArray


def as_answers(values: Any, size: int, domain: str) -> NDArray[np.int64]:
    """Return `values` as an integer array (n,) of whole numbers 0..size-1.

    `domain` describes these numbers in error messages.
    """
    array = _one_dimensional(values, domain)
    if array.dtype == np.bool_:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iuf":
        _refuse(array, _not_in(array, 0, size - 1), domain)
        array = array.astype(np.float64)
    whole = array.dtype.kind != "f"
    if not (whole and _within(array, 0, size - 1)):
        inside = (array >= 0) & (array < size)
        _refuse(array, ~(inside if whole else inside & (np.floor(array) == array)), domain)
    answers: NDArray[np.int64] = array.astype(np.int64)
    return answers


def as_large_answers(values: Any, size: int, domain: str) -> NDArray[Any]:
    """Return `values` as an array (n,) of Python integers 0..size-1, which may be larger than any machine word."""
    array = _one_dimensional(values, domain).astype(np.object_)
    whole = [isinstance(item, int) and not isinstance(item, bool) and 0 <= item < size for item in array.tolist()]
    _refuse(array, ~np.array(whole, dtype=np.bool_), domain)
    return array


def as_numbers(values: Any, lower: float, upper: float, domain: str) -> NDArray[np.float64]:
    """Return `values` as a float array (n,) within [lower, upper].

    `domain` describes these numbers in error messages.
    """
    array = _one_dimensional(values, domain)
    if array.dtype.kind not in "iuf":
        _refuse(array, _not_in(array, lower, upper), domain)
    numbers: NDArray[np.float64] = array.astype(np.float64)
    if not _within(numbers, lower, upper):
        _refuse(array, ~((numbers >= lower) & (numbers <= upper)), domain)
    return numbers


def as_weights(values: Any, count: int) -> NDArray[np.float64]:
    """Return `values` as `count` weights of a prior, a float array. Raises `InvalidParameter`."""
    weights: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    if weights.shape != (count,) or not (weights >= 0).all() or not 0 < weights.sum() < math.inf:
        found = f"weights of shape {weights.shape}, the smallest {weights.min(initial=0)}"
        raise InvalidParameter("prior", f"{count} points with weights >= 0, not all of them 0", found)
    return weights


def _one_dimensional(values: Any, domain: str) -> NDArray[Any]:
    expected = f"a one-dimensional array of {domain}"
    try:
        array = np.asarray(values)
    except ValueError:
        raise OutsideDomain(expected, "rows of different lengths") from None
    if array.ndim != 1:
        raise OutsideDomain(expected, f"an array of shape {array.shape}")
    return array.astype(np.int64) if array.size == 0 else array


def _within(array: NDArray[Any], low: float, high: float) -> bool:
    """Return True if all numbers are from `low` to `high`; False where one is not a number."""
    return not array.size or bool(low <= array.min() and array.max() <= high)


def _refuse(array: NDArray[Any], bad: NDArray[np.bool_], domain: str) -> None:
    if bad.any():
        position = int(bad.argmax())
        raise OutsideDomain(domain, array[position : position + 1].tolist()[0], position)


def _not_in(array: NDArray[Any], low: float, high: float) -> NDArray[np.bool_]:
    """Mark the entries of a non-numeric array that are not Python numbers from `low` to `high`."""
    if array.dtype != np.object_:
        return np.ones(len(array), dtype=np.bool_)
    bad = [
        isinstance(item, bool) or not isinstance(item, int | float) or not low <= item <= high
        for item in array.tolist()
    ]
    return np.array(bad, dtype=np.bool_)
