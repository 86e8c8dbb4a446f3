"""Black-box audit: how much privacy a client certainly loses, seen from its reports alone.

An audit fixes two inputs x, x' and an event T, and then counts how often T holds among fresh reports of x and of x'.
From (ε, δ)-LDP follows P[T | x] ≤ e^ε P[T | x'] + δ, so with p_low below the first and q_up above the second
probability,

    ε ≥ ln( (p_low - δ) / q_up ).

Both are Clopper-Pearson ends, see `bounds`. Pair and event come from the channel that the mechanism declares, which
is not believed but only asked where to look (`declared`), or from a search over reports that are not used again
(`search`). Either way they are fixed before the reports that certify are drawn, so the bound exceeds the true loss
with probability at most 1 - confidence. The only assumption is that reports of different users are independent and
that users with the same value are alike.

The audit itself: choose a pair and an event, then count them among fresh reports.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._validation import check_instance, check_share, check_switch, check_whole, shown
from ...errors import InvalidParameter
from ...sdk.mechanism import Mechanism
from .events import Sampler, certified_bound
from .search import declared_choice, searched_choice

if TYPE_CHECKING:
    from ...sampling import RandomSource


__all__ = ["Audit", "audit"]

LEAST_USERS = 100
MOST_REPORTS, MOST_SAMPLES = 10**9, 10**15
"""Nobody waits for as many."""


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Attributes:
        lower_bound: ε is at least this (at `delta`), at this `confidence`; 0 says nothing.
        confidence: the probability that a lower bound found in this way is not above the true loss, at the least.
        samples: the reports that were drawn at most, for both inputs, search and certificate together.
        reports: how many reports of one memoised value each user gave.
        delta: the δ of the guarantee, which the bound allows for.
        pair: the inputs x and x'.
        event: T in words.
        declared: whether pair and event follow from what the mechanism declares; else they were searched for.
        first_hits, first_total: how many users of x were counted, and T held of how many; of x' the other two.
    """

    lower_bound: float
    confidence: float
    samples: int
    reports: int
    delta: float
    pair: tuple[Any, Any]
    event: str
    declared: bool
    first_hits: int
    first_total: int
    second_hits: int
    second_total: int

    def __repr__(self) -> str:
        bound = f"ε >= {self.lower_bound:.6g} at δ = {self.delta:.6g}, with confidence {self.confidence}"
        hits = f"{self.first_hits} of {self.first_total} against {self.second_hits} of {self.second_total}"
        return f"<Audit: {bound}; {self.event}: {hits}>"

    def to_json(self) -> dict[str, Any]:
        """All of it as plain JSON values.

        Raises:
            Nothing.
        """
        pair = [value.item() if hasattr(value, "item") else value for value in self.pair]
        return {**self.__dict__, "pair": pair}


def audit(
    mechanism: Mechanism,
    *,
    samples: int = 1_000_000,
    confidence: float = 0.99,
    reports: int = 1,
    search: bool = False,
    rng: RandomSource = None,
) -> Audit:
    """A lower bound of the privacy loss of what `mechanism.randomize` gives out, from its reports alone.

    Parameters:
        mechanism: what is audited.
        samples: reports to draw, all together. With `reports` > 1 they are those of ``samples // reports`` users.
        confidence: the bound exceeds the true loss with probability at most ``1 - confidence``.
        reports: T > 1 bounds the loss of T reports of one value. Each user has a fresh secret and the same for all
            its reports. δ is then T times that of one report.
        search: look for pair and event among reports even where the mechanism declares them, as it may declare
            what its client does not do. T > 1 is always searched.
        rng: None for the client's own randomness; a seed or a stream in tests.

    Returns:
        What was found; its `lower_bound` exceeds the true loss only with probability 1 - `confidence`.

    Raises:
        InvalidParameter: one of them is of another kind or out of range.
        TypeError: `rng` is nothing to draw from.
        NotSupported: the mechanism has no client, its reports are no numbers, or nobody says which inputs it takes.
    """
    check_instance("mechanism", mechanism, Mechanism, "a mechanism with its parameters")
    reports = check_whole("reports", reports, 1, MOST_REPORTS)
    samples = _samples(samples, reports)
    confidence = check_share("confidence", confidence)
    check_switch("search", search)
    sampler = Sampler(mechanism, reports, rng)
    users = samples // reports
    delta = _delta(mechanism, reports)
    declared = None if search or reports > 1 else declared_choice(sampler, users // 2, confidence, delta)
    choice = declared or searched_choice(sampler, users, confidence, delta)
    total = (users - sampler.drawn) // 2
    first, second = (sampler.hits(value, total, choice.event) for value in choice.pair)
    return Audit(
        lower_bound=certified_bound(first, second, (total, total), confidence, delta),
        confidence=confidence,
        samples=samples,
        reports=reports,
        delta=delta,
        pair=choice.pair,
        event=choice.event.words,
        declared=choice is declared,
        first_hits=first,
        first_total=total,
        second_hits=second,
        second_total=total,
    )


def _samples(samples: int, reports: int) -> int:
    """How many reports to draw. Raises `InvalidParameter` unless they are enough."""
    least = LEAST_USERS * reports
    if isinstance(samples, bool) or not isinstance(samples, int) or not least <= samples <= MOST_SAMPLES:
        expected = f"a whole number >= {least}, for {LEAST_USERS} users"
        raise InvalidParameter("samples", expected, shown(samples))
    return samples


def _delta(mechanism: Mechanism, reports: int) -> float:
    """δ of that many reports together, rounded up; 0 where no (ε, δ) is promised, and the bound is one of pure ε."""
    guarantee = mechanism.guarantee
    if guarantee.loss() is None:
        return 0.0
    together = reports * guarantee.delta
    return together if reports == 1 or not together else math.nextafter(together, math.inf)
