"""Every journal entry names the API key of its own item, however items are grouped in batches and transactions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.toy_store import ToyStore
from item_writers import BATCHES, write_all, writers_on

pytestmark = pytest.mark.slow


@given(batches=st.lists(BATCHES, min_size=1, max_size=4))
def test_entries_of_any_grouping_name_the_key_of_their_item(batches: list[Any]) -> None:
    write_all(writers_on(":memory:"), batches)


@settings(max_examples=6)
@given(batches=st.lists(BATCHES, min_size=1, max_size=2))
def test_entries_of_any_grouping_in_several_partitions_name_the_key_of_their_item(batches: list[Any]) -> None:
    write_all(writers_on(ToyStore(2)), batches)
