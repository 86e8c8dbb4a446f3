"""A ledger of an older release, whose costs of a pair were the bound of its ε, continues unchanged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ldp_budget
from contract.acts import check
from ldp_budget import Accountant
from ldp_budget.accounting import charge_request, priced_mechanism
from ldp_budget.guarantees import Laplace, Pure, SymmetricPair
from ldp_budget.guarantees.guarantees import Amounts

OUE = ldp_budget.mechanism("oue")(epsilon=1, domain_size=4)


def forget_prices() -> None:
    priced_mechanism._charge_of.cache_clear()
    priced_mechanism._charge_with.cache_clear()
    charge_request._templates.clear()


@pytest.fixture(autouse=True)
def _no_known_prices() -> Iterator[None]:
    forget_prices()
    yield
    forget_prices()


def charge_as_before(accountant: Accountant, reports: int, key: str) -> None:
    """Spend as an older release did: a pair at the price of its ε alone."""

    def of_epsilon(pair: SymmetricPair | Laplace) -> Amounts:
        return Pure(pair.bound).amounts()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SymmetricPair, "amounts", of_epsilon)
        receipt = accountant.spend("alice", OUE, reports=reports, key=key)
        assert receipt.cost_units == Pure(1).costs().times(reports)
    forget_prices()


def test_older_charges_stay_and_new_charges_cost_the_new_price(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=40,1e-6,zcdp", "day=50,1e-6,gdp"])
    charge_as_before(accountant, 3, "monday")
    check(accountant)
    older, newer = Pure(1).costs(), OUE.guarantee.costs()
    assert newer.rho is not None
    assert older.rho is not None
    assert newer.rho < older.rho

    receipt = accountant.spend("alice", OUE, reports=2)
    assert receipt.cost_units == newer.times(2)
    [lifetime, _] = accountant.balance("alice").limits
    assert lifetime.spent_units == older.times(3).plus(newer.times(2))
    check(accountant)


def test_older_receipt_is_returned_and_older_reservation_returns_its_cost(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=40,1e-6,zcdp"])
    charge_as_before(accountant, 3, "monday")
    again = accountant.spend("alice", OUE, reports=3, key="monday")
    assert (again.repeated, again.cost_units) == (True, Pure(1).costs().times(3))
    accountant.void(accountant.reserve("alice", OUE).receipt or "")
    assert accountant.balance("alice").limits[0].spent_units == Pure(1).costs().times(3)
    check(accountant)


def test_new_period_is_backfilled_with_older_charges(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=40,1e-6,zcdp"])
    charge_as_before(accountant, 3, "monday")
    accountant.spend("alice", OUE)
    accountant.set_policy("default", ["lifetime=40,1e-6,zcdp", "month=30,1e-6,zcdp"])
    lifetime, month = accountant.balance("alice").limits
    assert month.spent_units == lifetime.spent_units
    check(accountant)


def test_verify_with_a_too_low_stored_cost_finds_it(accountant: Accountant) -> None:
    """Prices that no release ever had: a pair at a tenth of its ρ."""
    accountant.set_policy("default", ["lifetime=40"])
    true = OUE.guarantee.amounts()
    assert true.rho is not None
    with pytest.MonkeyPatch.context() as patched:
        too_little = true._replace(rho=true.rho * 9999 / 10000)
        patched.setattr(SymmetricPair, "amounts", lambda pair: too_little)
        accountant.spend("alice", OUE)
    verification = accountant.verify()
    assert [problem for problem in verification.problems if "rho" in problem and "below" in problem]
