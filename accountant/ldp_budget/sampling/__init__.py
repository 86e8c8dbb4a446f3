"""Exact random sampling. No other package draws random numbers.

Every discrete draw compares bytes of a stream with integers, so probabilities are exact multiples of 2**-64 or
exact ratios of integers; floating point never decides. ``open_stream`` opens the stream, the other functions draw
and import numpy on first use. ``threshold`` and ``ONE`` are all that a calibration needs. May import from
guarantees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._later import later_names
from ..guarantees.fixed_point import ONE, threshold

if TYPE_CHECKING:
    # The names that `__getattr__` imports, for type checkers and editors.
    from .continuous import discrete_normal, laplace, normal
    from .discrete import bernoulli, choices, geometric, integers, subsets
    from .rng import ChaCha20Stream, GeneratorStream, RandomSource, SeededStream, Stream, SystemStream, open_stream

_HOMES = {
    **dict.fromkeys(("bernoulli", "choices", "geometric", "integers", "subsets"), ".discrete"),
    **dict.fromkeys(("discrete_normal", "laplace", "normal"), ".continuous"),
    **dict.fromkeys(("ChaCha20Stream", "GeneratorStream", "SeededStream", "SystemStream"), ".rng"),
    **dict.fromkeys(("RandomSource", "Stream", "open_stream"), ".rng"),
}

__all__ = [
    "ONE",
    "ChaCha20Stream",
    "GeneratorStream",
    "RandomSource",
    "SeededStream",
    "Stream",
    "SystemStream",
    "bernoulli",
    "choices",
    "discrete_normal",
    "geometric",
    "integers",
    "laplace",
    "normal",
    "open_stream",
    "subsets",
    "threshold",
]

__getattr__ = later_names(__name__, _HOMES)
