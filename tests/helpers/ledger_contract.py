"""The contract of every ledger, for every store.

A store's tests inherit `LedgerContract` and say how to open it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import Any

import pytest

import ldp_budget
from fixed_clock import Clock
from ldp_budget import (
    Accountant,
    InvalidParameter,
    KeyConflict,
    LedgerError,
    Limit,
    Mechanism,
    RecordConflict,
    UnknownName,
)
from ldp_budget._files import canonical_json
from ldp_budget.accounting.admin_log import Record, _add
from ldp_budget.accounting.books import note_of
from ldp_budget.accounting.plans import Plan
from ldp_budget.accounting.principals import Principal
from ldp_budget.accounting.receipts import Receipt
from ldp_budget.accounting.stored_reports import Taken
from ldp_budget.errors import ClockError, NameTaken, ReservationConflict, TooFewReports, UserErased
from ldp_budget.guarantees import SAME_CHANGE_PATTERN, Approximate, Guarantee, Memoised, Pure, ZeroConcentrated
from ldp_budget.registry.collections import Collection
from ldp_budget.sdk.mechanism import Mechanism as Base
from ldp_budget.sdk.parameters import integer
from ledger_places import Place

# The longitudinal curve of one memoised value: first report, two, three; then the cap.
CURVE = Memoised(("2.04", "3.39", "4.02"), "4.39")


class Promise(Base):
    """A mechanism that is nothing but a guarantee. It is in no plugin, so no ledger can ask it for anything."""

    name = "promise"
    of = integer("tells two promises apart", default=0)
    promised: Guarantee

    @property
    def guarantee(self) -> Guarantee:
        return self.promised


PROMISED: dict[int, Guarantee] = {}
"""The guarantees by number: a mechanism that knows its guarantee by name and number finds it here."""


def promising(guarantee: Guarantee) -> Mechanism:
    """A mechanism with this guarantee, and a fingerprint of its own."""
    number = int.from_bytes(sha256(canonical_json(guarantee.to_json()).encode()).digest()[:6])
    PROMISED[number] = guarantee
    return type("Promise", (Promise,), {"promised": guarantee})(of=number)


def coin(epsilon: Any) -> Mechanism:
    """A mechanism of the given ε."""
    return ldp_budget.mechanism("randomized-response")(epsilon=epsilon)


def spent(accountant: Accountant, user: str, policy: str = "default") -> dict[str, Decimal]:
    """ε spent in each period of the policy, exactly."""
    limits = accountant.balance(user, policy).limits
    return {state.limit.period: Decimal(state.spent_units.epsilon or 0).scaleb(-9) for state in limits}


def everything(accountant: Accountant) -> list[Any]:
    """Return the visible state of a ledger."""
    return [list(accountant.journal()), accountant.stats(), [policy.to_json() for policy in accountant.policies()]]


def check(accountant: Accountant, expect: str | None = None) -> str:
    """Assert that the ledger verifies; returns its head."""
    verification = accountant.verify(expect)
    assert verification.ok, verification.problems
    return verification.head


def made(accountant: Accountant, name: str, share: str | None = None) -> Principal:
    """The holder of a key that is made here."""
    body = {"scopes": ["spend"], "policies": None, "collections": None, "share": share, "hash": "0" * 64}
    times = dict.fromkeys(("starts", "expires", "until"))
    record = accountant._record_own("key", name, {**body, **times}, expected=len(accountant.records()))
    return Principal(record.number, name, share)


def write_record(accountant: Accountant, kind: str, name: str, body: dict[str, Any]) -> Record:
    """A record of any kind and shape, as an error in the library or a changed one might write it."""
    return _add(accountant._ledger, accountant._caller, kind, name, body, len(accountant.records()))


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Return the results of `work(0)` ... `work(count - 1)`, all started at the same time; exceptions are returned too."""
    results: list[Any] = [None] * count
    start = threading.Barrier(count)

    def run(number: int) -> None:
        start.wait()
        try:
            results[number] = work(number)
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


POLL = Collection("poll", coin(1), minimum_group=1)


def content_of(accountant: Accountant, name: str) -> bytes:
    return b"".join(part.content for part in accountant.reports.round("poll", name))


def send(accountant: Accountant, user: str, report: bytes, key: str = "k", of: Collection = POLL) -> Receipt:
    """Send a report as the inbox does."""
    return accountant.reports.take(user, of, report, key=key, label=None, policy="default")


def seal(accountant: Accountant, name: str, together: int | None = None) -> int:
    """Seal a round of `POLL`."""
    accountant.add_collection(POLL)
    return accountant.reports.seal("poll", name, together)


