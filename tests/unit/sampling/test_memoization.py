"""Memoized words: the same secret, context and value give the same words; anything else gives others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ldp_budget
from ldp_budget import InvalidParameter
from ldp_budget.registry.collections import Collection
from ldp_budget.sampling.memoisation import LEAST_SECRET_BYTES, memo_words

SECRET = bytes(range(32))
VALUES = np.array([0, 1, -5, 2**62])


def secrets(count: int) -> list[bytes]:
    return [hashlib.sha256(b"user %d" % user).digest() for user in range(count)]


def test_words_never_change_between_versions() -> None:
    # Clients that come back with an old secret must find their old words.
    words = memo_words(SECRET, "context", np.array([7]), 2)
    length = (7).to_bytes(8, "little")
    text = b"ldp-budget memoised words 1" + length + b"context" + (32).to_bytes(8, "little") + SECRET + length
    assert words.tobytes() == hashlib.shake_256(text).digest(16)
    assert words.tolist() == [[259_115_478_054_036_491, 6_189_635_258_354_354_156]]


def test_words_depend_on_the_user_only() -> None:
    own = secrets(4)
    together = memo_words(own, "c", VALUES, 3)
    for place in range(4):
        alone = memo_words([own[place]], "c", VALUES[place : place + 1], 3)
        assert np.array_equal(alone[0], together[place])
    assert np.array_equal(memo_words(own[::-1], "c", VALUES[::-1], 3), together[::-1])


def test_words_of_one_secret_serve_all_values() -> None:
    assert np.array_equal(memo_words(SECRET, "c", VALUES, 3), memo_words([SECRET] * 4, "c", VALUES, 3))


def test_words_of_a_longer_draw_begin_with_the_shorter() -> None:
    assert np.array_equal(memo_words(SECRET, "c", VALUES, 9)[:, :4], memo_words(SECRET, "c", VALUES, 4))


@pytest.mark.parametrize(
    ("secret", "context", "value"),
    [(SECRET[::-1], "c", 1), (SECRET, "d", 1), (SECRET, "c", 2), (SECRET[:-1], "c", 1), (SECRET, "c" + chr(0), 1)],
    ids=["secret", "context", "value", "shorter secret", "longer context"],
)
def test_words_of_other_secrets_contexts_and_values_differ(secret: bytes, context: str, value: int) -> None:
    words = memo_words(SECRET, "c", np.array([1]), 4)
    assert not set(words[0].tolist()) & set(memo_words(secret, context, np.array([value]), 4)[0].tolist())


def test_words_separate_their_fields() -> None:
    one = memo_words(b"x" * 21, "c", np.array([1]), 1)
    other = memo_words(b"x" * 20, "cx", np.array([1]), 1)
    assert one != other


@pytest.mark.slow
def test_words_are_uniform_and_independent_across_users() -> None:
    words = memo_words(secrets(20_000), "c", np.ones(20_000, dtype=np.int64), 4)
    assert words.dtype == np.uint64
    # Every one of the 64 places is a fair coin, within 5 standard errors of 80,000 tosses.
    for place in range(64):
        ones = ((words >> np.uint64(place)) & np.uint64(1)).mean()
        assert abs(ones - 0.5) < 5 * 0.5 / 80_000**0.5
    neighbours = np.corrcoef(words[:-1, 0].astype(float), words[1:, 0].astype(float))[0, 1]
    assert abs(neighbours) < 5 / 20_000**0.5


@pytest.mark.parametrize(
    "wrong",
    [b"hunter2", [b"hunter2"] * 4, [SECRET] * 3, "hunter2hunter2hunter2", [SECRET, SECRET, SECRET, "hunter2"], 7],
    ids=["short", "short ones", "too few", "text", "text among them", "a number"],
)
def test_secret_malformed_is_refused_and_never_shown(wrong: object) -> None:
    with pytest.raises(InvalidParameter, match=f"secrets must be bytes.*of at least {LEAST_SECRET_BYTES} bytes") as e:
        memo_words(wrong, "c", VALUES, 1)
    assert "hunter2" not in str(e.value)


def test_labels_are_equal_for_equal_draws_of_one_secret_and_for_no_others() -> None:
    flips = ldp_budget.mechanism("d-bit-flip")(epsilon=1, buckets=5, bits=5, memoize=True)
    first, again, other = flips.labels([1, 1, 2], SECRET)
    assert first == again != other
    assert flips.labels([1], [secrets(1)[0]]) != [first]
    assert all(len(label) == 32 and label.isalnum() for label in (first, other))


def test_values_that_repeat_one_draw_have_one_label() -> None:
    mean = ldp_budget.mechanism("one-bit-mean")(epsilon=1, maximum=10, rounding=5, flip="0.2")
    values = np.linspace(0, 10, 50)
    memo, labels = mean.memoised(values, [SECRET] * 50), mean.labels(values, SECRET)
    assert len(set(labels)) == len(set(memo.tolist())) <= 3
    assert [labels.index(label) for label in labels] == [memo.tolist().index(cell) for cell in memo.tolist()]


def test_labels_of_two_mechanisms_do_not_show_whether_their_draws_are_equal() -> None:
    some, others = (
        ldp_budget.mechanism("d-bit-flip")(epsilon=epsilon, buckets=5, bits=5, memoize=True) for epsilon in (1, 2)
    )
    assert some.memoised([1], [SECRET]) == others.memoised([1], [SECRET])
    assert some.labels([1], SECRET) != others.labels([1], SECRET)


@pytest.mark.parametrize("collect", [Collection.randomize, Collection.labels], ids=["reports", "labels"])
def test_collections_of_one_mechanism_draw_and_label_separately(collect: Callable[..., Any]) -> None:
    kept = ldp_budget.mechanism("d-bit-flip")(epsilon=1, buckets=64, bits=64, memoize=True)
    week, again, year = (Collection(name, kept) for name in ("week", "week", "year"))
    values = np.arange(8)
    first = collect(week, values, secrets=[SECRET] * 8)
    assert np.array_equal(first, collect(again, values, secrets=SECRET))
    assert not any(
        np.array_equal(one, other) for one, other in zip(first, collect(year, values, secrets=SECRET), strict=True)
    )
