"""Retries of transactions: the work is repeated as a whole, charged once, and counted by the reason."""

from __future__ import annotations

import psycopg
import pytest

from contract.acts import check, coin, spent
from ldp_budget import Accountant, LedgerError
from postgres_faults import In, ask, entries, plain_url, wait_for_sessions
from postgres_places import new_ledger

pytestmark = pytest.mark.usefixtures("own_keys")

# As a server that keeps transactions apart by itself: the first `times` entries of the journal are refused. What a
# sequence has given it does not take back.
REFUSE = """
    CREATE SEQUENCE refused;
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF nextval('refused') <= {times} THEN
                RAISE EXCEPTION 'could not serialize access' USING ERRCODE = '40001';
            END IF;
            RETURN new;
        END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON journal FOR EACH ROW WHEN (new.kind = 'spent') EXECUTE FUNCTION refuse();
    """


@pytest.fixture
def any_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trigger simulates a server that does this by itself; the ledger would refuse a trigger."""
    from ldp_budget_postgres import schema, statements

    for module in (schema, statements):
        monkeypatch.setattr(module, "compare_catalog", lambda answer, aside=frozenset(): [])


@pytest.mark.usefixtures("any_tables")
def test_serialization_failure_repeats_the_whole_work() -> None:
    address = new_ledger(4)
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        assert accountant.repeated == {}
        ask(address, REFUSE.format(times=3))
        assert accountant.spend("alice", coin(1), key="k").status == "spent"
        assert accountant.repeated == {"40001": 3}
        assert accountant.spend("alice", coin(1)).status == "spent"
        assert accountant.repeated == {"40001": 3}
        assert spent(accountant, "alice") == {"lifetime": 2}
        check(accountant)


@pytest.mark.usefixtures("any_tables")
def test_failure_that_does_not_end_is_reported_and_charges_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from ldp_budget_postgres import store

    monkeypatch.setattr(store, "WAIT_SECONDS", 0.3)
    address = new_ledger(4)
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        ask(address, REFUSE.format(times=10**9))
        with pytest.raises(LedgerError, match=r"could not serialize access.*. Nothing was charged.") as told:
            accountant.spend("alice", coin(1))
        assert not told.value.unknown
        assert accountant.repeated["40001"] > 1
        assert entries(accountant, "alice") == 0


@pytest.mark.exhaustive
def test_deadlock_repeats_the_whole_work() -> None:
    """Another program locks the partitions in the opposite order, which the library never does."""
    address = new_ledger(4)
    with Accountant(address) as accountant:
        with psycopg.connect(plain_url(address)) as other:
            # A waiting session checks once, after a second: ours when both wait for each other.
            other.execute("SET deadlock_timeout = '1h'")
            other.execute("SELECT partition FROM partitions WHERE partition = 3 FOR UPDATE")
            setting = In(lambda: accountant.set_policy("default", ["lifetime=9"]).version)
            wait_for_sessions(address, 1, "transactionid")
            other.execute("SELECT partition FROM partitions WHERE partition = 0 FOR UPDATE")
        assert setting.result() == 1
        assert set(accountant.repeated) == {"40P01"}
        assert accountant.spend("alice", coin(1))
        check(accountant)
