"""Certified loss of an audit of a million reports, and the time of the audit and of exact verification.

    python benchmarks/auditing.py

Honest mechanisms at ε = 2: the audit should certify at least 1.95 at 99 % confidence, in under 5 s of one core; once
from the event that the mechanism declares, once from a search that knows nothing of it. Takes about half a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import ldp_budget
from ldp_budget import Mechanism, audit, verify

SAMPLES = 1_000_000
LEAST, MOST_SECONDS = 1.95, 5.0
SETTINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("oue", {"domain_size": 128}),
    ("sue", {"domain_size": 128}),
    ("random-substitution", {"domain_size": 4}),
    ("random-substitution", {"domain_size": 10}),
    ("d-bit-flip", {"buckets": 5, "bits": 4}),
)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Result of a call, and its processor time."""
    start = time.process_time()
    return work(), time.process_time() - start


def show(name: str, mechanism: Mechanism) -> None:
    _, seconds = timed(lambda: verify(mechanism))
    columns = [f"{seconds:8.3f}"]
    for search in (False, True):
        found, seconds = timed(lambda search=search: audit(mechanism, samples=SAMPLES, search=search))
        met = LEAST <= found.lower_bound <= 2 and seconds < MOST_SECONDS
        columns.append(f"{found.lower_bound:10.3f}{seconds:8.2f}  {'met' if met else 'MISSED':6}")
    print(f"{name:34}{''.join(columns)}", flush=True)


def main() -> None:
    print(f"{'ε = 2':34}{'verify s':>8}{'declared':>10}{'s':>8}  {'':6}{'searched':>10}{'s':>8}")
    for name, shape in SETTINGS:
        mechanism = ldp_budget.mechanism(name)(epsilon=2, **shape)
        show(f"{name}, {', '.join(f'{key} = {value}' for key, value in shape.items())}", mechanism)


if __name__ == "__main__":
    main()
