"""The one room where random draws are made.

Every discrete draw compares bytes of a stream with integers, so its probabilities are exact multiples of
2**-64 (or exact ratios of integers); floating point never decides. ``open_stream`` gives the stream, the
other functions draw.
"""

from __future__ import annotations

from ._bits import ONE, bernoulli, threshold, unary_bits
from ._discrete import choices, geometric, integers, subsets
from ._exponentials import laplace
from ._normals import normal
from .streams import ChaCha20Stream, GeneratorStream, RandomSource, SeededStream, Stream, SystemStream, open_stream

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
    "unary_bits",
]
