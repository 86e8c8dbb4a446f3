"""The ledger's contract on PostgreSQL with 1, 4 and 64 partitions, and on the oldest supported version."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from ldp_budget.ledger.postgres import PostgresStore
from ldp_budget.ledger.postgres.pool import OLDEST
from ldp_budget.ledger.storage import Prefetch, Rows
from ledger_contract import StoreContract
from measured_contract import MeasuredContract
from postgres_places import Emptied, OnServer

pytestmark = pytest.mark.usefixtures("own_keys")


@pytest.mark.slow
class TestOnePartition(StoreContract):
    @pytest.fixture
    def place(self) -> Emptied:
        return Emptied(1)


class TestCentral:
    """Of the contract, at least one test for each thing that the server is asked for; in two partitions."""

    accountant = StoreContract.accountant
    threads_with_one_key = StoreContract.threads_with_one_key
    test_limits = StoreContract.test_exactly_as_many_spends_are_granted_as_fit
    test_refusals = StoreContract.test_a_refusal_changes_nothing_but_its_key
    test_windows = StoreContract.test_every_window_is_charged_or_none_and_a_new_one_starts_empty
    test_new_periods = StoreContract.test_a_new_period_is_filled_from_the_journal
    test_curves = StoreContract.test_reports_of_one_memoised_value_cost_along_its_curve
    test_keys = StoreContract.test_a_key_stands_for_one_request
    test_failures = StoreContract.test_a_failure_stores_nothing_under_its_key
    test_reservations = StoreContract.test_a_reservation_ends_once
    test_clocks = StoreContract.test_a_repair_of_the_clock_lets_spends_go_on_and_refills_nothing
    test_plans = StoreContract.test_a_plan_admits_its_reports_in_any_order_and_not_one_more
    test_bulk = StoreContract.test_a_bulk_charge_does_what_single_ones_would
    test_bulk_runs = StoreContract.test_a_bulk_run_under_a_key_is_charged_once
    test_erasure = StoreContract.test_an_erased_user_is_forgotten_and_gets_no_fresh_budget
    test_threads = StoreContract.test_threads_are_granted_exactly_what_fits
    test_threads_with_one_key = StoreContract.test_threads_with_one_key_get_one_charge
    test_heads = StoreContract.test_a_link_that_was_noted_is_found_again
    test_notes = StoreContract.test_a_note_goes_with_its_user
    test_notes_of_any_kind = StoreContract.test_a_note_may_hold_whatever_people_write
    test_many_balances = StoreContract.test_the_balances_of_many_are_those_of_each
    test_names = StoreContract.test_the_users_of_a_list_are_named_in_the_journal
    test_open_reservations = StoreContract.test_which_reservations_are_open
    test_records = StoreContract.test_a_record_behind_another_than_was_known_is_refused
    test_callers = StoreContract.test_every_entry_bears_the_key_by_which_it_was_written
    test_callers_together = StoreContract.test_callers_are_told_apart_in_one_transaction
    test_shares = StoreContract.test_whoever_has_a_share_must_fit_it_and_the_limit
    test_closing = StoreContract.test_nothing_is_lost_by_closing

    @pytest.fixture
    def place(self) -> Emptied:
        return Emptied(2)


@pytest.mark.slow
class TestFourPartitions(StoreContract):
    @pytest.fixture
    def place(self) -> Emptied:
        return Emptied(4)


@pytest.mark.slow
class TestManyPartitions(StoreContract):
    @pytest.fixture
    def place(self) -> Emptied:
        return Emptied(64)


@pytest.mark.slow
class TestTheOldestServer(StoreContract):
    @pytest.fixture
    def place(self) -> Emptied:
        return Emptied(4, str(OLDEST // 10_000))


def test_transaction_may_take_only_the_unlocked_partitions() -> None:
    store = PostgresStore(OnServer(4).address, create=True)
    try:
        with ThreadPoolExecutor() as threads:

            def lock_two(partitions: Mapping[int, Rows]) -> tuple[list[int], list[int]]:
                some, other = (
                    # One after the other, or each may hold what the other would take.
                    threads.submit(store.run, sorted, wanted, Prefetch([], None, some=True)).result(10)
                    for wanted in ([1, 3, 2, 0], [3])
                )
                return list(some), list(other)

            assert store.run(lock_two, [0, 2]) == ([1, 3], [3])
            assert list(store.run(sorted, [3, 0], Prefetch([], None))) == [0, 3]
    finally:
        store.close()


class TestCentralMeasures:
    accountant = MeasuredContract.accountant
    test_sums = MeasuredContract.test_sums_are_those_of_the_charges_whatever_happens
    test_orders = MeasuredContract.test_an_order_that_is_new_is_filled_from_the_journal
    test_closing = MeasuredContract.test_nothing_is_lost_by_closing

    @pytest.fixture
    def place(self) -> Emptied:
        return Emptied(2)


@pytest.mark.slow
class TestMeasuresInFourPartitions(MeasuredContract):
    @pytest.fixture
    def place(self) -> Emptied:
        return Emptied(4)
