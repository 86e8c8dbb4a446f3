"""Shuffled reports, enumerated: the law of every multiset of reports, in fractions."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, permutations
from typing import Any

Rows = list[list[Fraction]]
Law = dict[Any, Fraction]


def together(rows: list[list[Fraction]]) -> Law:
    """The law of the histogram of one report from each of `rows`."""
    law: Law = {(0,) * len(rows[0]): Fraction(1)}
    for row in rows:
        longer: Counter[Any] = Counter()
        for histogram, chance in law.items():
            for answer, p in enumerate(row):
                if p:
                    longer[(*histogram[:answer], histogram[answer] + 1, *histogram[answer + 1 :])] += chance * p
        law = dict(longer)
    return law


def hockey_stick(first: Law, second: Law, ratio: Fraction) -> Fraction:
    return sum((max(Fraction(0), p - ratio * second.get(o, Fraction(0))) for o, p in first.items()), Fraction(0))


def central_delta(rows: Rows, users: int, ratio: Fraction) -> Fraction:
    """The largest δ at e^ε = `ratio` over the inputs of all users."""
    worst = Fraction(0)
    for others in combinations_with_replacement(range(len(rows)), users - 1):
        laws = [together([row, *(rows[other] for other in others)]) for row in rows]
        worst = max(worst, *(hockey_stick(p, q, ratio) for p, q in permutations(laws, 2)))
    return worst
