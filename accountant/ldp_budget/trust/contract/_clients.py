"""Checks of the client: it draws what the channel or the density says, and from the stream that it is given."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.integrate import quad

from ...errors import NotSupported
from ...guarantees import Memoised, Unbounded
from .._advice import SMALLER, undefined
from ._chances import LEAST_EXPECTED, LEAST_P, chi_square_p, twice
from ._drawing import draw, inputs_of, others_of, users_of
from ._losses import claim
from ._outcome import NOTHING_PROMISED, Broken, NotChecked, expect
from ._reading import has_density

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ...authoring.base import Mechanism
    from ...authoring.numeric import NumericMechanism

    Floats = NDArray[np.float64]

_USERS = 20_000
_MOST_INPUTS = 64
_OTHERS = 4
_SAME = 300
_SURE = 6.0
"""A loss so small that of 20,000 reports some must be drawn otherwise another time."""
_BINS = 24
_FINE = 1e-3
_DOUBLINGS = 20


def client_matches_channel(mechanism: Mechanism) -> None:
    """Reports are as likely as `compare` says (chi-square), among others' as well as alone; or as `density` says.

    Every critical input is looked at, and some others. What is said of less than about one in 2000 reports, and
    nothing is left to see without it, is not checked.
    """
    inputs = inputs_of(mechanism)[:_MOST_INPUTS]
    # A memoised value between two critical ones may be rounded by its secret, which `compare` does not describe.
    others = [] if isinstance(mechanism.guarantee, Memoised) else others_of(mechanism, _OTHERS)
    try:
        rare = _match_channel(mechanism, inputs, others)
    except NotSupported as error:
        if not has_density(mechanism):
            raise NotChecked(undefined(mechanism, error, "compare", "outcomes")) from None
        rare = _match_density(mechanism, [*inputs, *others])
    if rare:
        raise NotChecked(rare)


# -- against a channel ----------------------------------------------------------------------------------------


def _match_channel(mechanism: Mechanism, inputs: list[Any], others: list[Any]) -> str:
    """What is too rare to be seen; "" where all of it was."""
    pairs = _pairs(inputs, others)
    least = LEAST_P / (3 * len(pairs))
    for pair in pairs:
        masses = _masses(mechanism, pair)
        twice(lambda seed, pair=pair, masses=masses: _against_channel(mechanism, pair, masses, seed, least))  # type: ignore[misc]
    return next(filter(None, (_too_rare(mechanism, value, (inputs[0], inputs[-1])) for value in inputs)), "")


def _pairs(inputs: list[Any], others: list[Any]) -> list[tuple[Any, Any]]:
    """Each input against the first, and that against the last; some others against the first."""
    first = inputs[0]
    pairs = [*((value, first) for value in (*inputs[1:], *others)), (first, inputs[-1])]
    return list(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))


def _masses(mechanism: Mechanism, pair: tuple[Any, Any]) -> Floats:
    return np.array([(float(p), float(q)) for p, q in mechanism.compare(*pair).masses()])


def _too_rare(mechanism: Mechanism, value: Any, others: tuple[Any, Any]) -> str:
    """Whether reports of `value` that speak for another input are so few that a client without any is not noticed."""
    against = 0.0
    for other in others:
        if other != value:
            masses = _masses(mechanism, (value, other))
            against = max(against, float(masses[masses[:, 0] < masses[:, 1], 0].sum()))
    if 0 < against * _USERS < LEAST_EXPECTED:
        return f"too rare to be seen: one in {1 / against:.3g} reports of {value} speaks against it; {SMALLER}"
    return ""


def _against_channel(mechanism: Mechanism, pair: tuple[Any, Any], masses: Floats, seed: int, least: float) -> str:
    """What speaks against the client, in words; "" where nothing does."""
    for who, values in (("alone", np.full(_USERS, pair[0])), ("among others", np.resize(np.array(pair), _USERS))):
        reports = draw(mechanism, values, seed)
        codes = np.asarray(mechanism.outcomes(reports, *pair)).astype(np.int64)
        if len(codes) != _USERS or not ((codes >= 0) & (codes < len(masses))).all():
            raise Broken(f"outcomes of {pair} are not {_USERS} numbers from 0 to {len(masses) - 1}")
        for side, value in enumerate(pair):
            own = codes[values == value]
            counts = np.bincount(own, minlength=len(masses)).astype(np.float64)
            p = chi_square_p(counts, len(own) * masses[:, side]) if len(own) else None
            if p is not None and p < least:
                return f"reports of {value} ({who}) are not as compare{pair} says: chi-square p = {p:.3g}"
    return ""


# -- against a density ----------------------------------------------------------------------------------------


def _match_density(mechanism: Any, inputs: list[Any]) -> str:
    for value in inputs:
        twice(lambda seed, value=value: _against_density(mechanism, value, seed))  # type: ignore[misc]
    return ""


def _against_density(mechanism: Any, value: float, seed: int) -> str:
    """The same for a density: half of the reports say where to cut, the others are counted."""
    reports = np.sort(draw(mechanism, np.full(_USERS, value), seed).reshape(2, -1), axis=1)
    if mechanism.grid()[1] > _FINE * reports[0].std():
        raise NotChecked("its grid is too coarse to hold reports against a density; define `compare` and `outcomes`")
    cuts = np.quantile(reports[0], np.linspace(0, 1, _BINS + 1)[1:-1])
    edges = np.unique([*cuts, *mechanism.report_breakpoints(value)])
    counts = np.bincount(np.searchsorted(edges, reports[1], side="right"), minlength=len(edges) + 1)
    scale = float(cuts[-1] - cuts[0]) or float(reports[0].std())
    masses = np.array(list(_integrals(mechanism, value, edges, scale)))
    if abs(masses.sum() - 1) > _FINE:
        raise Broken(f"the density for {value} adds up to {masses.sum():.6g}")
    p = chi_square_p(counts.astype(np.float64), len(reports[1]) * masses)
    if p is None:
        raise NotChecked(f"too rare to be seen: reports of {value} hardly differ; {SMALLER}")
    return f"reports of {value} are not as its density says: chi-square p = {p:.3g}" if p < LEAST_P else ""


def _integrals(mechanism: NumericMechanism, value: float, edges: Floats, scale: float) -> Iterator[float]:
    """The density between neighbouring edges, and beyond the last ones; `scale` is how wide most of it lies.

    It is integrated in pieces that double outward, as a rule on a long range would not find where it is.
    """
    low, high = float(edges[0]), float(edges[-1])
    steps = [scale * 2.0**power for power in range(_DOUBLINGS)]
    # Beyond a million times its width a density that adds up to 1 has nothing that a sample of 10,000 could show.
    borders = [low - step for step in reversed(steps)], [high + step for step in steps]
    yield _integral(mechanism, value, [*borders[0], low])
    for left, right in pairwise(edges.tolist()):
        inner = {left + step for step in steps if left + step < right} | {
            right - step for step in steps if left < right - step
        }
        yield _integral(mechanism, value, sorted({left, right} | inner))
    yield _integral(mechanism, value, [high, *borders[1]])


def _integral(mechanism: NumericMechanism, value: float, points: list[float]) -> float:
    pieces = (quad(mechanism.density, *piece, args=(value,), full_output=1)[0] for piece in pairwise(points))
    return max(0.0, float(sum(pieces)))


# -- where the draws come from --------------------------------------------------------------------------------


def seed_decides(mechanism: Mechanism) -> None:
    """A seed gives the same reports again, another seed others; without one, no two runs agree."""
    values = users_of(mechanism, _SAME)
    expect(
        np.array_equal(draw(mechanism, values, 7), draw(mechanism, values, 7)), "the same seed gives other reports"
    )
    if isinstance(mechanism.guarantee, Unbounded):
        raise NotChecked(NOTHING_PROMISED, applies=False)
    _differ(mechanism, (7, 8), "another seed gives the same reports")
    _differ(mechanism, (None, None), "without a seed two runs give the same reports")


def _differ(mechanism: Mechanism, seeds: tuple[int | None, int | None], otherwise: str) -> None:
    """Reports from the two seeds are not the same: if some are, more are drawn."""
    for users in (_SAME, _USERS):
        values = users_of(mechanism, users)
        if not np.array_equal(*(draw(mechanism, values, seed) for seed in seeds)):
            return
    if claim(mechanism, 1) > _SURE:
        raise NotChecked(f"of {_USERS} reports none is drawn otherwise, which may be so at so large an ε; {SMALLER}")
    raise Broken(otherwise)
