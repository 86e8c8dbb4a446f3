"""Count mean sketches: what cms promises, by exact enumeration; what cms and hcms estimate, by redrawing hashes.

The oracle for formulas is mpmath with sixty digits; the true loss of what is drawn is a ratio of integers. What only
hcms does is in `test_hcms.py`.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import ldp_budget
from exact_numbers import exact
from ldp_budget import InvalidParameter, NotSupported, OutsideDomain
from ldp_budget.sampling import ONE
from ldp_budget.sdk.hash_families import HashFamily

Cms: Any = ldp_budget.mechanism("cms")
Hcms: Any = ldp_budget.mechanism("hcms")

both = pytest.mark.parametrize("sketch", [Cms, Hcms], ids=["cms", "hcms"])

EPSILONS = ["1e-6", "0.1", "1", "2.718281828459045235360287", "8", "40"]


def cells(mechanism: Any, values: Any) -> Any:
    """h_j(v) for every function j and each of `values`, shape (k, len(values))."""
    family = HashFamily(mechanism.seed, mechanism.hashes, mechanism.width)
    return family(np.arange(mechanism.hashes)[:, np.newaxis], family.points(values))


# -- the promise of cms ---------------------------------------------------------------------------------------


def law(mechanism: Any, value: int) -> dict[tuple[int, ...], Fraction]:
    """The exact distribution of the report on `value`, as it is drawn: the function's number, then the bits."""
    keep, noise = (Fraction(threshold, ONE) for threshold in thresholds(mechanism))
    result = {}
    for function, cell in enumerate(cells(mechanism, [value])[:, 0]):
        for bits in itertools.product((0, 1), repeat=mechanism.width):
            ones = [keep if place == cell else noise for place in range(mechanism.width)]
            mass = Fraction(1, mechanism.hashes)
            for one, bit in zip(ones, bits, strict=True):
                mass *= one if bit else 1 - one
            result[(function, *bits)] = mass
    return result


def thresholds(mechanism: Any) -> tuple[int, int]:
    """The bits of cms are those of sue over its cells."""
    encoding: Any = ldp_budget.mechanism("sue")(epsilon=mechanism.epsilon, domain_size=mechanism.width)
    keep, noise = encoding.thresholds
    return keep, noise


DRAWN = [
    Cms(epsilon=epsilon, hashes=k, width=m) for epsilon in ("0.05", "1", "4.5") for k, m in ((1, 2), (2, 3), (3, 4))
]


@pytest.mark.parametrize("mechanism", DRAWN, ids=repr)
def test_loss_of_every_output_and_pair_of_values_is_within_the_guarantee(mechanism: Any) -> None:
    laws = [law(mechanism, value) for value in range(6)]
    assert all(sum(law.values()) == 1 for law in laws)
    epsilon, tau = exact(mechanism.guarantee.bound), exact(mechanism.guarantee.tau)
    worst_loss, worst_spread = mpf(0), mpf(0)
    for one, other in itertools.permutations(laws, 2):
        losses = {report: one[report] / other[report] for report in one}
        worst_loss = max(worst_loss, exact(max(losses.values())))
        # The loss is ±ε or nothing, and never more often something than τ.
        assert len({ratio for ratio in losses.values() if ratio > 1}) <= 1
        spread = exact(sum((one[report] for report, ratio in losses.items() if ratio != 1), Fraction(0)))
        worst_spread = max(worst_spread, spread)
    assert mpmath.exp(epsilon) * (1 - mpf("1e-15")) <= worst_loss <= mpmath.exp(epsilon)
    # Some two values share no cell under any function, and then the promise is met to the last digit.
    assert tau - mpf("1e-18") <= worst_spread <= tau


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_loss_of_the_drawn_reports_is_at_most_epsilon_and_near_it(epsilon: str) -> None:
    made = Cms(epsilon=epsilon, hashes=2, width=16)
    keep, noise = thresholds(made)
    odds = exact(Fraction(keep * (ONE - noise), (ONE - keep) * noise))
    slack = 2 * mpf(4) / min(noise, ONE - keep)
    assert mpmath.exp(exact(epsilon)) * (1 - slack) <= odds <= mpmath.exp(exact(epsilon))
    e = mpmath.exp(exact(epsilon))
    assert abs(exact(made.guarantee.tau) - (e + 1) / (mpmath.sqrt(e) + 1) ** 2) <= mpf("1e-18")


