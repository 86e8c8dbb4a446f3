"""tests/golden.json is what its script computes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from golden_values import DEFINITIONS, computed, rows


def same(one: Any, other: Any) -> bool:
    """True if two rows are equal, figures to 27 digits."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if one == other:
        return True
    return isinstance(one, str) and abs(Decimal(one) / Decimal(other) - 1) <= Decimal("1e-27")


def test_rows_and_definitions_correspond() -> None:
    assert {row["fn"] for row in rows()} == set(DEFINITIONS)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", DEFINITIONS)
def test_figures_equal_their_definitions(name: str) -> None:
    for row in rows():
        if row["fn"] == name:
            again = computed(row)
            assert {field for field in row if not same(row[field], again[field])} == set(), row
