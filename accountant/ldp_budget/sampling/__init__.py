"""Exact random sampling. No other package draws random numbers.

Every discrete draw compares bytes of a stream with integers, so probabilities are exact multiples of 2**-64 or
exact ratios of integers; floating point never decides. ``open_stream`` opens the stream, the other functions draw
and import numpy on first use. ``threshold`` and ``ONE`` are all that a calibration needs. May import from
guarantees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..guarantees.fixed_point import ONE, threshold

if TYPE_CHECKING:
    # The names that `__getattr__` imports, for type checkers and editors.
    from .continuous import laplace, normal
    from .discrete import bernoulli, choices, geometric, integers, subsets
    from .rng import ChaCha20Stream, GeneratorStream, RandomSource, SeededStream, Stream, SystemStream, open_stream

_HOMES = {
    "ChaCha20Stream": "rng",
    "GeneratorStream": "rng",
    "RandomSource": "rng",
    "SeededStream": "rng",
    "Stream": "rng",
    "SystemStream": "rng",
    "bernoulli": "discrete",
    "choices": "discrete",
    "geometric": "discrete",
    "integers": "discrete",
    "laplace": "continuous",
    "normal": "continuous",
    "open_stream": "rng",
    "subsets": "discrete",
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
    "geometric",
    "integers",
    "laplace",
    "normal",
    "open_stream",
    "subsets",
    "threshold",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    # Cached: clients that draw for one user at a time look names up thousands of times.
    globals()[name] = found = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    return found
