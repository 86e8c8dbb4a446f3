"""Unary encoding, SUE and OUE: the promise by exact enumeration, the estimates by a million simulated users.

The oracle is mpmath with sixty digits, and the true loss of what is drawn is a ratio of integers.
"""

from __future__ import annotations

import itertools
import json
import pickle
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
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

UnaryEncoding: Any = ldp_budget.mechanism("unary-encoding")
Sue: Any = ldp_budget.mechanism("sue")
Oue: Any = ldp_budget.mechanism("oue")

standard = pytest.mark.parametrize("encoding", [Sue, Oue], ids=["sue", "oue"])

# From a loss that hardly shows in 64 bits to one that leaves no doubt, and beyond what doubles resolve.
EPSILONS = ["1e-6", "0.001", "0.1", "0.5", "1", "1.2345678901234567890123456789", "3", "10", "40", "130", "1000"]
LEAST_DOUBLE = mpf(2) ** -1074
epsilons = st.decimals("1e-6", "40", allow_nan=False, places=9).filter(lambda epsilon: epsilon > 0)


@pytest.fixture(autouse=True)
def sixty_digits() -> Any:
    with mpmath.workdps(60):
        yield


def exact(number: Decimal | Fraction | float | str) -> mpf:
    """The number itself, a float by its binary value."""
    if isinstance(number, Fraction):
        return mpf(number.numerator) / number.denominator
    return mpf(str(number)) if isinstance(number, Decimal | str) else mpf(number)


def true_probabilities(encoding: Any, epsilon: Decimal | str) -> tuple[mpf, mpf]:
    """p and q of trvoid's post on unary encoding."""
    e = mpmath.exp(exact(epsilon))
    return (1 / (1 + 1 / mpmath.sqrt(e)), 1 / (mpmath.sqrt(e) + 1)) if encoding is Sue else (mpf("0.5"), 1 / (e + 1))


def variance(p: mpf, q: mpf, frequency: float) -> mpf:
    """The variance per user of a count's estimate: of p(1-p) for the holders, q(1-q) for the others."""
    return (frequency * p * (1 - p) + (1 - frequency) * q * (1 - q)) / (p - q) ** 2


def golden(name: str) -> list[tuple[str, dict[str, str]]]:
    values = json.loads(Path(__file__).parents[2].joinpath("data", "golden.json").read_text(encoding="utf-8"))[
        "values"
    ]
    return [(value["params"]["eps"], value["value"]) for value in values if value["fn"] == name]


def unpack(mechanism: Any, reports: Any) -> Any:
    """The bits of the reports, shape (n, d)."""
    return np.unpackbits(reports, axis=1, count=mechanism.domain_size, bitorder="little")


# -- parameters -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoding", "epsilon", "value"),
    [(encoding, *point) for encoding in (Sue, Oue) for point in golden(encoding.name)],
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


@standard
def test_decimal_context_of_the_caller_changes_nothing(encoding: Any) -> None:
    made = encoding.calibrate(epsilon="1.23456789", domain_size=5)
    described, thresholds = made.describe(10), made.thresholds
    with localcontext() as context:
        context.prec = 3
        again = encoding.calibrate(epsilon="1.23456789", domain_size=5)
        assert again.describe(10) == described
        assert again.thresholds == thresholds


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


# -- which encoding is the better one -------------------------------------------------------------------------


def total_variance(encoding: Any, epsilon: str, size: int) -> mpf:
    p, q = true_probabilities(encoding, epsilon)
    return (size - 1) * variance(p, q, 0) + variance(p, q, 1)


@pytest.mark.parametrize("epsilon", EPSILONS[2:9])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_sue_has_the_smaller_total_variance_for_up_to_four_answers(size: int, epsilon: str) -> None:
    assert total_variance(Sue, epsilon, size) < total_variance(Oue, epsilon, size)
    for encoding in (Sue, Oue):
        made = encoding.calibrate(epsilon=epsilon, domain_size=size)
        assert made.utility()["smaller_total_variance"] == "sue"
        assert made.total_variance() == pytest.approx(float(total_variance(encoding, epsilon, size)), rel=1e-12)


