"""The page of proofs says what `verify` says, in some rows of its grid; the exhaustive tier computes every row."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from proof_grid import EVIDENCE, PROOFS

ROWS = [line for line in (EVIDENCE / "proofs.md").read_text(encoding="utf-8").splitlines() if line.startswith("| `")]

CASES = list(zip(PROOFS.GRIDS, ROWS, strict=True))


@pytest.mark.slow
@pytest.mark.some(96)
@pytest.mark.parametrize(("grid", "row"), CASES, ids=lambda item: getattr(item, "name", ""))
def test_proofs_row_agrees_with_verify_in_the_middle_of_its_grid(grid: Any, row: str) -> None:
    settings = list(grid.settings())
    chosen = settings[:: max(1, len(settings) // 2)]
    found = Counter(PROOFS.found_for(grid, each) for each in chosen)
    _, name, _, proved, law, _ = (cell.strip() for cell in row.split("|"))
    exact, _, accepted = proved.partition(" of ")
    accepted = accepted or exact
    assert name == f"`{grid.name}`"
    assert found["violated"] == 0
    assert found["unproven"] <= int(accepted) - int(exact)
    assert found["exact"] + found["exact and law"] <= int(exact) <= int(accepted) <= len(settings)
    assert found["exact and law"] <= int(law)
    assert found["exact"] <= int(exact) - int(law)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("grid", "row"), CASES, ids=lambda item: getattr(item, "name", ""))
def test_proofs_row_agrees_with_verify_over_its_grid(grid: Any, row: str) -> None:
    """If not: python docs/evidence/proofs.py"""
    assert PROOFS.row_of(grid) == row
