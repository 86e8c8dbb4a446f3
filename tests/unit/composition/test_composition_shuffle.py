"""Shuffle amplification, compared with enumerated shuffled reports, counted clones, and a printed bound."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ldp_budget
from composition_oracle import mp, mpf, number
from ldp_budget.composition import compose
from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import (
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
    ZeroConcentrated,
)
from ldp_budget.guarantees.dominating_pairs import dominating_pair
from ldp_budget_surveys.planning.shuffle_amplification import Crowd, shuffled
from shuffle_enumeration import Rows, central_delta, hockey_stick, together

# -- the mechanisms that are enumerated -----------------------------------------------------------------------


def response(ratio: int, answers: int) -> Rows:
    """Generalised randomised response with e^ε = `ratio`."""
    whole = ratio + answers - 1
    return [[Fraction(ratio if o == x else 1, whole) for o in range(answers)] for x in range(answers)]


def bits(ratio: int, size: int) -> Rows:
    """Optimised unary encoding: one's own bit is set with ½, any other with 1/(e^ε + 1)."""
    other = Fraction(1, ratio + 1)
    rows = []
    for x in range(size):
        chances = [Fraction(1, 2) if i == x else other for i in range(size)]
        outcomes = product((0, 1), repeat=size)
        rows.append([math.prod(c if bit else 1 - c for c, bit in zip(chances, o, strict=True)) for o in outcomes])
    return rows


def subset(ratio: int) -> Rows:
    """Two of four answers: those that hold one's own have e^ε = `ratio` times the chance."""
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    whole = 3 * ratio + 3
    return [[Fraction(ratio if x in pair else 1, whole) for pair in pairs] for x in range(4)]


def random_channel(seed: int) -> Rows:
    source = random.Random(f"channel {seed}")
    size, inputs = source.randrange(2, 4), source.randrange(2, 4)
    rows = [[source.randrange(1, 9) for _ in range(size)] for _ in range(inputs)]
    return [[Fraction(p, sum(row)) for p in row] for row in rows]


CHANNELS: dict[str, tuple[Rows, Guarantee | None]] = {
    "randomised response": (response(3, 2), None),
    "three answers": (response(3, 3), SymmetricPair(Decimal(3).ln() + Decimal("1e-27"), "0.8")),
    "four answers": (response(9, 4), None),
    "two bits": (bits(3, 2), SymmetricPair(Decimal(3).ln() + Decimal("1e-27"), "0.5")),
    "three bits": (bits(2, 3), None),
    "subsets": (subset(4), None),
}


