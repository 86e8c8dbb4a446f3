"""Unary encoding, SUE and OUE: the promise by exact enumeration, the estimates by a million simulated users.

The oracle is mpmath with sixty digits, and the true loss of what is drawn is a ratio of integers.
"""

from __future__ import annotations

import itertools
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

import ldp_budget
from exact_numbers import exact, golden
from ldp_budget import InvalidParameter
from ldp_budget.sampling import ONE

UnaryEncoding: Any = ldp_budget.mechanism("unary-encoding")
Sue: Any = ldp_budget.mechanism("sue")
Oue: Any = ldp_budget.mechanism("oue")

standard = pytest.mark.parametrize("encoding", [Sue, Oue], ids=["sue", "oue"])

# From a loss that hardly shows in 64 bits to one that leaves no doubt, and beyond what doubles resolve.
EPSILONS = ["1e-6", "0.001", "0.1", "0.5", "1", "1.2345678901234567890123456789", "3", "10", "40", "130", "1000"]
LEAST_DOUBLE = mpf(2) ** -1074
epsilons = st.decimals("1e-6", "40", allow_nan=False, places=9).filter(lambda epsilon: epsilon > 0)


def true_probabilities(encoding: Any, epsilon: Decimal | str) -> tuple[mpf, mpf]:
    """p and q of trvoid's post on unary encoding."""
    e = mpmath.exp(exact(epsilon))
    return (1 / (1 + 1 / mpmath.sqrt(e)), 1 / (mpmath.sqrt(e) + 1)) if encoding is Sue else (mpf("0.5"), 1 / (e + 1))


# -- parameters -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoding", "epsilon", "value"),
    [(encoding, params["eps"], value) for encoding in (Sue, Oue) for params, value in golden(encoding.name)],
    ids=lambda value: getattr(value, "name", value if isinstance(value, str) else "value"),
)
def test_golden_values_match(encoding: Any, epsilon: str, value: dict[str, str]) -> None:
    made = encoding.calibrate(epsilon=epsilon, domain_size=4)
    assert made.parameters == {
        "p": pytest.approx(float(value["p"]), rel=1e-15),
        "q": pytest.approx(float(value["q"]), rel=1e-15),
    }
    utility = made.utility(users=400)
    assert utility["variance_per_user"] == pytest.approx(float(value["var_per_n_f0"]), rel=1e-12)
    assert utility["std_error"] == pytest.approx((float(value["var_per_n_f0"]) / 400) ** 0.5, rel=1e-12)
    extra = float(value.get("var_extra_per_unit_frequency", 0))
    assert utility["variance_per_unit_frequency"] == pytest.approx(extra, abs=1e-9)


@standard
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_stated_probabilities_are_on_the_safe_side_and_close(encoding: Any, epsilon: str) -> None:
    made = encoding.calibrate(epsilon=epsilon, domain_size=3)
    stated, bounds = made.parameters, made.bounds()
    with mpmath.workdps(600):  # 1 - q has no fewer digits than q has noughts
        p, q = true_probabilities(encoding, epsilon)
        assert 0 <= p - exact(stated["p"]) <= p * mpf("2.3e-16")
        assert 0 <= exact(stated["q"]) - q <= q * mpf("2.3e-16") + LEAST_DOUBLE
        # As it prints, it is safe as well.
        assert exact(repr(stated["p"])) <= p
        assert exact(repr(stated["q"])) >= q
        # So are the forty digits that everything else is computed from.
        assert 0 <= p - exact(bounds[0]) <= p * mpf("1e-38")
        assert 0 <= exact(bounds[1]) - q <= q * mpf("1e-38")


@standard
@given(epsilon=epsilons)
def test_loss_of_the_stated_probabilities_is_at_most_epsilon(encoding: Any, epsilon: Decimal) -> None:
    stated = encoding.calibrate(epsilon=epsilon, domain_size=3).parameters
    p, q = Fraction(stated["p"]), Fraction(stated["q"])
    assert exact(p * (1 - q) / ((1 - p) * q)) <= mpmath.exp(exact(epsilon))


@pytest.mark.slow
@standard
@given(epsilon=epsilons)
def test_loss_of_the_drawn_reports_is_at_most_epsilon_and_near_it(encoding: Any, epsilon: Decimal) -> None:
    keep, noise = encoding.calibrate(epsilon=epsilon, domain_size=3).thresholds
    odds = exact(Fraction(keep * (ONE - noise), (ONE - keep) * noise))
    # Each of the four integers is off by less than one.
    slack = mpf(1) / keep + mpf(1) / noise + mpf(1) / (ONE - keep) + mpf(1) / (ONE - noise)
    assert mpmath.exp(exact(epsilon)) * (1 - 2 * slack) <= odds <= mpmath.exp(exact(epsilon))


@standard
def test_loss_too_small_for_64_bits_is_refused_and_not_rounded_to_zero(encoding: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"epsilon must be large enough.*got 1E-19"):
        encoding.calibrate(epsilon="1e-19", domain_size=2)
    assert encoding.calibrate(epsilon="1e-17", domain_size=2).guarantee.epsilon == 1e-17


# -- the promise ----------------------------------------------------------------------------------------------


def law(mechanism: Any, answer: int) -> dict[tuple[int, ...], Fraction]:
    """The exact distribution of the report on `answer`, as it is drawn."""
    keep, noise = (Fraction(threshold, ONE) for threshold in mechanism.thresholds)
    result = {}
    for bits in itertools.product((0, 1), repeat=mechanism.domain_size):
        mass = Fraction(1)
        for place, bit in enumerate(bits):
            one = keep if place == answer else noise
            mass *= one if bit else 1 - one
        result[bits] = mass
    return result


