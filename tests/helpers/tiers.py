"""The tiers of tests: the tier of a file, the cases of a tier, and a fixed part of a run."""

from __future__ import annotations

import argparse
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
TIERS = ("unit", "integration", "exhaustive")


def tier_of(path: Path) -> str | None:
    """The tier of a file or folder; None outside the three folders."""
    first = path.relative_to(TESTS).parts[:1] if path.is_relative_to(TESTS) else ()
    return first[0] if first and first[0] in TIERS else None


def tiers_of(item: pytest.Item) -> set[str]:
    """The tiers of a test. A property of Hypothesis is in the exhaustive tier as well, with more examples.

    A slow unit test is in the integration tier, and in `slow`, which a path to it chooses.
    """
    if item.get_closest_marker("exhaustive") is not None:
        return {"exhaustive"}
    is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    own = {"integration", "slow"} if item.get_closest_marker("slow") is not None else {tier_of(item.path) or "unit"}
    return own | ({"exhaustive"} if is_property else set())


def mark_some(items: Iterable[pytest.Item]) -> None:
    """Give the marker `exhaustive` to all but each n-th case of a test with the marker `some(n)`."""
    cases: Counter[str] = Counter()
    for item in items:
        if (some := item.get_closest_marker("some")) is not None:
            function = item.nodeid.partition("[")[0]
            if cases[function] % some.args[0]:
                item.add_marker(pytest.mark.exhaustive)
            cases[function] += 1


def part(text: str) -> tuple[int, int]:
    """The numbers I and N of `I/N`."""
    one, _, count = text.partition("/")
    if not (one.isdecimal() and count.isdecimal() and 1 <= int(one) <= int(count)):
        raise argparse.ArgumentTypeError(f"expected I/N with 1 ≤ I ≤ N, such as 1/4: {text!r}")
    return int(one), int(count)


def part_of(name: str, count: int) -> int:
    """The number of the part, from 1 to `count`, that a test of this name is in; it depends on the name alone."""
    return zlib.crc32(name.encode()) % count + 1