def assert_never_below(rows: Rows, guarantee: Guarantee, users: int, ratio: Fraction, two_inputs: bool) -> None:
    truth = central_delta(rows, users, ratio)
    # e^ε = `ratio`, rounded up so that the bound is the smaller one.
    epsilon = math.nextafter(math.log(ratio), math.inf)
    bound = Crowd.of(guarantee, 1, users, two_inputs=two_inputs).log_delta(epsilon)
    if truth:
        assert mp.exp(bound) >= number(truth) * (1 - mpf("1e-14"))


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("users", [1, 3, pytest.param(5, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", CHANNELS)
def test_shuffled_is_never_below_the_enumeration(name: str, users: int) -> None:
    rows, declared = CHANNELS[name]
    if users == 5 and len(rows[0]) > 3:
        users = 4
    guarantee = declared or dominating_pair(rows)
    for ratio in (Fraction(101, 100), Fraction(3, 2), Fraction(5, 2)):
        assert_never_below(rows, guarantee, users, ratio, two_inputs=len(rows) == 2)


def check_a_random_channel(seed: int) -> None:
    """Of its own pair, and of randomised response at its ε₀."""
    rows = random_channel(seed)
    pair = dominating_pair(rows)
    source = random.Random(seed)
    ratio = 1 + Fraction(source.randrange(1, 300), 100)
    for guarantee in (pair, Pure(pair.loss()[0])):
        assert_never_below(rows, guarantee, source.randrange(1, 6), ratio, two_inputs=len(rows) == 2)


@pytest.mark.slow
def test_shuffled_of_random_channels_is_never_below_the_enumeration() -> None:
    for seed in range(15):
        check_a_random_channel(seed)


@pytest.mark.slow
def test_shuffled_uses_the_rate_of_two_inputs_for_two_inputs_only() -> None:
    """With more of them the closer bound is not proved."""
    pair = dominating_pair(response(3, 2))
    many, two = (Crowd.of(pair, 1, 100, two_inputs=known).log_delta(0.1) for known in (False, True))
    assert two < many
    assert shuffled([(pair, 1)], 100, "1e-6", inputs=3) == shuffled([(pair, 1)], 100, "1e-6")


# -- clones counted one by one --------------------------------------------------------------------------------


def clones_delta(epsilon: float, local: float, users: int) -> float:
    """C ~ Bin(n-1, e^{-ε₀}), A ~ Bin(C, ½): (A+Δ, C-A+1-Δ), Δ the answer of randomised response at ε₀."""
    rate, keep = math.exp(-local), 1 / (1 + math.exp(-local))
    total = 0.0
    for clones in range(users):
        chance = math.comb(users - 1, clones) * rate**clones * (1 - rate) ** (users - 1 - clones)
        for ones in range(clones + 2):
            before = math.comb(clones, ones - 1) / 2**clones if ones else 0.0
            after = math.comb(clones, ones) / 2**clones
            p, q = keep * before + (1 - keep) * after, (1 - keep) * before + keep * after
            total += chance * max(0.0, p - math.exp(epsilon) * q)
    return total


@pytest.mark.parametrize(("local", "users"), [(0.5, 30), (1.0, 100), (2.0, 60)])
def test_shuffled_counts_clones_exactly(local: float, users: int) -> None:
    """With the share one half; the smallest of all shares is what is given."""
    crowd = Crowd.of(Pure(local), 1, users, two_inputs=False)
    share = Decimal(-local).exp() / 2
    half = tuple((p, q, (p + q) * share) for p, q, _ in crowd.laws[0][0])
    for part in (0.2, 0.5):
        exact = clones_delta(part * local, local, users)
        found = math.exp(crowd._log_delta(part * local, half))
        assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-2)
        assert math.exp(crowd.log_delta(part * local)) <= exact * (1 + 1e-2)


# -- figures --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("guarantee", "inputs", "most"),
    [
        (Pure("0.5"), None, 0.0204),
        (Pure("0.5"), 2, 0.01813),
        (SymmetricPair("0.5", "0.5"), None, 0.01402),
        (SymmetricPair("0.5", "0.248736087964670805072876400544"), None, 0.0096),
        (Laplace("0.5"), None, 0.01895),
    ],
    ids=["any", "two inputs", "oue", "grr(10)", "laplace"],
)
def test_shuffled_of_ten_thousand_users_matches(guarantee: Guarantee, inputs: int | None, most: float) -> None:
    """ε₀ = .5, δ = 1e-6: clones of randomised response give .0204, a mechanism's own pair less."""
    found = shuffled([(guarantee, 1)], 10_000, "1e-6", inputs=inputs)
    assert 0.95 * most < found.epsilon <= most
    assert found.local == 0.5


def printed_epsilon(local: float, users: int, delta: float) -> float:
    """Feldman, McMillan and Talwar 2021, Theorem 3.1, for ε₀ <= ln(n / (16 ln(2/δ)))."""
    growth = math.exp(local)
    inside = 8 * math.sqrt(growth * math.log(4 / delta)) / math.sqrt(users) + 8 * growth / users
    return math.log1p((growth - 1) / (growth + 1) * inside)


@pytest.mark.slow
@settings(max_examples=8)
@given(st.sampled_from(["0.1", "0.5", "1", "2"]), st.integers(3, 9), st.sampled_from(["1e-4", "1e-6", "1e-12"]))
def test_shuffled_is_never_above_the_printed_bound(local: str, digits: int, delta: str) -> None:
    users = 10**digits
    found = shuffled([(Pure(local), 1)], users, delta).epsilon
    assert 0 <= found <= float(local)
    if float(local) <= math.log(users / (16 * math.log(2 / float(delta)))):
        assert found <= printed_epsilon(float(local), users, float(delta))


def test_shuffled_of_one_user_is_the_local_loss() -> None:
    """One user among one: δ(ε) of the pair itself."""
    pair = SymmetricPair(1, "0.3")
    bound = Crowd.of(pair, 1, 1, two_inputs=True).log_delta(0.5)
    exact = 0.3 * (math.exp(1) - math.exp(0.5)) / (1 + math.exp(1))
    assert exact <= math.exp(bound) <= exact * 1.01
    assert shuffled([(pair, 1)], 1, 0).epsilon == 1


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0, "1e-300"])
def test_shuffled_with_a_too_small_delta_is_the_local_loss(delta: Any) -> None:
    assert shuffled([(Pure(20), 1)], 50, delta).epsilon == 20


