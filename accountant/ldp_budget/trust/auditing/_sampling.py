"""Reports of users who all hold one value, drawn by the client in blocks; nothing of it is kept here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import NotSupported
from ...randomness import open_stream
from ._events import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from ...authoring.base import Mechanism
    from ...randomness import RandomSource

    Floats = NDArray[np.float32]

SECRET_BYTES = 32

_MOST_BLOCK = 1 << 15
_BLOCK_BYTES = 1 << 22


class Sampler:
    """Draws users: each has a secret of its own and gives `reports` reports of its one value.

    `rng` None leaves the client its own cryptographic randomness; a seed or a stream, for tests, is opened once for
    all draws, as a seed opened anew would repeat them.
    """

    def __init__(self, mechanism: Mechanism, reports: int, rng: RandomSource) -> None:
        self.mechanism = mechanism
        self.reports = reports
        self.stream = open_stream(rng)
        self._rng = None if rng is None else self.stream
        # One user shows how large a report is.
        self._block = 1
        self.drawn = 0
        """How many users have been drawn."""

    def users(self, value: Any, count: int) -> Iterator[Iterator[Any]]:
        """Blocks of `count` users in all; each gives the reports of its users turn by turn, arrays (n, ...)."""
        while count > 0:
            block = min(count, self._block)
            self.drawn += block
            yield self._turns(value, block)
            count -= block

    def _turns(self, value: Any, count: int) -> Iterator[Any]:
        secrets = self._secrets(count)
        values = np.full(count, value)
        for _ in range(self.reports):
            reports = np.asarray(self.mechanism.randomize(values, rng=self._rng, secrets=secrets))
            if reports.ndim == 0 or len(reports) != count:
                raise NotSupported(f"expected {count} reports of {count} users; found shape {reports.shape}")
            self._block = min(_MOST_BLOCK, max(1, _BLOCK_BYTES * count // max(1, reports.nbytes)))
            yield reports

    def _secrets(self, count: int) -> list[bytes]:
        # Of raw bytes ("V") numpy makes a list several times faster than slicing does, and cuts off no zeros.
        data = np.frombuffer(self.stream.read(SECRET_BYTES * count), f"V{SECRET_BYTES}")
        secrets: list[bytes] = data.tolist()
        return secrets

    def hits(self, value: Any, count: int, event: Event) -> int:
        """For how many of `count` users of that value the event holds."""
        return sum(int(event.holds(self.mean(turns, event.read)).sum()) for turns in self.users(value, count))

    def mean(self, turns: Iterator[Any], read: Callable[[Any], Floats]) -> Floats:
        """What `read` reads off the reports of each user, averaged over their turns, (n, a)."""
        total = read(next(turns))
        for reports in turns:
            total += read(reports)
        total /= self.reports
        return total
