"""Files of earlier releases are opened, verified and continued by the current code.

A folder here is what one release wrote, see `format_story.py`; nothing in it is ever written again. A release that
changes a format adds a folder. One that cannot open what is here is a release with another first number.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import importlib.util
import io
import json
import shutil
import sqlite3
import sys
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import format_story as story
from command_line import CommandLine
from fixed_clock import Clock
from ldp_budget import (
    Accountant,
    Collection,
    KeyConflict,
    RecordConflict,
    ReservationConflict,
)
from ldp_budget.errors import TooFewReports
from ldp_budget.ledger.sqlite import schema
from ldp_budget.registry import certification, plugins
from ldp_budget.registry.public_definition import MINIMUM_GROUP, digest_of
from ldp_budget.reports.inbox import Inbox
from ldp_budget.reports.report_file import read_reports
from ldp_budget.sampling import SeededStream
from ldp_budget.sdk.client_program import Program
from ldp_budget.sdk.interpreter import StreamDraws, read, run
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_service.invitations import Invitations

HERE = Path(__file__).parents[2] / "data" / "formats"
LEFT = sorted(path.parent.name for path in HERE.glob("*/about.json"))
# How much all of it may come to; a clone carries it for ever.
MOST_BYTES = 300_000


class Left:
    """The files of a release: the folder, its description, and a copy of the ledger to work on."""

    def __init__(self, name: str, scratch: Path) -> None:
        self.folder = HERE / name
        self.about: dict[str, Any] = json.loads((self.folder / "about.json").read_text(encoding="utf-8"))
        self.path = scratch / "ledger.db"
        self.path.write_bytes(gzip.decompress((self.folder / "ledger.db.gz").read_bytes()))
        key = self.path.with_name("ledger.db.key")
        key.write_bytes(bytes.fromhex(self.about["key"]))
        for file in (self.path, key):
            file.chmod(0o600)
        self.clock = Clock()
        self.clock.now = datetime.fromisoformat(self.about["now"])

    def open(self) -> Accountant:
        return Accountant(self.path, create=False, clock=self.clock)

    def receipt(self, name: str) -> str:
        found: str = self.about["receipts"][name]["receipt"]
        return found

    def tables(self) -> int:
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            return schema.version_of(connection)


@pytest.fixture(params=LEFT)
def left(request: pytest.FixtureRequest, tmp_path: Path) -> Left:
    return Left(request.param, tmp_path)


@pytest.fixture
def at_work(left: Left) -> Any:
    with left.open() as accountant:
        yield accountant


def verified(accountant: Accountant, *heads: str) -> str:
    for head in heads or (None,):
        checked = accountant.verify(expect=head)
        assert (checked.ok, checked.problems) == (True, ())
    return checked.head


# -- the ledger -----------------------------------------------------------------------------------------------------


def test_every_version_of_the_tables_is_here() -> None:
    said = [json.loads((HERE / name / "about.json").read_text(encoding="utf-8")) for name in LEFT]
    assert {about["tables"] for about in said} == set(range(1, schema.SCHEMA_VERSION + 1))


def test_release_files_of_all_versions_stay_small() -> None:
    """Files that two versions wrote alike are stored once."""
    contents = {
        file.read_bytes()
        for name in LEFT
        for file in (HERE / name).rglob("*")
        if file.suffix != ".pyc" and file.is_file()
    }
    assert sum(map(len, contents)) < MOST_BYTES


@pytest.mark.slow
def test_old_ledger_verifies_and_has_the_noted_heads(left: Left) -> None:
    assert left.tables() == left.about["tables"]
    with left.open() as accountant:
        assert verified(accountant, left.about["checkpoint"], left.about["head"]) == left.about["head"]
        assert accountant.verify().entries == left.about["entries"]
    assert left.tables() == schema.SCHEMA_VERSION


@pytest.mark.slow
def test_balances_and_policies_are_as_they_were(left: Left, at_work: Accountant) -> None:
    for row in left.about["balances"]:
        found = story.row_of(at_work.balance(row["user"], row["policy"]))
        assert json.loads(json.dumps(found)) == row
    for name, policy in left.about["policies"].items():
        found = json.loads(json.dumps(at_work.policy(name).to_json()))
        assert {key: found.get(key) for key in policy} == policy


def test_old_ledger_exports_the_same_journal(left: Left) -> None:
    """Perhaps with more columns; the earlier values are unchanged."""
    rows = [json.loads(line) for line in (left.folder / "journal.ndjson").read_text(encoding="utf-8").splitlines()]
    exported = CommandLine(left.path)
    found = [json.loads(line) for line in exported("ledger", "export", "--nl").stdout.splitlines()]
    assert [{name: row[name] for name in before} for before, row in zip(rows, found, strict=True)] == rows
    table = list(csv.DictReader(io.StringIO(exported("ledger", "export", "--csv").stdout)))
    assert [row["entry"] for row in table] == [str(row["entry"]) for row in rows]
    assert set(rows[0]) <= set(table[0])


def test_histories_are_as_they_were(left: Left, at_work: Accountant) -> None:
    found = json.loads(json.dumps(at_work.history("alice"), default=str))
    for before, row in zip(left.about["history"], found, strict=True):
        assert {name: row[name] for name in before} == before


@pytest.mark.slow
def test_retries_are_answered_and_not_charged(left: Left, at_work: Accountant) -> None:
    party = story.COLLECTIONS["party"] if left.about["noted"] else story.OUE
    again = at_work.spend("alice", party, key="monday", digest="ab" * 8)
    assert (again.repeated, again.receipt) == (True, left.receipt("first"))
    assert at_work.spend("alice", story.OUE, reports=9, key="too much").status == "refused"
    with pytest.raises(KeyConflict):
        at_work.spend("alice", story.OUE, reports=2, key="monday")
    done = at_work.spend_many(story.BULK, party, key="run")
    assert (done.spent, done.refused, done.repeated) == (0, left.about["run"]["refused"], left.about["run"]["spent"])
    verified(at_work, left.about["head"])
    assert at_work.stats()["entries"] == left.about["entries"], "no user was charged again"


@pytest.mark.slow
def test_reservations_are_ended_as_they_would_have_been(left: Left, at_work: Accountant) -> None:
    assert at_work.commit(left.receipt("committed")).status == "committed"
    with pytest.raises(ReservationConflict):
        at_work.void(left.receipt("expired"))
    [row] = at_work.open_reservations(user="bob")
    assert row["receipt"] == left.receipt("open")
    assert at_work.void(left.receipt("open")).status == "voided"
    verified(at_work, left.about["head"])


@pytest.mark.slow
def test_old_ledger_continues_to_charge(left: Left, at_work: Accountant) -> None:
    first, second = (at_work.spend("erin", story.RAPPOR, label=label, policy="values") for label in ("today", "new"))
    assert first.epsilon < second.epsilon
    assert [bool(at_work.spend("carol", story.OUE, policy="planned")) for _ in range(4)] == [True] * 3 + [False]
    assert at_work.spend("frank", at_work.collection("party"), key="first", note="new")
    assert at_work.is_erased("dave")
    assert not at_work.spend("dave", story.OUE)
    at_work.erase("alice")
    at_work.set_policy("default", ["lifetime=8,9e-7+1e-7,zcdp", "day=1", "month=4"])
    assert at_work.spend("frank", story.OUE)
    assert at_work.record("note", "anything", {}, expected=len(at_work.records()))
    verified(at_work, left.about["head"], left.about["checkpoint"], at_work.checkpoint())
    at_work.close()
    with left.open() as reopened:
        verified(reopened, left.about["head"])


@pytest.mark.slow
def test_old_ledger_copied_and_backed_up_is_the_same(left: Left, at_work: Accountant, tmp_path: Path) -> None:
    at_work.backup(tmp_path / "backup.db")
    shutil.copy2(left.path.with_name("ledger.db.key"), tmp_path / "backup.db.key")
    with Accountant(tmp_path / "backup.db", create=False, clock=left.clock) as backup:
        verified(backup, left.about["head"])


@pytest.mark.slow
def test_keys_shares_and_invitations_hold(left: Left, at_work: Accountant) -> None:
    if "api_key" not in left.about:
        assert at_work.records() == []
        return
    keys = ApiKeys(at_work)
    key = keys.find(left.about["api_key"])
    assert key is not None
    assert (key.name, key.allows("spend"), key.allows("policy")) == ("team-a", True, False)
    assert {held.name: held.state(left.clock.now) for held in keys.all()}["gone"] == "revoked"
    team = at_work.acting_for(key.caller)
    again = team.spend("alice", story.COLLECTIONS["party"], key="monday")
    assert (again.repeated, again.receipt) == (True, left.about["shared"]["receipt"])
    shares = [state.to_json().get("share") for state in team.spend("alice", story.OUE).limits]
    assert "team-a" in shares
    invitation = Invitations(at_work).find(left.about["invitation"])
    assert invitation is not None
    assert (invitation.collection, invitation.user, invitation.round) == ("party", "grace", "1")
    with pytest.raises(RecordConflict):
        at_work.record("note", "anything", {}, expected=0)
    verified(at_work, left.about["head"])


def test_old_ledger_a_day_later_has_fresh_windows(left: Left, at_work: Accountant) -> None:
    left.clock.advance(days=1)
    day = next(state for state in at_work.balance("alice").limits if state.limit.period == "day")
    assert day.to_json()["spent"]["epsilon"] == 0


# -- collections, definitions, reports ------------------------------------------------------------------------------


@pytest.mark.some(3)
@pytest.mark.parametrize("name", story.COLLECTIONS)
def test_old_collection_has_the_same_definition(left: Left, name: str, tmp_path: Path) -> None:
    shown = json.loads((left.folder / f"{name}.json").read_text(encoding="utf-8"))
    assert Collection.from_json(shown) == story.COLLECTIONS[name]
    with left.open() as accountant:
        assert accountant.collection(name).fingerprint == shown["fingerprint"] == story.COLLECTIONS[name].fingerprint
    numbers = tmp_path / "answers.csv"
    answers = story.PARTIES if name == "party" else story.VALUES[name][:3]
    numbers.write_text("user,answer\n" + "".join(f"u,{answer}\n" for answer in answers), encoding="utf-8")
    secret = tmp_path / "secret"
    secret.write_bytes(story.SECRET)
    secret.chmod(0o600)
    options = (
        "--column",
        "answer",
        "--out",
        tmp_path / "new.reports",
        *(("--secret", secret) if name == "word" else ()),
    )
    CommandLine(left.path)("randomize", left.folder / f"{name}.json", numbers, *options, *_kept(tmp_path, name))
    made = sum(len(block) for block in read_reports(tmp_path / "new.reports", story.COLLECTIONS[name]))
    assert made == 3


def _kept(folder: Path, name: str) -> tuple[object, ...]:
    """The options of a mechanism that memoises."""
    return ("--secret", folder / "secret", "--user-column", "user") if name == "word" else ()


ENDS = {"low", "high", "share_low", "share_high"}
"""Ends of intervals, which a later release may find tighter."""


@pytest.mark.some(3)
@pytest.mark.parametrize("name", story.COLLECTIONS)
def test_old_report_file_gives_the_same_estimate(left: Left, name: str) -> None:
    def close(found: Any, before: Any) -> None:
        if isinstance(before, dict):
            assert set(before) <= set(found)
            for key in before.keys() - ENDS:
                close(found[key], before[key])
        elif isinstance(before, list):
            assert len(found) == len(before)
            for one, other in zip(found, before, strict=True):
                close(one, other)
        else:
            assert found == (pytest.approx(before, rel=1e-9, abs=1e-9) if isinstance(before, float) else before)

    found = CommandLine(left.path).json("estimate", name, left.folder / f"{name}.reports")
    close(found, left.about["estimates"][name])


@pytest.mark.some(3)
@pytest.mark.parametrize("name", story.COLLECTIONS)
def test_old_public_definition_equals_that_of_the_devices(left: Left, name: str) -> None:
    file = left.folder / f"{name}.client.json"
    if not file.exists():
        assert left.about["tables"] == 1  # before there were any
        return
    definition = json.loads(file.read_text(encoding="utf-8"))
    assert digest_of(definition) == definition["digest"]
    shown = ("collection", "show", name, "--client")
    if left.about["library"].startswith("0.") and name == "word":
        # Its program was another one before 1.0: this is reported, and no other program is used in its name.
        assert definition["digest"] in CommandLine(left.path).error(*shown)
        return
    assert CommandLine(left.path).json(*shown) == definition
    program = Program.from_json(definition)
    for answer, seed, report in left.about["drawn"][name]:
        draws = StreamDraws(SeededStream(seed), story.SECRET, definition["context"])
        assert run(program, read(program, answer), draws).hex() == report


@pytest.mark.slow
def test_old_inbox_continues_to_take_reports(left: Left, at_work: Accountant) -> None:
    if "inbox" not in left.about:
        return
    about = left.about["inbox"]
    inbox = Inbox(at_work, at_work.collection("colour"), policy="plain")
    assert (inbox.rounds(), len(inbox)) == (["first"], about["waiting"])
    for number, report in enumerate(about["reports"]):
        assert inbox.take(f"inbox{number}", "k", bytes.fromhex(report)).repeated
    group = at_work.collection("colour").minimum_group
    assert group == MINIMUM_GROUP
    with pytest.raises(TooFewReports):
        inbox.seal("second")
    for number in range(group - about["waiting"]):
        assert inbox.take(f"new {number}", "k", bytes.fromhex(about["reports"][0]))
    assert inbox.seal("second") == group
    assert sum(map(len, inbox.round("first"))) == about["sealed"]
    before = sum(len(block) for block in read_reports(left.folder / "sealed.reports", story.COLLECTIONS["colour"]))
    assert before == about["sealed"]
    verified(at_work, left.about["head"])


@pytest.mark.slow
def test_old_interrupted_run_is_finished_or_refused(left: Left, at_work: Accountant, tmp_path: Path) -> None:
    if "interrupted" not in left.about:
        return
    shutil.copy(left.folder / "hours.out.partial", tmp_path / "hours.out.partial")
    (tmp_path / "hours.out.partial").chmod(0o600)
    done = story.hours_of(at_work, tmp_path / "hours.out")
    assert (done.reports, done.refused) == (left.about["interrupted"], 0)
    assert not (tmp_path / "hours.out.partial").exists()
    assert (
        sum(len(block) for block in read_reports(tmp_path / "hours.out", story.COLLECTIONS["hours"])) == done.reports
    )
    verified(at_work, left.about["head"])
    assert at_work.stats()["entries"] == left.about["entries"], "no user was charged again"


# -- certificates ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_old_certificate_is_read_and_no_longer_counts(left: Left, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate covers the files and the version of ldp-budget: under a later release it stayed "audited"."""
    monkeypatch.setattr(certification, "_own_version", lambda: "99.0.0")
    spec = importlib.util.spec_from_file_location("coin", left.folder / "coin.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "coin", module)
    spec.loader.exec_module(module)
    installed = SimpleNamespace(own=False, name="ldp-budget-coin", version="1.2")
    found = SimpleNamespace(plugin_of={module.Coin: installed}.get)
    monkeypatch.setattr(plugins, "registry", lambda: found)
    monkeypatch.setenv(certification.VARIABLE, str(left.folder / "certificates.json"))
    certification.forget()
    try:
        assert certification.checked(module.Coin) == "no"
        (kept,) = json.loads(certification.certificates_path().read_bytes())["certificates"]
        assert kept["checked"] == "audited"
    finally:
        certification.forget()
