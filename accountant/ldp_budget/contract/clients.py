"""Checks of the client: it draws what the channel or the density says, and from the stream that it is given."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

from ..errors import NotSupported
from ..guarantees import Unbounded
from ..numeric import NumericMechanism
from .chances import LEAST_P, chi_square_p, twice
from .drawing import draw, inputs_of, users_of
from .outcome import Broken, NotChecked, expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from ..base import Mechanism

    Floats = NDArray[np.float64]

_USERS = 20_000
_PAIRS = 6
_SAME = 300
_BINS = 24
_FINE = 1e-3


def client_matches_channel(mechanism: Mechanism) -> None:
    """Reports are as likely as `compare` says (chi-square), among others' as well as alone; or as `density` says."""
    pairs = list(permutations(inputs_of(mechanism), 2))
    try:
        for first, second in pairs[:: max(1, len(pairs) // _PAIRS)][:_PAIRS]:
            twice(lambda seed, pair=(first, second): _against_channel(mechanism, pair, seed))  # type: ignore[misc]
    except NotSupported as error:
        if not _has_density(mechanism):
            raise NotChecked(str(error)) from None
        for value in inputs_of(mechanism):
            twice(lambda seed, value=value: _against_density(mechanism, value, seed))  # type: ignore[misc]


def _against_channel(mechanism: Mechanism, pair: tuple[Any, Any], seed: int) -> str:
    """What speaks against the client, in words; "" where nothing does."""
    import numpy as np

    masses = np.array([(float(p), float(q)) for p, q in mechanism.compare(*pair).masses()])
    for who, values in (("alone", np.full(_USERS, pair[0])), ("among others", np.resize(np.array(pair), _USERS))):
        reports = draw(mechanism, values, seed)
        codes = np.asarray(mechanism.outcomes(reports, *pair)).astype(np.int64)
        if len(codes) != _USERS or not ((codes >= 0) & (codes < len(masses))).all():
            raise Broken(f"outcomes of {pair} are not {_USERS} numbers from 0 to {len(masses) - 1}")
        for side, value in enumerate(pair):
            own = codes[values == value]
            counts = np.bincount(own, minlength=len(masses)).astype(np.float64)
            p = chi_square_p(counts, len(own) * masses[:, side])
            if p < LEAST_P:
                return f"reports of {value} ({who}) are not as compare{pair} says: chi-square p = {p:.3g}"
    return ""


def _has_density(mechanism: Mechanism) -> bool:
    return isinstance(mechanism, NumericMechanism) and type(mechanism).density is not NumericMechanism.density


def _against_density(mechanism: Any, value: float, seed: int) -> str:
    """The same for a density: half of the reports say where to cut, the others are counted."""
    import numpy as np

    reports = np.sort(draw(mechanism, np.full(_USERS, value), seed).reshape(2, -1), axis=1)
    if mechanism.grid()[1] > _FINE * reports[0].std():
        raise NotChecked("its grid is too coarse to hold reports against a density")
    cuts = np.quantile(reports[0], np.linspace(0, 1, _BINS + 1)[1:-1])
    edges = np.unique([*cuts, *mechanism.report_breakpoints(value)])
    counts = np.bincount(np.searchsorted(edges, reports[1], side="right"), minlength=len(edges) + 1)
    masses = np.array(list(_integrals(mechanism, value, edges)))
    if abs(masses.sum() - 1) > _FINE:
        raise Broken(f"the density for {value} adds up to {masses.sum():.6g}")
    p = chi_square_p(counts.astype(np.float64), len(reports[1]) * masses)
    return f"reports of {value} are not as its density says: chi-square p = {p:.3g}" if p < LEAST_P else ""


def _integrals(mechanism: NumericMechanism, value: float, edges: Floats) -> Iterator[float]:
    from itertools import pairwise

    from scipy.integrate import quad

    for low, high in pairwise([-float("inf"), *edges.tolist(), float("inf")]):
        yield max(0.0, float(quad(mechanism.density, low, high, args=(value,), full_output=1)[0]))


def seed_decides(mechanism: Mechanism) -> None:
    """A seed gives the same reports again, another seed others; without one, no two runs agree."""
    import numpy as np

    values = users_of(mechanism, _SAME)
    seven, again, eight = (draw(mechanism, values, seed) for seed in (7, 7, 8))
    expect(np.array_equal(seven, again), "the same seed gives other reports")
    if isinstance(mechanism.guarantee, Unbounded):
        raise NotChecked("it promises nothing, so it need not be random")
    expect(not np.array_equal(seven, eight), "another seed gives the same reports")
    free = [draw(mechanism, values, None) for _ in range(2)]
    expect(not np.array_equal(*free), "without a seed two runs give the same reports")
