"""Collections of ticks: answers in words, the public definition, and named estimates."""

from __future__ import annotations

import pytest

from ldp_budget import mechanism
from ldp_budget.errors import InvalidParameter, OutsideDomain
from ldp_budget.registry.collections import Collection, collection_of
from ldp_budget.sdk.tick_sets import ticks_in

NAMES = ("bus", "train", "car", "bicycle, own", "on foot")
TRANSPORT = collection_of("transport", mechanism("ticks"), {"epsilon": 2, "at_most": 2}, NAMES)


@pytest.mark.parametrize(
    ("answer", "ticks"),
    [
        ("bus; train", [0, 1]),
        ("bus;train", [0, 1]),
        (" train , bus ", [0, 1]),
        ("bus train", [0, 1]),
        ("bicycle, own;on foot", [3, 4]),
        ("bicycle, own", [3]),
        ("on foot", [4]),
        ("bus;", [0]),
        ("none", []),
        ("None", []),
        (["train", "bus"], [0, 1]),
        ([], []),
    ],
    ids=str,
)
def test_answer_in_words_is_its_set(answer: object, ticks: list[int]) -> None:
    assert sorted(ticks_in(answer, NAMES)) == ticks


def test_none_that_is_an_option_is_that_option() -> None:
    assert ticks_in("None", ("None", "some")) == [0]


@pytest.mark.parametrize("answer", ["plane", "bus; plane", "", " ", ";", "bus;train;car", "bus;bus"])
def test_collection_of_ticks_refuses_answers_that_are_no_set(answer: str) -> None:
    with pytest.raises(OutsideDomain, match="position 1"):
        TRANSPORT.read_values(["bus", answer])


def test_collection_of_ticks_names_options_and_the_most_ticks() -> None:
    definition = TRANSPORT.definition()
    assert (definition["answers"], definition["at_most"]) == (list(NAMES), 2)
    assert definition["input"] == {"kind": "answer", "count": 16, "text": False}
    again = Collection.from_json(TRANSPORT.to_json())
    assert (again, again.definition()) == (TRANSPORT, definition)


def test_collection_of_ticks_estimates_by_option() -> None:
    values = TRANSPORT.read_values(["bus; train", "car", "none"] * 500)
    found = TRANSPORT.estimate(TRANSPORT.mechanism.randomize(values, rng=1))
    assert found.answers == NAMES
    assert abs(found.counts - [500, 500, 500, 0, 0]).max() < 5 * found.std_errors.max()


def test_collection_of_ticks_needs_a_name_for_each_option() -> None:
    with pytest.raises(InvalidParameter, match="5 names"):
        Collection("transport", TRANSPORT.mechanism, ("bus", "train"))
