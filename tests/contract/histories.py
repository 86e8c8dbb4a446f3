"""What a ledger shows, keeps, names and erases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import ldp_budget
from contract.acts import CURVE, check, coin, everything, in_threads, made, promising, spent
from contract.places import Place
from fixed_clock import Clock
from ldp_budget import Accountant, InvalidParameter, KeyConflict, Limit, RecordConflict, UnknownName
from ldp_budget.accounting.plans import Plan
from ldp_budget.errors import UserErased
from ldp_budget.guarantees import Approximate
from ldp_budget.registry.collections import Collection


class HistoriesContract:
    """What a ledger shows, keeps, names and erases."""

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
