"""Programs that add noise are proved in fractions, also where double precision leaves it open."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import pytest

import ldp_budget
from altered_programs import emits
from ldp_budget import verify
from ldp_budget_verify.exact.additive_noise import check_noise, delta_at


@pytest.mark.slow
@pytest.mark.some(20)
@pytest.mark.parametrize("epsilon", ["1e-6", "0.001", "0.3", "3", "30"])
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("laplace", {}),
        ("gaussian", {"delta": "1e-6"}),
        ("gaussian", {"delta": "1e-30", "method": "exact"}),
        ("staircase", {}),
    ],
    ids=["laplace", "tail", "exact", "staircase"],
)
def test_verify_of_noise_holds_at_every_epsilon(name: str, more: dict[str, Any], epsilon: str) -> None:
    """The staircase was unproven at 57 of 100 values of ε, Laplace and Gaussian noise at small ones."""
    assert verify(ldp_budget.mechanism(name)(epsilon=epsilon, lower=0, upper=1, **more)).verdict == "holds"


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize(("name", "more"), [("laplace", {}), ("gaussian", {"delta": "1e-6"})])
def test_verify_of_noise_that_is_too_small_is_violated(name: str, more: dict[str, Any]) -> None:
    made = ldp_budget.mechanism(name)(epsilon=1, lower=0, upper=1, **more)
    program = made.client_program()
    (noise, (operator, bits)), added = program.steps
    found = verify(emits(made, steps=((noise, [operator, bits - 1]), added)))
    assert (found.verdict, found.program) == ("violated", "violated")
    if name == "laplace":
        wider = {**program.input, "last": int(program.input["last"]) + 1}
        assert verify(emits(made, input=wider)).program == "violated"


def test_verify_of_noise_that_is_sent_too_is_not_taken_for_noise() -> None:
    made = ldp_budget.mechanism("laplace")(epsilon=1, lower=0, upper=1)
    program = made.client_program()
    parts = [*program.report["parts"], ["uint", "noise", 8, 1]]
    assert check_noise(made.guarantee, program) is not None
    assert check_noise(made.guarantee, replace(program, report={**program.report, "parts": parts})) is None


@pytest.mark.slow
@pytest.mark.some(5)
@pytest.mark.parametrize(
    ("epsilon", "mu"), [("1", "1/3"), ("0.0001", "1/100000"), ("10", "3"), ("0", "1/7"), ("30", "1")]
)
def test_delta_at_agrees_with_forty_digits(epsilon: str, mu: str) -> None:
    found = delta_at(Decimal(epsilon), Fraction(mu))
    with mpmath.workdps(600):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(Fraction(mu).numerator) / Fraction(mu).denominator
        true = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        assert true <= mpmath.mpf(str(found)) <= true * (1 + mpmath.mpf("1e-40"))


def test_delta_at_too_many_deviations_is_not_known() -> None:
    assert delta_at(Decimal(100), Fraction(1)) is None
