"""The hash functions of the sketches: exact modulo 2**61 - 1, the same on every machine, three-wise independent.

The oracle computes with Python's integers of any size.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_budget.sdk.hash_families import PRIME, HashFamily, _multiply_add, _scaled

seeds = st.one_of(st.integers(0, 2**63 - 1), st.text(max_size=20))
below_prime = st.one_of(st.integers(0, PRIME - 1), st.sampled_from([0, 1, 2**30, 2**31 - 1, 2**31, PRIME - 1]))


def keyed(seed: int | str, person: bytes, size: int, text: bytes) -> list[int]:
    """The field elements that the definition derives from `text`."""
    key = hashlib.blake2b(str(seed).encode(), digest_size=32, person=b"ldp-budget seed").digest()
    digest = hashlib.blake2b(text, key=key, digest_size=size, person=person).digest()
    return [int.from_bytes(digest[start : start + 8], "little") % PRIME for start in range(0, size, 8)]


def reference(seed: int | str, function: int, value: object, width: int) -> int:
    """h_j(v) by its definition."""
    a, b, c = keyed(seed, b"coefficients", 24, function.to_bytes(8, "little"))
    [x] = keyed(seed, b"value", 8, str(value).encode())
    return ((a * x * x + b * x + c) % PRIME * width) >> 61


def words(*numbers: int) -> Any:
    return np.array(numbers, dtype=np.uint64)


@pytest.mark.exhaustive
@settings(max_examples=50)
@given(seed=seeds, width=st.integers(1, 2**31), values=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=5))
def test_functions_are_the_polynomials_of_their_definition(seed: int | str, width: int, values: list[int]) -> None:
    family = HashFamily(seed, 4, width)
    cells = family(np.arange(4)[:, np.newaxis], family.points(values))
    assert cells.tolist() == [[reference(seed, j, value, width) for value in values] for j in range(4)]
    assert cells.dtype == np.int64


@given(x=st.integers(0, PRIME + 8), y=below_prime, z=below_prime)
def test_product_is_reduced_exactly_and_can_be_multiplied_again(x: int, y: int, z: int) -> None:
    [result] = _multiply_add(words(x), words(y >> 31), words(y & (2**31 - 1)), words(z)).tolist()
    assert result % PRIME == (x * y + z) % PRIME
    assert result < 2**61 + 8


@pytest.mark.parametrize("width", [1, 2, 3, 1000, 1024, 2**31 - 1, 2**31])
def test_scaling_is_exact_and_stays_in_range(width: int) -> None:
    edges = [0, 1, 2**30, 2**31, 2**60, PRIME - 1, *(-(-(cell << 61) // width) for cell in range(min(width, 1000)))]
    near = sorted({min(max(edge + step, 0), PRIME - 1) for edge in edges for step in (-1, 0, 1)})
    cells = _scaled(words(*near), width).tolist()
    assert cells == [(number * width) >> 61 for number in near]
    assert max(cells) == width - 1


def test_functions_never_change() -> None:
    # Clients and servers of different versions must agree.
    family = HashFamily(0, 3, 1024)
    assert family(np.arange(3)[:, np.newaxis], family.points(range(4))).tolist() == [
        [325, 568, 993, 700],
        [826, 633, 328, 405],
        [459, 1009, 391, 432],
    ]


def test_value_is_hashed_by_its_text() -> None:
    family = HashFamily(7, 1, 2)
    by_type = [np.array([12, 0, 12]), [12, 0, 12], ["12", "0", "12"], np.array([12, 0, 12], dtype=np.uint8)]
    assert {tuple(family.points(values).tolist()) for values in by_type} == {
        tuple(family.points([12, 0, 12]).tolist())
    }
    assert family.points(["é", "🙂", ""]).shape == (3,)
    assert len(set(family.points(range(10_000)).tolist())) == 10_000


@pytest.mark.slow
@pytest.mark.some(6)
@pytest.mark.parametrize("width", [4, 5])
@pytest.mark.parametrize("values", [(0, 1, 2), (0, 2**62, 2**63 - 1)], ids=str)
def test_outputs_at_three_values_are_independent_and_uniform(width: int, values: tuple[int, ...]) -> None:
    """Every one of the width**3 outcomes is as frequent among 200,000 functions as chance allows (chi-square)."""
    count = 200_000
    family = HashFamily(11, count, width)
    first, second, third = family(np.arange(count)[np.newaxis, :], family.points(values)[:, np.newaxis])
    observed = np.bincount((first * width + second) * width + third, minlength=width**3)
    expected = count / width**3
    excess = ((observed - expected) ** 2 / expected).sum() - (width**3 - 1)
    assert abs(excess) <= 4.5 * (2 * (width**3 - 1)) ** 0.5
