"""Ledgers that releases wrote are opened, verified and charged by the code of today, see `released_files`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import CommandLine
from contract.acts import coin
from contract.rotation import exchange
from format_story import BULK, COLLECTIONS, OUE, PANEL, POLICIES, RAPPOR, again, facts, hours_of, taken
from ldp_budget import KeyConflict, ReservationConflict
from ldp_budget._files import canonical_json
from ldp_budget.accounting.batch import Spend
from ldp_budget.reports.inbox import Inbox
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_service.approvals import Approvals
from ldp_budget_service.invitations import Invitations
from ldp_budget_surveys.publication.publisher import Publisher
from ldp_budget_surveys.rotation import Rotation
from released_files import Released, holds


class ReleasedLedgerContract:
    """Tests of a ledger that a release wrote. A class of tests has the fixture `released`."""

    def test_ledger_verifies_and_shows_what_was_recorded(self, released: Released) -> None:
        with released.open() as accountant:
            assert accountant.verify(expect=released.about["checkpoint"]).ok
            found = facts(accountant)
            for name, recorded in released.facts.items():
                assert holds(found[name], recorded), name

    def test_recorded_ledger_has_rows_in_each_table(self, released: Released) -> None:
        assert [table for table, rows in released.about["rows"].items() if not rows] == []

    def test_exported_journal_has_the_same_rows(self, released: Released) -> None:
        with released.open():
            pass
        exported = CommandLine(released.place)("ledger", "export", "--nl").stdout.splitlines()
        assert holds([json.loads(line) for line in exported], released.journal())

    def test_retries_get_the_stored_responses_and_charge_nothing(self, released: Released) -> None:
        with released.open() as accountant:
            before = accountant.stats()["entries"]
            for request in released.about["requests"]:
                stored = {**request["response"], "repeated": True}
                if request["act"] == "reserve":
                    del stored["status"]  # a reservation has the one of its end
                assert holds(again(accountant, request), stored), request
            done = accountant.spend_many(BULK, accountant.collection("party"), key="run")
            run = released.about["run"]
            assert (done.spent, done.refused, done.repeated) == (0, run["refused"], run["spent"])
            lines = [
                Spend("alice", OUE),
                Spend("hal", OUE, reports=99),
                Spend("ida", RAPPOR, label="x", policy="values"),
            ]
            assert [line.status for line in accountant.spend_batch(lines, key="batch")] == released.about["batch"]
            with pytest.raises(KeyConflict):
                accountant.spend("alice", OUE, reports=2, key="monday")
            assert accountant.stats()["entries"] == before

    def test_charges_continue_the_sums_of_each_policy(self, released: Released) -> None:
        released.clock.advance(days=20)
        with released.open() as accountant:
            first, second = (
                accountant.spend("erin", RAPPOR, label=label, policy="values") for label in ("today", "new")
            )
            assert first.epsilon < second.epsilon
            assert [bool(accountant.spend("carol", OUE, policy="planned")) for _ in range(4)] == [True] * 3 + [False]
            for policy in POLICIES:
                assert accountant.spend(f"new of {policy}", OUE, policy=policy).status == "spent"
            spent = [bool(accountant.spend("gina", OUE, policy="sliding")) for _ in range(7)]
            assert 0 < spent.count(True) < 7
            assert accountant.spend("frank", OUE, reports=3, tags=["attribute:health"], policy="scoped").status == (
                "refused"
            )
            for user in released.about["erased"]:
                assert accountant.is_erased(user)
                assert not accountant.spend(user, coin("0.001"))
            accountant.set_policy("plain", [*POLICIES["plain"]["limits"], "day=1"])
            assert not accountant.spend("frank", OUE, reports=3, policy="plain")
            accountant.erase("alice")
            assert accountant.verify(expect=released.facts["head"]).ok
        with released.open() as accountant:
            assert accountant.verify(expect=released.facts["head"]).ok

    def test_windows_of_a_later_day_are_empty(self, released: Released) -> None:
        released.clock.advance(days=40)
        with released.open() as accountant:
            limits = {
                state.limit.period: state.spent_units.epsilon
                for state in accountant.balance("gina", "sliding").limits
            }
            assert limits["lifetime"]
            assert not any(spent for period, spent in limits.items() if period != "lifetime")

    def test_reservations_end_as_they_would_have(self, released: Released) -> None:
        receipts = released.about["receipts"]
        with released.open() as accountant:
            assert accountant.commit(receipts["committed"]).status == "committed"
            assert accountant.void(receipts["voided"]).status == "voided"
            with pytest.raises(ReservationConflict):
                accountant.void(receipts["expired"])
            assert accountant.void(receipts["open"]).status == "voided"
            assert accountant.verify(expect=released.facts["head"]).ok

    def test_keys_approvals_and_invitations_hold(self, released: Released) -> None:
        with released.open() as accountant:
            keys = ApiKeys(accountant)
            found = {name: keys.find(secret) for name, secret in released.about["keys"].items()}
            assert [name for name, key in found.items() if key is None] == ["gone"]
            team, officer = found["team-a"], found["officer-1"]
            assert team is not None
            assert officer is not None
            limits = accountant.acting_for(team.caller).spend("alice", COLLECTIONS["party"]).limits
            assert "team-a" in [state.to_json().get("share") for state in limits]
            approvals = Approvals(accountant).acting_for(officer.caller)
            assert approvals.demanded
            assert [each.number for each in approvals.pending()] == [released.about["waiting"]]
            approvals.approve(released.about["waiting"])
            assert approvals.apply(released.about["waiting"]).name == "studied"
            invitation = Invitations(accountant).find(released.about["invitation"])
            assert invitation is not None
            assert (invitation.collection, invitation.user, invitation.round) == ("party", "grace", "1")
            assert accountant.verify(expect=released.facts["head"]).ok

    def test_inbox_takes_and_seals_reports(self, released: Released) -> None:
        about = released.about["inbox"]
        with released.open() as accountant:
            inbox = Inbox(accountant, accountant.collection("colour"), policy="plain")
            assert inbox.rounds() == ["first"]
            assert sum(map(len, inbox.round("first"))) == about["sealed"]
            reports = [bytes.fromhex(report) for report in about["reports"]]
            for number, report in enumerate(reports[:23]):
                assert taken(inbox, number, report).repeated
            waiting = len(inbox)
            for number in range(about["sealed"] - waiting):
                assert inbox.take(f"new {number}", "k", reports[0])
            assert inbox.seal("second") == about["sealed"]
            assert accountant.verify(expect=released.facts["head"]).ok

    def test_rotating_survey_keeps_the_turns(self, released: Released) -> None:
        with released.open() as accountant:
            exchange(accountant)
            rotation = Rotation.of(accountant, PANEL, accountant.policy("panel"))
            assert rotation is not None
            assert {user: rotation.phase(user) for user in released.about["phases"]} == released.about["phases"]

    def test_published_survey_is_checked_and_published_again(self, released: Released, tmp_path: Path) -> None:
        with released.open() as accountant:
            site, receipt, proof = released.site(accountant), tmp_path / "receipt", tmp_path / "proof"
            receipt.write_text(json.dumps(released.about["receipt"]), encoding="utf-8")
            publisher = Publisher(accountant)
            for known in (released.about["proof"], None):
                if known is None:
                    publisher.publish(accountant.collection("poll"), site, policy="plain")
                    known = publisher.prove("poll", released.about["receipt"])
                proof.write_text(canonical_json(known), encoding="utf-8")
                options = "--key", released.about["log"], "--receipt", receipt, "--proof", proof
                CommandLine(tmp_path / "none.db")("check", site, *options)

    def test_interrupted_run_is_finished_without_a_charge(self, released: Released) -> None:
        if released.engine == "server":
            pytest.skip("the interrupted run of the release is one of its ledger in a file")
        partial = released.scratch / "hours.out.partial"
        partial.write_bytes((released.release / "hours.out.partial").read_bytes())
        partial.chmod(0o600)
        with released.open() as accountant:
            before = accountant.stats()["entries"]
            done = hours_of(accountant, released.scratch / "hours.out")
            assert (done.reports, done.refused) == (released.about["interrupted"], 0)
            assert accountant.stats()["entries"] == before

    def test_ledger_moves_to_a_new_file(self, released: Released, tmp_path: Path) -> None:
        with released.open() as accountant:
            accountant.ledger.move_to(tmp_path / "moved.db")
        released.place, released.known = str(tmp_path / "moved.db"), released.about["tables"]
        with released.open() as accountant:
            assert accountant.verify().ok
            assert [row["user"] for row in released.facts["balances"] if row.get("erased")]
            for row in released.facts["balances"]:
                assert accountant.balance(row["user"], row["policy"]).to_json()["limits"] == row["limits"]
