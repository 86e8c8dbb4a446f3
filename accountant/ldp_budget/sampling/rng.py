"""Streams of uniform random bytes: the operating system's, ChaCha20, and reproducible ones for tests.

Draws depend only on the bytes: two streams with the same bytes give the same draws. A stream is opened for one
call, read by one thread and discarded with the call. So no generator state outlives a call, and a child process
made by ``fork`` cannot repeat its parent's draws. A ``ChaCha20Stream`` that is kept for longer could.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .._validation import shown, shown_with_type
from ..errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

BLOCK_BYTES = 1 << 20
"""Draws are made in blocks of about this many bytes, so that memory stays bounded and a block fits the cache."""

_CHACHA20_LIMIT = 1 << 37
"""Bytes under one ChaCha20 key: half of what its 32-bit block counter allows (RFC 8439, section 2.4)."""

_SEEDED_BLOCK = 1 << 16

_ZEROS = memoryview(bytes(BLOCK_BYTES))
"""What the keystream is combined with; one for all streams, as a client may open one for each report."""


class Stream(ABC):
    """An endless sequence of independent, uniformly distributed bytes."""

    @abstractmethod
    def read(self, count: int) -> bytes | bytearray:
        """Return the next ``count`` bytes, never fewer."""

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """Return the next ``8 * count`` bytes as ``count`` little-endian 64-bit words, shape (count,)."""
        return np.frombuffer(self.read(8 * count), "<u8", count).astype(np.uint64, copy=False)


class SystemStream(Stream):
    """The operating system's cryptographic generator (``os.urandom``)."""

    def read(self, count: int) -> bytes:
        return os.urandom(count)


class ChaCha20Stream(Stream):
    """The ChaCha20 keystream under a fresh key of 32 bytes from the operating system.

    Needs the package ``cryptography`` (extra ``fast``).

    Raises:
        ImportError: ``cryptography`` is not installed.
        cryptography.exceptions.UnsupportedAlgorithm: its OpenSSL was built without ChaCha20.
    """

    def __init__(self) -> None:
        self._rekey()

    def _rekey(self) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

        # A key is used for one keystream, so the counter and the nonce may start at zero.
        self._keystream = Cipher(ChaCha20(os.urandom(32), bytes(16)), mode=None).encryptor()
        self._left = _CHACHA20_LIMIT

    def read(self, count: int) -> bytes:
        if count <= BLOCK_BYTES:
            return self._block(count)
        return b"".join(self._block(part.stop - part.start) for part in blocks(count, BLOCK_BYTES))

    def _block(self, count: int) -> bytes:
        if count > self._left:
            self._rekey()
        self._left -= count
        return self._keystream.update(_ZEROS[:count])


_MOST_SEED_BITS = 8192


class SeededStream(Stream):
    """Reproducible bytes, **for tests only**: knowing or guessing the seed reveals every draw.

    Block i is SHAKE-256(SHA3-256(kind and text of the seed) || i as 8 little-endian bytes), 65,536 bytes long: the
    bytes are the same on every platform and under every version of Python and numpy.
    """

    def __init__(self, seed: int | bytes) -> None:
        text = b"bytes:" + seed if isinstance(seed, bytes) else b"int:%d" % seed
        self._key = hashlib.sha3_256(text).digest()
        self._blocks = 0
        self._rest = memoryview(b"")

    def read(self, count: int) -> bytes:
        parts = []
        while count > len(self._rest):
            parts.append(self._rest)
            count -= len(self._rest)
            self._rest = memoryview(self._next_block())
        parts.append(self._rest[:count])
        self._rest = self._rest[count:]
        return b"".join(parts)

    def _next_block(self) -> bytes:
        index = self._blocks.to_bytes(8, "little")
        self._blocks += 1
        return hashlib.shake_256(self._key + index).digest(_SEEDED_BLOCK)

    def __repr__(self) -> str:
        return "<SeededStream: predictable, for tests only>"


class GeneratorStream(Stream):
    """The bytes of a ``numpy.random.Generator``, **for tests only**: its bit generators can be predicted."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def read(self, count: int) -> bytes:
        return self._generator.bytes(count)

    def __repr__(self) -> str:
        return f"<GeneratorStream over {self._generator!r}: predictable, for tests only>"


RandomSource: TypeAlias = "Stream | int | np.random.Generator | None"
"""Sources of randomness that ``open_stream`` and the parameter ``rng`` of every mechanism accept."""


def open_stream(rng: RandomSource = None) -> Stream:
    """Return the stream for ``rng``.

    Parameters:
        rng: None for a cryptographic stream (ChaCha20 if ``cryptography`` supports it, otherwise the operating
            system's); a stream, which is returned as it is; for tests an int (a seed) or a
            ``numpy.random.Generator``.

    Raises:
        TypeError: ``rng`` is anything else.
        InvalidParameter: ``rng`` is a seed that is too long to print.
    """
    if rng is None:
        return _cryptographic_stream()
    if isinstance(rng, Stream):
        return rng
    if isinstance(rng, int) and not isinstance(rng, bool):
        if rng.bit_length() > _MOST_SEED_BITS:
            raise InvalidParameter("rng", f"a seed of at most {_MOST_SEED_BITS} bits", shown(rng))
        return SeededStream(rng)
    if isinstance(rng, np.random.Generator):
        return GeneratorStream(rng)
    raise TypeError(f"rng must be None, a Stream, an int or a numpy.random.Generator: got {shown_with_type(rng)}")


def _cryptographic_stream() -> Stream:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
    except ImportError:
        return SystemStream()
    try:
        return ChaCha20Stream()
    except UnsupportedAlgorithm:  # OpenSSL restricted to FIPS algorithms
        return SystemStream()


def blocks(size: int, step: int) -> Iterator[slice]:
    """Yield the slices that cover ``range(size)`` in order, each of ``step`` items but the last."""
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))
