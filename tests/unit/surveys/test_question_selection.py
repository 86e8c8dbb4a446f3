"""Selection of questions: it follows its specification, is uniform, and depends on nothing but collection and name."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from itertools import combinations

import pytest
from scipy.special import gammaincc

from ldp_budget_surveys.questionnaires.question_selection import (
    SEED_BYTES,
    chosen_questions,
    mask_of,
    random_seed,
    seed_of,
)

KEY = bytes(range(32))


def hmac_sha256(key: bytes, message: bytes) -> bytes:
    """RFC 2104, written out: the oracle does not share code with the module."""
    key = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(each ^ 0x36 for each in key) + message).digest()
    return hashlib.sha256(bytes(each ^ 0x5C for each in key) + inner).digest()


def p_value(counts: list[int], expected: float) -> float:
    """The probability of a chi-square statistic at least as large."""
    statistic = sum((count - expected) ** 2 / expected for count in counts)
    return float(gammaincc((len(counts) - 1) / 2, statistic / 2))


def test_selection_follows_the_specification() -> None:
    seed = hmac_sha256(KEY, b"ldp-budget questions 1\nalice")
    assert seed_of(KEY, "alice") == seed
    ranked = sorted(range(10), key=lambda place: hmac_sha256(seed, bytes([place])))
    assert chosen_questions(seed, 10, 3) == tuple(sorted(ranked[:3]))


@pytest.mark.slow
def test_selection_is_uniform_over_subsets() -> None:
    users, subsets = 20_000, list(combinations(range(6), 2))
    found = Counter(chosen_questions(seed_of(KEY, f"user {number}"), 6, 2) for number in range(users))
    assert set(found) == set(subsets)
    assert p_value([found[each] for each in subsets], users / len(subsets)) > 0.001


@pytest.mark.slow
def test_selection_includes_questions_with_probability_k_of_m() -> None:
    users = 20_000
    found: Counter[int] = Counter()
    for number in range(users):
        found.update(chosen_questions(seed_of(KEY, str(number)), 8, 3))
    share = 3 / 8
    assert all(abs(found[each] - users * share) < 4 * math.sqrt(users * share * (1 - share)) for each in range(8))


@pytest.mark.slow
def test_selections_of_two_collections_are_independent() -> None:
    users, other = 20_000, bytes(32)
    pairs = Counter(
        (chosen_questions(seed_of(KEY, str(n)), 3, 1), chosen_questions(seed_of(other, str(n)), 3, 1))
        for n in range(users)
    )
    assert p_value([pairs[(a,), (b,)] for a in range(3) for b in range(3)], users / 9) > 0.001


def test_selection_is_the_same_however_the_name_was_typed() -> None:
    assert seed_of(KEY, " e\u0301lise\u00a0") == seed_of(KEY, "élise")
    assert seed_of(KEY, "Élise") != seed_of(KEY, "élise")


def test_selection_of_all_questions_selects_each() -> None:
    assert chosen_questions(random_seed(), 5, 5) == (0, 1, 2, 3, 4)


def test_random_seeds_differ() -> None:
    assert len({random_seed() for _ in range(100)}) == 100
    assert len(random_seed()) == SEED_BYTES


@pytest.mark.parametrize(("places", "mask"), [((), 0), ((0,), 1), ((1, 3), 10), ((63,), 1 << 63)])
def test_mask_has_a_bit_for_each_question(places: tuple[int, ...], mask: int) -> None:
    assert mask_of(places) == mask
