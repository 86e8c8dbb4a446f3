"""Every journal entry names the API key of its own item, however items are grouped in batches and transactions."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from item_writers import BATCHES, Groups, check_writers, write, write_all, writers_on
from ldp_budget import LedgerError
from ldp_budget.accounting.batch import FEW
from ldp_budget.ledger.write_queue import Work, run_each
from ledger_inside import ledger_of
from toy_store import ToyStore


@pytest.mark.slow
@given(batches=st.lists(BATCHES, min_size=1, max_size=4))
def test_entries_of_any_grouping_name_the_key_of_their_item(batches: list[Any]) -> None:
    write_all(writers_on(":memory:"), batches)


@pytest.mark.slow
@settings(max_examples=6)
@given(batches=st.lists(BATCHES, min_size=1, max_size=2))
def test_entries_of_any_grouping_in_several_partitions_name_the_key_of_their_item(batches: list[Any]) -> None:
    write_all(writers_on(ToyStore(2)), batches)


def test_batch_of_few_lines_and_many_alike_lines_names_its_key_in_all_entries() -> None:
    writers = writers_on(":memory:")
    groups: Groups = [(0, FEW - 1, None), (1, FEW, None), (2, FEW - 1, None), (0, FEW, "a note")]
    check_writers(writers, write(writers, "batch", "of-a", groups, False, count()))
    writers.accountant.close()


def test_function_that_fails_keeps_the_writer_of_the_work_around_it() -> None:
    writers = writers_on(":memory:")
    seen = []

    def fail(transaction: Any) -> None:
        raise LedgerError("a ledger", f"by {transaction.by}")

    def work(transaction: Any) -> None:
        (error,) = run_each({0: transaction}, [Work(fail, 0, 7)])
        assert "by 7" in str(error)
        seen.append(transaction.by)

    ledger_of(writers.acting("plain")).run(work)
    assert seen == [writers.callers["plain"].number]
    writers.accountant.close()