class LedgerContract:
    """Inherit it and override `place`."""

    threads_with_one_key = 8

    @pytest.fixture
    def place(self) -> Place:
        raise NotImplementedError

    # -- limits -------------------------------------------------------------------------------------------

    def test_spend_is_granted_exactly_as_often_as_it_fits(self, accountant: Accountant) -> None:
        cases: list[tuple[str, Mechanism, int | None]] = [
            ("lifetime=1", coin("0.3"), 3),
            ("lifetime=1.2", coin("0.3"), 4),
            ("lifetime=10,1e-6", promising(Approximate(1, "3e-7")), 3),
            ("lifetime=1,1e-6,zcdp", promising(ZeroConcentrated("0.004")), None),
            ("lifetime=1,1e-6,zcdp", coin("0.1"), None),
            ("lifetime=1,1e-6,gdp", coin("0.1"), None),
            ("lifetime=1,1e-6,gdp", ldp_budget.mechanism("gaussian")(sigma=10), None),
        ]
        for number, (limit, mechanism, granted) in enumerate(cases):
            policy, alice, bob = f"policy-{number}", f"alice {number}", f"bob {number}"
            (set_limit,) = accountant.set_policy(policy, [limit]).limits
            pairs = zip(set_limit.capacity, mechanism.guarantee.costs(), strict=True)
            expected = min(most // cost for most, cost in pairs if most is not None and cost)
            assert granted in (None, expected), limit
            assert accountant.spend(alice, mechanism, reports=expected - 1, policy=policy)
            assert accountant.quote(alice, mechanism, policy=policy).affordable_reports == 1
            answers = [accountant.spend(alice, mechanism, policy=policy).status for _ in range(3)]
            assert answers == ["spent", "refused", "refused"], limit
            assert accountant.spend(bob, mechanism, reports=expected + 1, policy=policy).status == "refused"
            assert accountant.spend(bob, mechanism, reports=expected, policy=policy).status == "spent"
        check(accountant)

    def test_refusal_changes_nothing_but_its_key(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=1", "day=0.5"])
        accountant.spend("alice", coin("0.4"))
        before = everything(accountant)
        for user, epsilon in (("alice", "0.2"), ("alice", 2), ("bob", "0.6")):
            assert accountant.spend(user, coin(epsilon)).status == "refused"
            assert accountant.reserve(user, coin(epsilon)).status == "refused"
            assert accountant.spend_many([user, user], coin(epsilon)).refused == 2
        assert everything(accountant) == before
        check(accountant)
        assert accountant.spend("alice", coin(2), key="k").status == "refused"
        after = accountant.stats()
        assert after == {**before[1], "keys": 1, "head": after["head"]}
        assert spent(accountant, "alice") == {"lifetime": Decimal("0.4"), "day": Decimal("0.4")}

    def test_spend_must_fit_every_limit(self, accountant: Accountant, clock: Clock) -> None:
        """Mixing rules is safe only because of that; each may be the one that binds."""
        accountant.set_policy("default", ["lifetime=1.2", "lifetime=3,1e-6,zcdp", "day=2,1e-6,gdp"])
        assert accountant.spend("alice", coin(1)).binding == ("lifetime", "day"), "ρ and μ², though Σε has room"
        assert accountant.spend("alice", coin("0.1"), reports=10).status == "spent"
        assert accountant.spend("alice", coin("0.2")).binding == ("day",), "μ² alone"
        clock.advance(days=1)
        assert accountant.spend("alice", coin("0.2")).status == "spent"
        assert accountant.spend("alice", coin("1e-9")).binding == ("lifetime",), "Σε alone"
        check(accountant)

    def test_spend_without_an_amount_is_refused_by_the_rule_that_needs_it(self, accountant: Accountant) -> None:
        accountant.set_policy("basic", ["lifetime=100,0.1"])
        accountant.set_policy("zcdp", ["lifetime=100,0.1,zcdp"])
        accountant.set_policy("gdp", ["lifetime=100,0.1,gdp"])
        for guarantee, accepting in (
            (Pure(1), {"basic", "zcdp", "gdp"}),
            (Approximate(1, "1e-9"), {"basic"}),
            (Approximate(1, 0), {"basic", "zcdp", "gdp"}),
            (ZeroConcentrated("0.1"), {"zcdp"}),
        ):
            mechanism, user = promising(guarantee), str(guarantee)
            quoted = {name: accountant.quote(user, mechanism, policy=name) for name in ("basic", "zcdp", "gdp")}
            assert {name for name, quote in quoted.items() if not quote.binding} == accepting
            for name in ("basic", "zcdp", "gdp"):
                assert (accountant.spend_many([user + name], mechanism, policy=name).spent == 1) == (
                    name in accepting
                )

    # -- windows and versions -----------------------------------------------------------------------------

    def test_spend_charges_every_window_or_none_and_a_new_window_starts_empty(
        self, accountant: Accountant, clock: Clock
    ) -> None:
        accountant.set_policy("default", ["lifetime=1", "day=0.5", "week=0.8"])
        assert accountant.spend("alice", coin("0.4"))
        assert accountant.spend("alice", coin("0.2")).binding == ("day",)
        clock.advance(days=1)
        assert accountant.spend("alice", coin("0.4"))
        assert spent(accountant, "alice") == {
            "lifetime": Decimal("0.8"),
            "day": Decimal("0.4"),
            "week": Decimal("0.8"),
        }
        assert accountant.spend("alice", coin("0.1")).binding == ("week",)
        clock.advance(days=1)
        assert accountant.spend("alice", coin("0.3")).binding == ("lifetime",)
        assert accountant.spend("alice", coin("0.2"))
        check(accountant)

    def test_new_period_is_backfilled_from_the_journal(self, accountant: Accountant, clock: Clock) -> None:
        """Plain charges, labelled ones, and what was voided; each as if the window had been kept all along."""
        clock.now = datetime(2026, 11, 15, 12, tzinfo=UTC)  # Sunday of last week
        accountant.set_policy("default", ["lifetime=90"])
        accountant.spend("alice", coin(1))
        accountant.spend("alice", promising(CURVE), label="x")
        clock.now = datetime(2026, 11, 16, tzinfo=UTC)  # Monday's first moment
        accountant.spend("alice", coin("0.5"), reports=2)
        accountant.spend("alice", promising(CURVE), label="x", reports=2)
        accountant.spend_many(["alice", "bob"], coin(3))
        accountant.void(accountant.reserve("alice", coin(7)).receipt or "")
        accountant.set_policy("default", ["lifetime=90", "week=50", "month=50", "day=50"])
        alice = spent(accountant, "alice")
        assert alice == {
            "lifetime": Decimal("9.02"),  # 1 + 1 + 3, and three reports of x
            "week": Decimal("10.06"),  # 1 + 3, and two reports of x after one of last week: c(3) + c(1)
            "month": Decimal("9.02"),
            "day": Decimal("10.06"),
        }
        check(accountant)
        accountant.spend("alice", promising(CURVE), label="x")
        assert spent(accountant, "alice")["week"] == Decimal("10.43"), (
            "c(4) + c(1): the curve continues from the journal"
        )
        check(accountant)

    def test_new_version_keeps_the_spent_sums_and_the_rule(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=1,1e-6,zcdp"])
        assert accountant.set_policy("default", ["lifetime=1"]).version == 2, "no user was charged yet"
        accountant.spend("alice", coin("0.8"))
        assert accountant.set_policy("default", ["lifetime=0.5"]).version == 3
        assert accountant.spend("alice", coin("1e-9")).status == "refused"
        with pytest.raises(InvalidParameter, match="which users were charged by"):
            accountant.set_policy("default", ["lifetime=1,1e-6,zcdp"])
        accountant.set_policy("default", ["lifetime=1", "lifetime=9,1e-6,zcdp"])
        assert spent(accountant, "alice")["lifetime"] == Decimal("0.8")
        check(accountant)

    def test_policy_with_relation_any_refuses_other_guarantees(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=90"], relation="any")
        pattern = promising(Memoised((1,), 2, None, SAME_CHANGE_PATTERN))
        assert accountant.spend("alice", pattern, label="x").status == "refused"
        assert accountant.spend_many(["alice", "bob"], pattern).to_json() == {"spent": 0, "refused": 2, "repeated": 0}
        assert accountant.spend("alice", promising(CURVE), label="x").status == "spent"
        check(accountant)

    # -- memoised values ----------------------------------------------------------------------------------

    def test_memoized_reports_cost_along_their_curve(self, accountant: Accountant, clock: Clock) -> None:
        accountant.set_policy("default", ["lifetime=30", "day=30"])
        rappor = promising(CURVE)
        costs = [accountant.spend("alice", rappor, label="home").epsilon for _ in range(5)]
        assert costs == [2.04, 1.35, 0.63, 0.37, 0], "the curve's steps up to the cap, then nothing"
        assert spent(accountant, "alice") == {"lifetime": Decimal("4.39"), "day": Decimal("4.39")}
        assert accountant.spend("alice", rappor, label="work").epsilon == 2.04
        assert accountant.spend("alice", rappor).epsilon == 2.04, "without a label it is a new value"
        assert accountant.spend("bob", rappor, label="home").epsilon == 2.04
        clock.advance(days=1)
        assert accountant.spend("alice", rappor, label="home").epsilon == 0
        assert spent(accountant, "alice")["day"] == Decimal("8.78"), "c(6) + c(5): what earlier windows showed counts"
        check(accountant)

    def test_memoized_reports_cost_their_cap_at_once_under_other_rules(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=30,1e-6,zcdp", "lifetime=30"])
        rappor, whole = promising(CURVE), Pure("4.39").costs()
        for reports in (1, 1, 5):
            accountant.spend("alice", rappor, label="home", reports=reports)
            assert {state.spent_units.rho for state in accountant.balance("alice").limits} == {whole.rho}
        assert spent(accountant, "alice")["lifetime"] == Decimal("4.39")
        check(accountant)

    def test_memoized_reports_without_labels_stop_at_the_cap_of_all_values(
        self, accountant: Accountant, clock: Clock
    ) -> None:
        few = promising(Memoised(("0.3", "0.5"), "0.6", 2))
        accountant.set_policy("default", ["lifetime=2", "day=9"])
        charged = [accountant.spend("alice", few, label=label).epsilon for label in (None, "x", None, None, None)]
        assert charged == [0.3, 0.3, 0.3, 0.3, 0]
        held = accountant.reserve("alice", few, label="x", reports=4).receipt or ""
        assert spent(accountant, "alice") == {"lifetime": Decimal("1.2"), "day": Decimal("1.2")}
        accountant.void(held)
        clock.advance(days=1)
        assert accountant.spend_many(["alice", "bob", "carol"], few).spent == 3
        assert spent(accountant, "alice") == {"lifetime": Decimal("1.2"), "day": Decimal("1.2")}, "0.6 + 0.6"
        assert spent(accountant, "bob") == {"lifetime": Decimal("0.3"), "day": Decimal("0.3")}
        accountant.erase("alice")
        check(accountant)

    def test_void_returns_the_last_step_of_the_curve(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=30", "day=30"])
        rappor = promising(CURVE)
        held = accountant.reserve("alice", rappor, label="home").receipt or ""
        accountant.spend("alice", rappor, label="home")
        voided = accountant.void(held)
        assert (voided.status, spent(accountant, "alice")) == (
            "voided",
            {"lifetime": Decimal("2.04"), "day": Decimal("2.04")},
        )
        assert accountant.spend("alice", rappor, label="home").epsilon == 1.35
        check(accountant)

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

    # -- plans --------------------------------------------------------------------------------------------

    def test_plan_admits_its_reports_in_any_order_and_not_one_more(self, accountant: Accountant) -> None:
        one, half = coin(1), coin("0.5")
        accountant.set_policy("default", [], plan=Plan(((one, 2), (half, 3)), Decimal("1e-6")))
        for mechanism in (half, one, half, half, one):
            assert accountant.spend("alice", mechanism).status == "spent"
        for mechanism in (one, half, coin("0.1")):
            assert accountant.spend("alice", mechanism).status == "refused"
        assert accountant.spend("bob", half, reports=4).binding == ("plan",)
        check(accountant)

    def test_plans_used_by_a_user_are_all_in_the_sum(self, accountant: Accountant) -> None:
        one, half = coin(1), coin("0.5")
        first, second = Plan(((one, 2),), Decimal("1e-6")), Plan(((half, 3),), Decimal("1e-6"))
        accountant.set_policy("first", [], plan=first)
        accountant.set_policy("second", [], plan=second)
        accountant.set_policy("wide", ["lifetime=4,1e-3"], plan=second)
        assert accountant.spend("alice", one, policy="first")
        assert "another plan" in accountant.spend("alice", half, policy="second").why
        assert accountant.spend("alice", half, policy="wide")
        assert "another plan" in accountant.spend("alice", one, policy="first").why
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

    # -- erasure ------------------------------------------------------------------------------------------

    def test_erased_user_is_forgotten_and_gets_no_fresh_budget(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=9", "day=9"])
        accountant.spend("alice", promising(CURVE), label="home", key="k")
        accountant.spend("alice", coin(1))
        head = check(accountant)
        assert accountant.erase("alice")
        assert not accountant.erase("alice")
        check(accountant, head)
        with pytest.raises(UserErased, match="user 'alice' was erased") as caught:
            accountant.history("alice")
        assert caught.value.user == "alice"
        assert accountant.history("stranger") == []
        assert accountant.spend("alice", coin("0.1")).status == "refused"
        assert accountant.reserve("alice", coin("0.1"), key="k").status == "refused", "the key went with the account"
        assert accountant.spend_many(["alice", "bob"], coin("0.1")).refused_users == ["alice"]
        assert accountant.stats()["users"] == 1
        check(accountant, head)

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

    # -- what it shows, and what it keeps -------------------------------------------------------------------

    def test_journal_is_readable_without_plugins(self, accountant: Accountant, clock: Clock) -> None:
        accountant.set_policy("default", ["lifetime=9,1e-3"])
        accountant.spend("alice", promising(Approximate("0.5", "1e-9")), reports=2)
        accountant.spend_many(["bob"], coin(1))
        policy, *charged = accountant.journal()
        first, second = sorted(charged, key=lambda row: str(row["mechanism"]))
        assert (policy["kind"], policy["policy"], policy["account"]) == ("policy", "default", None)
        assert (first["kind"], first["mechanism"], first["reports"]) == ("spent", "promise", 2)
        assert (first["epsilon"], first["delta"], first["at"]) == (1, 2e-9, "2026-11-21T12:00:00Z")
        assert first["declared"]["of"] > 0
        for user, row in (("alice", first), ("bob", second)):
            assert row.pop("record") is None
            assert accountant.history(user) == [{**row, "state": None}]
        assert accountant.history("carol") == []

    def test_verify_finds_an_earlier_head(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=9"])
        heads = [check(accountant)]
        for user in ("alice", "bob"):
            accountant.spend(user, coin(1))
            heads.append(check(accountant))
        assert len(set(heads)) == 3
        for head in heads:
            check(accountant, head.upper())
        assert accountant.stats()["head"] == heads[-1]
        foreign = accountant.verify("00" * 32)
        assert not foreign.ok
        assert "rolled back" in foreign.problems[0]

    # -- collections and notes ----------------------------------------------------------------------------

    def test_collections_with_equal_parameters_are_distinct(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=20"])
        oue = ldp_budget.mechanism("oue")(epsilon=1, domain_size=2)
        party, colour = Collection("party", oue, ("a", "b")), Collection("colour", oue, ("c", "d"))
        accountant.spend("alice", party)
        accountant.spend("alice", colour, note="second wave")
        accountant.spend("alice", oue)
        held = accountant.reserve("alice", colour, note="by telephone").receipt or ""
        assert [row["note"] for row in accountant.open_reservations(user="alice")] == ["by telephone"]
        accountant.commit(held)
        accountant.spend_many(["alice", "bob"], party, note="the bulk")
        told = [("party", None), ("colour", "second wave"), (None, None), ("colour", "by telephone")]
        told += [("colour", None), ("party", "the bulk")]
        assert [(row["collection"], row["note"]) for row in accountant.history("alice")] == told
        rows = [(row["collection"], row["note"]) for row in accountant.journal() if row["account"]]
        assert sorted(map(str, rows)) == sorted(map(str, [*told, ("party", "the bulk")]))
        [(_, count)] = {guarantee.to_json()["kind"]: n for guarantee, n in accountant.balance("bob").charges}.items()
        assert count == 1
        check(accountant)

    def test_idempotency_key_covers_the_collection_and_not_the_note(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=20"])
        oue = ldp_budget.mechanism("oue")(epsilon=1, domain_size=2)
        party, colour = Collection("party", oue), Collection("colour", oue)
        accountant.spend("alice", party, key="k", note="first")
        assert accountant.spend("alice", party, key="k", note="second").repeated
        assert accountant.spend("alice", party, key="k").repeated
        for other in (colour, oue):
            with pytest.raises(KeyConflict):
                accountant.spend("alice", other, key="k")
        assert [row["note"] for row in accountant.history("alice")] == ["first"]
        accountant.spend_many(["alice"], party, key="run", note="first")
        assert accountant.spend_many(["alice"], party, key="run", note="second").repeated == 1
        with pytest.raises(KeyConflict):
            accountant.spend_many(["alice"], colour, key="run")
        check(accountant)

    def test_note_is_erased_with_its_user(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=20"])
        for user in ("alice", "bob"):
            accountant.spend(user, coin(1), note=f"{user} at the door", key="k")
        accountant.spend_many(["alice", "bob"], coin(1), note="both")
        head = check(accountant)
        accountant.erase("alice")
        left = sorted(row["note"] for row in accountant.journal() if row["note"])
        assert left == ["bob at the door", "both"]
        check(accountant, head)
        assert not accountant.spend("alice", coin(1), note="again")
        check(accountant, head)

    def test_note_accepts_any_text(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=20"])
        notes = ["a" * 500, "ein Gruß", "=1+1", "'; DROP TABLE notes; --", "%s %b", "👩\u200d👧", "\u202eabc"]
        for note in notes:
            accountant.spend("alice", coin(1), note=note)
        assert [row["note"] for row in accountant.history("alice")] == notes
        check(accountant)

    def test_note_invalid_is_refused(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=20"])
        before = everything(accountant)
        notes: list[Any] = ["", "a" * 501, "two\nlines", "a\0", "\x1b[2J", "\ud800", "\u2028", 7, b"note"]
        for note in notes:
            with pytest.raises(InvalidParameter, match="note must be one line of 1 to 500 characters"):
                accountant.spend("alice", coin(1), note=note)
            with pytest.raises(InvalidParameter, match="note"):
                accountant.spend_many(["alice"], coin(1), note=note)
        assert everything(accountant) == before

    # -- many at once -------------------------------------------------------------------------------------

    def test_balances_of_many_equal_those_of_each(self, accountant: Accountant, clock: Clock) -> None:
        plan = Plan(((coin("0.25"), 3), (coin(1), 2)), "1e-6")
        accountant.set_policy("default", ["lifetime=20", "day=15", "week=15,1e-6,zcdp"])
        accountant.set_policy("planned", ["lifetime=9,1e-3"], plan=plan)
        users = [f"user-{number}" for number in range(30)]
        accountant.spend_many(users[:25], coin("0.5"))
        clock.advance(days=1)
        for user in users[:20:3]:
            accountant.spend(user, coin("0.25"), policy="planned")
            accountant.spend(user, promising(CURVE), label="home")
        accountant.erase(users[6])
        accountant.erase(users[29], unknown=True)
        for policy in ("default", "planned"):
            asked = [*users, users[3], "unknown"]
            many = list(accountant.balances(iter(asked), policy))
            assert [balance.user for balance in many] == asked
            for balance in many:
                one = accountant.balance(balance.user or "", policy).to_json()
                del one["odometer"]
                assert balance.to_row() == one
            every = list(accountant.balances(policy=policy))
            assert len(every) == 25
            assert sum(balance.erased for balance in every) == 1
            of_some = sorted(str(balance.limits) for balance in many[:25] if not balance.erased)
            assert sorted(str(balance.limits) for balance in every if not balance.erased) == of_some
        assert list(accountant.balances([])) == []
        with pytest.raises(UnknownName):
            accountant.balances([], "nothing")
        with pytest.raises(InvalidParameter, match="users must be a list of user names"):
            list(accountant.balances("alice"))
        with pytest.raises(InvalidParameter, match="user"):
            list(accountant.balances(["alice", ""]))

    def test_journal_of_listed_users_names_them(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=20"])
        users = [f"user-{number}" for number in range(9)]
        for user in users:
            accountant.spend(user, coin(1), note=user)
        named = [row for row in accountant.journal([*users[:5], "unknown"]) if row["account"]]
        assert {(row["note"], row["user"]) for row in named} == {
            (user, user if user in users[:5] else None) for user in users
        }
        assert all("user" not in row for row in accountant.journal())
        accountant.erase(users[0])
        assert users[0] not in {row["user"] for row in accountant.journal(users)}

    def test_reservations_open_are_listed(self, accountant: Accountant, clock: Clock) -> None:
        accountant.set_policy("default", ["lifetime=20"])
        users = ["alice", "bob", "carol", "alice"]
        first, second, third, fourth = (
            accountant.reserve(user, coin(1), expires=60 * number).receipt or ""
            for number, user in enumerate(users, 1)
        )
        told = [row["receipt"] for row in accountant.open_reservations(None)]
        assert sorted(told) == sorted([first, second, third, fourth])
        assert [row["receipt"] for row in accountant.open_reservations(user="alice")] == [fourth, first]
        assert [row["receipt"] for row in accountant.open_reservations(1, user="alice")] == [fourth]
        accountant.void(fourth)
        accountant.commit(second)
        clock.advance(seconds=61)
        assert [row["receipt"] for row in accountant.open_reservations(None)] == [third]
        accountant.erase("carol")
        assert accountant.open_reservations(user="carol") == []
        assert [row["receipt"] for row in accountant.open_reservations(None)] == [third], "it can still be voided"

    # -- records ------------------------------------------------------------------------------------------

    def test_records_are_stored_in_order_and_in_the_journal(self, place: Place, clock: Clock) -> None:
        accountant = place.open(clock)
        assert accountant.records() == []
        first = accountant.record("badge", "team-a", {"hash": "00", "é": ["ü", None, 1.5]}, expected=0)
        clock.advance(days=1)
        second = accountant.record("badge-lost", "Zoë 'x' %s", {}, expected=1)
        assert [first.number, second.number] == [1, 2]
        assert second.at - first.at == timedelta(days=1)
        assert accountant.records() == [first, second]
        assert accountant.records(2) == [second]
        assert accountant.records(3) == []
        rows = [row for row in accountant.journal() if row["kind"] == "recorded"]
        told = [
            {"number": each.number, "kind": each.kind, "name": each.name, "body": each.body}
            for each in (first, second)
        ]
        assert [row["record"] for row in rows] == told
        head = check(accountant)
        accountant = place.reopen(accountant, clock)
        assert accountant.records() == [first, second]
        check(accountant, head)
        accountant.close()

    def test_record_after_an_unknown_record_is_refused(self, accountant: Accountant) -> None:
        accountant.record("badge", "team-a", {}, expected=0)
        before = everything(accountant)
        for expected in (0, 2, 7):
            with pytest.raises(RecordConflict) as conflict:
                accountant.record("badge", "team-b", {}, expected=expected)
            assert (conflict.value.expected, conflict.value.newest) == (expected, 1)
        assert everything(accountant) == before
        results = in_threads(6, lambda number: accountant.record("badge", f"team-{number}", {}, expected=1))
        assert sorted(isinstance(result, RecordConflict) for result in results) == [False] + [True] * 5
        assert len(accountant.records()) == 2
        check(accountant)

    def test_record_invalid_is_refused(self, accountant: Accountant) -> None:
        none: list[tuple[Any, Any, Any]] = [
            ("", "a", {}),
            ("Badge", "a", {}),
            (7, "a", {}),
            ("badge", "", {}),
            ("badge", "a" * 201, {}),
            ("badge", "a", []),
            ("badge", "a", {"a": {1, 2}}),
            ("badge", "a", {1: 2}),
            ("badge", "a", {"a": (1, 2)}),
            ("badge", "a", {"a": float("nan")}),
            ("badge", "a", {"a": "b" * 100_000}),
        ]
        for kind, name, body in none:
            with pytest.raises(InvalidParameter, match=r"kind|name|body"):
                accountant.record(kind, name, body, expected=0)
            assert accountant.records() == [], (kind, name, body)

    def test_positions_are_the_ends_of_the_journal(self, accountant: Accountant) -> None:
        def at(position: str) -> dict[str, int]:
            return {
                partition: int(entry) for partition, _, entry in (each.partition(":") for each in position.split(","))
            }

        before = at(accountant.position())
        accountant.set_policy("default", ["lifetime=9"])
        assert accountant.spend("alice", coin(1))
        mine, after = at(accountant.position("alice")), at(accountant.position())
        assert after.keys() == before.keys()
        assert mine.items() <= after.items()
        assert sum(after.values()) == accountant.stats()["entries"]

    # -- who did it ---------------------------------------------------------------------------------------

    def test_entries_have_the_key_of_their_writer(self, place: Place, clock: Clock) -> None:
        accountant = place.open(clock)
        team = accountant.acting_for(made(accountant, "team-a"))
        other = accountant.acting_for(made(accountant, "zoe"))
        team.set_policy("default", ["lifetime=20"])
        other.add_collection(Collection("party", coin(1)))
        accountant.spend("alice", coin(1))
        team.spend("alice", coin(1), key="k", note="by team a")
        team.spend_many(["alice", "bob"], coin(1), note="in bulk")
        held = team.reserve("alice", coin(1)).receipt or ""
        other.commit(held)
        other.void(accountant.reserve("alice", coin(1)).receipt or "")
        team.record("note", "x", {}, expected=2)
        other.erase("bob")
        rows = list(accountant.journal())
        told = [
            (row["kind"], row["by"]) for row in rows if row["kind"] in ("policy", "collection", "erased", "recorded")
        ]
        assert sorted(told, key=str) == [
            ("collection", "zoe"),
            ("erased", "zoe"),
            ("policy", "team-a"),
            ("recorded", "team-a"),
            ("recorded", None),
            ("recorded", None),
        ]
        assert [record.by for record in accountant.records()] == [None, None, "team-a"]
        history = [("spent", None), ("spent", "team-a"), ("spent", "team-a"), ("reserved", "team-a")]
        history += [("committed", "zoe"), ("reserved", None), ("voided", "zoe")]
        assert [(row["kind"], row["by"]) for row in accountant.history("alice")] == history
        assert [row["note"] for row in accountant.history("alice")][:3] == [None, "by team a", "in bulk"]
        head = check(accountant)
        accountant = place.reopen(accountant, clock)
        assert list(accountant.journal()) == rows
        check(accountant, head)
        accountant.close()

    def test_clock_repair_entry_names_its_writer(self, accountant: Accountant, clock: Clock) -> None:
        team = accountant.acting_for(made(accountant, "team-a"))
        accountant.set_policy("default", ["lifetime=20"])
        clock.advance(days=1)
        assert accountant.spend("alice", coin(1))
        clock.advance(days=-1)
        assert team.repair_clock()
        assert {row["by"] for row in accountant.journal() if row["kind"] == "clock"} <= {"team-a"}
        check(accountant)

    def test_idempotency_keys_are_separate_for_each_caller(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=20"])
        caller, successor = made(accountant, "team-a"), made(accountant, "team-a")
        users = [accountant, accountant.acting_for(caller), accountant.acting_for(made(accountant, "b"))]
        receipts = [each.spend("alice", coin(number), key="k") for number, each in enumerate(users, 1)]
        assert [receipt.repeated for receipt in receipts] == [False] * 3
        assert [each.spend("alice", coin(number), key="k").receipt for number, each in enumerate(users, 1)] == [
            receipt.receipt for receipt in receipts
        ]
        assert accountant.acting_for(successor).spend("alice", coin(2), key="k").repeated, "the name tells them apart"
        for number, each in enumerate(users, 1):
            with pytest.raises(KeyConflict):
                each.spend("alice", coin(number), reports=2, key="k")
            assert each.spend_many(["alice", "bob"], coin(1), key="run").repeated == 0
            assert each.spend_many(["alice", "bob"], coin(1), key="run").repeated == 2
        assert spent(accountant, "bob") == {"lifetime": 3}
        check(accountant)

    def test_callers_in_one_transaction_are_kept_separate(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=200"])
        callers = [made(accountant, f"team-{number}") for number in range(4)]

        def spend(number: int) -> None:
            for _ in range(5):
                accountant.acting_for(callers[number]).spend("alice", coin(number + 1))

        in_threads(4, spend)
        told = {(row["epsilon"], row["by"]) for row in accountant.history("alice")}
        assert told == {(number + 1, f"team-{number}") for number in range(4)}
        assert accountant.history("alice")[0]["account"] == 1
        check(accountant)

    # -- shares -------------------------------------------------------------------------------------------

    def test_spend_with_a_share_must_fit_the_share_and_the_limit(self, place: Place, clock: Clock) -> None:
        accountant = place.open(clock)
        shares = {"a": ["lifetime=1", "day=0.75"], "b": ["lifetime=3,1e-7"]}
        accountant.set_policy("default", ["lifetime=4,1e-6", "day=3,1e-6"], shares=shares)
        a, b = (accountant.acting_for(made(accountant, f"key-of-{share}", share)) for share in shares)
        assert a.spend("alice", coin("0.5"))
        assert a.spend("alice", coin("0.3"), key="k").binding == ("day (a)",)
        assert a.spend("alice", coin("0.3"), key="k").repeated
        assert b.spend("alice", coin(2))
        assert accountant.spend("alice", coin("0.25"))
        users = [f"user-{number}" for number in range(9)]
        assert a.spend_many([*users, "alice"], coin("0.5")).refused_users == ["alice"]
        assert a.spend_many([*users[:4], "alice"], coin("0.25")).refused == 0
        assert b.spend_many([*users, "alice"], promising(Approximate("0.25", "1e-7"))).refused_users == ["alice"]
        held = a.reserve("bob", coin("0.75")).receipt or ""
        assert not a.spend("bob", coin("0.1"))
        accountant.void(held)
        assert a.spend("bob", coin("0.7"))
        clock.advance(days=1)
        assert a.spend("alice", coin("0.25"))
        assert a.spend("alice", coin("0.25")).binding == ("lifetime (a)",)

        def spent_of(user: str) -> dict[str, float]:
            limits = accountant.balance(user).to_json()["limits"]
            return {limit["period"]: limit["spent"]["epsilon"] for limit in limits}

        told = {user: spent_of(user) for user in ("alice", "bob", users[0], users[8])}
        assert told == {
            "alice": {"lifetime": 3.25, "day": 0.25, "lifetime (a)": 1, "day (a)": 0.25, "lifetime (b)": 2},
            "bob": {"lifetime": 0.7, "day": 0, "lifetime (a)": 0.7, "day (a)": 0, "lifetime (b)": 0},
            users[0]: {"lifetime": 1, "day": 0, "lifetime (a)": 0.75, "day (a)": 0, "lifetime (b)": 0.25},
            users[8]: {"lifetime": 0.75, "day": 0, "lifetime (a)": 0.5, "day (a)": 0, "lifetime (b)": 0.25},
        }
        head = check(accountant)
        accountant.set_policy("default", ["lifetime=4,1e-6", "week=3"], shares={**shares, "a": ["week=1"]})
        assert spent_of("alice")["week (a)"] == 1
        accountant = place.reopen(accountant, clock)
        assert spent_of("bob")["week (a)"] == 0.7
        check(accountant, head)
        accountant.close()

    # -- what is kept -------------------------------------------------------------------------------------

    def test_close_and_reopen_loses_nothing(self, place: Place, clock: Clock) -> None:
        accountant = place.open(clock)
        accountant.set_policy("default", ["lifetime=9", "day=5", Limit("month", "40", "1e-6", "zcdp")])
        accountant.add_collection(
            Collection("poll", ldp_budget.mechanism("oue")(epsilon=1, domain_size=2), ("a", "b"), minimum_group=1)
        )
        first = accountant.spend("alice", coin(1), key="k")
        held = accountant.reserve("alice", coin("0.5"), expires=60)
        accountant.spend("alice", promising(CURVE), label="home")
        accountant.spend_many(["bob"], coin(1), key="run")
        before, balance = everything(accountant), accountant.balance("alice").to_json()
        accountant = place.reopen(accountant, clock)
        assert everything(accountant) == before
        assert accountant.balance("alice").to_json() == balance
        assert accountant.collection("poll").categories == ("a", "b")
        assert accountant.spend("alice", coin(1), key="k").to_json() == {**first.to_json(), "repeated": True}
        assert accountant.spend_many(["bob"], coin(1), key="run").repeated == 1
        assert accountant.void(held.receipt or "").status == "voided"
        assert accountant.spend("alice", promising(CURVE), label="home").epsilon == 1.35
        check(accountant, before[1]["head"])
        accountant.close()

    def test_moments_of_any_time_zone_are_accepted(self, accountant: Accountant, clock: Clock) -> None:
        from datetime import timezone

        accountant.set_policy("default", ["day=1"], unbounded=True)
        clock.now = datetime(2026, 11, 22, 1, tzinfo=timezone(timedelta(hours=1)))  # midnight in UTC
        accountant.spend("alice", coin(1))
        clock.now = datetime(2026, 11, 22, 23, 59, tzinfo=UTC)
        assert not accountant.spend("alice", coin(1))


class StoreContract(LedgerContract):
    """The same, and what a ledger's own store keeps of reports."""

    def test_report_is_stored_with_its_charge_and_sealed_once(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=2"])
        first = send(accountant, "alice", b"\1")
        for report in (b"\1", b"\2"):
            again = send(accountant, "alice", report)
            assert (again.receipt, again.repeated) == (first.receipt, True)
        assert send(accountant, "alice", b"\3", "second")
        assert send(accountant, "alice", b"\4", "third").status == "refused"
        assert (accountant.reports.waiting("poll"), len(accountant.history("alice"))) == (2, 2)
        head = check(accountant)
        assert seal(accountant, "one") == 2
        assert send(accountant, "alice", b"\1").receipt == first.receipt
        assert (accountant.reports.waiting("poll"), accountant.reports.rounds("poll")) == (0, ["one"])
        assert sorted(content_of(accountant, "one")) == [1, 3]
        check(accountant, head)

    def test_books_hold_all_totals_and_the_charges_of_sealed_reports(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=9"])
        accountant.spend("bob", POLL, key="k", reports=3)
        mark = bytes(range(16))
        taken = [Taken(user, b"\1", "k", note=note_of(mark) if user == "eve" else None) for user in ("ada", "eve")]
        other = Collection("other", POLL.mechanism, minimum_group=1)
        receipts = accountant.reports.take_many(taken, other, "default")
        accountant.add_collection(other)
        assert accountant.reports.seal("other", "one") == 2
        totals: list[int] = []

        def leaf(partition: int, account: int, total: int) -> bytes:
            totals.append(total)
            return b""

        book = accountant.books.read("other", "epsilon", 10**10, leaf)
        assert (sorted(totals), book.largest) == ([10**9, 10**9, 3 * 10**9], 3 * 10**9)
        assert sorted((each.costs.epsilon, each.mark or b"") for each in book.charges) == [
            (10**9, b""),
            (10**9, mark),
        ]
        found = accountant.books.find(mark)
        assert found is not None
        assert found._replace(mark=mark) in book.charges
        assert accountant.books.total(found, book.heads[found.partition], "epsilon") == 10**9
        names = [receipt.receipt or "" for receipt in receipts]
        assert [costs.epsilon for costs in accountant.books.costs_of(names)] == [10**9, 10**9]
        accountant.erase("eve")
        assert accountant.books.find(mark) is None
        assert len(accountant.books.read("other", "epsilon", 10**10, leaf).charges) == 2

    def test_key_of_a_charge_without_report_is_a_conflict(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=9"])
        accountant.spend("alice", POLL, key="k")
        with pytest.raises(KeyConflict):
            send(accountant, "alice", b"\1")
        send(accountant, "bob", b"\1")
        with pytest.raises(KeyConflict):
            accountant.spend("bob", POLL, key="k")
        assert accountant.reports.waiting("poll") == 1

    def test_seal_takes_whole_groups_and_each_name_once(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=9"])
        for number in range(7):
            send(accountant, f"user {number}", bytes([number]))
        with pytest.raises(
            TooFewReports, match=r"too few reports to seal: 7\. Nothing was sealed\. Wait until there are 8 reports"
        ):
            seal(accountant, "one", 8)
        assert seal(accountant, "one", 3) == 6
        assert accountant.reports.waiting("poll") == 1
        with pytest.raises(NameTaken, match="one"):
            seal(accountant, "one")
        assert seal(accountant, "two") == 1
        found = [content_of(accountant, name) for name in accountant.reports.rounds("poll")]
        assert sorted(b"".join(found)) == list(range(7))
        with pytest.raises(UnknownName, match="one, two"):
            next(accountant.reports.round("poll", "three"))
        with pytest.raises(TooFewReports):
            seal(accountant, "three")
        assert accountant.reports.rounds("other") == []
        check(accountant)

    def test_round_larger_than_a_part_is_read_whole(
        self, accountant: Accountant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ldp_budget.accounting.stored_reports.PART_BYTES", 8)
        accountant.set_policy("default", ["lifetime=9"])
        sent = [bytes([number] * 3) for number in range(7)]
        for number, report in enumerate(sent):
            send(accountant, f"user {number}", report)
        seal(accountant, "one")
        parts = list(accountant.reports.round("poll", "one"))
        assert [len(part.content) for part in parts] == [6, 6, 6, 3]
        content = content_of(accountant, "one")
        assert sorted(content[start : start + 3] for start in range(0, 21, 3)) == sent
        check(accountant)

    def test_erased_user_has_no_waiting_report(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=9"])
        for user in ("alice", "bob"):
            send(accountant, user, user.encode())
        assert accountant.erase("alice")
        assert accountant.reports.waiting("poll") == 1
        check(accountant)
        seal(accountant, "one")
        assert content_of(accountant, "one") == b"bob"
        assert accountant.erase("bob")
        assert content_of(accountant, "one") == b"bob"
        check(accountant)

    def test_threads_that_send_and_seal_keep_each_report_once(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=9"])

        def work(number: int) -> int:
            if number == 0:
                try:
                    return seal(accountant, "early", 2)
                except TooFewReports:
                    return 0
            for user in range(number % 2, 12, 2):
                assert send(accountant, f"user {user}", bytes([user]))
            return 0

        early, *others = in_threads(5, work)
        assert others == [0] * 4
        assert accountant.reports.waiting("poll") == 12 - early
        if early < 12:
            seal(accountant, "late")
        found = [content_of(accountant, name) for name in accountant.reports.rounds("poll")]
        assert sorted(b"".join(found)) == list(range(12))
        check(accountant)
