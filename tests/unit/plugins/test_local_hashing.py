"""Optimal local hashing with public functions: its variance, its estimates, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ldp_budget import mechanism
from ldp_budget.errors import InvalidParameter, NotSupported

Olh = mechanism("olh")


@pytest.mark.parametrize("epsilon", [1, 2, 4, 8])
def test_olh_variance_is_within_one_percent_of_the_optimum(epsilon: int) -> None:
    best = 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2
    assert best <= Olh(epsilon=epsilon).utility()["variance_per_user"] <= 1.01 * best
    rivals = {name: mechanism(name)(epsilon=epsilon, hashes=64, width=1024) for name in ("cms", "hcms")}
    assert all(rival.utility()["variance_per_user"] > 1.05 * best for rival in rivals.values())


def test_olh_estimates_texts_as_far_off_as_it_says() -> None:
    made, words = Olh(epsilon=2, seed=3), ["tea", "coffee", "water"]
    counts = np.array([12_000, 5_000, 0])
    reports = made.randomize(["tea"] * 12_000 + ["coffee"] * 5_000, rng=4)
    found = made.estimate(reports, candidates=words)
    assert np.abs((found.counts - counts) / found.std_errors).max() < 4.5
    low, high = found.interval(0.999)
    assert ((low <= counts) & (counts <= high)).all()
    parts = made.aggregate(reports[:9000]).merge(made.aggregate(reports[9000:]))
    assert (made.estimate(parts, candidates=words).counts == found.counts).all()


def test_olh_of_listed_answers_counts_all_of_them() -> None:
    made = Olh(epsilon=3, domain_size=40, functions=500)
    reports = made.randomize(np.repeat(np.arange(40), 100), rng=1)
    assert made.estimate(reports).counts.shape == (40,)
    assert made.report_bits == 14


@pytest.mark.parametrize(
    "wrong", [{"cells": 1}, {"functions": 0}, {"functions": 2**20, "cells": 2**10}, {"hashes": 4}]
)
def test_olh_refuses_tables_that_are_too_large(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidParameter):
        Olh(epsilon=1, **wrong)


def test_olh_refuses_reports_that_no_client_sends() -> None:
    made = Olh(epsilon=1, functions=300)
    for rows in ([[44, 1, 0]], [[0, 0, 4]], [[0, 0]]):
        with pytest.raises(NotSupported):
            made.check_reports(np.array(rows, np.uint8))
