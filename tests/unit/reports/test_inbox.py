"""The inbox: a report is charged once and kept once, however often it is sent, through which process and to which engine."""

from __future__ import annotations

import hashlib
import itertools
import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ldp_budget
from contract.acts import check
from contract.places import InFile
from ldp_budget import Accountant, Collection, InvalidParameter, KeyConflict, NotSupported, ReportFileError
from ldp_budget.reports.inbox import Inbox
from ldp_budget.reports.report_file import open_reports, read_reports

pytestmark = pytest.mark.policy("lifetime=2")

PARTY = Collection("party", ldp_budget.mechanism("oue")(epsilon=1, domain_size=3), ("a", "b", "c"), minimum_group=1)
NUMBERS = Collection(
    "numbers", ldp_budget.mechanism("random-substitution")(epsilon=1, domain_size=1000), minimum_group=1
)


@pytest.fixture
def place(tmp_path: Path) -> InFile:
    return InFile(tmp_path / "budget.db")


@pytest.fixture
def box(accountant: Accountant) -> Inbox:
    return Inbox(accountant, PARTY)


def sealed(path: Path, collection: Collection = PARTY) -> list[bytes]:
    return [row.tobytes() for block in read_reports(path, collection) for row in block]


def in_round(box: Inbox, name: str) -> list[bytes]:
    return [row.tobytes() for block in box.round(name) for row in block]


def test_report_is_charged_stored_sealed_and_written(box: Inbox, accountant: Accountant, tmp_path: Path) -> None:
    assert box.take("alice", "poll", b"\1")
    assert (len(box), box.seal("one"), len(box)) == (1, 1, 0)
    assert (box.rounds(), in_round(box, "one")) == (["one"], [b"\1"])
    assert (box.write("one", tmp_path / "out"), sealed(tmp_path / "out")) == (1, [b"\1"])
    assert len(accountant.history("alice")) == 1


def test_retry_also_after_the_seal_stores_nothing(box: Inbox, accountant: Accountant) -> None:
    first = box.take("alice", "poll", b"\1")
    assert [box.take("alice", "poll", sent).receipt for sent in (b"\1", b"\2")] == [first.receipt] * 2
    box.seal("one")
    again = Inbox(accountant, PARTY).take("alice", "poll", b"\1")
    assert (again.receipt, again.repeated, len(box)) == (first.receipt, True, 0)


@pytest.mark.slow
def test_sealed_reports_with_ledger_and_key_are_linked_to_no_user(accountant: Accountant) -> None:
    """The ledger kept a digest over the report: with the key, a spend under each user's key with that digest said
    which report was whose, for 40 of 40 sealed reports."""
    box = Inbox(accountant, NUMBERS)
    sent = {f"user {number}": number.to_bytes(2, "little") for number in range(40)}
    for user, each in sent.items():
        box.take(user, "poll", each)
    box.seal("one")
    linked = 0
    for each in in_round(box, "one"):
        guess = hashlib.sha256(each).hexdigest()
        for user in sent:
            with suppress(KeyConflict):
                linked += accountant.spend(user, NUMBERS, key="poll", digest=guess).repeated
    assert linked == 0
    # What the inbox itself answers is the same for every pair of a user and a report.
    answers = {box.take(user, "poll", each).repeated for user in sent for each in sent.values()}
    assert answers == {True}


def test_sealed_report_is_in_the_file_of_the_ledger_once(accountant: Accountant, tmp_path: Path) -> None:
    """In the round. The row that names its entry, with the MAC over both, is overwritten, in the log too."""
    wide = Collection("wide", ldp_budget.mechanism("oue")(epsilon=1, domain_size=512), minimum_group=1)
    box = Inbox(accountant, wide)
    sent = [os.urandom(box.report_bytes) for _ in range(20)]
    for number, each in enumerate(sent):
        box.take(f"user {number}", "poll", each)
    with accountant._ledger.reading() as reading:
        row_macs = [row.row_mac for row in reading.rows.waiting_reports()]
    box.seal("one")
    files = [path.read_bytes() for path in tmp_path.iterdir()]
    assert [sum(file.count(each) for file in files) for each in sent] == [1] * 20
    assert [each for each in row_macs if any(each in file for file in files)] == []
    check(accountant)


