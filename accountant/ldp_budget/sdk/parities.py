"""Parities of the bits of many whole numbers at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def parities(numbers: NDArray[Any]) -> NDArray[np.uint8]:
    """Return 1 for each number with an odd number of ones, else 0.

    Parameters:
        numbers: whole numbers >= 0, of any shape and integer type.

    Returns:
        An array of the same shape.
    """
    if hasattr(np, "bitwise_count"):  # from NumPy 2 on
        odd: NDArray[np.uint8] = np.bitwise_count(numbers) & np.uint8(1)
        return odd
    # The exclusive or of both halves has the parity of the whole.
    folded = numbers.astype(np.uint64)
    for shift in (32, 16, 8, 4, 2, 1):
        folded ^= folded >> np.uint64(shift)
    return (folded & np.uint64(1)).astype(np.uint8)
