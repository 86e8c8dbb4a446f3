"""Collections: one definition agreed by clients and server; the domain is declared, never taken from the data."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ldp_budget
from ldp_budget import InvalidParameter, NotSupported, OutsideDomain
from ldp_budget.registry.collections import Collection, check_categories
from ldp_budget.sdk.domain import Categories, Interval
from ldp_budget.sdk.interpreter import column_sums

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


def test_definition_of_an_unknown_mechanism_names_it() -> None:
    with pytest.raises(NotSupported, match="needs the mechanism nothing, which no installed plugin provides"):
        Collection.from_json({**Collection("poll", OUE).to_json(), "mechanism": "nothing"})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Collection("", OUE), "name must be a string of at least one character, without a colon"),
        (lambda: Collection("a:b", OUE), "without a colon: got 'a:b'"),
        (
            lambda: Collection("poll", OUE, ("a", "b")),
            "categories must be 3 names, one for each answer of oue: got 2 names",
        ),
        (
            lambda: Collection("poll", OUE, ("a", "b", "b")),
            "at least two distinct, non-empty names: got 'b' 2 times",
        ),
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


def test_collection_of_many_categories_is_checked_in_linear_time() -> None:
    """Not a question of seconds: counting each among all would take hours."""
    check_categories([str(number) for number in range(100_000)])


# -- answers as text -----------------------------------------------------------------------------------------


def test_categories_are_read_by_name_and_named_in_answers() -> None:
    poll = Collection("poll", OUE, PARTIES)
    assert poll.read_values(["right", "left", "right"]).tolist() == [2, 0, 2]
    assert poll.answer_names(3) == list(PARTIES)
    assert Collection("poll", OUE).answer_names(3) == ["0", "1", "2"]


@pytest.mark.parametrize("text", ["Left", "le ft", "", "0", "centre-left", "nan"])
def test_read_of_an_unknown_category_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(OutsideDomain) as caught:
        Collection("poll", OUE, PARTIES).read_values(["left", text])
    assert (caught.value.position, caught.value.found) == (1, text)
    assert "left, centre, right" in str(caught.value)


@pytest.mark.parametrize("text", ["3", "-1", "1.5", "", "left", "nan", "inf", "1e0", "9" * 400, "9" * 5000])
def test_read_of_an_invalid_code_is_refused(text: str) -> None:
    with pytest.raises(OutsideDomain) as caught:
        Collection("poll", OUE).read_values(["2", text])
    assert caught.value.position == 1
    assert "whole numbers from 0 to 2" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["-0.001", "120.5", "nan", "NaN", "inf", "-inf", "1e999", "", "old", "12,5", "9" * 400]
)
def test_read_of_a_number_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(OutsideDomain) as caught:
        Collection("age", AGE).read_values(["0", "120", "1e1", text])
    assert caught.value.position == 3
    assert "numbers from 0 to 120" in str(caught.value)


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


def test_randomize_accepts_booleans_for_two_categories() -> None:
    assert Categories(2).check([True, False]).tolist() == [1, 0]


@given(st.lists(st.integers(-5, 12) | st.floats(allow_nan=True), max_size=8))
def test_randomize_of_an_array_is_refused_at_its_first_invalid_value(values: list[float]) -> None:
    strangers = [place for place, value in enumerate(values) if not (0 <= value < 7 and value == math.floor(value))]
    if strangers:
        with pytest.raises(OutsideDomain) as caught:
            Categories(7).check(values)
        assert caught.value.position == strangers[0]
        assert caught.value.found == pytest.approx(values[strangers[0]], nan_ok=True)
    else:
        assert Categories(7).check(values).tolist() == values


STRANGERS = [
    [0, 7],
    [0, -1],
    [0, math.nan],
    [0, math.inf],
    [0, 10**400],
    [0, -(10**400)],
    [0, None],
    [0, "1"],
    ["1", "0"],
    [0, 1 + 0j],
    np.array([0, True], object),
    np.array([0, 2**63], np.uint64),
    np.array([0, 1], "m8[ns]"),
    np.array([0, 1], "M8[ns]"),
    [[0, 1]],
    [[0], [1, 2]],
    0,
    "01",
    None,
]


@pytest.mark.parametrize("values", [[0, 0.5], *STRANGERS])
def test_randomize_of_invalid_answers_is_refused(values: Any) -> None:
    with pytest.raises(OutsideDomain, match="whole numbers from 0 to 6"):
        Categories(7).check(values)


@pytest.mark.parametrize("values", STRANGERS)
def test_randomize_of_numbers_out_of_range_is_refused(values: Any) -> None:
    with pytest.raises(OutsideDomain, match="numbers from 0 to 6"):
        Interval(Decimal(0), Decimal(6)).check(values)


def test_randomize_of_no_answers_returns_no_reports() -> None:
    assert Categories(7).check([]).tolist() == []
    assert Interval(Decimal(0), Decimal(1)).check([]).tolist() == []


def test_randomize_is_all_or_nothing() -> None:
    for mechanism, values in ((OUE, [0, 1, 3]), (AGE, [0, 1, 121]), (AGE, [0, math.nan])):
        with pytest.raises(OutsideDomain):
            mechanism.randomize(values)


# -- packed reports ------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.integers(1, 40), st.integers(0, 30), st.randoms(use_true_random=False))
def test_column_sums_count_the_bits(columns: int, rows: int, random: Any) -> None:
    bits = np.array([[random.getrandbits(1) for _ in range(columns)] for _ in range(rows)], np.uint8)
    packed = np.packbits(bits.reshape(rows, columns), axis=1, bitorder="little")
    assert column_sums(packed, columns).tolist() == bits.reshape(rows, columns).sum(axis=0).tolist()


def test_column_sums_of_more_rows_than_a_block() -> None:
    assert column_sums(np.full((2_100_000, 1), 5, np.uint8), 3).tolist() == [2_100_000, 0, 2_100_000]


@pytest.mark.parametrize(
    ("reports", "said"),
    [
        (np.zeros((2, 2), np.uint8), r"uint8 of shape \(n, 1\): got uint8 of shape \(2, 2\)"),
        (np.zeros((2, 1), np.int64), "got int64"),
        (np.zeros(2, np.uint8), r"got uint8 of shape \(2,\)"),
        (np.array([[8]], np.uint8), "packed reports must have 3 bits: got padding bits that are set"),
    ],
)
def test_column_sums_of_malformed_reports_are_refused(reports: Any, said: str) -> None:
    with pytest.raises(NotSupported, match=said):
        column_sums(reports, 3)
