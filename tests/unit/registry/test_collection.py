"""Collections: one definition agreed by clients and server; the domain is declared, never taken from the data."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import ldp_budget
from ldp_budget import InvalidParameter, OutsideDomain
from ldp_budget.registry.collections import Collection, check_categories
from ldp_budget.sdk.domain import Categories, Interval

OUE = ldp_budget.mechanism("oue")(epsilon=1, domain_size=3)
AGE = ldp_budget.mechanism("gaussian")(epsilon=1, delta="1e-6", lower=0, upper=120)
PARTIES = ("left", "centre", "right")


# -- the set-up ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made",
    [Collection("poll", OUE, PARTIES), Collection("poll", OUE), Collection("age", AGE), Collection("ü x", OUE)],
)
def test_collection_round_trips_through_json(made: Collection) -> None:
    twin = Collection.from_json(json.loads(json.dumps(made.to_json())))
    assert twin == made
    assert twin.fingerprint == made.fingerprint


def test_fingerprint_covers_the_meaning_and_not_the_spelling() -> None:
    made = Collection("poll", OUE, PARTIES)
    same = Collection("poll", ldp_budget.mechanism("optimized-unary-encoding")(epsilon="1.0", domain_size=3), PARTIES)
    assert same.fingerprint == made.fingerprint
    others = [
        Collection("pool", OUE, PARTIES),
        Collection("poll", OUE.replace(epsilon=2), PARTIES),
        Collection("poll", OUE, ("centre", "left", "right")),
        Collection("poll", OUE),
    ]
    assert len({other.fingerprint for other in [made, *others]}) == 5


@pytest.mark.parametrize(
    "change",
    [
        {"name": "pool"},
        {"declared": {"domain_size": 3, "epsilon": "9"}},
        {"mechanism": "sue"},
        {"categories": ["left", "right", "centre"]},
        {"fingerprint": "00"},
        {"version": 2},
        {"format": "something else"},
    ],
)
def test_definition_changed_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"does not match its fingerprint|not a ldp-budget collection of version 1"):
        Collection.from_json({**Collection("poll", OUE, PARTIES).to_json(), **change})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Collection("", OUE), "name must be a string of at least one character, without a colon"),
        (lambda: Collection("a:b", OUE), "without a colon: got 'a:b'"),
        (
            lambda: Collection("poll", OUE, ("a", "b")),
            "categories must be 3 names, one for each answer of oue: got 2 names",
        ),
        (lambda: Collection("poll", OUE, ("a", "b", "b")), "at least two distinct, non-empty names: got 'b' 2 times"),
        (lambda: Collection("poll", OUE, ("a", "b", "")), "at least two distinct, non-empty names"),
        (
            lambda: Collection("age", AGE, ("a", "b")),
            "left out, because the answers of gaussian are numbers: got a, b",
        ),
        (lambda: check_categories(["only"]), "at least two distinct"),
        (lambda: check_categories([]), "at least two distinct"),
    ],
)
def test_collection_with_invalid_values_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        make()


# -- answers as text -----------------------------------------------------------------------------------------


def test_categories_are_read_by_name_and_named_in_answers() -> None:
    poll = Collection("poll", OUE, PARTIES)
    assert poll.read_values(["right", "left", "right"]).tolist() == [2, 0, 2]
    assert poll.answer_names(3) == list(PARTIES)
    assert Collection("poll", OUE).answer_names(3) == ["0", "1", "2"]


# -- answers as arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        [0, 1, 2],
        (0.0, 1.0, 2.0),
        np.array([0, 1, 2], np.uint8),
        np.array([0, 1, 2], np.float32),
        np.array([0, 1, 2], object),
    ],
)
def test_randomize_accepts_any_number_type(values: Any) -> None:
    assert Categories(3).check(values).tolist() == [0, 1, 2]
    assert Interval(Decimal(0), Decimal(2)).check(values).tolist() == [0.0, 1.0, 2.0]


def test_randomize_is_all_or_nothing() -> None:
    for mechanism, values in ((OUE, [0, 1, 3]), (AGE, [0, 1, 121]), (AGE, [0, math.nan])):
        with pytest.raises(OutsideDomain):
            mechanism.randomize(values)


# -- packed reports ------------------------------------------------------------------------------------------
