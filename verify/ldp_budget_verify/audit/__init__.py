"""Black-box audits: a certified lower bound of a client's privacy loss, from its reports alone.

An audit fixes two inputs x, x' and an event T. Then it counts how often T holds among fresh reports of x and of x'.
(ε, δ)-LDP implies P[T | x] ≤ e^ε P[T | x'] + δ. So with p_low below the first and q_up above the second probability,

    ε ≥ ln( (p_low - δ) / q_up ).

Both are ends of Clopper-Pearson intervals, see `events`. The pair and the event come from the channel that the
mechanism declares, or from a search over reports that are not used again, see `search`. The declared channel is not
trusted: it only suggests a pair and an event. In both cases they are fixed before the certifying reports are drawn.
So the bound exceeds the true loss with probability at most 1 - confidence. The only assumption is that reports of
different users are independent, and that users with the same value are drawn alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ldp_budget._validation import check_instance, check_share, check_switch, check_whole, shown
from ldp_budget.errors import InvalidParameter
from ldp_budget.sdk.mechanism import Mechanism

from .events import Sampler, certified_bound
from .search import declared_choice, searched_choice

if TYPE_CHECKING:
    from ldp_budget.sampling import RandomSource


__all__ = ["Audit", "audit"]

LEAST_USERS = 100
MOST_REPORTS, MOST_SAMPLES = 10**9, 10**15
"""The largest audit that is allowed; larger ones would take too long."""


@dataclass(frozen=True)
class Audit:
    """The result of an audit.

    Attributes:
        lower_bound: ε is at least this (at `delta`), at this `confidence`; 0 means that nothing was found.
        confidence: the least probability that a lower bound found in this way is not above the true loss.
        samples: the most reports that were drawn, for both inputs, search and certificate together.
        reports: the number of reports of one memoised value that each user gave.
        delta: the δ of the guarantee, which the bound allows for.
        pair: the inputs x and x'.
        event: T in words.
        declared: True if pair and event follow from what the mechanism declares; False if they were searched for.
        first_hits, first_total: the number of users of x for whom T held, and of all users of x.
        second_hits, second_total: the same for x'.
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
        """Return all fields as plain JSON values."""
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
    """Return a lower bound of the privacy loss of `mechanism.randomize`, from its reports alone.

    Parameters:
        mechanism: the mechanism to audit.
        samples: the number of reports to draw in total. With `reports` > 1, ``samples // reports`` users are drawn.
        confidence: the bound exceeds the true loss with probability at most ``1 - confidence``.
        reports: T > 1 bounds the loss of T reports of one value. Each user has a fresh secret, the same for all
            its reports. δ is then T times that of one report.
        search: True to search for pair and event among reports even if the mechanism declares them: its client may
            not do what it declares. T > 1 always searches.
        rng: None for the client's own randomness; a seed or a stream in tests.

    Returns:
        The result; its `lower_bound` exceeds the true loss only with probability 1 - `confidence`.

    Raises:
        InvalidParameter: an argument has the wrong type or is out of range.
        TypeError: `rng` is not a source of randomness.
        NotSupported: the mechanism has no client, its reports are not numbers, or its inputs are not known.
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
    """Return the number of reports to draw. Raises `InvalidParameter` if it is too small."""
    least = LEAST_USERS * reports
    if isinstance(samples, bool) or not isinstance(samples, int) or not least <= samples <= MOST_SAMPLES:
        expected = f"a whole number from {least}, for {LEAST_USERS} users, to {MOST_SAMPLES}"
        raise InvalidParameter("samples", expected, shown(samples))
    return samples


def _delta(mechanism: Mechanism, reports: int) -> float:
    """Return δ of that many reports together, rounded up; 0 without an (ε, δ) guarantee, for a bound of pure ε."""
    guarantee = mechanism.guarantee
    if guarantee.loss() is None:
        return 0.0
    together = reports * guarantee.delta
    return together if reports == 1 or not together else math.nextafter(together, math.inf)
