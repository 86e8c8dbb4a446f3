"""Reports that a ledger keeps: stored with their charge, sealed in rounds, and in the books."""

from __future__ import annotations

import pytest

from contract.acts import POLL, check, content_of, in_threads, seal, send
from ldp_budget import Accountant, KeyConflict, UnknownName
from ldp_budget.accounting.stored_reports import Taken, note_of
from ldp_budget.errors import NameTaken, TooFewReports
from ldp_budget.registry.collections import Collection


class ReportsContract:
    """Reports that a ledger keeps."""

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