# -- several shuffles -----------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_shuffled_several_times_composes() -> None:
    """Two of three users' randomised responses, enumerated; every user gives the same answer twice."""
    rows = response(3, 2)
    pair = Pure(Decimal(3).ln() + Decimal("1e-27"))
    worst: dict[Fraction, Fraction] = {}
    for ratio in (Fraction(3, 2), Fraction(3)):
        for others in combinations_with_replacement(range(2), 2):
            laws = [together([rows[x], *(rows[other] for other in others)]) for x in range(2)]
            twice = [{(a, b): p * q for a, p in law.items() for b, q in law.items()} for law in laws]
            for p, q in permutations(twice, 2):
                worst[ratio] = max(worst.get(ratio, Fraction(0)), hockey_stick(p, q, ratio))
        found = shuffled([(pair, 2)], 3, float(worst[ratio]), inputs=2)
        assert found.epsilon >= math.log(ratio) * (1 - 1e-12)


# -- reports of several draws ---------------------------------------------------------------------------------


def of_draws(rows: Rows, draws: int) -> Rows:
    """The law of several independent draws, sent as one message."""
    return [[math.prod(chances) for chances in product(row, repeat=draws)] for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["randomised response", "three answers", "two bits"])
def test_shuffled_draws_of_one_message_are_never_below_the_truth(name: str) -> None:
    """Each draw had a shuffle of its own, though the draws of a report stay together."""
    rows, declared = CHANNELS[name]
    guarantee = declared or dominating_pair(rows)
    draws = 2 if len(rows[0]) > 2 else 3
    for ratio in (Fraction(3, 2), Fraction(5, 2), Fraction(5)):
        two_inputs = len(rows) == 2
        assert_never_below(of_draws(rows, draws), Copies(draws, guarantee), 3, ratio, two_inputs=two_inputs)


@pytest.mark.slow
def test_shuffled_report_of_five_draws_is_above_what_one_statistic_shows() -> None:
    """ε = 10 in 5 draws among 10,000 users: 0.271 was stated, and the number of messages of five ones shows 2.26."""
    users, delta = 10_000, 1e-6
    own, other = (mp.mpf(1) / (1 + mp.exp(sign)) for sign in (-2, 2))
    chance, kept, lied = other**5, own**5, other**5
    others = [mp.binomial(users - 1, k) * chance**k * (1 - chance) ** (users - 1 - k) for k in range(40)]
    laws = [[(1 - p) * b + p * a for a, b in zip([0, *others], others, strict=False)] for p in (kept, lied)]

    def shown(epsilon: float) -> Any:
        return sum(max(0, p - mp.exp(epsilon) * q) for p, q in zip(*laws, strict=True))

    lower = max(epsilon / 100 for epsilon in range(0, 1000, 2) if shown(epsilon / 100) > delta)
    assert lower >= 2.26
    mechanism = ldp_budget.mechanism("random-substitution").calibrate(epsilon=10, domain_size=2, draws=5)
    for inputs in (2, None):
        found = shuffled([(mechanism.guarantee, 1)], users, delta, inputs=inputs)
        assert lower <= found.epsilon <= found.local == pytest.approx(10)


@pytest.mark.slow
@pytest.mark.some(6)
@pytest.mark.parametrize(
    "guarantee",
    [
        Copies(2, Laplace(1)),
        Copies(3, FinitePair((("0.5", "0.25"), ("0.3", "0.5"), ("0.1", "0.05"), ("0.1", "0.2")))),
        Copies(2, Copies(2, SymmetricPair("0.5", "0.3"))),
        Copies(400, Pure("0.01")),
        Copies(2, Pure(40)),
        Copies(3, Pure(0)),
    ],
)
def test_shuffled_draws_lie_between_one_draw_and_any_report_of_their_loss(guarantee: Copies) -> None:
    inner: Guarantee = guarantee
    while isinstance(inner, Copies):
        inner = inner.of
    one, all_draws = (shuffled([(each, 1)], 10_000, "1e-6").epsilon for each in (inner, guarantee))
    loss = guarantee.loss()
    assert loss is not None
    assert one <= all_draws * (1 + 1e-5)
    assert all_draws <= shuffled([(Pure(loss[0]), 1)], 10_000, "1e-6").epsilon * (1 + 1e-5)