@pytest.mark.parametrize(("size", "crossing"), [(5, "1.925"), (10, "4.127"), (100, "9.17")])
def test_sue_is_better_for_more_answers_only_at_a_larger_loss(size: int, crossing: str) -> None:
    digits = -Decimal(crossing).as_tuple().exponent  # type: ignore[operator]
    at = mpmath.findroot(
        lambda e: total_variance(Sue, str(e), size) - total_variance(Oue, str(e), size), mpf(crossing)
    )
    assert round(Decimal(mpmath.nstr(at, 30)), digits) == Decimal(crossing)
    for factor, winner, loser in (("0.999", "oue", "sue"), ("1.001", "sue", "oue")):
        epsilon = str(Decimal(factor) * Decimal(mpmath.nstr(at, 12)))
        made = {one.name: one.calibrate(epsilon=epsilon, domain_size=size) for one in (Sue, Oue)}
        assert {one.utility()["smaller_total_variance"] for one in made.values()} == {winner}
        assert made[winner].total_variance() < made[loser].total_variance()
        assert made[winner].notes == ()
        [note] = made[loser].notes
        assert note.startswith(f"Summed over the {size} answers, {winner} has the smaller variance here: ")


def test_custom_encoding_has_no_comparison() -> None:
    made = UnaryEncoding(p="0.6", q="0.3", domain_size=3)
    assert "smaller_total_variance" not in made.utility()
    assert made.notes == ()


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


@standard
def test_reports_depend_on_the_stream_only(encoding: Any) -> None:
    made = encoding.calibrate(epsilon=1, domain_size=20)
    values = np.arange(20)
    assert (made.randomize(values, rng=7) == made.randomize(values, rng=SeededStream(7))).all()
    assert (made.randomize(values, rng=7) != made.randomize(values, rng=8)).any()
    assert (made.randomize(values) != made.randomize(values)).any()


@standard
def test_reports_of_no_values_are_empty(encoding: Any) -> None:
    made = encoding.calibrate(epsilon=1, domain_size=9)
    assert made.randomize([]).shape == (0, 2)


@pytest.mark.parametrize(
    "bad",
    [
        [0, 3],
        [0, -1],
        [0, 0.5],
        [0.0, float("nan")],
        [0.0, float("inf")],
        [0, None],
        [0, 2**70],
        [0, 10**400],
        np.array([0, 2**64 - 1], dtype=np.uint64),
    ],
    ids=lambda bad: repr(bad[1])[:20],
)
def test_value_outside_the_domain_is_refused_with_its_place(bad: Any) -> None:
    with pytest.raises(OutsideDomain, match="outside the domain, whole numbers from 0 to 2") as caught:
        Oue.calibrate(epsilon=1, domain_size=3).randomize(bad)
    assert caught.value.position == 1
    assert caught.value.domain == "whole numbers from 0 to 2"


@pytest.mark.parametrize("bad", [["0", "1"], [b"0"], [0j], np.array(["2026-11-21"], dtype="datetime64[D]")], ids=repr)
def test_value_that_is_no_number_is_refused(bad: Any) -> None:
    with pytest.raises(OutsideDomain, match="at position 0 is outside the domain, whole numbers from 0 to 2"):
        Oue.calibrate(epsilon=1, domain_size=3).randomize(bad)


@pytest.mark.parametrize("bad", [0, [[0, 1]], [[0], [1, 2]], "012"], ids=repr)
def test_values_must_be_one_dimensional(bad: Any) -> None:
    with pytest.raises(OutsideDomain, match="one-dimensional"):
        Oue.calibrate(epsilon=1, domain_size=3).randomize(bad)


@pytest.mark.parametrize("values", [[0, 1], [0.0, 1.0], [False, True], np.array([0, 1], dtype=np.uint8)], ids=repr)
def test_whole_numbers_of_any_type_are_accepted(values: Any) -> None:
    made = Oue.calibrate(epsilon=1, domain_size=3)
    assert (made.randomize(values, rng=1) == made.randomize(np.array([0, 1]), rng=1)).all()


