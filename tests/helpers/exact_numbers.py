"""What tests of exact losses share: numbers as mpmath holds them, the golden values, divergences, and secrets of users."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from mpmath import mpf

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text(encoding="utf-8"))["values"]


def golden_rows(name: str) -> list[dict[str, Any]]:
    """Return the golden rows of a function, of which there are some."""
    rows = [row for row in GOLDEN if row["fn"] == name]
    assert rows, name
    return rows


def golden(name: str) -> list[tuple[Any, Any]]:
    """Return the parameters and the value of each golden row of a function."""
    return [(row["params"], row["value"]) for row in golden_rows(name)]


def exact(number: Decimal | Fraction | float | str) -> mpf:
    """Return the number itself, a float by its binary value."""
    if isinstance(number, Fraction):
        return mpf(number.numerator) / number.denominator
    return mpf(str(number)) if isinstance(number, Decimal | str) else mpf(number)


def hockey_stick(pairs: Iterable[tuple[Any, Any]], odds: Any) -> Any:
    """Return Σ (p - odds·q)⁺ over the probabilities of each report: the least δ at e^ε = odds."""
    return sum((p - odds * q for p, q in pairs if p > odds * q), Fraction(0))


def secrets(count: int, start: int = 0) -> list[bytes]:
    """Return a secret for each of so many users."""
    return [user.to_bytes(16, "little") for user in range(start, start + count)]
