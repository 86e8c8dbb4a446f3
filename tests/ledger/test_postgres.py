"""The ledger's contract, kept by a real PostgreSQL with one, four and 64 lanes, and by the oldest that will do."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from ldp_budget.ledger._postgres import PostgresStore
from ldp_budget.ledger._postgres.promises import OLDEST
from ldp_budget.ledger.store import Hint, Rows
from ledger_contract import LedgerContract
from measured_contract import MeasuredContract
from postgres_places import OnServer

pytestmark = pytest.mark.usefixtures("own_keys")


@pytest.mark.slow
class TestOneLane(LedgerContract):
    @pytest.fixture
    def place(self) -> OnServer:
        return OnServer(1)


class TestFourLanes(LedgerContract):
    @pytest.fixture
    def place(self) -> OnServer:
        return OnServer(4)


@pytest.mark.slow
class TestManyLanes(LedgerContract):
    @pytest.fixture
    def place(self) -> OnServer:
        return OnServer(64)


@pytest.mark.slow
class TestTheOldestServer(LedgerContract):
    @pytest.fixture
    def place(self) -> OnServer:
        return OnServer(4, str(OLDEST // 10_000))


def test_a_transaction_may_be_content_with_the_lanes_that_nobody_holds() -> None:
    store = PostgresStore(OnServer(4).address, create=True)
    try:
        with ThreadPoolExecutor() as threads:

            def lock_two(lanes: Mapping[int, Rows]) -> tuple[list[int], list[int]]:
                some, other = (
                    # One after the other, or each may hold what the other would take.
                    threads.submit(store.run, sorted, wanted, Hint([], None, some=True)).result(10)
                    for wanted in ([1, 3, 2, 0], [3])
                )
                return list(some), list(other)

            assert store.run(lock_two, [0, 2]) == ([1, 3], [3])
            assert list(store.run(sorted, [3, 0], Hint([], None))) == [0, 3]
    finally:
        store.close()


class TestMeasuresInFourLanes(MeasuredContract):
    @pytest.fixture
    def place(self) -> OnServer:
        return OnServer(4)
