"""The work that every library is given: six tasks, their cases, and what an adapter answers them with.

Needs the standard library alone, as it is read inside the environment of every peer. An adapter is a module of
`adapters` that imports its library inside its functions. For each of the four `ABILITIES` it has either a function of
that name or, in `MISSING`, the reason why the library has nothing of the kind.

    calibrate() -> {way: (ε, δ) -> σ}                 Gaussian noise of sensitivity 1
    compose() -> {way: (δ, reports) -> ε}             reports: (kind, ε or b or σ, count), in any order
    spend() -> {way: capacity -> (ε -> bool)}         opens the account of one user; whether a spend was accepted
    collect(mechanism, shape, ε) -> Collector         the client and the server of one question

Way is the name of one of several roads to the same answer, "" where there is one only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

OURS = "ldp-budget"
# Name of the distribution, which is that of its adapter with - for _.
PEERS = ("opendp", "diffprivlib", "dp-accounting", "autodp", "prv-accountant", "pure-ldp", "multi-freq-ldpy")
LIBRARIES = (OURS, *PEERS)

TASKS = ("calibrate", "compose", "spend", "randomize", "aggregate", "estimate")
ABILITIES = ("calibrate", "compose", "spend", "collect")


class NotOfferedError(Exception):
    """The library does not do this; the text says why, for the page."""


Reports = tuple[tuple[str, float, int], ...]


class Composition(NamedTuple):
    delta: float
    reports: Reports


# (ε, δ) for every library: two ordinary ones and tails.
TARGETS = ((1.0, 1e-6), (0.1, 1e-10), (20.0, 1e-9), (1.0, 1e-20), (1.0, 1e-30))
# And a table of ordinary ones, of which only is counted how many answers are unsafe.
TABLE = tuple((epsilon, delta) for epsilon in (0.1, 0.5, 1.0, 2.0, 5.0, 10.0) for delta in (1e-5, 1e-6, 1e-9, 1e-12))

COMPOSITIONS = {
    "100 × RR(1)": Composition(1e-6, (("rr", 1.0, 100),)),
    "1,000 × RR(1)": Composition(1e-6, (("rr", 1.0, 1000),)),
    "1,000 × RR(0.1)": Composition(1e-6, (("rr", 0.1, 1000),)),
    "RR(0.1), Laplace(b=10), Gaussian(σ=10), 100 of each": Composition(
        1e-6, (("rr", 0.1, 100), ("laplace", 10.0, 100), ("gaussian", 10.0, 100))
    ),
}

Shape = dict[str, int]

SHAPES: dict[str, Shape] = {
    "rr": {"answers": 2},
    "grr": {"answers": 128},
    "oue": {"answers": 128},
    "rappor": {"answers": 128, "bits": 128, "hashes": 2, "cohorts": 8},
    "hcms": {"answers": 128, "hashes": 1024, "width": 1024},
}
# An audit sees more of small reports.
AUDITED: dict[str, Shape] = {
    "rr": {"answers": 2},
    "grr": {"answers": 4},
    "oue": {"answers": 4},
    "rappor": {"answers": 4, "bits": 8, "hashes": 2, "cohorts": 2},
    "hcms": {"answers": 4, "hashes": 2, "width": 16},
    "memoised": {"answers": 4},
}
AUDITED_REPORTS = 60_000
MEMOISED_REPORTS = 50
LIFETIME = 2.0  # ε of all the reports of one memoised value

ESTIMATED: dict[str, Shape] = {"oue": {"answers": 16}, "grr": {"answers": 16}}
ESTIMATED_REPORTS, ESTIMATED_REPEATS = 2000, 60


@dataclass
class Collector:
    """One question. Answers are a list of 0, 1, …; reports are as the library makes them.

    epsilon: what the library promises, of one report, or of all of one value where they are memoised.
    prepare: the list -> values as the library likes to be given them, which is in no figure.
    randomize: values and, for memoising clients, a secret of each user (bytes) -> reports.
    rows: reports -> a list of rows of whole numbers, for the audit.
    aggregate: reports -> anything; None where that is no step of its own.
    estimate: reports -> the counts of all answers; or None.
    intervals: the same with their 95 % intervals, (counts, (low, high)); None where there are none.
    reasons: why aggregate or estimate is None.
    batch: how many reports are drawn and added up in one call, or one loop, when their time is taken.
    """

    epsilon: float
    randomize: Callable[[Any, list[bytes] | None], Any]
    rows: Callable[[Any], Any]
    aggregate: Callable[[Any], Any] | None = None
    estimate: Callable[[Any], Any] | None = None
    intervals: Callable[[Any], tuple[Any, Any]] | None = None
    reasons: dict[str, str] = field(default_factory=dict)
    prepare: Callable[[list[int]], Any] = list
    batch: int = 2000


def module_of(library: str) -> str:
    """The name of the adapter of a library."""
    return library.replace("-", "_")