def test_erased_report_is_nowhere_in_the_file(accountant: Accountant, tmp_path: Path) -> None:
    wide = Collection("wide", ldp_budget.mechanism("oue")(epsilon=1, domain_size=512), minimum_group=1)
    box = Inbox(accountant, wide)
    sent = os.urandom(box.report_bytes)
    box.take("alice", "poll", sent)
    accountant.erase("alice")
    assert [path.name for path in tmp_path.iterdir() if sent in path.read_bytes()] == []


@pytest.mark.slow
def test_order_in_a_round_is_not_that_of_arrival(accountant: Accountant) -> None:
    box = Inbox(accountant, NUMBERS)
    sent = [number.to_bytes(2, "little") for number in range(200)]
    for number, each in enumerate(sent):
        box.take(f"user {number}", "poll", each)
    box.seal("one")
    found = in_round(box, "one")
    assert sorted(found) == sorted(sent)
    assert found != sent


@pytest.mark.parametrize("sent", [b"", b"\x01\x01", b"\x08", b"\xff"], ids=["none", "two", "padding", "all"])
def test_report_that_no_client_sends_is_not_charged(box: Inbox, accountant: Accountant, sent: bytes) -> None:
    with pytest.raises(NotSupported, match=r"must have|must be"):
        box.take("alice", "poll", sent)
    assert (len(box), accountant.history("alice")) == (0, [])


def test_seal_with_a_changed_waiting_report_is_refused(box: Inbox, tmp_path: Path) -> None:
    box.take("alice", "poll", b"\1")
    with closing(sqlite3.connect(tmp_path / "budget.db")) as database, database:
        database.execute("UPDATE reports SET report = ?", (b"\2",))
    with pytest.raises(ldp_budget.LedgerError, match=r"report 1 was changed\. Nothing was written"):
        box.seal("one")
    assert box.rounds() == []


def test_key_of_another_collection_is_a_conflict(accountant: Accountant, box: Inbox) -> None:
    """One mechanism in two collections, and two reports that happen to be equal: both give something away."""
    other = Inbox(accountant, Collection("next year", PARTY.mechanism, ("a", "b", "c"), minimum_group=1))
    assert box.take("alice", "1", b"\1")
    with pytest.raises(KeyConflict):
        other.take("alice", "1", b"\1")
    assert (len(other), len(accountant.history("alice"))) == (0, 1)
    assert other.take("alice", "2", b"\1")
    assert (len(box), len(other), len(accountant.history("alice"))) == (1, 1, 2)


def test_memoised_reports_go_along_their_curve(accountant: Accountant) -> None:
    kept = Collection(
        "kept", ldp_budget.mechanism("d-bit-flip")(epsilon=1, buckets=5, bits=5, memoize=True), minimum_group=1
    )
    box, secret = Inbox(accountant, kept), os.urandom(32)
    (label,) = kept.labels(np.array([3]), [secret])
    sent = bytes(kept.randomize(np.array([3]), secrets=[secret]).tobytes())
    assert all(box.take("alice", str(day), sent, label=label) for day in range(5))
    assert len(box) == 5


def test_file_that_cannot_be_written_leaves_the_round(box: Inbox, tmp_path: Path) -> None:
    box.take("alice", "poll", b"\1")
    box.seal("one")
    (tmp_path / "mine").write_text("mine")
    for out in ("mine", "nowhere/out"):
        with pytest.raises(ReportFileError, match=r"already exists|cannot be written"):
            box.write("one", tmp_path / out)
    assert (tmp_path / "mine").read_text() == "mine"
    assert (box.write("one", tmp_path / "out"), sealed(tmp_path / "out")) == (1, [b"\1"])


