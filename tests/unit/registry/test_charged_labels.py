"""A service charges reports that hide what they repeat without labels, unless the collection asks for labels."""

from __future__ import annotations

from typing import Any

import pytest

import ldp_budget
from ldp_budget import Accountant, InvalidParameter
from ldp_budget.errors import NameTaken
from ldp_budget.registry.collections import Collection, collection_of

LOLOHA = {"epsilon_lifetime": 2, "epsilon_first": 1, "domain_size": 9, "seed": 1}
BLOOM = {"bits": 16, "hashes": 1, "cohorts": 2, "epsilon": 1, "epsilon_lifetime": 2, "seed": 1}
FLIP = {"epsilon": 1, "buckets": 4, "bits": 4, "memoize": True}


def made(name: str, options: dict[str, Any], *, with_labels: bool = False) -> Collection:
    return collection_of("word", ldp_budget.mechanism(name), options, with_labels=with_labels)


@pytest.mark.parametrize(("name", "options"), [("loloha", LOLOHA), ("rappor", BLOOM)])
def test_label_of_reports_that_hide_what_repeats_is_dropped_unless_the_collection_asks(
    name: str, options: dict[str, Any]
) -> None:
    without, asking = made(name, options), made(name, options, with_labels=True)
    assert without.label_to_charge("x") is None
    assert asking.label_to_charge("x") == "x"
    assert asking.label_to_charge(None) is None
    assert "labels" not in without.to_json()
    assert "labels" not in without.definition()
    assert asking.definition()["labels"] is asking.to_json()["labels"] is True
    assert asking.definition()["digest"] != without.definition()["digest"]
    assert Collection.from_json(asking.to_json()) == asking != without


def test_label_of_reports_that_show_what_repeats_is_charged() -> None:
    assert made("d-bit-flip", FLIP).label_to_charge("x") == "x"
    with pytest.raises(InvalidParameter, match="labels must be left out"):
        made("d-bit-flip", FLIP, with_labels=True)


def test_add_collection_with_other_labels_is_another_definition() -> None:
    with Accountant(":memory:") as accountant:
        accountant.add_collection(made("loloha", LOLOHA))
        with pytest.raises(NameTaken):
            accountant.add_collection(made("loloha", LOLOHA, with_labels=True))
