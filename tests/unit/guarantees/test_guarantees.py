"""The guarantee classes: their costs, compared with mpmath, and their JSON form."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_budget import compose
from ldp_budget.guarantees import (
    ANY_INPUTS,
    SAME_CHANGE_PATTERN,
    Approximate,
    Copies,
    FinitePair,
    Gaussian,
    Guarantee,
    Laplace,
    Memoised,
    Pure,
    SymmetricPair,
    Unbounded,
    ZeroConcentrated,
    from_json,
)
from ldp_budget.guarantees.fixed_point import Costs

EPSILONS = st.decimals(min_value=0, max_value=1000, allow_nan=False, places=20)
SHARES = st.decimals(min_value=0, max_value=1, allow_nan=False, places=25)


@st.composite
def finite_pairs(draw: st.DrawFn) -> FinitePair:
    size = draw(st.integers(1, 5))
    sides = []
    for _ in range(2):
        weights = draw(st.lists(st.integers(0, 50), min_size=size, max_size=size).filter(any))
        sides.append([Fraction(weight, sum(weights)) for weight in weights])
    return FinitePair(tuple(zip(*sides, strict=True)))


@st.composite
def memoised(draw: st.DrawFn) -> Memoised:
    *curve, cap = sorted(draw(st.lists(EPSILONS, min_size=2, max_size=6)))
    relation = draw(st.sampled_from([ANY_INPUTS, SAME_CHANGE_PATTERN]))
    return Memoised(tuple(curve), cap, draw(st.none() | st.integers(1, 100)), relation)


SIMPLE = st.one_of(
    st.builds(Pure, EPSILONS),
    st.builds(SymmetricPair, EPSILONS, SHARES),
    finite_pairs(),
    st.builds(Approximate, EPSILONS, SHARES),
    st.builds(ZeroConcentrated, EPSILONS),
    st.builds(Laplace, EPSILONS),
    st.builds(Gaussian, EPSILONS),
    st.builds(Gaussian, EPSILONS, EPSILONS, SHARES),
    memoised(),
    st.just(Unbounded()),
)
GUARANTEES = st.one_of(SIMPLE, st.builds(Copies, st.integers(1, 1000), SIMPLE))


@pytest.mark.slow
@given(GUARANTEES)
def test_guarantee_round_trips_through_json(guarantee: Guarantee) -> None:
    text = json.dumps(guarantee.to_json(), allow_nan=False)
    twin = from_json(json.loads(text))
    assert twin == guarantee
    assert hash(twin) == hash(guarantee)
    assert twin.costs() == guarantee.costs()
    assert twin.relation == guarantee.relation
    assert json.dumps(twin.to_json()) == text


@given(GUARANTEES)
def test_costs_are_whole_units_that_cover_the_loss(guarantee: Guarantee) -> None:
    costs = guarantee.costs()
    assert all(amount is None or (isinstance(amount, int) and amount >= 0) for amount in costs)
    loss = guarantee.loss()
    if loss is None:
        assert guarantee.epsilon == math.inf
        assert guarantee.delta == 1
    else:
        epsilon, delta = loss
        assert costs.epsilon is None or costs.epsilon >= epsilon * 10**9
        assert costs.delta is None or costs.delta >= delta * 10**18
        assert Decimal(repr(guarantee.epsilon)) >= epsilon


@given(GUARANTEES)
def test_guarantee_to_json_is_plain_json(guarantee: Guarantee) -> None:
    described = json.loads(json.dumps(guarantee.describe(), allow_nan=False))
    assert described["kind"] == guarantee.kind
    assert described["relation"] in (ANY_INPUTS, SAME_CHANGE_PATTERN)
    assert {"epsilon", "delta"} <= set(described)


# -- each kind -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.000001", "0.1", "0.5", "1", "3", "20", "100"])
def test_pure_costs_as_zcdp_and_gaussian_dp_match(epsilon: str) -> None:
    """ρ = ε·tanh(ε/2) and μ = 2Φ⁻¹(e^ε/(1+e^ε)); at most a few units above, never below."""
    costs = Pure(epsilon).costs()
    with mpmath.workdps(120):
        e = mpmath.mpf(epsilon)
        rho = e * mpmath.tanh(e / 2)
        mu = -2 * mpmath.sqrt(2) * mpmath.erfinv(2 / (1 + mpmath.exp(e)) - 1)
        assert costs.epsilon == math.ceil(Decimal(epsilon) * 10**9)
        assert costs.delta == 0
        assert costs.rho is not None
        assert 0 <= costs.rho - rho * 10**12 < 1.001
        assert costs.mu_squared is not None
        assert 0 <= costs.mu_squared - mu**2 * 10**12 < 2 + 1e-11 * float(mu**2) * 10**12


@pytest.mark.parametrize("epsilon", ["0", "0.0001", "1", "7"])
def test_approximate_without_delta_costs_as_pure(epsilon: str) -> None:
    assert Approximate(epsilon, 0).costs() == Pure(epsilon).costs()


@given(GUARANTEES)
def test_least_costs_are_close_to_the_costs_and_never_above(guarantee: Guarantee) -> None:
    for least, cost in zip(guarantee.least_costs(), guarantee.costs(), strict=True):
        assert (least is None) == (cost is None)
        assert least is None or cost is None or 0 <= least <= cost <= least + 1 + cost // 10**6


@pytest.mark.parametrize("epsilon", ["0", "1e-9", "0.1", "1", "10"])
def test_laplace_has_its_own_smaller_rho(epsilon: str) -> None:
    costs, pure = Laplace(epsilon).costs(), Pure(epsilon).costs()
    with mpmath.workdps(60):
        e = mpmath.mpf(epsilon)
        rho = e + mpmath.exp(-e) - 1
        assert costs.rho is not None
        assert 0 <= costs.rho - rho * 10**12 < 1.001
    assert costs._replace(rho=pure.rho, mu_squared=pure.mu_squared) == pure
    assert costs.mu_squared is not None
    assert pure.mu_squared is not None
    assert costs.mu_squared <= pure.mu_squared


def test_gaussian_costs_its_calibration_point_and_its_own_rho() -> None:
    assert Gaussian("0.25", "1", "1e-5").costs() == Costs(10**9, 10**13, 31_250_000_000, 62_500_000_000)
    assert Gaussian("0.25").costs() == Costs(None, None, 31_250_000_000, 62_500_000_000)


def test_finite_pair_charges_infinite_losses_to_delta() -> None:
    erased = FinitePair(((Fraction(1, 10), Fraction(0)), (Fraction(9, 10), Fraction(1))))
    epsilon, delta = erased.loss()
    assert epsilon == 0
    assert Fraction(1, 10) <= Fraction(delta) < Fraction(1, 10) + Fraction(1, 10**39)
    assert erased.costs() == Costs(0, 10**17, None, None)


def test_finite_pair_epsilon_is_its_largest_log_ratio() -> None:
    pair = FinitePair(((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))))
    costs = pair.costs()
    assert costs.epsilon == math.ceil(math.log(3) * 10**9)
    with mpmath.workdps(50):
        assert mpmath.mpf(str(pair.loss()[0])) >= mpmath.log(3)


def test_memoized_value_costs_its_first_report_and_its_cap_without_a_curve() -> None:
    rappor = Memoised(("2.04", "3.39", "4.02"), "4.39")
    assert rappor.costs() == Pure("4.39").costs()._replace(epsilon=2_040_000_000)
    assert rappor.describe()["lifetime_epsilon"] == 4.39


@pytest.mark.parametrize(
    ("curve", "cap", "charged"),
    [(("0",), "1", 10**9), (("0.1", "5"), "5", 49 * 10**8), (("0.3", "0.5", "0.6"), "0.65", 3 * 10**8)],
)
def test_memoised_report_without_label_is_charged_the_most_it_can_add(
    curve: tuple[str, ...], cap: str, charged: int
) -> None:
    """Unlabelled reports cost curve[0] each: 1,000 reports of a curve 0, then cap 1, were stated as ε = 0."""
    promise = Memoised(curve, cap)
    assert promise.costs().epsilon == charged
    for reports in range(1, 10):
        assert promise.loss_units(reports) <= reports * charged == reports * promise.added_units
    total = compose([(promise, 1000)], delta=0, rule="basic")
    assert total.epsilon >= 1000 * charged / 10**9


@pytest.mark.slow
@given(st.integers(1, 1000), SIMPLE)
def test_copies_cost_at_most_the_sum_and_less_than_a_unit_each_below_it(count: int, of: Guarantee) -> None:
    for many, one in zip(Copies(count, of).costs(), of.costs().times(count), strict=True):
        assert (many is None) == (one is None)
        assert many is None or one is None or one - count < many <= one


def test_unbounded_is_unbounded_in_every_rule() -> None:
    assert Unbounded().costs() == Costs(None, None, None, None)
    assert Unbounded().describe() == {"epsilon": None, "delta": None, "kind": "unbounded", "relation": ANY_INPUTS}


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pure(-1), r"epsilon must be a number in \[0, 1000000\]: got -1"),
        (lambda: Pure("nan"), "got 'nan', not a number"),
        (lambda: Pure(10**7), "epsilon"),
        (lambda: SymmetricPair(1, "1.1"), r"tau must be a number in \[0, 1\]: got 1.1"),
        (lambda: Approximate(1, -1), "delta"),
        (lambda: Gaussian(1, bound=1), "a calibration point must have both epsilon and delta"),
        (lambda: Memoised((2, 1), 3), "curve must be a non-decreasing list up to the cap"),
        (lambda: Memoised((1, 2), 1), "curve"),
        (lambda: Memoised((), 1), "curve"),
        (lambda: Memoised((1,), 1, relation="some inputs"), "relation"),
        *[
            (lambda values=values: Memoised((1,), 1, values), "values must be a whole number >= 1")  # type: ignore[misc]
            for values in (0, -1, True, "3", 1.5, [])
        ],
        (lambda: FinitePair(((Fraction(1, 2), 1), (Fraction(1, 3), 0))), "P must be probabilities that sum to 1"),
        (lambda: FinitePair(((Fraction(3, 2), 1), (Fraction(-1, 2), 0))), "P must be probabilities"),
        (lambda: FinitePair(()), "probabilities"),
        (lambda: Copies(0, Pure(1)), "count must be a whole number >= 1: got 0"),
        (lambda: Copies(True, Pure(1)), "count"),
        (lambda: Copies(2, 1), "of must be a guarantee: got 1"),  # type: ignore[arg-type]
    ],
)
def test_guarantee_with_invalid_values_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        "pure",
        {},
        {"kind": "perfect"},
        {"kind": ["pure"]},
        {"kind": "pure"},
        {"kind": "pure", "bound": "x"},
        {"kind": "pure", "bound": "1", "more": 2},
        {"kind": "pure", "bound": {"kind": "pure", "bound": "1"}},
        {"kind": "finite-pair", "outcomes": [["1/0", "1"]]},
        {"kind": "finite-pair", "outcomes": [["1"]]},
        {"kind": "copies", "count": 2, "of": "pure"},
        {"kind": "copies", "count": 2, "of": {"kind": "nothing"}},
        {"kind": "memoised", "curve": "12", "cap": None},
    ],
)
def test_guarantee_from_malformed_json_is_refused(data: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own message
        from_json(data)


def test_guarantee_cannot_be_subclassed() -> None:
    with pytest.raises(TypeError, match="closed"):
        type("Mine", (Guarantee,), {"kind": "mine"})


def test_guarantee_with_long_fractions_round_trips() -> None:
    """A pair with more than 4,300 digits ended in Python's bare ValueError when it was written as JSON or printed."""
    half = Fraction(10**5000 + 1, 2 * 10**5000)
    pair = FinitePair(((half, 1 - half), (1 - half, half)))
    assert from_json(json.loads(json.dumps(pair.to_json()))) == pair
    assert pair.costs().epsilon == 1
    assert repr(pair)
    with pytest.raises(ValueError, match="outcomes: P must be probabilities that sum to 1"):
        FinitePair(((half, 1 - half),))
    with pytest.raises(ValueError, match="outcomes must be pairs of fractions"):
        FinitePair((("1" * 5000 + "/x", 1),))