@pytest.mark.slow
def test_ledger_that_was_moved_has_its_reports_and_rounds(box: Inbox, accountant: Accountant, tmp_path: Path) -> None:
    for user in ("alice", "bob", "carol"):
        box.take(user, "poll", b"\1")
    box.seal("one", 2)
    accountant.ledger.move_to(tmp_path / "moved.db")
    with Accountant(tmp_path / "moved.db", create=False) as moved:
        again = Inbox(moved, PARTY)
        assert [again.take(user, "poll", b"\1").repeated for user in ("alice", "bob", "carol")] == [True] * 3
        assert (len(again), in_round(again, "one"), again.seal("two")) == (1, [b"\1", b"\1"], 1)
        check(moved)


# -- public attributes -------------------------------------------------------------------------------------------

NORTH, SOUTH = {"region": "north"}, {"region": "south", "age": "65+"}


def attributed(path: Path) -> tuple[tuple[str, ...], list[tuple[bytes, tuple[str, ...]]]]:
    """Return the public columns of a file, and its reports with their values, sorted."""
    with open_reports(path, PARTY) as reports:
        rows = [
            (row.tobytes(), public.combinations[code])
            for block, public in reports.attributed_blocks()
            for row, code in zip(block, public.codes, strict=True)
        ]
        return reports.public, sorted(rows)


def take_mixed(box: Inbox) -> None:
    for number in range(1, 5):
        box.take(f"n{number}", "poll", b"\1", public=NORTH)
        box.take(f"s{number}", "poll", b"\2", public=SOUTH)
        box.take(f"x{number}", "poll", b"\4")


