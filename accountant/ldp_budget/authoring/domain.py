"""Checks of users' data before anything is randomized: the domain is declared, never read off the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import InvalidParameter, OutsideDomain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    import numpy as np
    from numpy.typing import NDArray


def check_users(users: int) -> None:
    """Raise `InvalidParameter` unless `users` is a whole number of at least one."""
    if isinstance(users, bool) or not isinstance(users, int) or users < 1:
        raise InvalidParameter("users", "a whole number >= 1", users)


def as_answers(values: Any, domain_size: int) -> NDArray[np.int64]:
    """`values` as an integer array (n,) of answers 0..domain_size-1. Raises `OutsideDomain` at the first other."""
    import numpy as np

    domain = f"whole numbers from 0 to {domain_size - 1}"
    array = _one_dimensional(values, domain)
    if array.dtype == np.bool_:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iuf":
        _refuse(array, _not_in(array, 0, domain_size - 1), domain)
        array = array.astype(np.float64)
    inside = (array >= 0) & (array < domain_size)
    if array.dtype.kind == "f":
        inside &= np.floor(array) == array
    _refuse(array, ~inside, domain)
    answers: NDArray[np.int64] = array.astype(np.int64)
    return answers


def as_numbers(values: Any, lower: Decimal, upper: Decimal) -> NDArray[np.float64]:
    """`values` as a float array (n,) within [lower, upper]. Raises `OutsideDomain` at the first other."""
    import numpy as np

    domain = f"numbers from {lower} to {upper}"
    array = _one_dimensional(values, domain)
    if array.dtype.kind not in "iuf":
        _refuse(array, _not_in(array, float(lower), float(upper)), domain)
    numbers: NDArray[np.float64] = array.astype(np.float64)
    _refuse(array, ~((numbers >= float(lower)) & (numbers <= float(upper))), domain)
    return numbers


def numbers_of(texts: Sequence[str], kind: type[int] | type[float], domain: str) -> list[int] | list[float]:
    """Text as numbers. Raises `OutsideDomain` at the first that is none."""
    numbers = []
    for position, text in enumerate(texts):
        try:
            numbers.append(kind(text))
        except ValueError:
            raise OutsideDomain(domain, text, position) from None
    return numbers


def _one_dimensional(values: Any, domain: str) -> NDArray[Any]:
    import numpy as np

    expected = f"a one-dimensional array of {domain}"
    try:
        array = np.asarray(values)
    except ValueError:
        raise OutsideDomain(expected, "rows of different lengths") from None
    if array.ndim != 1:
        raise OutsideDomain(expected, f"an array of shape {array.shape}")
    return array.astype(np.int64) if array.size == 0 else array


def _refuse(array: NDArray[Any], bad: NDArray[np.bool_], domain: str) -> None:
    if bad.any():
        position = int(bad.argmax())
        raise OutsideDomain(domain, array[position : position + 1].tolist()[0], position)


def _not_in(array: NDArray[Any], low: float, high: float) -> NDArray[np.bool_]:
    """Where an array of no numeric type holds anything but Python numbers from `low` to `high`."""
    import numpy as np

    if array.dtype != np.object_:
        return np.ones(len(array), dtype=np.bool_)
    bad = [
        isinstance(item, bool) or not isinstance(item, int | float) or not low <= item <= high
        for item in array.tolist()
    ]
    return np.array(bad, dtype=np.bool_)
