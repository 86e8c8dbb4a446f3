"""Memoized reports of histories that are equal at the same places respect their bound; others do not."""

from __future__ import annotations

import itertools
import math
import re
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import ldp_budget
from ldp_budget import Mechanism
from ldp_budget.guarantees import EQUAL_IN_SAME_PLACES, Memoised, are_equal_in_same_places
from ldp_budget.sampling import ONE
from ldp_budget_verify.law.all_outcomes import law_of_values

D_BIT_FLIP = ldp_budget.mechanism("d-bit-flip")(epsilon=1, buckets=4, bits=1, memoize=True)
EVERY_BIT = ldp_budget.mechanism("d-bit-flip")(epsilon=1, buckets=3, bits=3, memoize=True)
RAPPOR = ldp_budget.mechanism("rappor")(
    bits=2, hashes=1, cohorts=1, f="0.9", p="0.02", q="0.98", domain_size=5, seed=3
)
ONE_BIT_MEAN = ldp_budget.mechanism("one-bit-mean")(epsilon="0.1", maximum=1, rounding=1, flip="0.125")


@pytest.mark.parametrize(
    ("first", "second", "related"),
    [
        ("ABA", "CDC", True),
        ("ABA", "CDE", False),
        ("CDE", "ABA", False),
        ("AAB", "BBA", True),
        ("ABA", "ABB", False),
        ("ABC", "BCA", True),
        ("AB", "ABA", False),
        ("", "", True),
    ],
)
def test_equal_in_same_places_of_histories_is_correct(first: str, second: str, related: bool) -> None:
    assert are_equal_in_same_places(first, second) is related
    places = list(itertools.combinations(range(len(first)), 2))
    same = len(first) == len(second) and all((first[i] == first[j]) == (second[i] == second[j]) for i, j in places)
    assert same is related


def test_glossary_quotes_the_definition() -> None:
    page = Path(__file__).parents[3] / "docs" / "explanation" / "glossary.md"
    assert EQUAL_IN_SAME_PLACES in re.sub(r"\s+", " ", page.read_text(encoding="utf-8"))


def loss(one: dict[Any, Fraction], other: dict[Any, Fraction]) -> Decimal:
    """The largest ln P/Q either way, to sixty digits."""
    if one.keys() != other.keys():
        return Decimal("inf")
    ratio = max(max(one[row] / other[row], other[row] / one[row]) for row in one)
    context = Context(prec=60)
    return context.ln(context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))


def charged(made: Mechanism, history: Any) -> Decimal:
    """ε of a history of memoised values, by the curve of each."""
    guarantee = made.guarantee
    assert isinstance(guarantee, Memoised)
    counts = [list(history).count(value) for value in set(history)]
    return sum((guarantee.curve[min(n, len(guarantee.curve)) - 1] for n in counts), Decimal(0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "first", "related", "unrelated"),
    [
        (D_BIT_FLIP, (0, 1, 0), (2, 3, 2), (2, 3, 1)),
        (EVERY_BIT, (0, 1, 0), (2, 0, 2), (2, 0, 1)),
        (RAPPOR, (0, 0), (1, 1), (1, 2)),
    ],
    ids=["one bucket", "every bucket", "rappor"],
)
def test_memoised_reports_of_unrelated_histories_exceed_the_bound_of_related_ones(
    made: Mechanism, first: tuple[int, ...], related: tuple[int, ...], unrelated: tuple[int, ...]
) -> None:
    """(A, B, A) against (C, D, E) was called the same change pattern; there the loss is above what is charged."""
    assert are_equal_in_same_places(first, related)
    assert not are_equal_in_same_places(first, unrelated)
    program = made.client_program()
    own, same, other = (law_of_values(program, history) for history in (first, related, unrelated))
    assert 0 < loss(own, same) <= charged(made, first)
    assert loss(own, other) > charged(made, first)


# -- raw values of one-bit-mean --------------------------------------------------------------------------------------


def law_of_numbers(made: Any, history: list[float]) -> dict[tuple[int, ...], Fraction]:
    """Return the probability of the bits of a history, over the secret offset, the memoized bits and the flips."""
    parts = 1 << 20
    points = [round(value * parts) for value in history]
    turns = sorted({0, parts, *(-point % parts for point in points)})
    least, growth = made.thresholds
    flip = Fraction(made.flip)
    found = dict.fromkeys(itertools.product((0, 1), repeat=len(history)), Fraction(0))
    for low, high in itertools.pairwise(turns):
        cells = [(point + low) // parts for point in points]
        distinct = sorted(set(cells))
        for kept in itertools.product((0, 1), repeat=len(distinct)):
            ones = [Fraction(least + cell * growth, ONE) for cell in distinct]
            weight = math.prod(
                (one if bit else 1 - one for one, bit in zip(ones, kept, strict=True)), start=Fraction(1)
            )
            bits = dict(zip(distinct, kept, strict=True))
            for sent in found:
                same = [bit == bits[cell] for bit, cell in zip(sent, cells, strict=True)]
                shown = math.prod((1 - flip if each else flip for each in same), start=Fraction(1))
                found[sent] += Fraction(high - low, parts) * weight * shown
    assert sum(found.values()) == 1
    return found


def test_one_bit_mean_of_numbers_whose_cells_are_equal_in_the_same_places_keeps_its_bound() -> None:
    for first, second in (([0.2, 0.2], [0.9, 0.9]), ([0, 1, 0], [1, 0, 1]), ([0.3, 0.3, 0.3], [0.0, 0.0, 0.0])):
        assert ONE_BIT_MEAN.are_neighbours(first, second)  # type: ignore[attr-defined]
        found = loss(*(law_of_numbers(ONE_BIT_MEAN, history) for history in (first, second)))
        assert 0 < found <= charged(ONE_BIT_MEAN, first)


@pytest.mark.slow
def test_one_bit_mean_of_numbers_that_share_a_cell_for_some_offsets_exceeds_its_bound() -> None:
    """(.2, .3) and (.2, .9) change at the same moments as raw values: the loss depends on the flip, for every ε."""
    first, second = [0.2, 0.3] * 4, [0.2, 0.9] * 4
    assert are_equal_in_same_places(first, second)
    assert not ONE_BIT_MEAN.are_neighbours(first, second)  # type: ignore[attr-defined]
    most = 2 * ONE_BIT_MEAN.guarantee.cap  # type: ignore[attr-defined]
    assert loss(*(law_of_numbers(ONE_BIT_MEAN, history) for history in (first, second))) > 2 * most
