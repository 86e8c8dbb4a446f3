"""A built-in mechanism is "exact" in receipts only at parameters where `verify` proves its promise."""

from __future__ import annotations

from typing import Any

import pytest

import ldp_budget
from ldp_budget import Accountant, verify
from ldp_budget.catalogue._proved_ranges import PROVED_RANGES
from ldp_budget.catalogue.certificates import checked_at
from ldp_budget.catalogue.listing import mechanism_rows
from proof_grid import PROOFS


def test_proved_ranges_lie_within_the_grid_of_the_page() -> None:
    assert {grid.name for grid in PROOFS.GRIDS} == set(PROVED_RANGES)
    for name, ranges in PROVED_RANGES.items():
        values: dict[str, list[float]] = {}
        for grid in PROOFS.GRIDS:
            if grid.name == name:
                for field, row in grid.values.items():
                    values.setdefault(field, []).extend(float(value) for value in row if field in ranges)
        for field, (least, most) in ranges.items():
            # A domain, or buckets, smaller than the least of the grid are compared pair by pair.
            assert field in ("buckets", "domain_size") or min(values[field]) <= float(least)
            assert float(most) <= max(values[field])


@pytest.mark.parametrize(
    ("name", "declared"),
    [
        ("cms", {"hashes": 64, "width": 64}),
        ("cms", {"hashes": 33, "width": 200}),
        ("hcms", {"hashes": 64, "width": 64}),
        ("hcms", {"hashes": 16, "width": 16}),
    ],
)
def test_verify_proves_sketches_within_the_proved_range(name: str, declared: dict[str, Any]) -> None:
    made = ldp_budget.mechanism(name)(epsilon=1, **declared)
    assert checked_at(made) == "exact"
    assert verify(made).verdict == "holds"


@pytest.mark.parametrize(
    ("name", "declared"),
    [
        ("cms", {"epsilon": 1, "hashes": 4096, "width": 64}),
        ("oue", {"epsilon": 21, "domain_size": 4}),
        ("oue", {"epsilon": "0.00001", "domain_size": 4}),
        ("rappor", {"f": "0.5", "p": "0.25", "q": "0.75", "bits": 4, "hashes": 4, "cohorts": 8}),
        ("one-bit-mean", {"epsilon": 1, "maximum": 100, "rounding": 1, "flip": "0.2"}),
        ("gaussian", {"epsilon": 1, "delta": "1e-6", "sensitivity": 1}),
        ("laplace", {"scale": 1, "sensitivity": 1}),
        ("gaussian", {"sigma": "1e7", "lower": 0, "upper": 1}),
        ("laplace", {"scale": "0.0001", "lower": 0, "upper": "0.05"}),
        ("staircase", {"epsilon": 1, "sensitivity": 1}),
        ("staircase", {"epsilon": 40, "lower": 0, "upper": 1}),
    ],
)
def test_a_mechanism_outside_its_proved_range_is_audited(name: str, declared: dict[str, Any]) -> None:
    """The word was that of the class, "exact", for parameters that `verify` leaves open."""
    made = ldp_budget.mechanism(name)(**declared)
    assert checked_at(made) == "audited"


def test_a_receipt_has_the_word_of_the_parameters_in_use() -> None:
    """A receipt said "exact" of ε = 21."""
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=100"], checked=True)
        oue = ldp_budget.mechanism("oue")
        found = [accountant.spend("alice", oue(epsilon=each, domain_size=4)).checked for each in (1, 21)]
    assert found == ["exact", "audited"]