def test_text_is_read_as_whole_numbers_of_the_domain() -> None:
    made = Oue.calibrate(epsilon=1, domain_size=3)
    assert made.read_values(["0", "2", " 1 "]).tolist() == [0, 2, 1]
    for bad in ("3", "-1", "1.0", "", "one", "nan"):
        with pytest.raises(OutsideDomain, match="whole numbers from 0 to 2") as caught:
            made.read_values(["0", bad])
        assert caught.value.position == 1


# -- estimates ------------------------------------------------------------------------------------------------

SIMULATED = [
    Sue.calibrate(epsilon=1, domain_size=4),
    Oue.calibrate(epsilon=1, domain_size=4),
    Oue.calibrate(epsilon=4, domain_size=4),
    UnaryEncoding(p="0.8", q="0.35", domain_size=4),
]
GROUP = np.array([0, 0, 0, 0, 0, 1, 1, 1, 2, 2])  # no user holds 3
GROUPS = 100_000


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("mechanism", SIMULATED, ids=repr)
def test_reports_of_a_million_users_have_the_right_mean_and_the_stated_variance(mechanism: Any) -> None:
    """A hundred thousand surveys of ten users each: their spread measures the variance to 0.5 %."""
    truth = np.bincount(GROUP, minlength=4)
    reports = mechanism.randomize(np.tile(GROUP, GROUPS), rng=20_261_121)
    whole = mechanism.estimate(reports)
    assert (np.abs(whole.counts - GROUPS * truth) <= 4 * whole.std_errors).all()

    p, q = (exact(side) for side in mechanism.support_probabilities[0])
    stated = np.array([float(10 * variance(p, q, count / 10)) for count in truth])
    support = unpack(mechanism, reports).reshape(GROUPS, 10, 4).sum(axis=1, dtype=np.int64)
    estimates = (support - 10 * float(q)) / float(p - q)
    assert estimates.var(axis=0, ddof=1) == pytest.approx(stated, rel=0.02)
    assert whole.std_errors == pytest.approx((GROUPS * stated) ** 0.5, rel=0.005)
    # These are the estimates of the mechanism itself.
    for survey in range(3):
        assert mechanism.estimate(reports[10 * survey : 10 * survey + 10]).counts == pytest.approx(estimates[survey])


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


def test_merge_with_another_mechanism_is_refused() -> None:
    made = Oue.calibrate(epsilon=1, domain_size=4)
    others = [
        Sue.calibrate(epsilon=1, domain_size=4),
        Oue.calibrate(epsilon=2, domain_size=4),
        Oue.calibrate(epsilon=1, domain_size=5),
    ]
    for other in others:
        total = other.aggregate(other.randomize([0, 1], rng=1))
        with pytest.raises(NotSupported, match="made by another mechanism"):
            made.estimate(total)
        with pytest.raises(NotSupported, match="aggregates of different mechanisms cannot be merged"):
            made.aggregate(made.randomize([0], rng=1)).merge(total)


@pytest.mark.parametrize(
    "reports",
    [
        np.zeros((3, 2), np.uint8),
        np.zeros(3, np.uint8),
        np.zeros((3, 1), np.int64),
        np.full((1, 1), 16, np.uint8),
        [1, 2],
        None,
    ],
    ids=["too wide", "one axis", "wrong type", "padding set", "a list", "nothing"],
)
def test_reports_of_another_shape_are_refused(reports: Any) -> None:
    with pytest.raises(NotSupported, match="packed reports must"):
        Oue.calibrate(epsilon=1, domain_size=4).estimate(reports)


def test_estimate_without_reports_is_refused() -> None:
    made = Oue.calibrate(epsilon=1, domain_size=4)
    with pytest.raises(NotSupported, match="no reports"):
        made.estimate(made.randomize([]))


@pytest.mark.parametrize("level", [0, 1, 95, -0.5, float("nan")])
def test_interval_level_must_be_between_0_and_1(level: float) -> None:
    made = Oue.calibrate(epsilon=1, domain_size=4)
    with pytest.raises(InvalidParameter, match="level must be a number > 0 and < 1: got"):
        made.estimate(made.randomize([1], rng=1)).interval(level)


