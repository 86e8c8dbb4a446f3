"""Packed rows of a perturbed unary encoding, for mechanisms of the tests that draw their reports themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldp_budget.sampling import Stream, bernoulli
from ldp_budget.sdk.interpreter import pack_rows


def unary_rows(stream: Stream, values: Any, size: int, keep: int, noise: int) -> Any:
    """A row of `size` bits for each value: its own bit is 1 with probability keep/2**64, any other with noise/2**64."""
    bits = bernoulli(stream, noise, len(values) * size).reshape(-1, size)
    bits[np.arange(len(values)), values] = bernoulli(stream, keep, len(values))
    return pack_rows(bits)
