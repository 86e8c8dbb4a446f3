"""Charges: their keys, reservations, batches and threads, and a clock that is repaired."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from contract.acts import CURVE, check, coin, everything, in_threads, promising, spent
from fixed_clock import Clock
from ldp_budget import Accountant, InvalidParameter, KeyConflict, LedgerError, UnknownName
from ldp_budget.errors import ClockError, ReservationConflict
from ldp_budget.guarantees import Approximate


class ChargesContract:
    """Charges: their keys, reservations, batches and threads, and a clock that is repaired."""

    threads_with_one_key = 8

    # -- keys ---------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("step", ["spend", "reserve"])
    def test_idempotency_key_identifies_one_request(self, accountant: Accountant, clock: Clock, step: str) -> None:
        accountant.set_policy("default", ["lifetime=1"])
        accountant.set_policy("other", ["lifetime=1"])
        ask = getattr(accountant, step)
        request = {"user": "alice", "mechanism": coin("0.4"), "key": "k", "digest": "00ff"}
        first = ask(**request)
        before = everything(accountant)
        clock.advance(days=40)
        assert ask(**request).to_json() == {**first.to_json(), "repeated": True}
        for change in (
            {"mechanism": coin("0.3")},
            {"reports": 2},
            {"label": "x"},
            {"digest": "00fe"},
            {"policy": "other"},
        ):
            with pytest.raises(KeyConflict):
                ask(**{**request, **change})
        with pytest.raises(KeyConflict):
            (accountant.reserve if step == "spend" else accountant.spend)(**request)
        assert everything(accountant) == before
        assert ask(**{**request, "key": "l"}).status != "refused"
        assert not ask(**{**request, "user": "bob"}).repeated, "a key is its user's own"
        check(accountant)

    def test_refusal_under_a_key_is_permanent(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=1"])
        first = accountant.spend("alice", coin(2), key="k")
        accountant.set_policy("default", ["lifetime=5"])
        assert accountant.spend("alice", coin(2), key="k").to_json() == {**first.to_json(), "repeated": True}
        assert spent(accountant, "alice") == {"lifetime": 0}
        assert accountant.spend("alice", coin(2), key="l").status == "spent"

    def test_failure_stores_nothing_under_its_key(self, accountant: Accountant, clock: Clock) -> None:
        with pytest.raises(UnknownName):
            accountant.spend("alice", coin(1), key="k")
        accountant.set_policy("default", ["lifetime=1"])
        clock.advance(seconds=-6)
        before = everything(accountant)
        for call in (accountant.spend, accountant.reserve, accountant.quote):
            with pytest.raises(LedgerError, match="more than 5 s before"):
                call("alice", coin(1), **({} if call == accountant.quote else {"key": "k"}))
        with pytest.raises(LedgerError, match="more than 5 s before"):
            accountant.spend_many(["alice"], coin(1), key="k")
        assert everything(accountant) == before
        clock.advance(seconds=1)
        assert not accountant.spend("alice", coin(1), key="k").repeated, "5 s behind counts as equal"

    # -- two steps ----------------------------------------------------------------------------------------

    def test_reservation_ends_once(self, accountant: Accountant, clock: Clock) -> None:
        accountant.set_policy("default", ["lifetime=2", "day=2"])
        held = [accountant.reserve("alice", coin("0.5"), expires=60).receipt or "" for _ in range(4)]
        assert not accountant.reserve("alice", coin("0.5")), "what is reserved is charged"
        assert accountant.commit(held[0]).status == "committed"
        assert accountant.void(held[1]).status == "voided"
        assert spent(accountant, "alice") == {"lifetime": Decimal("1.5"), "day": Decimal("1.5")}
        clock.advance(seconds=60)
        assert accountant.commit(held[2]).status == "expired", "and stays charged: the report may be out"
        with pytest.raises(ReservationConflict, match="is expired, so it cannot be voided"):
            accountant.void(held[3])
        for _ in range(2):
            assert [accountant.commit(held[n]).status for n in (0, 2, 3)] == ["committed", "expired", "expired"]
            assert accountant.void(held[1]).status == "voided"
            assert accountant.void(held[1]).repeated
            assert accountant.commit(held[3]).repeated
        for receipt in (held[0], held[2], held[3]):
            with pytest.raises(ReservationConflict):
                accountant.void(receipt)
        with pytest.raises(ReservationConflict, match="is voided, so it cannot be committed"):
            accountant.commit(held[1])
        assert spent(accountant, "alice") == {"lifetime": Decimal("1.5"), "day": Decimal("1.5")}
        check(accountant)

    def test_commit_of_anything_but_a_reservation_is_refused(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=2"])
        receipt = accountant.spend("alice", coin(1)).receipt or ""
        for resolve in (accountant.commit, accountant.void):
            with pytest.raises(UnknownName, match="is a final charge, not a reservation"):
                resolve(receipt)
            for name in ("0", "99", "-1", "x", "9" * 40):
                with pytest.raises(UnknownName, match="no reservation is named"):
                    resolve(name)

    def test_void_after_midnight_returns_to_the_day_of_the_reservation(
        self, accountant: Accountant, clock: Clock
    ) -> None:
        accountant.set_policy("default", ["lifetime=2", "day=1"])
        clock.now = datetime(2026, 11, 21, 23, 59, tzinfo=UTC)
        held = accountant.reserve("alice", coin(1)).receipt or ""
        clock.now = datetime(2026, 11, 22, 0, 1, tzinfo=UTC)
        accountant.spend("alice", coin("0.4"))
        accountant.void(held)
        assert spent(accountant, "alice") == {"lifetime": Decimal("0.4"), "day": Decimal("0.4")}
        check(accountant)

    @pytest.mark.parametrize("label", [None, "home"])
    def test_void_touches_no_window_from_before_its_period(
        self, accountant: Accountant, clock: Clock, label: str | None
    ) -> None:
        accountant.set_policy("default", ["lifetime=9"])
        clock.now = datetime(2026, 11, 21, 23, 59, tzinfo=UTC)
        held = accountant.reserve("alice", promising(CURVE), label=label).receipt or ""
        clock.now = datetime(2026, 11, 22, 0, 1, tzinfo=UTC)
        accountant.set_policy("default", ["lifetime=9", "day=3"])
        accountant.void(held)
        assert spent(accountant, "alice") == {"lifetime": 0, "day": 0}
        check(accountant)
        assert accountant.spend("alice", promising(CURVE), label=label).epsilon == 2.04

    def test_void_returns_an_unbounded_amount(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=9,1e-3", "day=9,1e-3"])
        accountant.spend("alice", coin(1))
        before = accountant.balance("alice").limits
        held = accountant.reserve("alice", promising(Approximate(1, "1e-9"))).receipt or ""
        assert {state.spent_units.rho for state in accountant.balance("alice").limits} == {None}
        accountant.void(held)
        assert accountant.balance("alice").limits == before
        check(accountant)

    # -- the clock ----------------------------------------------------------------------------------------

    def test_clock_repair_allows_spends_and_restores_no_budget(self, accountant: Accountant, clock: Clock) -> None:
        accountant.set_policy("default", ["lifetime=90", "day=9", "month=20"])
        accountant.spend("alice", coin(1))
        held = accountant.reserve("bob", coin(1)).receipt or ""
        clock.advance(days=26_000)
        accountant.spend("alice", coin(3))
        accountant.spend("alice", promising(CURVE), label="home")
        accountant.set_policy("default", ["lifetime=90", "day=9", "week=9", "month=20"])
        clock.advance(days=-26_000, hours=1)
        with pytest.raises(ClockError):
            accountant.spend("alice", coin(1))
        assert accountant.repair_clock()
        assert not accountant.repair_clock()
        assert spent(accountant, "alice") == dict.fromkeys(("lifetime", "day", "week", "month"), Decimal("6.04"))
        assert accountant.spend("alice", promising(CURVE), label="home").epsilon == 1.35
        assert not accountant.spend("alice", coin(2))
        with pytest.raises(ReservationConflict, match="is expired"):
            accountant.void(held)
        check(accountant)

    # -- many users ---------------------------------------------------------------------------------------

    def test_batch_equals_single_spends(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=1", "day=0.8"])
        accountant.spend("full", coin("0.7"))
        accountant.erase("gone", unknown=True)
        result = accountant.spend_many(
            ["new", "full", "gone", "twice", "twice", "often", "often", "often"], coin("0.4")
        )
        assert (result.spent, result.refused) == (5, 3)
        assert sorted(result.refused_users) == ["full", "gone", "often"]
        charged = {user: spent(accountant, user)["day"] for user in ("new", "full", "twice", "often")}
        assert charged == {
            "new": Decimal("0.4"),
            "full": Decimal("0.7"),
            "twice": Decimal("0.8"),
            "often": Decimal("0.8"),
        }
        assert accountant.balance("gone").erased
        assert len(accountant.history("often")) == 2, "one entry for each charge"
        check(accountant)

    def test_user_name_spellings_are_one_user(self, accountant: Accountant) -> None:
        """A trailing space, a tab or another Unicode form gave a user a fresh budget."""
        accountant.set_policy("default", ["lifetime=2"])
        spellings = ["Zoë", "Zoë ", "\tZoë", "Zoe\u0308"]
        assert [accountant.spend(user, coin(1), key="k").repeated for user in spellings] == [False] + [True] * 3
        assert accountant.spend_many(spellings, coin(1), key="run").refused_users == spellings[1:]
        for user in spellings:
            assert spent(accountant, user) == {"lifetime": 2}
            assert len(accountant.history(user)) == 2
        with pytest.raises(InvalidParameter):
            accountant.spend(" ", coin(1))
        check(accountant)

    def test_batch_with_all_users_refused_leaves_no_trace(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=1"])
        before = everything(accountant)
        assert accountant.spend_many(["alice", "bob"], coin(2)).refused == 2
        assert everything(accountant) == before
        check(accountant)
        accountant.set_policy("default", ["lifetime=3"])
        assert accountant.spend("alice", coin(2))
        check(accountant)

    def test_batch_under_a_key_is_charged_once(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=1"])
        users = ["alice", "bob", "carol", "bob"]
        assert accountant.spend_many(users, coin("0.6"), key="run").to_json() == {
            "spent": 3,
            "refused": 1,
            "repeated": 0,
        }
        before = everything(accountant)
        again = accountant.spend_many(users, coin("0.6"), key="run")
        assert (again.to_json(), again.refused_users) == ({"spent": 0, "refused": 1, "repeated": 3}, ["bob"])
        for others in (users[::-1], users[:3], [*users, "dave"], ["alice", "bob", "carol\nbob"], []):
            with pytest.raises(KeyConflict):
                accountant.spend_many(others, coin("0.6"), key="run")
        with pytest.raises(KeyConflict):
            accountant.spend_many(users, coin("0.5"), key="run")
        assert everything(accountant) == before

    def test_batch_of_one_user_repeated_with_other_users_is_a_conflict(self, accountant: Accountant) -> None:
        """For a user and a key in the same partition, and in different ones."""
        accountant.set_policy("default", ["lifetime=1"])
        for number in range(8):
            key = f"run-{number}"
            assert accountant.spend_many(["alice"], coin("0.1"), key=key).spent == 1
            assert accountant.spend_many(["alice"], coin("0.1"), key=key).repeated == 1
            for others in (["alice", "bob", "carol", "dave", "eve", "frank"], ["bob"], ["alice", "alice"], []):
                with pytest.raises(KeyConflict):
                    accountant.spend_many(others, coin("0.1"), key=key)
        assert spent(accountant, "alice") == {"lifetime": Decimal("0.8")}
        assert accountant.stats()["users"] == 1
        check(accountant)

    # -- many at once -------------------------------------------------------------------------------------

    def test_threads_are_granted_exactly_the_limit(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=3.75", "day=9"])

        def spend(number: int) -> int:
            return sum(bool(accountant.spend("alice", coin("0.1"), key=f"{number}/{n}")) for n in range(6))

        assert sum(in_threads(8, spend)) == 37
        assert spent(accountant, "alice") == {"lifetime": Decimal("3.7"), "day": Decimal("3.7")}
        check(accountant)

    def test_threads_with_one_key_get_one_charge(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=9"])
        count = self.threads_with_one_key
        receipts = in_threads(count, lambda number: accountant.spend("alice", coin(1), key="k"))
        assert sorted(receipt.repeated for receipt in receipts) == [False] + [True] * (count - 1)
        assert len({receipt.receipt for receipt in receipts}) == 1
        assert spent(accountant, "alice") == {"lifetime": 1}
