"""What a site of federated learning releases: shapes that it received, exact noise, one charge for each answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldp_budget import Accountant
from ldp_budget.errors import InvalidParameter, LdpBudgetError
from ldp_budget_adapters.site_release import NOTHING_LEAVES, SiteRelease

SHAPES = {"layer.weight": (2, 3), "layer.bias": (3,), "scale": ()}
GIVEN = {name: np.full(shape, 0.1) for name, shape in SHAPES.items()}
TERMS: dict[str, Any] = {"norm_bound": 1, "rho": "0.1"}


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "site.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=4,1e-6,zcdp"])  # ρ = 0.311
    return path


def test_release_has_the_names_and_shapes_received_and_is_charged(ledger: Path) -> None:
    lines: list[str] = []
    released = SiteRelease(str(ledger), "site-1", **TERMS).release(GIVEN, SHAPES, lines.append)
    assert released is not None
    assert {name: array.shape for name, array in released.items()} == SHAPES
    assert all(array.dtype == np.float32 for array in released.values())
    assert lines == []
    with Accountant(ledger) as accountant:
        assert accountant.balance("site-1").limits[0].spent.rho == 0.1


def test_release_is_the_clipped_update_with_the_noise_of_its_mechanism(ledger: Path) -> None:
    with Accountant(ledger) as accountant:
        accountant.set_policy("wide", ["lifetime=100000,1e-6,zcdp"])
    precise = SiteRelease(str(ledger), "site-1", norm_bound=2, rho=500, policy="wide")
    long = {name: array * 1000 for name, array in GIVEN.items()}
    released = precise.release(long, SHAPES, print)
    assert released is not None
    found = np.concatenate([array.ravel() for array in released.values()])
    assert np.abs(found - 2 / np.sqrt(10)).max() < 8 * 2 * 2 / np.sqrt(2 * 500)


@pytest.mark.parametrize(
    "update",
    [
        None,
        777.125,
        {**GIVEN, "scale": np.float64("nan")},
        {**GIVEN, "scale": np.inf},
        {**GIVEN, "secret 777": 1.0},
        {"layer.weight": np.ones((2, 3))},
        {**GIVEN, "layer.bias": np.ones(777)},
        {**GIVEN, "layer.bias": np.array(["7", "7", "7"])},
        {**GIVEN, "layer.bias": np.array([7j, 7, 7])},
        {**GIVEN, "layer.bias": object()},
    ],
)
def test_release_of_something_else_is_charged_noise_around_zero(ledger: Path, update: Any) -> None:
    lines: list[str] = []
    released = SiteRelease(str(ledger), "site-1", norm_bound="1e-6", rho="0.1").release(update, SHAPES, lines.append)
    assert released is not None
    assert {name: array.shape for name, array in released.items()} == SHAPES
    assert max(np.abs(array).max() for array in released.values()) < 1e-4
    assert len(lines) == 1
    assert "replaced by zeros" in lines[0]
    with Accountant(ledger) as accountant:
        assert len(accountant.history("site-1")) == 1


def test_release_beyond_the_budget_is_nothing_also_after_a_restart(ledger: Path) -> None:
    lines: list[str] = []
    for admitted in (True, True, True, False, False):
        released = SiteRelease(str(ledger), "site-1", **TERMS).release(GIVEN, SHAPES, lines.append)
        assert (released is not None) == admitted
    assert lines == [NOTHING_LEAVES] * 2
    with Accountant(ledger) as accountant:
        assert len(accountant.history("site-1")) == 3


def test_release_without_terms_costs_one_at_a_millionth(ledger: Path) -> None:
    SiteRelease(str(ledger), "site-1").release(GIVEN, SHAPES, print)
    with Accountant(ledger) as accountant:
        spent = accountant.balance("site-1").limits[0].spent.epsilon
    assert spent == pytest.approx(1)
    assert spent is not None
    assert spent <= 1


@pytest.mark.parametrize("wrong", [{"norm_bound": -1}, {"rho": 1, "epsilon": 1}, {"epsilon": 1}, {"policy": "other"}])
def test_site_with_wrong_terms_does_not_start(ledger: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(LdpBudgetError):
        SiteRelease(str(ledger), "site-1", **wrong)


def test_site_without_its_ledger_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(LdpBudgetError):
        SiteRelease(str(tmp_path / "none.db"), "site-1")
    assert not (tmp_path / "none.db").exists()


def test_arrays_without_numbers_are_refused(ledger: Path) -> None:
    with pytest.raises(InvalidParameter, match="at least one number"):
        SiteRelease(str(ledger), "site-1").release({}, {}, print)