def test_client_draws_from_the_exact_distribution() -> None:
    made = Cms(epsilon=1, hashes=2, width=3)
    expected = law(made, 5)
    reports = made.randomize(np.full(200_000, 5), rng=1)
    codes, counts = np.unique(reports @ np.array([8, 1], dtype=np.int64), return_counts=True)
    assert len(codes) == len(expected) == 16
    for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
        share = float(expected[(code >> 3, code & 1, code >> 1 & 1, code >> 2 & 1)])
        assert abs(count - 200_000 * share) <= 4.5 * (200_000 * share * (1 - share)) ** 0.5


@pytest.mark.slow
@pytest.mark.some(8)
@pytest.mark.parametrize(("hashes", "head"), [(1, 1), (256, 1), (257, 2), (65_536, 2), (65_537, 3)])
@pytest.mark.parametrize("width", [2, 8, 13])
def test_report_is_a_function_number_and_packed_bits(hashes: int, head: int, width: int) -> None:
    made = Cms(epsilon=160, hashes=hashes, width=width)  # no bit turns in a lifetime
    reports = made.randomize(np.arange(50), rng=2)
    assert reports.dtype == np.uint8
    assert reports.shape == (50, head + -(-width // 8))
    table = cells(made, range(50))
    for value, report in enumerate(reports):
        function = int.from_bytes(report[:head].tobytes(), "little")
        assert int.from_bytes(report[head:].tobytes(), "little") == 1 << int(table[function, value])


# -- the estimate ---------------------------------------------------------------------------------------------


def exact_variance(sketch: Any, epsilon: Any, k: int, m: int, own: int, others: int, pairs: int) -> mpf:
    """The variance of a count by the formulas of the errata: `own` users hold the value, `others` do not.

    `pairs` is Σ f(f-1) over the values of the others.
    """
    e = mpmath.exp(exact(epsilon))
    root, c = mpmath.sqrt(e), (e + 1) / (e - 1)
    collide = mpf(1) / m - mpf(1) / m**2
    if sketch is Cms:
        noise = (own + others) * root / (root - 1) ** 2 + others * collide
    else:
        noise = own * (c**2 - 1) + others * (c**2 - mpf(1) / m**2)
    return (mpf(m) / (m - 1)) ** 2 * (noise + pairs * collide / k)


def variances(sketch: Any, epsilon: Any, k: int, m: int, counts: list[int]) -> Any:
    """The variance of every count."""
    users, pairs = sum(counts), sum(count * (count - 1) for count in counts)
    split = [(own, users - own, pairs - own * (own - 1)) for own in counts]
    return np.array([float(exact_variance(sketch, epsilon, k, m, *one)) for one in split])


def surveys(mechanism: Any, counts: list[int], repeats: int) -> tuple[Any, Any]:
    """Estimates and standard errors of that many surveys, each with hash functions of its own; (repeats, d)."""
    values = np.repeat(np.arange(len(counts)), counts)
    rng = np.random.default_rng(20_261_121)
    made = [mechanism.replace(seed=seed) for seed in range(repeats)]
    estimates = [one.estimate(one.randomize(values, rng=rng)) for one in made]
    return np.array([one.counts for one in estimates]), np.array([one.std_errors for one in estimates])


# No user holds the last 37 values; they show the same variance 37 times.
HELD = [45, 9, 6] + 37 * [0]


@pytest.mark.exhaustive
@both
@pytest.mark.parametrize(
    ("repeats", "tolerance"), [(1000, 0.07), pytest.param(12_000, 0.03, marks=pytest.mark.exhaustive)]
)
def test_estimates_over_hash_draws_are_unbiased_with_the_exact_variance(
    sketch: Any, repeats: int, tolerance: float
) -> None:
    made = sketch(epsilon=3, hashes=4, width=8, domain_size=40)
    counts, _ = surveys(made, HELD, repeats)
    variance = variances(sketch, 3, 4, 8, HELD)
    # Collisions are a good part of the variance here.
    assert sum(count * (count - 1) for count in HELD) / (4 * 7) > 0.4 * variance[-1]
    assert (np.abs(counts.mean(axis=0) - HELD) <= 4.5 * np.sqrt(variance / repeats)).all()
    measured = ((counts - HELD) ** 2).mean(axis=0) / variance
    assert measured[:3].mean() == pytest.approx(1, abs=tolerance)
    assert measured[3:].mean() == pytest.approx(1, abs=tolerance)


@pytest.mark.exhaustive
@both
@pytest.mark.parametrize(
    ("repeats", "tolerance"), [(900, 0.03), pytest.param(2000, 0.02, marks=pytest.mark.exhaustive)]
)
def test_intervals_have_their_nominal_coverage(sketch: Any, repeats: int, tolerance: float) -> None:
    truth = np.array([120, 50, 30, 0])
    made = sketch(epsilon=2, hashes=16, width=32, domain_size=4)
    counts, errors = surveys(made, truth.tolist(), repeats)
    covered = (np.abs(counts - truth) <= 1.959964 * errors).mean(axis=0)
    assert np.abs(covered - 0.95).max() <= tolerance  # 4.1 standard errors of the share
    # The estimated collisions are those there are.
    assert (errors**2).mean(axis=0) == pytest.approx(variances(sketch, 2, 16, 32, truth.tolist()), rel=0.03)


# -- a handful of cells ---------------------------------------------------------------------------------------


class Functions:
    """Given functions in place of a family: `cells` (k, d) says where each takes the values 0..d-1."""

    def __init__(self, cells: Any, width: int) -> None:
        self.cells, self.count, self.width = np.asarray(cells), len(cells), width

    def points(self, values: Any) -> Any:
        return np.asarray(values, dtype=np.uint64)

    points_of = points

    def __call__(self, functions: Any, points: Any) -> Any:
        functions, points = np.broadcast_arrays(functions, points)
        return self.cells[functions, points.astype(np.int64)]


def by_enumeration(sketch: Any, epsilon: Any, k: int, m: int) -> tuple[Any, Any, Any]:
    """Two users hold 0: what the server makes of every report of theirs, under all ideal functions of three values.

    The probability of every outcome (o,), then the estimates and the standard errors (o, 3). What reports there are
    and how likely they are stands here once more. The cells of 0 are the first: all cells are alike.
    """
    made = sketch(epsilon=epsilon, hashes=k, width=m, domain_size=3)
    odds, counts, errors = [], [], []
    for row in itertools.product(range(m), repeat=2 * k):
        given = made.replace()
        given.__dict__["_family"] = Functions(np.hstack([np.zeros((k, 1), dtype=int), np.reshape(row, (k, 2))]), m)
        law = one_report(sketch, made, [0] * k)
        for two in itertools.combinations_with_replacement(law.items(), 2):
            estimate = given.estimate(np.array([report for report, _ in two], dtype=laws_type(sketch)))
            odds.append(two[0][1] * two[1][1] * (1 + (two[0] != two[1])) / m ** (2 * k))
            counts.append(estimate.counts)
            errors.append(estimate.std_errors)
    return np.array(odds), np.array(counts), np.array(errors)


def laws_type(sketch: Any) -> Any:
    return np.uint8 if sketch is Cms else np.int64


def one_report(sketch: Any, made: Any, cells: Any) -> dict[Any, float]:
    """Every report on a value that the functions take to these cells, and its probability, to double precision."""
    k, m = len(cells), made.width
    if sketch is Hcms:
        keep = made.keep / ONE
        return {
            2 * (j * m + place) + sign: (keep if (int(cell) & place).bit_count() % 2 == sign else 1 - keep) / (k * m)
            for j, cell in enumerate(cells)
            for place in range(m)
            for sign in (0, 1)
        }
    own, other = (threshold / ONE for threshold in thresholds(made))
    return {
        (j, bits): float(
            np.prod(
                [
                    (own if i == cell else other) if bits >> i & 1 else 1 - (own if i == cell else other)
                    for i in range(m)
                ]
            )
        )
        / k
        for j, cell in enumerate(cells)
        for bits in range(2**m)
    }


@pytest.mark.slow
@pytest.mark.some(3)
@both
@pytest.mark.parametrize(("k", "m"), [(1, 2), (2, 2), (1, 4)])
def test_variance_of_a_tiny_sketch_is_never_understated(sketch: Any, k: int, m: int) -> None:
    """All functions and all reports, enumerated."""
    truth = np.array([2, 0, 0])
    odds, counts, errors = by_enumeration(sketch, 2, k, m)
    assert odds.sum() == pytest.approx(1)
    assert odds @ counts == pytest.approx(truth, abs=1e-9)
    true = odds @ (counts - truth) ** 2
    assert true == pytest.approx(variances(sketch, 2, k, m, truth.tolist()), rel=1e-9)
    assert (odds @ errors**2 >= true * (1 - 1e-12)).all()
    assert sketch(epsilon=2, hashes=k, width=m).errors_are_bounds


@pytest.mark.exhaustive
@both
@pytest.mark.parametrize(("k", "m", "most"), [(2, 2, 1.5), (7, 2, 1.2), (1, 4, 1.2), (4, 4, 1.2)])
def test_errors_of_a_handful_of_cells_are_not_understated(sketch: Any, k: int, m: int, most: float) -> None:
    # A count is so uncertain here that its square says little of the pairs that share the value.
    made = sketch(epsilon=10, hashes=k, width=m, domain_size=4)
    truth = [60, 40, 20, 0]
    counts, errors = surveys(made, truth, 1200)
    stated, seen = errors**2, (counts - truth) ** 2
    # Four standard errors of the two averages, which fluctuate together.
    off = (stated - seen).mean(axis=0) / ((stated - seen).std(axis=0) / 1200**0.5)
    assert (off >= -4).all()
    assert (stated.mean(axis=0) <= most * variances(sketch, 10, k, m, truth)).mean() >= 0.5


@pytest.mark.exhaustive
@both
@pytest.mark.parametrize(("k", "m"), [(1, 2), (2, 2), (1, 3), (3, 2), (7, 2)])
def test_intervals_of_a_handful_of_cells_cover(sketch: Any, k: int, m: int) -> None:
    if sketch is Hcms and m == 3:
        pytest.skip("its width is a power of two")
    made = sketch(epsilon=2, hashes=k, width=m, domain_size=5)
    truth = np.array([60, 50, 40, 30, 0])
    values = np.repeat(np.arange(5), truth)
    rng = np.random.default_rng(20_261_122)
    covered = []
    for seed in range(600):
        one = made.replace(seed=seed)
        low, high = one.estimate(one.randomize(values, rng=rng)).interval(0.95)
        covered.append((low <= truth) & (truth <= high))
    assert np.mean(covered, axis=0).min() >= 0.95 - 4 * (0.95 * 0.05 / 600) ** 0.5  # normal ones: 0.55 for (2, 2)


@both
def test_reports_without_noise_and_collisions_are_counted_exactly(sketch: Any) -> None:
    made = sketch(epsilon=160, hashes=1, width=2**16, domain_size=5)
    table = cells(made, range(5))[0]
    assert len(set(table.tolist())) == 5
    values = np.array([0, 0, 0, 1, 3, 3])
    total, support = made.support(made.randomize(values, rng=1))
    assert total == 6
    if sketch is Cms:
        assert support.tolist() == [3, 1, 0, 2, 0]
    else:
        # A user who holds a value supports it; another user half the time.
        assert (support >= [3, 1, 0, 2, 0]).all()


# -- values, candidates, declarations -------------------------------------------------------------------------


@both
def test_domain_absent_accepts_any_whole_number_and_needs_candidates(sketch: Any) -> None:
    made = sketch(epsilon=8, hashes=32, width=256)
    values = np.repeat([5, 2**63 - 1, 123_456_789_012], [3000, 1000, 500])
    reports = made.randomize(values, rng=6)
    candidates = [2**63 - 1, 5, 0, 123_456_789_012]
    estimate = made.estimate(reports, candidates=candidates)
    assert (np.abs(estimate.counts - [1000, 3000, 0, 500]) <= 4 * estimate.std_errors).all()
    assert made.estimate(reports, candidates=[5]).counts[0] == estimate.counts[1]
    assert made.estimate(reports, candidates=[]).counts.shape == (0,)
    with pytest.raises(NotSupported, match=r"has no domain_size. Pass the candidates"):
        made.estimate(reports)
    with pytest.raises(
        InvalidParameter, match="domain_size is missing: it must be a whole number from 2 to 1000000000"
    ):
        _ = made.answers
    assert made.read_values(["0", "9223372036854775807"]).tolist() == [0, 2**63 - 1]
    for bad in (["1", "-1"], ["1", ""], ["1", "9223372036854775808"]):
        with pytest.raises(OutsideDomain) as caught:
            made.read_values(bad)
        assert caught.value.position == 1


@both
def test_domain_absent_accepts_any_text(sketch: Any) -> None:
    made = sketch(epsilon=8, hashes=32, width=256)
    words = ["zürich", "7", "007", "a,b"]
    reports = made.randomize(np.repeat(words, [3000, 1000, 500, 200]), rng=6)
    estimate = made.estimate(reports, candidates=[*words, "77"])
    assert (np.abs(estimate.counts - [3000, 1000, 500, 200, 0]) <= 4 * estimate.std_errors).all()
    assert made.estimate(reports, candidates=[7]).counts[0] == estimate.counts[1], "a number is its own text"
    assert made.estimate(reports, candidates=["7 "]).counts[0] == estimate.counts[1], "a text has one form"
    with pytest.raises(OutsideDomain):
        sketch(epsilon=8, hashes=32, width=256, domain_size=9).randomize(["zürich"])