@pytest.mark.slow
def test_attributes_of_sealed_reports_become_columns_of_the_file(
    box: Inbox, accountant: Accountant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldp_budget.accounting.stored_reports.PART_BYTES", 64)  # several parts
    take_mixed(box)
    box.seal("one")
    assert box.attributes("one") == ("age", "region")
    assert box.write("one", tmp_path / "out") == 12
    rows = [*[(b"\1", ("", "north"))] * 4, *[(b"\2", ("65+", "south"))] * 4, *[(b"\4", ("", ""))] * 4]
    assert attributed(tmp_path / "out") == (("age", "region"), rows)
    assert sorted(in_round(box, "one")) == [b"\1"] * 4 + [b"\2"] * 4 + [b"\4"] * 4
    assert {len(part) % (16 + box.report_bytes) for part in box.marked("one")} == {0}
    check(accountant)


def test_chosen_attributes_alone_become_columns(box: Inbox, tmp_path: Path) -> None:
    take_mixed(box)
    box.seal("one")
    assert box.write("one", tmp_path / "out", public=["region"]) == 12
    assert attributed(tmp_path / "out")[0] == ("region",)
    assert box.write("one", tmp_path / "none", public=[]) == 12
    assert b'"public"' not in (tmp_path / "none").read_bytes()
    with pytest.raises(InvalidParameter, match=r"round one \(age, region\): got 'place'"):
        box.write("one", tmp_path / "wrong", public=["place"])
    assert not (tmp_path / "wrong").exists()


@pytest.mark.slow
@pytest.mark.parametrize("public", [["region"], []])
def test_order_of_a_file_does_not_show_the_attributes_that_it_leaves_out(
    box: Inbox, tmp_path: Path, public: list[str]
) -> None:
    """A round has the longest records first, and the length of a record depends on its attributes."""
    for number in range(64):
        age, report = ("18", b"\1") if number % 2 else ("65 or older", b"\2")
        box.take(f"user {number}", "poll", report, public={"region": "north", "age": age})
    box.seal("one")
    box.write("one", tmp_path / "out", public=public)
    box.write("one", tmp_path / "again", public=public)
    first, again = sealed(tmp_path / "out"), sealed(tmp_path / "again")
    assert sorted(first) == sorted(again) == [b"\1"] * 32 + [b"\2"] * 32
    assert first not in (sorted(first), sorted(first, reverse=True))
    assert first != again  # two files with different columns cannot be joined by their order


def test_attributes_stay_with_their_report_if_others_are_left_out(box: Inbox, tmp_path: Path) -> None:
    take_mixed(box)
    box.seal("one")
    box.write("one", tmp_path / "out", public=["region"])
    rows = [*[(b"\1", ("north",))] * 4, *[(b"\2", ("south",))] * 4, *[(b"\4", ("",))] * 4]
    assert attributed(tmp_path / "out")[1] == rows


@pytest.mark.parametrize("other", [SOUTH, {"region": "North"}, {"place": "north"}, None, {}])
def test_retry_with_other_attributes_is_a_conflict(box: Inbox, other: dict[str, str] | None) -> None:
    assert box.take("alice", "poll", b"\1", public=NORTH)
    for _ in range(2):
        with pytest.raises(KeyConflict):
            box.take("alice", "poll", b"\1", public=other)
        assert box.take("alice", "poll", b"\2", public=NORTH).repeated
        if not box.rounds():
            box.seal("one")
    assert (len(box), in_round(box, "one")) == (0, [b"\1"])


@pytest.mark.parametrize(
    "public",
    [
        "north",
        ["region"],
        {"region": 1},
        {"region": None},
        {1: "north"},
        {"region": ""},
        {"region": " "},
        {"": "north"},
        {"region": "x" * 65},
        {"r" * 65: "north"},
        {"region": "a\nb"},
        {"region": "\ud800"},
        {"region": "a", " region": "b"},
        {str(number): "x" for number in range(9)},
    ],
)
def test_invalid_attributes_charge_and_store_nothing(box: Inbox, accountant: Accountant, public: Any) -> None:
    with pytest.raises(InvalidParameter, match="public"):
        box.take("alice", "poll", b"\1", public=public)
    assert (len(box), accountant.history("alice")) == (0, [])


def test_erased_attributes_are_nowhere_in_the_file(box: Inbox, accountant: Accountant, tmp_path: Path) -> None:
    box.take("alice", "poll", b"\1", public={"region": "a village of few"})
    assert [path for path in tmp_path.iterdir() if b"a village of few" in path.read_bytes()]
    accountant.erase("alice")
    assert [path.name for path in tmp_path.iterdir() if b"a village of few" in path.read_bytes()] == []


# -- every mechanism -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_report_of_every_client_passes() -> None:
    from client_cases import CASES, answers_for

    with Accountant(":memory:") as accountant:
        for place, (name, mechanism) in enumerate(CASES.items()):
            if name == "exact-olh":  # an inbox finds its mechanism among those that are installed
                continue
            collection = Collection(name.replace(" ", "-"), mechanism, minimum_group=1)
            box = Inbox(accountant, collection)
            values = np.array(list(itertools.islice(answers_for(mechanism.client_program(), place), 20)))
            rows = collection.randomize(values, secrets=[os.urandom(32) for _ in values])
            for row in rows:
                box.check(row.tobytes())


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("cms of any text", b"\xff\xff" + bytes(3)),
        ("cms of any text", bytes(4) + b"\xff"),
        ("hcms", b"\xff\xff"),
        ("rappor", b"\x08\x00" + bytes(4)),
        ("rappor for any inputs", bytes(4) + b"\xff"),
        ("random-substitution", b"\x07"),
        ("subset-selection", b"\x01\x01\x02"),
        ("d-bit-flip", bytes(4)),
        ("every bucket", b"\x20"),
        ("randomized-response", b"\x02"),
        ("bounded-laplace", np.float64(11).tobytes()),
        ("bounded-laplace", np.float64("nan").tobytes()),
        ("laplace", np.float64("inf").tobytes()),
    ],
)
def test_report_that_no_client_can_send_is_refused(name: str, sent: bytes) -> None:
    from client_cases import CASES

    with Accountant(":memory:") as accountant:
        box = Inbox(accountant, Collection("x", CASES[name], minimum_group=1))
        assert len(sent) == box.report_bytes
        with pytest.raises(NotSupported):
            box.check(sent)


# -- the command line ----------------------------------------------------------------------------------------------
