"""Reports of a mechanism for the checks: every user has a secret of its own, which most mechanisms do not need."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any

import numpy as np

from ...authoring.domain import Interval
from ...errors import NotSupported
from ...randomness import SeededStream
from .._advice import SHORTER, undefined
from ._outcome import NotChecked

if TYPE_CHECKING:
    from ...authoring.base import Mechanism

SECRET_BYTES = 32
_MOST_BYTES = 1 << 30
_MOST_STREAMED_BYTES = 1 << 33
"""Of reports that are held at once, and of such as are drawn in blocks and dropped."""
_POINTS = 1 << 20


def secrets_of(count: int, seed: int | None) -> list[bytes]:
    """A secret for each of `count` users; None draws them from the operating system."""
    size = SECRET_BYTES * count
    data = os.urandom(size) if seed is None else bytes(SeededStream(b"secrets %d" % seed).read(size))
    return [data[at : at + SECRET_BYTES] for at in range(0, size, SECRET_BYTES)]


def draw(mechanism: Mechanism, values: Any, seed: int | None) -> Any:
    """Reports of users with these values. Raises `NotChecked` where the mechanism has no client."""
    if len(values) > 1:
        expect_to_fit(mechanism, values[:1], len(values))
    return _drawn(mechanism, values, seed)


def expect_to_fit(mechanism: Mechanism, one: Any, users: int, *, streamed: bool = False) -> None:
    """Raise `NotChecked` where the reports of so many users would be too large, seen from `one`."""
    size = _drawn(mechanism, one, 0).nbytes * users
    if size > (_MOST_STREAMED_BYTES if streamed else _MOST_BYTES):
        raise NotChecked(f"{users} reports would take {size / 1e9:.1f} GB; {SHORTER}")


def _drawn(mechanism: Mechanism, values: Any, seed: int | None) -> Any:
    try:
        return np.asarray(mechanism.randomize(values, rng=seed, secrets=secrets_of(len(values), seed)))
    except NotSupported as error:
        raise NotChecked(undefined(mechanism, error, "randomize")) from None
    except MemoryError:
        raise NotChecked(f"its reports do not fit into memory; {SHORTER}") from None


def inputs_of(mechanism: Mechanism) -> list[Any]:
    """Values that the mechanism takes. Raises `NotChecked` where it names none."""
    try:
        return list(mechanism.critical_inputs())
    except NotSupported as error:
        raise NotChecked(undefined(mechanism, error, "critical_inputs")) from None


def users_of(mechanism: Mechanism, count: int) -> Any:
    """`count` values, its inputs over and over."""
    return np.resize(np.array(inputs_of(mechanism)), count)


def others_of(mechanism: Mechanism, count: int) -> list[Any]:
    """Some values of its domain, drawn at random but the same every time; none where it declares no domain."""
    chance, domain = random.Random(mechanism.fingerprint), mechanism.domain
    if isinstance(domain, Interval):
        lower, upper = domain.ends
        return [lower + (upper - lower) * (chance.randrange(_POINTS) / _POINTS) for _ in range(count)]
    if domain is None or not domain.listed:
        return []
    return [chance.randrange(domain.size) for _ in range(count)]
