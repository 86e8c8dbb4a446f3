"""The checkers in Python and in JavaScript agree on changed certificates and published surveys."""

from __future__ import annotations

import base64
import random
from pathlib import Path

import pytest

from mutated_checks import NODE, books_by_python, by_javascript, mutated_books, mutated_totals, totals_by_python

pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node.js")
MANY = [pytest.param(seed, 1000, marks=pytest.mark.exhaustive) for seed in range(2, 22)]


@pytest.mark.parametrize(("seed", "count"), [(1, 60), *MANY])
def test_checkers_of_totals_with_changed_certificates_agree(seed: int, count: int, tmp_path: Path) -> None:
    cases = mutated_totals(random.Random(seed), count)
    found = totals_by_python(cases)
    other = by_javascript("totals", [base64.b64encode(data).decode() for data in cases], tmp_path)
    assert [cases[place] for place in range(count) if found[place] != other[place]] == []
    assert any(each is None for each in found)


@pytest.mark.parametrize(("seed", "count"), [(1, 120), *MANY])
def test_checkers_of_books_with_changed_surveys_agree(seed: int, count: int, tmp_path: Path) -> None:
    cases = mutated_books(random.Random(seed), count)
    found = books_by_python(cases, tmp_path)
    other = by_javascript("books", cases, tmp_path)
    assert [
        (found[place], other[place], cases[place]) for place in range(count) if found[place] != other[place]
    ] == []
    assert 0 < sum(each is not None for each in found) < count
