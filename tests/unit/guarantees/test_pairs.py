"""The dominating pair of a finite channel: as bad as the worst pair of inputs everywhere, and no worse."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_budget.guarantees import FinitePair
from ldp_budget.guarantees.dominating_pairs import dominating_pair, pair_below

# e^ε on a grid, exactly; 0 is where everything is delta.
ODDS = [Fraction(0), *(Fraction(n, 16) for n in range(1, 33)), *map(Fraction, (3, 5, 10, 100, 10**6))]

Row = tuple[Fraction, ...]


@st.composite
def channels(draw: st.DrawFn) -> list[Row]:
    """Two to four inputs, two to five outputs, with zeros and repeated rows."""
    outputs = draw(st.integers(2, 5))
    weights = st.lists(st.integers(0, 12), min_size=outputs, max_size=outputs).filter(any)
    rows = draw(st.lists(weights, min_size=2, max_size=4))
    return [tuple(Fraction(weight, sum(row)) for weight in row) for row in rows]


def delta(pairs: list[tuple[Fraction, Fraction]], odds: Fraction) -> Fraction:
    """The δ of the pair at e^ε = odds, by its definition: Σ max(0, P - e^ε·Q)."""
    return sum((max(Fraction(0), p - odds * q) for p, q in pairs), Fraction(0))


def worst(rows: list[Row], odds: Fraction) -> Fraction:
    """The δ of the worst ordered pair of inputs."""
    return max(delta(list(zip(p, q, strict=True)), odds) for p in rows for q in rows)


@pytest.mark.slow
@given(channels())
def test_pair_dominates_every_ordered_pair_and_is_no_worse_than_the_worst(rows: list[Row]) -> None:
    """At every ε its δ is the largest of theirs: not smaller, so it is safe, and not larger, so it is tight."""
    pair = dominating_pair(rows)
    for odds in ODDS:
        assert delta(list(pair.outcomes), odds) == worst(rows, odds)


@pytest.mark.slow
@given(channels())
def test_pair_outcomes_are_sorted_by_their_ratio(rows: list[Row]) -> None:
    """So it has no more outcomes than it needs, and the first holds all of δ."""
    outcomes = dominating_pair(rows).outcomes
    ratios = [p / (p + q) for p, q in outcomes]
    assert ratios == sorted(set(ratios), reverse=True)


@pytest.mark.slow
@settings(max_examples=40)
@given(channels(), st.randoms(use_true_random=False))
def test_pair_does_not_depend_on_the_order_of_inputs_and_outputs(rows: list[Row], random: object) -> None:
    columns = list(zip(*rows, strict=True))
    random.shuffle(columns)  # type: ignore[attr-defined]
    shuffled = list(zip(*columns, strict=True))
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert dominating_pair(shuffled) == dominating_pair(rows)


def test_pair_of_randomized_response_is_itself() -> None:
    three, one = Fraction(3, 4), Fraction(1, 4)
    assert dominating_pair([[three, one], [one, three]]) == FinitePair(((three, one), (one, three)))


def test_pair_of_equal_inputs_has_no_loss() -> None:
    uniform = [Fraction(1, 3)] * 3
    assert dominating_pair([uniform, uniform]) == FinitePair(((Fraction(1), Fraction(1)),))
    assert dominating_pair([uniform, uniform]).loss() == (0, 0)


def test_pair_of_inputs_sent_unchanged_is_unbounded() -> None:
    epsilon, lost = dominating_pair([[1, 0], [0, 1]]).loss()
    assert (epsilon, lost) == (0, 1)


def test_pair_of_rows_of_different_lengths_is_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        dominating_pair([[1, 0], [1]])


@pytest.mark.slow
@given(channels(), st.lists(st.integers(17, 159), max_size=6, unique=True))
def test_pair_from_bounds_dominates_in_either_order(rows: list[Row], slopes: list[int]) -> None:
    """Known at λ = 1, at some λ above and at one where nothing is left of H, it holds at every λ."""
    rows = [tuple((mass + Fraction(1, 8)) / (1 + Fraction(len(row), 8)) for mass in row) for row in rows]
    known = [Decimal(1), *(Decimal(slope) / 16 for slope in slopes)]
    bounds = [(slope, Decimal(float(worst(rows, Fraction(slope)))) + Decimal("1e-15")) for slope in known]
    pair = pair_below([*bounds, (Decimal(10), Decimal(0))])
    masses = list(pair.outcomes)
    for odds in ODDS:
        assert delta(masses, odds) >= worst(rows, odds)
        swapped = delta([(q, p) for p, q in masses], odds)
        assert delta(masses, odds) == swapped
    for slope, most in bounds:
        assert delta(masses, Fraction(slope)) <= Fraction(most) + Fraction(1, 10**9), (
            "and is no larger where it is known"
        )
    assert pair.loss()[1] == 0


@pytest.mark.parametrize("bounds", [[], [(1, "0.1")], [("0.5", "0.1"), (2, 0)], [(1, "0.5"), (3, 0), (4, "0.1")]])
def test_pair_from_bounds_without_a_largest_loss_is_refused(bounds: list[tuple[str, str]]) -> None:
    with pytest.raises(ValueError, match="bounds must be"):
        pair_below([(Decimal(slope), Decimal(most)) for slope, most in bounds])


def test_pair_from_bounds_of_no_loss_reveals_nothing() -> None:
    assert pair_below([(Decimal(1), Decimal(0))]) == FinitePair(((Fraction(1), Fraction(1)),))