@pytest.mark.exhaustive
def test_shuffled_of_different_reports_composes() -> None:
    listed = [(Pure("0.5"), 20), (SymmetricPair("0.3", "0.4"), 30), (Pure(0), 5)]
    together = shuffled(listed, 10_000, "1e-6").epsilon
    apart = [shuffled([charge], 10_000, "5e-7").epsilon for charge in listed[:2]]
    assert max(apart) * 0.9 < together < sum(apart)
    assert shuffled([], 10_000, "1e-6").epsilon == shuffled([(Pure(0), 3)], 10_000, "1e-6").epsilon == 0


@pytest.mark.slow
def test_shuffled_never_exceeds_the_local_loss() -> None:
    for reports, users in ((1, 1), (1, 10), (3, 2)):
        exact = compose([(Pure(3), reports)], delta="1e-9", rule="exact").epsilon
        assert shuffled([(Pure(3), reports)], users, "1e-9").epsilon <= exact * (1 + 1e-2)


# -- what it is for -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_shuffled_counts_a_memoized_report_once() -> None:
    assert shuffled([(Memoised((1, 2), 3), 1)], 1000, "1e-6") == shuffled([(Pure(1), 1)], 1000, "1e-6")
    with pytest.raises(NotSupported, match="depend on each other"):
        shuffled([(Memoised((1, 2), 3), 2)], 1000, "1e-6")


@pytest.mark.parametrize(
    "guarantee",
    [
        Gaussian(1),
        Approximate(1, "1e-9"),
        ZeroConcentrated("0.1"),
        FinitePair(((1, Fraction(1, 2)), (0, Fraction(1, 2)))),
    ],
)
def test_shuffled_of_a_guarantee_that_is_not_pure_is_refused(guarantee: Guarantee) -> None:
    with pytest.raises(NotSupported, match=r"pure ε-LDP"):
        shuffled([(guarantee, 1)], 1000, "1e-6")


@pytest.mark.slow
def test_shuffled_of_a_mechanism_uses_its_pair() -> None:
    oue = ldp_budget.mechanism("oue").calibrate(epsilon="0.5", domain_size=10)
    assert shuffled([(oue.guarantee, 1)], 10_000, "1e-6").epsilon < 0.0141


MEMOISED = Memoised((1,), 1, 2, SAME_CHANGE_PATTERN)


@pytest.mark.parametrize(
    "charges",
    [
        [(MEMOISED, 2)],
        [(Copies(2, MEMOISED), 1)],
        [(Copies(1, Copies(3, MEMOISED)), 1)],
        [(MEMOISED, 1), (Pure(1), 1)],
        [(Pure("0.1"), 5), (Copies(1, MEMOISED), 1)],
        [(MEMOISED, 1), (Memoised((2,), 2), 1)],
    ],
)
def test_shuffled_memoized_repetitions_give_no_amplification(charges: list[tuple[Guarantee, int]]) -> None:
    with pytest.raises(NotSupported, match="depend on each other"):
        shuffled(charges, 1000, "1e-6")


@pytest.mark.parametrize("reports", [1, 2])
@pytest.mark.parametrize(
    "guarantee",
    [
        *(Pure(bound) for bound in ("65", "400", "750", "100000")),
        *(Laplace(bound) for bound in ("65", "400", "100000", "1e-300", "1e-21")),
        SymmetricPair("400", "0.5"),
        Pure("1e-300"),
    ],
)
def test_shuffled_beyond_doubles_is_the_local_loss(guarantee: Guarantee, reports: int) -> None:
    found = shuffled([(guarantee, reports)], 10**6, "1e-6")
    assert found.epsilon == found.local
    mixed = shuffled([(guarantee, reports), (Pure(1), 1)], 10**6, "1e-6")
    assert mixed.epsilon == mixed.local


@pytest.mark.slow
def test_shuffled_of_rare_differences_is_bounded() -> None:
    found = shuffled([(SymmetricPair("1", "1e-300"), 1)], 10**6, "1e-6")
    assert found.epsilon <= found.local == 1
