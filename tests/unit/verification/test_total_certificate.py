"""Certificates of exact totals: small, close to the exact ε, and in the one form that the checker accepts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ldp_budget import InvalidParameter, compose, mechanism
from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import Copies, FinitePair, Memoised, Pure, SymmetricPair, Unbounded, ZeroConcentrated
from ldp_budget_verify.shipped_checkers import checker, folder
from ldp_budget_verify.total_certificate import certificate, written


def _made(name: str, epsilon: str, **options: Any) -> Any:
    return mechanism(name).calibrate(epsilon=epsilon, **options)


OUE, GRR = _made("oue", "0.5", domain_size=7), _made("grr", "1", domain_size=10)
LAPLACE = _made("laplace", "0.5", lower=0, upper=1)
GAUSSIAN = _made("gaussian", "0.5", delta="1e-6", lower=0, upper=1)
MIXED = [
    (OUE, 52),
    (_made("grr", "0.77", domain_size=10), 52),
    (_made("sue", "0.313", domain_size=5), 100),
    (_made("randomized-response", "1.1"), 12),
]
LISTS: dict[str, list[tuple[Any, int]]] = {
    "50 oue": [(OUE, 50)],
    "365 oue": [(OUE, 365)],
    "100 grr": [(GRR, 100)],
    "mixed": MIXED,
    "mixed with Gaussians": [*MIXED, (GAUSSIAN, 40)],
    "mixed with Gaussians and Laplace": [*MIXED, (GAUSSIAN, 40), (LAPLACE, 30)],
    "Laplace and oue": [(LAPLACE, 50), (OUE, 52)],
    "Gaussians": [(GAUSSIAN, 100)],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LISTS)
def test_certificate_is_small_and_close_to_the_exact_total(name: str) -> None:
    claim = certificate(LISTS[name], delta="1e-6")
    total = compose(LISTS[name], delta="1e-6", rule="exact")
    assert total.lower <= float(claim["epsilon"]) <= total.epsilon * 1.001
    assert len(written(claim)) <= 1024
    found, delta = checker("check_total").check(written(claim))
    assert found == claim
    assert delta <= 1e-6


@pytest.mark.slow
def test_certificate_at_delta_zero_states_the_plain_sum() -> None:
    claim = certificate([(OUE, 3), (LAPLACE, 2), (FinitePair((("2/3", "1/3"), ("1/3", "2/3"))), 1)], delta=0)
    assert 2.5 + 0.6931 < float(claim["epsilon"]) <= (2.5 + 0.6932) * 1.001


def test_certificate_is_the_same_for_every_grouping_and_order() -> None:
    parts = [(OUE.guarantee, 20), (GRR.guarantee, 5), (OUE.guarantee, 30), (Copies(2, GRR.guarantee), 3)]
    merged = [(GRR.guarantee, 11), (OUE.guarantee, 50)]
    assert certificate(parts, delta="1e-6") == certificate(merged, delta="1e-6")


def test_certificate_memoized_reports_count_their_cap() -> None:
    claim = certificate([(Memoised(("0.5", "0.8"), "1"), 3)], delta="1e-6")
    assert claim["charges"] == [{"kind": "pure", "bound": "1", "count": 3}]


def test_certificate_writes_numbers_without_exponents() -> None:
    claim = certificate([(SymmetricPair("1e-7", "1e-3"), 5)], delta="1e-12")
    assert [charge["bound"] for charge in claim["charges"]] == ["0.0000001"]
    assert "e" not in json.dumps([claim[name].lower() for name in ("epsilon", "delta", "grid", "tail")])


@pytest.mark.parametrize("guarantee", [Unbounded(), ZeroConcentrated("0.1"), Pure("1000")])
def test_certificate_without_a_provable_total_is_not_supported(guarantee: Any) -> None:
    with pytest.raises(NotSupported):
        certificate([(guarantee, 1)], delta="1e-6")


def test_certificate_delta_out_of_range_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        certificate([(OUE, 1)], delta=1)


def test_checker_folder_has_the_shipped_programs() -> None:
    assert {"check.py", "check_law.py", "check_total.py"} <= {path.name for path in folder().iterdir()}
