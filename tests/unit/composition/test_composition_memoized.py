"""All reports of one memoized question: they cost at most so many values at their cap, in every order."""

from __future__ import annotations

import itertools
import math
import random
from decimal import Decimal
from fractions import Fraction

import pytest

import ldp_budget
from exact_numbers import hockey_stick
from ldp_budget import compose
from ldp_budget.composition.rules import of_one_question
from ldp_budget.guarantees import ANY_INPUTS, SAME_CHANGE_PATTERN, Guarantee, Memoised, Pure

CURVE = (Decimal("0.2"), Decimal("0.3"))
MEMOISED = Memoised(CURVE, Decimal("0.5"), 3, SAME_CHANGE_PATTERN)


@pytest.mark.parametrize("rule", ["basic", "zcdp", "gdp", "renyi", "exact"])
@pytest.mark.parametrize("reports", [1, 2, 3])
def test_few_memoized_reports_cost_their_sum(reports: int, rule: str) -> None:
    assert of_one_question(MEMOISED, reports, rule) == (MEMOISED, reports)


def test_many_memoized_reports_cost_all_values_at_their_cap() -> None:
    whole = Memoised((Decimal("0.5"),), Decimal("0.5"), 3, SAME_CHANGE_PATTERN)
    for rule in ("zcdp", "gdp", "renyi", "exact"):
        assert of_one_question(MEMOISED, 4, rule) == (whole, 3)
    # Seven first reports cost 1.4, which is less than three caps; eight do not.
    assert of_one_question(MEMOISED, 7, "basic") == (MEMOISED, 7)
    assert of_one_question(MEMOISED, 8, "basic") == (whole, 3)
    assert compose([of_one_question(MEMOISED, 10**6, "basic")], delta=0).epsilon == 1.5
    assert compose([of_one_question(MEMOISED, 10**6, "basic")], delta=0).relation == SAME_CHANGE_PATTERN
    exact = compose([of_one_question(MEMOISED, 10**6, "exact")], delta="1e-3", rule="exact")
    assert exact.epsilon == compose([(Pure("0.5"), 3)], delta="1e-3", rule="exact").epsilon


@pytest.mark.parametrize("promise", [Pure(1), Memoised(CURVE, Decimal("0.5"), None, ANY_INPUTS)])
def test_memoized_reports_without_a_number_of_values_cost_their_sum(promise: Guarantee) -> None:
    assert of_one_question(promise, 100, "basic") == (promise, 100)


def test_memoized_charges_of_several_questions_cost_their_sum() -> None:
    """Two questions may well have equal guarantees, so a list says what each of its reports costs as a new value."""
    assert compose([(MEMOISED, 10), (MEMOISED, 10)], delta=0).epsilon == 4.0
    assert compose([(MEMOISED, 20)], delta=0).epsilon == 4.0


# -- the truth -------------------------------------------------------------------------------------------------

ONE = Fraction(3, 5)  # a kept bit is one with 3/5 for some values and 2/5 for others: e^cap = 3/2
FLIP = Fraction(1, 10)
CELLS = 2
REPORTS = 4


class Strategy:
    """Two histories of cells, each next pair chosen by what was reported so far, that change at the same moments."""

    def __init__(self, source: random.Random) -> None:
        self.chosen: dict[tuple[int, ...], tuple[int, int]] = {}
        for length in range(REPORTS):
            for seen in itertools.product((0, 1), repeat=length):
                known = {self.chosen[seen[:place]] for place in range(length)}
                left = [cell for cell in range(CELLS) if cell not in {own for own, _ in known}]
                right = [cell for cell in range(CELLS) if cell not in {other for _, other in known}]
                self.chosen[seen] = source.choice([*known, *itertools.product(left, right)])

    def law(self, side: int, chances: dict[int, Fraction]) -> dict[tuple[int, ...], Fraction]:
        """Return the probability of each run of reports for one of the two histories."""
        found = dict.fromkeys(itertools.product((0, 1), repeat=REPORTS), Fraction(0))
        for kept in itertools.product((0, 1), repeat=CELLS):
            weight = math.prod((chances[cell] if bit else 1 - chances[cell] for cell, bit in enumerate(kept)))
            for run in found:
                same = [run[place] == kept[self.chosen[run[:place]][side]] for place in range(REPORTS)]
                found[run] += weight * math.prod(1 - FLIP if each else FLIP for each in same)
        return found


@pytest.mark.slow
def test_memoized_values_chosen_adaptively_cost_at_most_their_caps() -> None:
    """Four reports of two kept bits, by random strategies, against two independent bits without a flip."""
    bit = [(ONE, 1 - ONE), (1 - ONE, ONE)]
    caps = [(p * r, q * s) for (p, q), (r, s) in itertools.product(bit, bit)]
    source, most = random.Random(5), Fraction(0)
    for _ in range(60):
        strategy = Strategy(source)
        chances = {cell: source.choice([ONE, 1 - ONE]) for cell in range(CELLS)}
        first, second = strategy.law(0, chances), strategy.law(1, chances)
        assert sum(first.values()) == sum(second.values()) == 1
        pairs = [(first[run], second[run]) for run in first]
        most = max(most, max(p / q for p, q in pairs))
        for odds in {p / q for p, q in (*pairs, *caps)}:
            assert hockey_stick(pairs, odds) <= hockey_stick(caps, odds)
    assert ONE / (1 - ONE) < most <= (ONE / (1 - ONE)) ** 2, "some lose more than one cap, and none more than two"


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_memoized_values_of_the_kept_buckets_cost_at_most_their_caps(bits: int) -> None:
    """Three values in turn against the same ones in another order: each value's bits at its own bucket reveal it."""
    made = ldp_budget.mechanism("d-bit-flip")(epsilon=1, buckets=3, bits=bits, memoize=True).guarantee
    assert isinstance(made, Memoised)
    assert made.values is not None
    half = Fraction(3, 2)  # e^{ε/2}
    cap = half if bits == 1 else half**2
    once = [(cap / (1 + cap), 1 / (1 + cap)), (1 / (1 + cap), cap / (1 + cap))]
    caps = [
        (math.prod(p for p, _ in each), math.prod(q for _, q in each))
        for each in itertools.product(once, repeat=made.values)
    ]
    bit = [(half / (1 + half), 1 / (1 + half)), (1 / (1 + half), half / (1 + half))]
    histories = [(own, own) for own in range(3)], [(own, (own + 1) % 3) for own in range(3)]
    for history in histories:
        drawn = list(itertools.combinations(range(3), bits))
        pairs = []
        for buckets in drawn:
            # Its own bucket says yes to the first history, and that of the other value to the second.
            telling = sum((own in buckets) + (other in buckets) for own, other in history if own != other)
            for run in itertools.product(bit, repeat=telling):
                share = Fraction(1, len(drawn))
                pairs.append((share * math.prod(p for p, _ in run), share * math.prod(q for _, q in run)))
        for odds in {p / q for p, q in (*pairs, *caps)}:
            assert hockey_stick(pairs, odds) <= hockey_stick(caps, odds)
