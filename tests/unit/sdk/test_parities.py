"""Parities of many numbers, with every NumPy that is supported."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_budget.sdk.parities import parities

NUMBERS = [0, 1, 2, 3, 255, 256, 2**31 - 1, 2**62 + 1]


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
@pytest.mark.parametrize("new", [True, False])
def test_parities_count_the_ones_of_each_number(kind: type, new: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not new:
        monkeypatch.delattr(np, "bitwise_count", raising=False)
    found = parities(np.array(NUMBERS, kind))
    assert found.tolist() == [number.bit_count() % 2 for number in NUMBERS]
