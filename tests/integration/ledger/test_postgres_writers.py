"""On PostgreSQL, every journal entry names the API key of its own item, however items are grouped."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from item_writers import WRITERS, Groups, write_all, writers_on
from ldp_budget.accounting.batch import FEW
from postgres_places import new_ledger

pytestmark = pytest.mark.usefixtures("own_keys")


@pytest.mark.parametrize("partitions", [1, 3])
def test_postgres_entries_of_any_grouping_name_the_key_of_their_item(partitions: int) -> None:
    groups: Groups = [(0, FEW - 1, None), (1, 3 * FEW, None), (2, FEW, "a note"), (0, 3 * FEW, None)]
    verbs = "batch", "each", "many", "reserve", "together"
    batches: list[Any] = [(verb, name, groups, mixed) for verb, name, mixed in product(verbs, WRITERS, (False, True))]
    write_all(writers_on(new_ledger(partitions)), batches)