DRAWN = [
    encoding.calibrate(epsilon=epsilon, domain_size=size)
    for encoding in (Sue, Oue)
    for epsilon in ("0.05", "1", "4.5")
    for size in (2, 3, 4)
] + [UnaryEncoding(p="0.7", q="0.2", domain_size=3), UnaryEncoding(p="0.999", q="0.001", domain_size=4)]


@pytest.mark.parametrize("mechanism", DRAWN, ids=repr)
def test_loss_of_every_output_and_pair_of_inputs_is_within_the_guarantee(mechanism: Any) -> None:
    laws = [law(mechanism, answer) for answer in range(mechanism.domain_size)]
    assert all(sum(law.values()) == 1 for law in laws)
    epsilon, tau = exact(mechanism.guarantee.bound), exact(mechanism.guarantee.tau)
    for one, other in itertools.permutations(laws, 2):
        losses = {bits: one[bits] / other[bits] for bits in one}
        largest = exact(max(losses.values()))
        assert largest <= mpmath.exp(epsilon)
        assert mpmath.almosteq(largest, mpmath.exp(epsilon), rel_eps=mpf("1e-15"))
        # The loss is ±ε or nothing, and τ is how often it is something.
        assert set(losses.values()) == {max(losses.values()), Fraction(1), min(losses.values())}
        spread = exact(sum((one[bits] for bits, ratio in losses.items() if ratio != 1), Fraction(0)))
        assert tau - mpf("1e-18") <= spread <= tau


@pytest.mark.parametrize("mechanism", DRAWN, ids=repr)
def test_support_probabilities_match_the_reports(mechanism: Any) -> None:
    [(p, q)] = mechanism.support_probabilities
    drawn = law(mechanism, 0)
    assert sum(mass for bits, mass in drawn.items() if bits[0]) == p
    assert sum(mass for bits, mass in drawn.items() if bits[1]) == q


@standard
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_tau_is_that_of_the_errata_and_at_least_that_of_the_draws(encoding: Any, epsilon: str) -> None:
    made = encoding.calibrate(epsilon=epsilon, domain_size=3)
    guarantee = made.guarantee
    e = mpmath.exp(exact(epsilon))
    tau = (e + 1) / (mpmath.sqrt(e) + 1) ** 2 if encoding is Sue else mpf("0.5")
    assert guarantee.kind == "symmetric-pair"
    assert guarantee.bound == Decimal(epsilon)
    assert abs(exact(guarantee.tau) - tau) <= mpf("1e-18")
    [(p, q)] = made.support_probabilities
    assert p * (1 - q) + q * (1 - p) <= Fraction(guarantee.tau)
    assert guarantee.delta == 0


@given(p=st.decimals("0.001", "0.999", places=6), q=st.decimals("0.001", "0.999", places=6))
def test_unary_encoding_from_p_and_q_states_their_loss_rounded_up(p: Decimal, q: Decimal) -> None:
    if p <= q:
        with pytest.raises(InvalidParameter, match=f"p must be greater than q, {q}: got {p}"):
            UnaryEncoding(p=p, q=q, domain_size=2)
        return
    guarantee = UnaryEncoding(p=p, q=q, domain_size=2).guarantee
    loss = mpmath.log(exact(Fraction(p) * (1 - Fraction(q)) / ((1 - Fraction(p)) * Fraction(q))))
    assert 0 <= exact(guarantee.bound) - loss <= mpf("1e-35")
    assert exact(guarantee.epsilon) >= loss * (1 - mpf("1e-16"))


# -- reports --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 7, 8, 9, 64, 100])
def test_report_is_packed_bits_with_zero_padding(size: int) -> None:
    made = UnaryEncoding(p="0.999999999999999", q="1e-15", domain_size=size)
    values = np.arange(size)
    reports = made.randomize(values, rng=1)
    assert reports.shape == (size, -(-size // 8))
    assert reports.dtype == np.uint8
    for value, report in zip(values, reports, strict=True):
        assert int.from_bytes(report.tobytes(), "little") == 1 << int(value)


# -- estimates ------------------------------------------------------------------------------------------------

SIMULATED = [
    Sue.calibrate(epsilon=1, domain_size=4),
    Oue.calibrate(epsilon=1, domain_size=4),
    Oue.calibrate(epsilon=4, domain_size=4),
    UnaryEncoding(p="0.8", q="0.35", domain_size=4),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize("mechanism", SIMULATED[:2], ids=repr)
def test_intervals_have_their_nominal_coverage(mechanism: Any) -> None:
    users, surveys = 200, 2000
    values = np.repeat([0, 0, 1, 2], users // 4)
    truth = np.bincount(values, minlength=4)
    reports = mechanism.randomize(np.tile(values, surveys), rng=5).reshape(surveys, users, -1)
    covered = np.zeros(4)
    for survey in reports:
        low, high = mechanism.estimate(survey).interval(0.95)
        covered += (low <= truth) & (truth <= high)
    assert np.abs(covered / surveys - 0.95).max() <= 0.02


@pytest.mark.parametrize("mechanism", SIMULATED, ids=repr)
def test_estimate_of_the_expected_support_is_the_truth(mechanism: Any) -> None:
    [(p, q)] = mechanism.support_probabilities
    truth = np.array([500, 300, 200, 0])
    total = mechanism.aggregate(mechanism.randomize([], rng=1))
    total.reports, total.support = 1000, truth * float(p) + (1000 - truth) * float(q)
    assert mechanism.estimate(total).counts == pytest.approx(truth, abs=1e-9)
    assert mechanism.estimate(total).shares == pytest.approx(truth / 1000, abs=1e-12)
