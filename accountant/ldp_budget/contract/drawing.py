"""Reports of a mechanism for the checks: every user has a secret of its own, which most mechanisms do not need."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..errors import NotSupported
from ..randomness import SeededStream
from .outcome import NotChecked

if TYPE_CHECKING:
    from ..base import Mechanism

_SECRET_BYTES = 32


def secrets_of(count: int, seed: int | None) -> list[bytes]:
    """A secret for each of `count` users; None draws them from the operating system."""
    size = _SECRET_BYTES * count
    data = os.urandom(size) if seed is None else bytes(SeededStream(b"secrets %d" % seed).read(size))
    return [data[at : at + _SECRET_BYTES] for at in range(0, size, _SECRET_BYTES)]


def draw(mechanism: Mechanism, values: Any, seed: int | None) -> Any:
    """Reports of users with these values. Raises `NotChecked` where the mechanism has no client."""
    import numpy as np

    try:
        return np.asarray(mechanism.randomize(values, rng=seed, secrets=secrets_of(len(values), seed)))
    except NotSupported as error:
        raise NotChecked(str(error)) from None


def inputs_of(mechanism: Mechanism) -> list[Any]:
    """Values that the mechanism takes. Raises `NotChecked` where it names none."""
    try:
        return list(mechanism.critical_inputs())
    except NotSupported as error:
        raise NotChecked(str(error)) from None


def users_of(mechanism: Mechanism, count: int) -> Any:
    """`count` values, its inputs over and over."""
    import numpy as np

    return np.resize(np.array(inputs_of(mechanism)), count)
