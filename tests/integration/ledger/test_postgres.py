"""The ledger's contract on PostgreSQL with 1, 4 and 64 partitions, on the oldest supported version, and on Citus."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from citus_servers import OnCluster
from contract import StoreContract
from contract.measures import MeasuredContract
from ldp_budget.ledger.storage import Prefetch
from ldp_budget_postgres import PostgresStore
from ldp_budget_postgres.pool import OLDEST
from postgres_places import Emptied, OnServer

pytestmark = pytest.mark.usefixtures("own_keys")


@pytest.mark.exhaustive
class TestOnePartition(StoreContract):
    @pytest.fixture
    def place(self) -> Emptied:
        return Emptied(1)


class TestCentral:
    """Of the contract, at least one test for each thing that the server is asked for; in two partitions."""

    threads_with_one_key = StoreContract.threads_with_one_key
    test_limits = StoreContract.test_spend_is_granted_exactly_as_often_as_it_fits
    test_refusals = StoreContract.test_refusal_changes_nothing_but_its_key
    test_windows = StoreContract.test_spend_charges_every_window_or_none_and_a_new_window_starts_empty
    test_new_periods = StoreContract.test_new_period_is_backfilled_from_the_journal
    test_curves = StoreContract.test_memoized_reports_cost_along_their_curve
    test_keys = StoreContract.test_idempotency_key_identifies_one_request
    test_failures = StoreContract.test_failure_stores_nothing_under_its_key
    test_reservations = StoreContract.test_reservation_ends_once
    test_clocks = StoreContract.test_clock_repair_allows_spends_and_restores_no_budget
    test_plans = StoreContract.test_plan_admits_its_reports_in_any_order_and_not_one_more
    test_bulk = StoreContract.test_batch_equals_single_spends
    test_bulk_runs = StoreContract.test_batch_under_a_key_is_charged_once
    test_erasure = StoreContract.test_erased_user_is_forgotten_and_gets_no_fresh_budget
    test_threads = StoreContract.test_threads_are_granted_exactly_the_limit
    test_threads_with_one_key = StoreContract.test_threads_with_one_key_get_one_charge
    test_heads = StoreContract.test_verify_finds_an_earlier_head
    test_notes = StoreContract.test_note_is_erased_with_its_user
    test_notes_of_any_kind = StoreContract.test_note_accepts_any_text
    test_many_balances = StoreContract.test_balances_of_many_equal_those_of_each
    test_names = StoreContract.test_journal_of_listed_users_names_them
    test_open_reservations = StoreContract.test_reservations_open_are_listed
    test_records = StoreContract.test_record_after_an_unknown_record_is_refused
    test_callers = StoreContract.test_entries_have_the_key_of_their_writer
    test_callers_together = StoreContract.test_callers_in_one_transaction_are_kept_separate
    test_shares = StoreContract.test_spend_with_a_share_must_fit_the_share_and_the_limit
    test_sliding = StoreContract.test_sliding_limit_counts_the_open_day_and_those_before
    test_scopes = StoreContract.test_scoped_limit_counts_its_tag_and_charges_without_tags
    test_closing = StoreContract.test_close_and_reopen_loses_nothing

    @pytest.fixture
    def place(self) -> Emptied:
        return Emptied(2)


class TestCentralOnNodes(TestCentral):
    @pytest.fixture
    def place(self) -> OnCluster:  # type: ignore[override]
        return OnCluster(4)


@pytest.mark.exhaustive
class TestNodes(StoreContract):
    @pytest.fixture
    def place(self) -> OnCluster:
        return OnCluster(8)


@pytest.mark.exhaustive
class TestFourPartitions(StoreContract):
    @pytest.fixture
    def place(self) -> Emptied:
        return Emptied(4)


@pytest.mark.exhaustive
class TestManyPartitions(StoreContract):
    @pytest.fixture
    def place(self) -> Emptied:
        return Emptied(64)


@pytest.mark.exhaustive
class TestTheOldestServer(StoreContract):
    @pytest.fixture
    def place(self) -> Emptied:
        return Emptied(4, str(OLDEST // 10_000))


def test_transaction_with_locked_partitions_takes_the_others() -> None:
    store = PostgresStore(OnServer(4).address, create=True)
    try:
        with ThreadPoolExecutor() as threads:

            def locked(wanted: list[int], some: bool = True) -> list[int]:
                for attempt in store.attempts(wanted, Prefetch([], None, some=some)):
                    with attempt as partitions:
                        found = sorted(partitions)
                return found

            for attempt in store.attempts([0, 2]):
                with attempt:
                    # One after the other, or each may hold what the other would take.
                    found = [threads.submit(locked, wanted).result(10) for wanted in ([1, 3, 2, 0], [3])]
            assert found == [[1, 3], [3]]
            assert locked([3, 0], some=False) == [0, 3]
    finally:
        store.close()


class TestCentralMeasures:
    test_sums = MeasuredContract.test_sums_equal_the_charges_after_random_operations
    test_orders = MeasuredContract.test_new_order_is_backfilled_from_the_journal
    test_closing = MeasuredContract.test_close_and_reopen_loses_nothing

    @pytest.fixture
    def place(self) -> Emptied:
        return Emptied(2)


@pytest.mark.exhaustive
class TestMeasuresInFourPartitions(MeasuredContract):
    @pytest.fixture
    def place(self) -> Emptied:
        return Emptied(4)


@pytest.mark.exhaustive
class TestMeasuresOnNodes(MeasuredContract):
    @pytest.fixture
    def place(self) -> OnCluster:
        return OnCluster(4)