# -- what is declared -----------------------------------------------------------------------------------------

NUMBER = "must be a number > 0 and <= 1000000: got"
WHOLE = "must be a whole number from 2 to 4000000: got"
SHARE = "must be a number > 0 and < 1: got"


@pytest.mark.parametrize(
    ("encoding", "declared", "message"),
    [
        *(
            (Oue, {"epsilon": bad, "domain_size": 4}, f"epsilon {NUMBER} {bad}")
            for bad in (0, -1, "1e7", "one", True)
        ),
        *((Sue, {"epsilon": float(bad), "domain_size": 4}, f"epsilon {NUMBER} {bad}") for bad in ("nan", "inf")),
        (Oue, {"domain_size": 4}, "epsilon is missing: it must be a number > 0 and <= 1000000"),
        *((Oue, {"epsilon": 1, "domain_size": bad}, f"domain_size {WHOLE} {bad}") for bad in (1, 0, -3, 2.5, 10**10)),
        *((Sue, {"epsilon": 1, "domain_size": bad}, f"domain_size {WHOLE} {bad}") for bad in (True, "two", "nan")),
        (Sue, {"epsilon": 1}, "domain_size is missing: it must be a whole number from 2 to 4000000"),
        (
            Oue,
            {"epsilon": 1, "domain_size": 4, "gamma": 1},
            "gamma must be left out, because mechanism oue has no such parameter: got 1",
        ),
        *((UnaryEncoding, {"p": bad, "q": 0.1, "domain_size": 4}, f"p {SHARE} {bad}") for bad in (0, 1, -0.1, 1.5)),
        *((UnaryEncoding, {"p": 0.9, "q": bad, "domain_size": 4}, f"q {SHARE} {bad}") for bad in (0, 1, "nan")),
        (UnaryEncoding, {"p": 0.3, "q": 0.3, "domain_size": 4}, "p must be greater than q, 0.3: got 0.3"),
        (UnaryEncoding, {"p": 0.2, "q": 0.3, "domain_size": 4}, "p must be greater than q, 0.3: got 0.2"),
        (
            UnaryEncoding,
            {"p": "0.30000000000000000001", "q": "0.3", "domain_size": 4},
            r"p must be greater than q, 0.3, by more than 2\*\*-64: got 0.30000000000000000001",
        ),
    ],
)
def test_bad_parameter_is_refused_by_name_range_and_value(encoding: Any, declared: Any, message: str) -> None:
    for make in (encoding, encoding.calibrate):
        with pytest.raises(InvalidParameter, match=rf"^{message}($|\.$|\. [A-Z]| \()") as caught:
            make(**declared)
        assert caught.value.option == message.split()[0]
        assert caught.value.expected


@pytest.mark.parametrize("users", [0, -5])
def test_prediction_needs_users(users: int) -> None:
    with pytest.raises(InvalidParameter, match=f"users must be a whole number >= 1: got {users}"):
        Oue.calibrate(epsilon=1, domain_size=4).utility(users)


def test_declarations_that_are_equal_have_one_fingerprint() -> None:
    spellings = [1, 1.0, "1", "1.00", "1e0", Decimal(1), np.float64(1)]
    made = [
        Oue.calibrate(epsilon=epsilon, domain_size=size) for epsilon in spellings for size in (7, "7", np.int64(7))
    ]
    assert {one.fingerprint for one in made} == {made[0].fingerprint}
    assert set(made) == {made[0]}
    assert made[0].declared == {"domain_size": 7, "epsilon": "1"}
    assert pickle.loads(pickle.dumps(made[0])) == made[0]
    assert made[0] != Sue.calibrate(epsilon=1, domain_size=7)
    assert made[0].replace(epsilon=2) == Oue.calibrate(epsilon=2, domain_size=7)
    with pytest.raises(AttributeError, match="frozen"):
        made[0].epsilon = Decimal(2)
