"""Memoised randomness: a client repeats its draw for a value by deriving it again from its secret.

Nothing is stored. The words of a value are the output of SHAKE-256 over (context, secret, value). Without the
secret they cannot be distinguished from fresh random words, nor linked to the words of another value or context. So
a client that keeps its secret repeats its permanent randomness exactly, and only that client can.

The words are not a `Stream`: draws from a stream depend on how many draws came before. Here a user's words must not
depend on the other users in the same call.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

LEAST_SECRET_BYTES = 16

_DOMAIN = b"ldp-budget memoised words 1"


def memo_words(secrets: Any, context: str, values: npt.NDArray[np.integer], count: int) -> npt.NDArray[np.uint64]:
    """`count` uniform 64-bit words for each value, a function of (secret, context, value) alone.

    Parameters:
        secrets: bytes, one secret for all the values; or one for each value. At least 16 bytes each, drawn by a
            cryptographic generator. Never give two users the same secret: their randomness would be the same.
        context: the purpose of the words, such as a mechanism's fingerprint and a name. Words of different
            contexts are independent.
        values: integers within 64 bits, shape (n,).
        count: words for each value.

    Returns:
        Shape (n, count). A word is below a threshold t with probability t / 2**64 (see `sampling.threshold`).
        For many values this is large: `8 * n * count` bytes; call it in blocks.

    Raises:
        InvalidParameter: `secrets` is neither bytes nor one bytes object for each value, or one is too short.
    """
    data = values.astype("<i8").tobytes()
    prefixes = _prefixes(secrets, context, len(values))
    digests = [
        hashlib.shake_256(prefix + data[8 * i : 8 * i + 8]).digest(8 * count) for i, prefix in enumerate(prefixes)
    ]
    words = np.frombuffer(b"".join(digests), "<u8").astype(np.uint64, copy=False)
    return words.reshape(len(values), count)


def _prefixes(secrets: Any, context: str, count: int) -> Iterator[bytes]:
    """Yield the bytes that are hashed before each value. Lengths come first, so that no two inputs coincide."""
    text = context.encode()
    head = _DOMAIN + len(text).to_bytes(8, "little") + text
    for secret in secrets_for_each(secrets, count):
        yield head + len(secret).to_bytes(8, "little") + secret


def secrets_for_each(secrets: Any, count: int) -> list[bytes]:
    """One secret for each of `count` values; empty for no values. Raises `InvalidParameter`, which shows no secret."""
    if isinstance(secrets, bytes):
        secrets = [secrets] * count
    elif secrets is None and not count:
        secrets = []
    elif isinstance(secrets, str | bytearray) or not hasattr(secrets, "__len__") or len(secrets) != count:
        raise _invalid(None if secrets is None else f"a {type(secrets).__name__} that does not have {count} secrets")
    listed: list[bytes] = list(secrets)
    for secret in listed:
        if not isinstance(secret, bytes) or len(secret) < LEAST_SECRET_BYTES:
            raise _invalid(f"{len(secret)} bytes" if isinstance(secret, bytes) else f"a {type(secret).__name__}")
    return listed


def labels_of(drawn: Any, secrets: Sequence[bytes], context: str) -> list[str]:
    """A label for each memoised draw: keyed hashes, equal only for equal draws of one secret in one context."""
    plain = drawn.tolist() if hasattr(drawn, "tolist") else drawn
    keys = secrets_within(secrets, f"{context} labels", len(secrets))
    return [
        hashlib.blake2b(repr(draw).encode(), key=key, digest_size=16).hexdigest()
        for draw, key in zip(plain, keys, strict=True)
    ]


def secrets_within(secrets: Any, context: str, count: int) -> list[bytes]:
    """Derive secrets for one context from those of `secrets_for_each`.

    Draws from them reveal nothing about other contexts.
    """
    text = context.encode()
    return [
        hashlib.blake2b(text, key=hashlib.sha256(secret).digest(), digest_size=32, person=b"ldp-budget").digest()
        for secret in secrets_for_each(secrets, count)
    ]


def _invalid(found: str | None) -> InvalidParameter:
    expected = f"bytes, or one bytes object for each value, each of at least {LEAST_SECRET_BYTES} bytes"
    hint = "Create each user's secret once, with secrets.token_bytes(32), and keep it on the user's device."
    return InvalidParameter("secrets", expected, found, hint="" if found else hint)
