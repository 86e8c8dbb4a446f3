"""A built-in mechanism is "exact" in receipts only at parameters where `verify` proves its promise."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import pytest

import ldp_budget
from ldp_budget import Accountant, verify
from ldp_budget.errors import InvalidParameter
from ldp_budget.registry.certification import PROVED_RANGES, checked_at, mechanism_rows
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


@pytest.mark.slow
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
def test_mechanism_outside_its_proved_range_is_audited(name: str, declared: dict[str, Any]) -> None:
    """The word was that of the class, "exact", for parameters that `verify` leaves open."""
    made = ldp_budget.mechanism(name)(**declared)
    assert checked_at(made) == "audited"


def test_receipt_has_the_level_of_the_parameters_in_use() -> None:
    """A receipt said "exact" of ε = 21."""
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=100"], checked=True)
        oue = ldp_budget.mechanism("oue")
        found = [accountant.spend("alice", oue(epsilon=each, domain_size=4)).checked for each in (1, 21)]
    assert found == ["exact", "audited"]


def test_mechanisms_command_states_the_proved_ranges() -> None:
    """It said "exact" of a class, without regard to its parameters."""
    rows = {row["name"]: row for row in mechanism_rows() if row["plugin"] == "ldp-budget"}
    assert {name for name, row in rows.items() if row["checked"] == "exact"} == set(PROVED_RANGES)
    for name, row in rows.items():
        assert bool(row["proved"]) == (row["checked"] == "exact"), name
    assert rows["oue"]["proved"] == "epsilon 0.0001 to 20, domain_size 2 to 1000000"
    assert rows["laplace"]["proved"].endswith("lower and upper given")
    assert rows["declared"]["proved"] == ""


NOISE = {"gaussian": ("sigma", "0.00001", "1e6"), "laplace": ("scale", "0.001", "1e4")}
CHOSEN = random.Random(24)


def chosen(name: str) -> dict[str, Any]:
    """Parameters by lot of a numeric mechanism, within its proved range."""

    def between(low: str, high: str) -> str:
        return f"{math.exp(CHOSEN.uniform(math.log(float(low)), math.log(float(high)))):.6g}"

    lower = CHOSEN.choice(["0", "-3.7", "1e6", "0.1"])
    declared: dict[str, Any] = {"lower": lower, "upper": str(Decimal(lower) + Decimal(between("0.01", "1000")))}
    if name in NOISE and CHOSEN.random() < 0.5:
        field, low, high = NOISE[name]
        return {**declared, field: between(low, high)}
    declared["epsilon"] = between("0.0001", "20")
    if name == "gaussian":
        declared |= {"delta": between("1e-30", "1e-3"), "method": CHOSEN.choice(["tail", "exact"])}
    if name in ("staircase", "bounded-staircase"):
        declared["gamma"] = f"{CHOSEN.random():.3f}"
    return declared


@pytest.mark.slow
@pytest.mark.some(5)
@pytest.mark.parametrize("number", [0, *(pytest.param(each, marks=pytest.mark.exhaustive) for each in range(1, 8))])
@pytest.mark.parametrize("name", ["gaussian", "laplace", "staircase", "bounded-laplace", "bounded-staircase"])
def test_verify_proves_random_settings_whose_level_is_exact(name: str, number: int) -> None:
    declared = chosen(name)
    try:
        made = ldp_budget.mechanism(name)(**declared)
    except InvalidParameter:
        return  # noise too small, or too large, for the range
    if checked_at(made) == "exact":
        assert verify(made).verdict == "holds", declared


@pytest.mark.slow
@pytest.mark.parametrize(
    ("declared", "word"),
    [
        ({"sampling": "distinct", "ordered": True, "draws": 3}, "exact"),
        ({"sampling": "distinct", "draws": 2}, "exact"),
        ({"ordered": True, "draws": 3}, "exact"),
        ({"sampling": "distinct", "ordered": True, "draws": 4}, "audited"),
    ],
)
def test_level_of_random_substitution_depends_on_its_draw(declared: dict[str, Any], word: str) -> None:
    """Of `ordered` and distinct draws the page proved nothing, and receipts said "exact"."""
    made = ldp_budget.mechanism("random-substitution")(epsilon=1, domain_size=50, **declared)
    assert checked_at(made) == word
    assert word == "audited" or verify(made).verdict == "holds"
    fields = {
        field for grid in PROOFS.GRIDS if grid.name == made.name for field in {**grid.values, **(grid.fixed or {})}
    }
    assert set(declared) <= fields
