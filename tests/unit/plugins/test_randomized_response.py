"""Warner's randomized response: the loss of both answers in both directions, by enumeration and in 60 digits."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

import ldp_budget
from ldp_budget import InvalidParameter, NotSupported, OutsideDomain
from ldp_budget.sampling import ONE, SeededStream

RandomizedResponse: Any = ldp_budget.mechanism("randomized-response")

LEAST_DOUBLE = mpf(2) ** -1074
epsilons = st.decimals("1e-6", "40", allow_nan=False, places=9).filter(lambda epsilon: epsilon > 0)
shares = st.decimals("0.0001", "0.9999", places=8)


@pytest.fixture(autouse=True)
def sixty_digits() -> Any:
    with mpmath.workdps(60):
        yield


def exact(number: Decimal | Fraction | float | str) -> mpf:
    """The number itself, a float by its binary value."""
    if isinstance(number, Fraction):
        return mpf(number.numerator) / number.denominator
    return mpf(str(number)) if isinstance(number, Decimal | str) else mpf(number)


def loss(p: Fraction, q: Fraction) -> mpf:
    """ln of the largest ratio, over both reports and both directions."""
    yes, no = (p, q), (1 - p, 1 - q)
    ratios = [a / b for report in (yes, no) for a, b in (report, report[::-1])]
    return mpmath.log(exact(max(ratios)))


def drawn(mechanism: Any) -> tuple[Fraction, Fraction]:
    """p and q as the client draws them."""
    keep, noise = mechanism.thresholds
    return Fraction(keep, ONE), Fraction(noise, ONE)


# -- parameters and promise -----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["1e-6", "0.001", "0.1", "0.5", "1", "3", "10", "40", "70", "1000"])
def test_probabilities_from_epsilon_are_safe_and_close(epsilon: str) -> None:
    made = RandomizedResponse.calibrate(epsilon=epsilon)
    stated = made.parameters
    with mpmath.workdps(600):  # 1 - q has no fewer digits than q has noughts
        q = 1 / (mpmath.exp(exact(epsilon)) + 1)
        assert 0 <= (1 - q) - exact(stated["p"]) <= mpf("2.3e-16")
        assert 0 <= exact(stated["q"]) - q <= q * mpf("2.3e-16") + LEAST_DOUBLE
    assert made.guarantee.to_json() == {"kind": "symmetric-pair", "bound": f"{Decimal(epsilon):f}", "tau": "1"}


@pytest.mark.slow
@given(epsilon=epsilons)
def test_loss_of_the_drawn_reports_is_at_most_epsilon_and_near_it(epsilon: Decimal) -> None:
    p, q = drawn(RandomizedResponse.calibrate(epsilon=epsilon))
    true = loss(p, q)
    assert true <= exact(epsilon)
    assert exact(epsilon) - true <= 4 / (exact(q) * ONE)


def test_fair_coins_lose_ln_3() -> None:
    made = RandomizedResponse.calibrate(truth="0.5", yes="0.5")
    assert made.parameters == {"p": 0.75, "q": 0.25}
    assert drawn(made) == (Fraction(3, 4), Fraction(1, 4))
    assert loss(*drawn(made)) == mpmath.log(3)
    assert 0 <= exact(made.guarantee.loss()[0]) - mpmath.log(3) <= mpf("1e-38")
    assert made.guarantee.epsilon == pytest.approx(1.0986122886681098, rel=1e-15)
    assert exact(made.guarantee.epsilon) >= mpmath.log(3)
    assert made.guarantee.outcomes == ((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))


@given(truth=shares, yes=shares)
def test_coins_state_their_worst_direction_rounded_up(truth: Decimal, yes: Decimal) -> None:
    made = RandomizedResponse.calibrate(truth=truth, yes=yes)
    q = (1 - Fraction(truth)) * Fraction(yes)
    p = Fraction(truth) + q
    assert drawn(made)[0] <= p < drawn(made)[0] + Fraction(1, ONE)
    assert drawn(made)[1] - Fraction(1, ONE) < q <= drawn(made)[1]
    stated = exact(made.guarantee.loss()[0])
    assert 0 <= stated - loss(p, q) <= mpf("1e-35")
    assert loss(*drawn(made)) <= stated


@pytest.mark.parametrize(
    ("p", "q", "worst"),
    [
        ("0.9", "0.05", "yes"),
        ("0.95", "0.1", "no"),
        ("0.5", "0.1", "yes"),
        ("0.9", "0.5", "no"),
        ("0.7", "0.3", "both"),
    ],
)
def test_guarantee_of_unequal_coins_covers_both_directions(p: str, q: str, worst: str) -> None:
    made = RandomizedResponse(p=p, q=q)
    if_yes, if_no = Fraction(p) / Fraction(q), (1 - Fraction(q)) / (1 - Fraction(p))
    assert {"yes": if_yes > if_no, "no": if_no > if_yes, "both": if_yes == if_no}[worst]
    assert 0 <= exact(made.guarantee.loss()[0]) - mpmath.log(exact(max(if_yes, if_no))) <= mpf("1e-35")


@pytest.mark.slow
@given(p=shares, q=shares, slope=st.fractions(0, 50))
def test_stated_pair_dominates_both_directions_of_the_drawn_reports(p: Decimal, q: Decimal, slope: Fraction) -> None:
    """For every slope e^ε, no pair of inputs has a larger excess over it than the stated pair."""
    if p <= q:
        return
    made = RandomizedResponse(p=p, q=q)

    def excess(pairs: list[tuple[Fraction, Fraction]]) -> Fraction:
        return sum((max(Fraction(0), one - slope * other) for one, other in pairs), Fraction(0))

    keep, noise = drawn(made)
    if_yes, if_no = (keep, 1 - keep), (noise, 1 - noise)
    promised = excess(list(made.guarantee.outcomes))
    assert excess(list(zip(if_yes, if_no, strict=True))) <= promised
    assert excess(list(zip(if_no, if_yes, strict=True))) <= promised


@given(p=st.decimals("0.001", "0.999", places=3), q=st.decimals("0.001", "0.999", places=3))
def test_coins_with_p_below_q_are_refused(p: Decimal, q: Decimal) -> None:
    if p > q:
        assert RandomizedResponse(p=p, q=q).guarantee.epsilon > 0
        return
    with pytest.raises(
        InvalidParameter, match=f"p must be a value with which p is greater than q .*: got {p.normalize():f}"
    ):
        RandomizedResponse(p=p, q=q)


def test_decimal_context_of_the_caller_changes_nothing() -> None:
    declared = [
        {"truth": "0.123456789", "yes": "0.987654321"},
        {"epsilon": "1.23456789"},
        {"p": "0.61234", "q": "0.2"},
    ]
    for one in declared:
        made = RandomizedResponse(**one)
        described, thresholds = made.describe(10), made.thresholds
        with localcontext() as context:
            context.prec = 3
            again = RandomizedResponse(**one)
            assert again.thresholds == thresholds
            assert again.describe(10) == described


def test_names_of_the_mechanism_are_equivalent() -> None:
    assert ldp_budget.mechanism("rr") is ldp_budget.mechanism("warner") is RandomizedResponse


# -- reports and estimates ------------------------------------------------------------------------------------


def test_reports_are_bits_from_the_stream_only() -> None:
    made = RandomizedResponse.calibrate(epsilon=1)
    values = np.arange(200) % 2
    reports = made.randomize(values, rng=3)
    assert reports.dtype == np.uint8
    assert set(reports.tolist()) == {0, 1}
    assert (reports == made.randomize(values, rng=SeededStream(3))).all()
    assert (made.randomize(values) != made.randomize(values)).any()
    # The bytes drawn do not depend on the answers.
    first, second = SeededStream(4), SeededStream(4)
    made.randomize(np.zeros(200, int), rng=first)
    made.randomize(np.ones(200, int), rng=second)
    assert first.read(8) == second.read(8)


@pytest.mark.parametrize("bad", [[0, 2], [0, -1], [0, 0.5], [0, float("nan")], [0, None], [0, 2**80]], ids=repr)
def test_answer_that_is_neither_yes_nor_no_is_refused(bad: Any) -> None:
    with pytest.raises(OutsideDomain, match="at position 1 is outside the domain, whole numbers from 0 to 1"):
        RandomizedResponse.calibrate(epsilon=1).randomize(bad)


SIMULATED = [
    RandomizedResponse.calibrate(epsilon=1),
    RandomizedResponse.calibrate(truth="0.5", yes="0.5"),
    RandomizedResponse.calibrate(truth="0.6", yes="0.9"),
    RandomizedResponse(p="0.6", q="0.1"),
]
GROUP = np.array([1, 1, 1, 0, 0, 0, 0, 0, 0, 0])
GROUPS = 100_000


@pytest.mark.parametrize("mechanism", SIMULATED, ids=repr)
def test_reports_of_a_million_users_have_the_right_mean_and_the_stated_variance(mechanism: Any) -> None:
    """A hundred thousand surveys of ten users each: their spread measures the variance to 0.5 %."""
    reports = mechanism.randomize(np.tile(GROUP, GROUPS), rng=20_261_122)
    whole = mechanism.estimate(reports)
    truth = np.array([7, 3])
    assert (np.abs(whole.counts - GROUPS * truth) <= 4 * whole.std_errors).all()

    p, q = map(float, drawn(mechanism))
    stated = (3 * p * (1 - p) + 7 * q * (1 - q)) / (p - q) ** 2
    yes = (reports.reshape(GROUPS, 10).sum(axis=1, dtype=np.int64) - 10 * q) / (p - q)
    assert yes.var(ddof=1) == pytest.approx(stated, rel=0.02)
    assert whole.std_errors == pytest.approx([(GROUPS * stated) ** 0.5] * 2, rel=0.005)
    first = mechanism.estimate(reports[:10])
    assert first.counts == pytest.approx([10 - yes[0], yes[0]])


@pytest.mark.parametrize("mechanism", SIMULATED, ids=repr)
def test_predicted_variance_is_that_of_the_rarer_answer(mechanism: Any) -> None:
    p, q = map(float, drawn(mechanism))
    at_zero = max(q * (1 - q), p * (1 - p)) / (p - q) ** 2
    utility = mechanism.utility(users=50)
    assert utility["variance_per_user"] == pytest.approx(at_zero)
    assert utility["std_error"] == pytest.approx((at_zero / 50) ** 0.5)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mechanism", SIMULATED, ids=repr)
def test_intervals_have_their_nominal_coverage(mechanism: Any) -> None:
    users, surveys = 200, 2000
    values = np.arange(users) < 60
    reports = mechanism.randomize(np.tile(values, surveys), rng=17).reshape(surveys, users)
    intervals = [mechanism.estimate(survey).interval(0.95) for survey in reports]
    covered = [low[1] <= 60 <= high[1] for low, high in intervals]
    assert abs(np.mean(covered) - 0.95) <= 0.02
    # The counts of the two answers add up to the users, so their intervals are each other's mirror image.
    low, high = intervals[0]
    assert low + high[::-1] == pytest.approx([users, users])


def test_merge_with_another_mechanism_is_refused() -> None:
    made = RandomizedResponse.calibrate(epsilon=1)
    for other in (RandomizedResponse.calibrate(epsilon=2), ldp_budget.mechanism("oue")(epsilon=1, domain_size=2)):
        total: Any = other.aggregate(other.randomize([0, 1], rng=1))
        with pytest.raises(NotSupported, match="made by another mechanism"):
            made.estimate(total)
        with pytest.raises(NotSupported, match="cannot be merged"):
            made.aggregate([0, 1]).merge(total)


@pytest.mark.parametrize("reports", [[0, 2], [[0, 1]], [0.5], [float("nan")], ["yes"], None, 1], ids=repr)
def test_reports_of_another_shape_are_refused(reports: Any) -> None:
    with pytest.raises(NotSupported, match="reports must be 0 or 1, of shape"):
        RandomizedResponse.calibrate(epsilon=1).estimate(reports)


# -- what is declared -----------------------------------------------------------------------------------------

WAYS = "epsilon must be given without other targets, or left out"


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({}, "epsilon is missing: .*"),
        ({"epsilon": 1, "truth": "0.5", "yes": "0.5"}, f"{WAYS}: got epsilon and truth and yes together"),
        ({"epsilon": 1, "yes": "0.5"}, f"{WAYS}: got epsilon and yes together"),
        ({"truth": "0.5"}, "yes is missing.*Give both truth and yes"),
        ({"yes": "0.5"}, "truth is missing.*Give both truth and yes"),
        ({"q": "0.5"}, "p is missing.*Give both p and q"),
        ({"epsilon": 0}, "epsilon must be a number > 0 and <= 1000000: got 0"),
        ({"epsilon": -1}, "epsilon must be a number > 0 and <= 1000000: got -1"),
        ({"epsilon": float("nan")}, "epsilon must be a number > 0 and <= 1000000: got nan"),
        ({"epsilon": float("inf")}, "epsilon must be a number > 0 and <= 1000000: got inf"),
        (
            {"epsilon": "1e-19"},
            r"epsilon must be a value with which p is greater than q by at least 2\*\*-64: got 1E-19",
        ),
        ({"truth": 1, "yes": "0.5"}, "truth must be a number > 0 and < 1: got 1"),
        ({"truth": 0, "yes": "0.5"}, "truth must be a number > 0 and < 1: got 0"),
        ({"truth": "0.5", "yes": 1}, "yes must be a number > 0 and < 1: got 1"),
        ({"truth": "1e-30", "yes": "0.5"}, r"truth must be a value with which p is greater than q by .*: got 1E-30"),
        ({"p": "0.5", "q": "0.5"}, r"p must be a value with which p is greater than q by at least 2\*\*-64: got 0.5"),
        ({"p": "0.2", "q": "0.5"}, r"p must be a value with which p is greater than q by at least 2\*\*-64: got 0.2"),
        ({"p": 1, "q": "0.5"}, "p must be a number > 0 and < 1: got 1"),
        ({"p": "0.5", "q": 0}, "q must be a number > 0 and < 1: got 0"),
        ({"rate": 1}, "rate must be left out, because mechanism randomized-response has no such parameter: got 1"),
    ],
)
def test_bad_parameter_is_refused_by_name_range_and_value(declared: Any, message: str) -> None:
    with pytest.raises(InvalidParameter, match=rf"^{message}($|\.$|\. [A-Z]| \()") as caught:
        RandomizedResponse(**declared)
    assert caught.value.option == message.split()[0]


def test_calibrate_with_p_and_q_is_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"p must be left out in calibrate.*Call randomized-response\(p=...\)"):
        RandomizedResponse.calibrate(p="0.7", q="0.3")
