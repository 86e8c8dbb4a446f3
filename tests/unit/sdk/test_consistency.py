"""Consistent counts, their intervals, and the reach of one fake report."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import ldp_budget
from ldp_budget import NotSupported
from ldp_budget.sdk.accepted_values import Levels
from ldp_budget.sdk.consistency import ConsistentEstimate, consistent, maximum_likelihood, norm_sub
from ldp_budget.sdk.estimates import CountEstimate
from ldp_budget_surveys.planning.ranking import rank_frequency

COUNTS = st.lists(st.floats(-500, 1500), min_size=2, max_size=8)
MATRIX = "0.6 0.2 0.1\n0.3 0.5 0.2\n0.1 0.3 0.7"
MECHANISMS: list[tuple[str, dict[str, Any]]] = [
    ("oue", {"epsilon": 1, "domain_size": 3}),
    ("sue", {"epsilon": 1, "domain_size": 3}),
    ("grr", {"epsilon": 1, "domain_size": 4}),
    ("grr", {"epsilon": 1, "domain_size": 3, "draws": 2}),
    ("subset-selection", {"epsilon": 1, "domain_size": 5, "draws": 2}),
    ("randomized-response", {"truth": 0.5, "yes": 0.3}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 3, "bits": 3}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 4, "bits": 2}),
    ("cms", {"epsilon": 2, "hashes": 4, "width": 4, "domain_size": 3}),
    ("hcms", {"epsilon": 2, "hashes": 8, "width": 4, "domain_size": 3}),
    ("rappor", {"f": 0.2, "p": 0.3, "q": 0.8, "bits": 3, "hashes": 1, "cohorts": 3, "domain_size": 3}),
]


def matrix_substitution() -> Any:
    return ldp_budget.mechanism("matrix-substitution")(
        matrix=[[float(x) for x in r.split()] for r in MATRIX.split("\n")]
    )


def made(name: str, parameters: dict[str, Any]) -> Any:
    return matrix_substitution() if name == "matrix-substitution" else ldp_budget.mechanism(name)(**parameters)


def valid_reports(mechanism: Any, like: NDArray[Any]) -> NDArray[Any]:
    """Every report that `check_reports` accepts, by trial of all values of its bytes or numbers."""
    columns = 1 if like.ndim == 1 else like.shape[1]
    values = range({1: 64, 2: 16}.get(columns, 8))
    found = []
    for row in itertools.product(values, repeat=columns):
        report = np.array([row], like.dtype).reshape((1, *like.shape[1:]))
        try:
            mechanism.check_reports(report)
        except NotSupported:
            continue
        found.append(report)
    return np.concatenate(found)


# -- one fake report --------------------------------------------------------------------------------------------


MORE_CANDIDATES_THAN_BITS = {"f": 0.2, "p": 0.3, "q": 0.8, "bits": 3, "hashes": 1, "cohorts": 4, "domain_size": 5}


@pytest.mark.parametrize(
    ("name", "parameters"), [*MECHANISMS, ("rappor", MORE_CANDIDATES_THAN_BITS), ("matrix-substitution", {})]
)
def test_fake_margins_are_the_largest_changes_over_all_reports(name: str, parameters: dict[str, Any]) -> None:
    mechanism = made(name, parameters)
    values, own = np.arange(60) % (3 if name == "rappor" else mechanism.answers), [bytes([i]) * 16 for i in range(60)]
    reports = mechanism.randomize(values, rng=1, secrets=own)
    before = mechanism.estimate(reports)
    changes = [
        mechanism.estimate(np.concatenate([reports, [fake]])).counts - before.counts
        for fake in valid_reports(mechanism, reports)
    ]
    least, most = np.broadcast_arrays(*before.fake_margins, before.counts)[:2]
    assert least == pytest.approx(np.min(changes, axis=0))
    assert most == pytest.approx(np.max(changes, axis=0))


# -- consistent counts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "parameters"), [*MECHANISMS, ("matrix-substitution", {})])
def test_consistent_counts_are_not_negative_and_add_up(name: str, parameters: dict[str, Any]) -> None:
    mechanism = made(name, parameters)
    reports = mechanism.randomize([1] * 50 + [0] * 10, rng=2, secrets=[bytes([i]) * 16 for i in range(60)])
    found, raw = mechanism.estimate(reports, consistent=True), mechanism.estimate(reports)
    assert isinstance(found, ConsistentEstimate)
    assert found.counts.min() >= 0
    assert found.counts.sum() == pytest.approx(60)
    assert found.raw.counts.tolist() == raw.counts.tolist()
    low, high = found.interval()
    assert (low >= 0).all()
    assert (low <= found.counts).all()
    assert (found.counts <= high).all()
    assert (high <= 60 + 1e-9).all()


@given(COUNTS)
def test_norm_sub_of_some_answers_adds_up_to_at_most_the_total(counts: list[float]) -> None:
    found = norm_sub(np.array(counts), 1000, complete=False)
    positive = np.maximum(counts, 0)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(min(1000, positive.sum()))


def test_maximum_likelihood_is_likelier_than_its_neighbours() -> None:
    mechanism = matrix_substitution()
    found = mechanism.estimate(mechanism.randomize([0] * 200 + [2] * 300, rng=3), consistent=True)
    assert found.method == "maximum-likelihood"
    channel, sent = found.raw.channel, found.raw.support

    def likelihood(counts: Any) -> float:
        return float(sent @ np.log(channel @ counts))

    for one, other in itertools.permutations(range(3), 2):
        moved = found.counts.copy()
        step = min(1.0, moved[one])
        moved[one], moved[other] = moved[one] - step, moved[other] + step
        assert likelihood(found.counts) >= likelihood(moved) - 1e-6


def test_maximum_likelihood_of_a_report_that_no_answer_explains_best_adds_up() -> None:
    assert maximum_likelihood(np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([0, 10])) == pytest.approx(
        [0, 10], abs=0.1
    )


def test_estimate_of_some_candidates_leaves_room_for_the_others() -> None:
    sketch = ldp_budget.mechanism("hcms")(epsilon=4, hashes=64, width=64)
    reports = sketch.randomize(np.arange(2000) % 4, rng=4)
    found = sketch.estimate(reports, candidates=[0, 1], consistent=True)
    assert not found.complete
    assert found.counts == pytest.approx(found.raw.counts)
    assert found.counts.sum() < 1500


def test_rounds_of_the_same_users_widen_the_intervals_of_consistent_counts() -> None:
    mechanism = ldp_budget.mechanism("d-bit-flip")(epsilon=1, buckets=3, bits=3)
    parts = [mechanism.aggregate(mechanism.randomize([0, 1] * 50, rng=seed)) for seed in (5, 6)]
    rounds = [mechanism.estimate(part, consistent=True) for part in parts]
    together = mechanism.estimate(parts[0].merge(parts[1]), consistent=True)
    repeated = together.repeated(rounds)
    assert isinstance(repeated, ConsistentEstimate)
    assert repeated.counts.tolist() == together.counts.tolist()
    assert np.subtract(*repeated.interval()[::-1]).sum() > np.subtract(*together.interval()[::-1]).sum()


# -- coverage ---------------------------------------------------------------------------------------------------


def truth_of(kind: str, users: int, answers: int) -> NDArray[np.int64]:
    """`flat`: the same for all answers. `sparse`: a tenth of the answers share all users by Zipf's law."""
    kept = answers if kind == "flat" else max(1, answers // 10)
    weights = np.ones(kept) if kind == "flat" else 1 / np.arange(1, kept + 1)
    counts = np.zeros(answers, dtype=np.int64)
    counts[:kept] = np.floor(users * weights / weights.sum())
    counts[0] += users - counts.sum()
    return counts


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("kind", ["flat", "sparse"])
@pytest.mark.parametrize(("users", "answers"), [(50, 2), (50, 128), (2000, 16), (10**5, 128)])
def test_intervals_of_raw_and_consistent_counts_cover_as_declared(kind: str, users: int, answers: int) -> None:
    """The fast version of `benchmarks/consistency.py`."""
    rng = np.random.default_rng(7)
    oue = ldp_budget.mechanism("oue")(epsilon=1, domain_size=answers)
    p, q = map(float, oue.support_probabilities[0])
    truth = truth_of(kind, users, answers)
    covered: dict[str, list[float]] = {"raw": [], "consistent": []}
    for _ in range(max(4, 600 // answers)):
        total = oue.aggregate(np.empty((0, -(-answers // 8)), np.uint8))
        total.reports, total.support = users, rng.binomial(truth, p) + rng.binomial(users - truth, q)
        raw: CountEstimate = oue.estimate(total)
        for name, found in (("raw", raw), ("consistent", consistent(raw))):
            low, high = found.interval()
            covered[name].append(((low <= truth + 1e-6) & (truth <= high + 1e-6)).mean())
    for name, shares in covered.items():
        assert 0.93 <= np.mean(shares) <= 0.995, (name, np.mean(shares))


def test_tails_add_up_and_lean_to_one_side_at_the_edges() -> None:
    tails = Levels(0.05, 0.0, 1000.0, 30.0, 20.0)
    held = np.linspace(0, 1000, 101)
    assert tails.large(held) + tails.small(held) == pytest.approx(np.full(101, 0.05))
    assert (np.diff(tails.large(held)) <= 0).all(), "else an interval may have gaps"
    assert [float(tails.large(np.array(held))) for held in (0, 500, 1000)] == pytest.approx([0.05, 0.025, 0.0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "domain_size"), [("grr", 4), ("randomized-response", 2), ("subset-selection", 12), ("oue", 12)]
)
def test_predicted_consistent_error_is_that_of_simulated_surveys(name: str, domain_size: int) -> None:
    """The counts of all but `oue` always add up, so that consistency changes less."""
    users, runs = 2000, 150
    row = next(
        row for row in rank_frequency(1, domain_size, users) if row["mechanism"] == ldp_budget.mechanism(name).name
    )
    target = {} if name == "randomized-response" else {"domain_size": domain_size}
    mechanism = ldp_budget.mechanism(name).calibrate(epsilon=1, **target)
    shares = 1 / np.arange(1, domain_size + 1)
    truth = np.floor(users * shares / shares.sum())
    truth[0] += users - truth.sum()
    values = np.repeat(np.arange(domain_size), truth.astype(int))
    errors = [
        np.square(norm_sub(mechanism.estimate(mechanism.randomize(values, rng=seed)).counts, users) - truth).mean()
        for seed in range(runs)
    ]
    assert row["consistent_error"] == pytest.approx(float(np.mean(errors)) ** 0.5 / users, rel=0.12)
