"""The release of a model update by a site: charged to the site's own ledger, clipped, and randomized exactly.

It is what the adapters of NVFlare and Flower have in common, and imports neither. An update is the difference of the arrays
that a site trained and those that it received. The names and shapes are those that it *received*: nothing that training code
chooses leaves the site but the numbers, and these are randomized.

An update that is not such a difference, or has a number that is not finite, is replaced by zeros, and is charged and
randomized as any other. If it were refused, refusals would be an answer that nobody charges. Why it was replaced is for the
site's own log. A charge has no idempotency key: the same key would let two draws of the noise leave for one charge. So a
crash may lose a charge, and never releases an update that was not charged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import InvalidParameter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldp_budget.sdk.mechanism import Mechanism

    Arrays = dict[str, NDArray[np.float32]]
    Shapes = Mapping[str, tuple[int, ...]]

NOTHING_LEAVES = "the privacy budget of this site admits no further update, so nothing leaves"


class SiteRelease:
    """The budget of a site, and the mechanism of its updates.

    Parameters:
        ledger: the path of the site's ledger, a `postgresql://` URL, or the `https://` URL of the site's service, whose API
            key is in the variable LDP_BUDGET_API_KEY. The ledger must exist.
        user: the account that is charged: one for all who are in the site's data.
        norm_bound: the largest Euclidean norm of an update; longer ones are scaled down.
        epsilon: the privacy loss of one update, together with delta.
        delta: the probability of a larger loss.
        rho: the ρ of one update, in place of epsilon and delta.
        policy: the policy with the limits, under the rule zcdp or renyi.

    Raises:
        InvalidParameter: a parameter is out of its range.
    """

    def __init__(
        self,
        ledger: str,
        user: str,
        norm_bound: Any = 1,
        epsilon: Any = None,
        delta: Any = None,
        rho: Any = None,
        policy: str = "default",
    ) -> None:
        if epsilon is None and delta is None and rho is None:
            epsilon, delta = 1, "1e-6"
        self._terms = {"norm_bound": norm_bound, "epsilon": epsilon, "delta": delta, "rho": rho}
        self._ledger, self._user, self._policy = str(ledger), user, policy
        self._mechanism(1)  # refuses wrong terms before any update
        with opened(self._ledger) as accountant:
            accountant.quote(self._user, self._mechanism(1), policy=self._policy)  # no ledger, or no such policy

    def release(self, update: object, shapes: Shapes, warn: Callable[[str], None]) -> Arrays | None:
        """Charge an update, and return it clipped and randomized; None if the budget refuses it.

        Parameters:
            update: a mapping of names to arrays, as training code returned it; anything else counts as zeros.
            shapes: the names and the shapes of the arrays that the site received, in order.
            warn: takes a line for the site's log.

        Raises:
            InvalidParameter: the arrays that the site received have no numbers.
        """
        sizes = [int(np.prod(shape, dtype=object)) for shape in shapes.values()]
        if not sum(sizes):
            raise InvalidParameter("shapes", "arrays with at least one number", dict(shapes))
        mechanism = self._mechanism(sum(sizes))
        with opened(self._ledger) as accountant:
            if not accountant.spend(self._user, mechanism, policy=self._policy):
                warn(NOTHING_LEAVES)
                return None
        vector = _vector(update, shapes, warn)
        if vector is None:
            vector = np.zeros(sum(sizes))
        noisy = mechanism.contributions(mechanism.randomize(mechanism.clip([vector])))[0]  # type: ignore[attr-defined]
        parts = np.split(noisy.astype(np.float32), np.cumsum(sizes)[:-1])
        return {name: part.reshape(shape) for part, (name, shape) in zip(parts, shapes.items(), strict=True)}

    def _mechanism(self, dimension: int) -> Mechanism:
        from ldp_budget import mechanism

        return mechanism("discrete-gaussian")(dimension=dimension, **self._terms)


def opened(ledger: str) -> AbstractContextManager[Any]:
    """Open a ledger that exists, or a client of the service that keeps one."""
    import os

    from ldp_budget import Accountant

    if not ledger.startswith(("https://", "http://")):
        return Accountant(ledger, create=False)
    from ldp_budget.client import Client

    return Client(ledger, os.environ.get("LDP_BUDGET_API_KEY", ""))


def _vector(update: object, shapes: Shapes, warn: Callable[[str], None]) -> NDArray[np.float64] | None:
    """Return an update as one vector of finite numbers; None, and a line for the log, if it is none."""
    try:
        if not isinstance(update, Mapping) or set(update) != set(shapes):
            raise ValueError("it does not have the names of the arrays that the site received")
        return np.concatenate([_numbers(update[name], shape) for name, shape in shapes.items()])
    except Exception as error:  # training code may return objects that raise anything
        warn(
            f"the update is replaced by zeros, because it is not a difference of the arrays received: {error!r:.300}"
        )
        return None


def _numbers(value: Any, shape: Sequence[int]) -> NDArray[np.float64]:
    array = np.asarray(value)
    if array.dtype.kind not in "biuf" or array.shape != tuple(shape):
        raise ValueError(f"an array of {array.dtype} {array.shape} in place of numbers of shape {tuple(shape)}")
    numbers = array.astype(np.float64).ravel()
    if not np.isfinite(numbers).all():
        raise ValueError("an array with a number that is not finite")
    return numbers
