"""The inbox: a report is charged once and kept once, however often it is sent and wherever it is stopped."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import ldp_budget
from ldp_budget import Accountant, Collection, InvalidParameter, KeyConflict, NotSupported, ReportFileError
from ldp_budget.reports import inbox as module
from ldp_budget.reports.inbox import Inbox, TooFewReports
from ldp_budget.reports.report_file import read_reports
from ledger_contract import write_record

if TYPE_CHECKING:
    from collections.abc import Callable

PARTY = Collection("party", ldp_budget.mechanism("oue")(epsilon=1, domain_size=3), ("a", "b", "c"))


@pytest.fixture
def accountant(tmp_path: Path) -> Any:
    with Accountant(tmp_path / "budget.db") as made:
        made.set_policy("default", ["lifetime=2"])
        yield made


@pytest.fixture
def box(accountant: Accountant, tmp_path: Path) -> Inbox:
    return Inbox(accountant, PARTY, tmp_path / "party.inbox")


def report(answer: int = 1) -> bytes:
    return bytes(PARTY.randomize(np.array([answer])).tobytes())


def sealed(path: Path, collection: Collection = PARTY) -> list[bytes]:
    return [row.tobytes() for block in read_reports(path, collection) for row in block]


def test_a_report_is_charged_and_kept(box: Inbox, accountant: Accountant, tmp_path: Path) -> None:
    sent = report()
    receipt = box.take("alice", "poll", sent)
    assert receipt
    assert (len(box), box.seal(tmp_path / "out"), len(box)) == (1, 1, 0)
    assert sealed(tmp_path / "out") == [sent]
    assert len(accountant.history("alice")) == 1


def test_a_retry_is_charged_and_kept_once_also_when_it_was_sealed(
    box: Inbox, accountant: Accountant, tmp_path: Path
) -> None:
    sent = report()
    first = box.take("alice", "poll", sent)
    assert [box.take("alice", "poll", sent).repeated for _ in range(3)] == [True] * 3
    assert box.seal(tmp_path / "one") == 1
    assert box.take("alice", "poll", sent).receipt == first.receipt
    other = Inbox(accountant, PARTY, tmp_path / "party.inbox")
    assert other.take("alice", "poll", sent).repeated
    assert (len(box), box.seal(tmp_path / "two")) == (0, 0)
    assert sealed(tmp_path / "two") == []


def test_take_with_used_key_and_other_report_returns_first_receipt(box: Inbox, tmp_path: Path) -> None:
    """A conflict for another report, and a receipt for the same one, told a holder of the link which one was sent."""
    first = box.take("alice", "poll", b"\x01")
    for again in (b"\x01", b"\x02"):
        receipt = box.take("alice", "poll", again)
        assert (receipt.receipt, receipt.repeated) == (first.receipt, True)
    assert (box.seal(tmp_path / "out"), sealed(tmp_path / "out")) == (1, [b"\x01"])


def test_sealed_reports_with_ledger_and_key_are_linked_to_nobody(accountant: Accountant, tmp_path: Path) -> None:
    """The ledger kept a digest over the inbox's identity and the report: with `inbox.json` and the key, a spend under
    each user's key with that digest said which report was whose, for 40 of 40 sealed reports."""
    numbers = Collection("numbers", ldp_budget.mechanism("random-substitution")(epsilon=1, domain_size=1000))
    folder = tmp_path / "inbox"
    box = Inbox(accountant, numbers, folder)
    sent = {f"user {number}": number.to_bytes(2, "little") for number in range(40)}
    for user, each in sent.items():
        box.take(user, "poll", each)
    box.seal(tmp_path / "out")
    identity = bytes.fromhex(json.loads((folder / "inbox.json").read_bytes())["id"])
    prefix = bytes.fromhex(numbers.fingerprint) + identity
    linked = 0
    for each in sealed(tmp_path / "out", numbers):
        guess = hashlib.sha256(prefix + each).hexdigest()
        for user in sent:
            with suppress(KeyConflict):
                linked += accountant.spend(user, numbers, key="poll", digest=guess).repeated
    assert linked == 0
    # What the inbox itself answers is the same for every pair of a user and a report.
    answers = {box.take(user, "poll", each).repeated for user in sent for each in sent.values()}
    assert answers == {True}


def test_sealed_reports_leave_nothing_in_the_folder(accountant: Accountant, tmp_path: Path) -> None:
    numbers = Collection("numbers", ldp_budget.mechanism("random-substitution")(epsilon=1, domain_size=10**6))
    box = Inbox(accountant, numbers, tmp_path / "inbox")
    sent = [(900_000 + number).to_bytes(4, "little") for number in range(40)]
    for number, each in enumerate(sent):
        box.take(f"user {number}", "poll", each[: box.report_bytes])
    box.seal(tmp_path / "out")
    left = b"".join(path.read_bytes() for path in (tmp_path / "inbox").iterdir())
    assert not [each for each in sent if each in left]


def test_a_refused_user_sends_nothing(box: Inbox) -> None:
    assert [bool(box.take("alice", str(number), report())) for number in range(4)] == [True, True, False, False]
    assert len(box) == 2


@pytest.mark.parametrize("sent", [b"", b"\x01\x01", b"\x08", b"\xff"], ids=["none", "two", "padding", "all"])
def test_what_no_client_sends_is_not_charged(box: Inbox, accountant: Accountant, sent: bytes) -> None:
    with pytest.raises(NotSupported, match="expected"):
        box.take("alice", "poll", sent)
    assert (len(box), accountant.history("alice")) == (0, [])


def test_the_order_says_nothing_of_arrival(box: Inbox, accountant: Accountant, tmp_path: Path) -> None:
    numbers = Collection("numbers", ldp_budget.mechanism("random-substitution")(epsilon=1, domain_size=1000))
    other = Inbox(accountant, numbers, tmp_path / "numbers.inbox")
    sent = [number.to_bytes(2, "little") for number in range(200)]
    for number, each in enumerate(sent):
        other.take(f"user {number}", "poll", each)
    other.seal(tmp_path / "out")
    found = sealed(tmp_path / "out", numbers)
    assert sorted(found) == sorted(sent)
    assert found != sent
    content = (tmp_path / "out").read_bytes()
    assert b"user" not in content
    assert b"poll" not in content


def test_a_folder_belongs_to_one_collection(box: Inbox, accountant: Accountant, tmp_path: Path) -> None:
    other = Collection("other", PARTY.mechanism)
    with pytest.raises(ReportFileError, match="inbox of another collection, party"):
        Inbox(accountant, other, tmp_path / "party.inbox")
    with pytest.raises(ReportFileError, match=r"party \(\w{12}…\); expected that of other \(\w{12}…\)"):
        Inbox(accountant, other, tmp_path / "party.inbox")
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportFileError, match="cannot be an inbox"):
        Inbox(accountant, PARTY, tmp_path / "file")


def test_a_folder_belongs_to_one_ledger_and_its_copies(box: Inbox, accountant: Accountant, tmp_path: Path) -> None:
    box.take("alice", "poll", b"\x01")
    with Accountant(tmp_path / "other.db") as other:
        other.set_policy("default", ["lifetime=2"])
        with pytest.raises(
            ReportFileError, match=r"party in another ledger, .*budget\.db; this ledger is .*other\.db"
        ):
            Inbox(other, PARTY, tmp_path / "party.inbox")
    accountant.ledger.copy_to(tmp_path / "moved.db")
    with Accountant(tmp_path / "moved.db") as moved:
        again = Inbox(moved, PARTY, tmp_path / "party.inbox")
        assert again.take("alice", "poll", b"\x01").repeated
        assert len(again) == 1


SECOND = r"taken into another inbox: .*party\.inbox\. .* ldp-budget inbox move party --inbox .*elsewhere"


def test_inbox_in_second_folder_is_refused(box: Inbox, accountant: Accountant, tmp_path: Path) -> None:
    """Each instance of a service took reports into a folder of its own: a report that was charged and kept by one of
    them was a conflict at the other, and the page said "not counted, nothing charged" of it."""
    early = Inbox(accountant, PARTY, tmp_path / "elsewhere")  # before there is a report
    box.take("alice", "poll", b"\x01")
    with pytest.raises(ReportFileError, match=SECOND):
        early.take("alice", "poll", b"\x01")
    with pytest.raises(ReportFileError, match=SECOND):
        early.take("bob", "poll", b"\x01")
    with pytest.raises(ReportFileError, match=SECOND):
        Inbox(accountant, PARTY, tmp_path / "elsewhere")
    assert (len(box), len(early), accountant.history("bob")) == (1, 0, [])


def test_inbox_that_replaces_another_takes_what_that_one_did_not(
    box: Inbox, accountant: Accountant, tmp_path: Path
) -> None:
    box.take("alice", "poll", b"\x01")
    other = Inbox(accountant, PARTY, tmp_path / "elsewhere", replaces=True)
    with pytest.raises(KeyConflict, match=r"taken into another inbox than .*elsewhere"):
        other.take("alice", "poll", b"\x01")
    assert other.take("bob", "poll", b"\x01")
    with pytest.raises(ReportFileError, match="taken into another inbox"):
        box.take("carol", "poll", b"\x01")
    assert (len(box), len(other), len(accountant.history("alice"))) == (1, 1, 1)


def test_inbox_with_foreign_records_of_its_kind_ignores_them(accountant: Accountant, tmp_path: Path) -> None:
    write_record(accountant, "inbox", PARTY.fingerprint, {"id": 7, "folder": "/srv/reports"})
    assert Inbox(accountant, PARTY, tmp_path / "party.inbox").take("alice", "poll", b"\x01")


def test_record_of_another_inbox_is_refused(box: Inbox, accountant: Accountant) -> None:
    """An admin key had the ledger name another folder with `POST /v1/ledger/records`; then no report was taken."""
    box.take("alice", "poll", b"\x01")
    body = {"id": "0" * 32, "folder": "/tmp/mine"}
    with pytest.raises(InvalidParameter, match="kind"):
        accountant.record("inbox", PARTY.fingerprint, body, expected=1)
    assert box.take("bob", "poll", b"\x01")


# -- whole groups ----------------------------------------------------------------------------------------------------


def test_seal_of_whole_groups_leaves_the_newest_reports(box: Inbox, tmp_path: Path) -> None:
    """A seal took all that waited: a reader who saw whole groups before, and all after it, saw one report alone."""
    sent = [bytes([number % 8]) for number in range(11)]
    for number, each in enumerate(sent[:3]):
        box.take(f"user {number}", "poll", each)
    with pytest.raises(TooFewReports, match=r"too few reports to seal: 3\. Wait for 4; nothing was sealed\."):
        box.seal(tmp_path / "none", 4)
    for number, each in enumerate(sent):
        box.take(f"user {number}", "poll", each)
    assert (box.seal(tmp_path / "one", 4), len(box)) == (8, 3)
    assert sorted(sealed(tmp_path / "one")) == sorted(sent[:8])
    assert [row.tobytes() for block in box.unsealed() for row in block] == sent[8:]
    assert box.take("user 9", "poll", sent[9]).repeated
    assert (box.seal(tmp_path / "two"), len(box)) == (3, 0)


@pytest.mark.parametrize("seed", range(6))
def test_seal_of_whole_groups_stopped_anywhere_loses_and_doubles_nothing(
    accountant: Accountant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    accountant.set_policy("default", ["lifetime=1000"])
    chance, out = random.Random(seed), itertools.count()
    box, sent = Inbox(accountant, PARTY, tmp_path / "inbox"), []
    for number in range(30):
        sent.append((str(number), bytes([chance.randrange(8)])))
        box.take("alice", *sent[-1])
        with monkeypatch.context() as patched:
            _stop_after(patched, chance.randrange(1, 20))
            with suppress(_Stopped, TooFewReports):
                box.seal(tmp_path / f"out {next(out)}", 4)
        box = Inbox(accountant, PARTY, tmp_path / "inbox")
        waiting = sum(len(block) for block in box.unsealed())
        assert waiting <= len(box) <= 30
        if (tmp_path / "inbox" / "sealing.out").exists():
            box.seal(Path((tmp_path / "inbox" / "sealing.out").read_text()), 4)
    counts = [len(sealed(path)) for path in tmp_path.glob("out *") if not path.name.endswith(".new")]
    assert all(count % 4 == 0 for count in counts)
    for key, each in sent:
        box.take("alice", key, each)
    box.seal(tmp_path / "last")
    paths = (path for path in (*tmp_path.glob("out *"), tmp_path / "last") if not path.name.endswith(".new"))
    kept = [row for path in paths for row in sealed(path)]
    assert sorted(kept) == sorted(each for _, each in sent)


@pytest.mark.parametrize("content", ["", "{}", '{"id": "zz", "ledger": "", "name": ""}'])
def test_a_folder_whose_identity_is_damaged_takes_nothing(
    box: Inbox, accountant: Accountant, tmp_path: Path, content: str
) -> None:
    (tmp_path / "party.inbox" / "inbox.json").write_text(content)
    with pytest.raises(ReportFileError, match="it is no inbox"):
        Inbox(accountant, PARTY, tmp_path / "party.inbox")


def test_a_file_that_is_there_is_not_replaced(box: Inbox, tmp_path: Path) -> None:
    box.take("alice", "poll", report())
    (tmp_path / "out").write_text("mine")
    with pytest.raises(ReportFileError, match="it is there already; nothing was sealed"):
        box.seal(tmp_path / "out")
    assert ((tmp_path / "out").read_text(), len(box)) == ("mine", 1)


def test_memoised_reports_go_along_their_curve(accountant: Accountant, tmp_path: Path) -> None:
    kept = Collection("kept", ldp_budget.mechanism("d-bit-flip")(epsilon=1, buckets=5, bits=5, memoize=True))
    box, secret = Inbox(accountant, kept, tmp_path / "kept.inbox"), os.urandom(32)
    (label,) = kept.labels(np.array([3]), [secret])
    sent = bytes(kept.randomize(np.array([3]), secrets=[secret]).tobytes())
    assert all(box.take("alice", str(day), sent, label=label) for day in range(5))
    assert len(box) == 5


def test_a_key_and_a_report_of_another_collection_are_charged_again_or_refused(
    accountant: Accountant, box: Inbox, tmp_path: Path
) -> None:
    """One mechanism in two collections, and two reports that happen to be equal: both give something away."""
    other = Inbox(accountant, Collection("next year", PARTY.mechanism, ("a", "b", "c")), tmp_path / "next")
    assert box.take("alice", "1", b"\x01")
    with pytest.raises(KeyConflict):
        other.take("alice", "1", b"\x01")
    assert (len(other), len(accountant.history("alice"))) == (0, 1)
    assert other.take("alice", "2", b"\x01")
    assert len(accountant.history("alice")) == 2


def test_a_retry_that_overtakes_is_kept_once(
    box: Inbox, accountant: Accountant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is charged, and before it is kept a retry is taken elsewhere."""
    spend, other = accountant.spend, Inbox(accountant, PARTY, tmp_path / "party.inbox")

    def overtaken(*arguments: Any, **options: Any) -> Any:
        receipt = spend(*arguments, **options)
        monkeypatch.undo()
        assert other.take("alice", "poll", b"\x01").repeated
        return receipt

    monkeypatch.setattr(accountant, "spend", overtaken)
    assert not box.take("alice", "poll", b"\x01").repeated
    assert len(box) == 1


def test_a_full_disk_keeps_nothing_and_a_retry_does(
    box: Inbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A disk may take a part of what is written, and say so by its length alone."""
    pwrite = os.pwrite
    box.take("alice", "one", b"\x01")
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", lambda descriptor, data, at: pwrite(descriptor, data[:5], at))
        with pytest.raises(ReportFileError, match="cannot be written"):
            box.take("bob", "one", b"\x02")
        with pytest.raises(ReportFileError, match="cannot be written"):
            box.seal(tmp_path / "out")
    assert box.take("bob", "one", b"\x02").repeated
    assert (box.seal(tmp_path / "out"), box.seal(tmp_path / "next")) == (1, 1)
    for user, sent in (("alice", b"\x01"), ("bob", b"\x02")):
        assert box.take(user, "one", sent).repeated
    assert (len(box), sealed(tmp_path / "out"), sealed(tmp_path / "next")) == (0, [b"\x01"], [b"\x02"])


def test_a_place_that_cannot_be_written_leaves_the_choice_of_another(box: Inbox, tmp_path: Path) -> None:
    box.take("alice", "poll", b"\x01")
    with pytest.raises(ReportFileError, match="cannot be written"):
        box.seal(tmp_path / "nowhere" / "out")
    assert box.take("alice", "poll", b"\x01").repeated
    box.take("bob", "poll", b"\x02")
    assert box.seal(tmp_path / "out") == 2


@pytest.mark.parametrize("name", ["pending", "sealing", "sealed", "other", "sealing.out"])
def test_nothing_is_sealed_into_the_inbox(box: Inbox, tmp_path: Path, name: str) -> None:
    box.take("alice", "poll", b"\x01")
    with pytest.raises(ReportFileError, match=r"the folder of the inbox|there already"):
        box.seal(tmp_path / "party.inbox" / name)
    assert box.seal(tmp_path / "out") == 1


@pytest.mark.parametrize("name", ["a\rb", os.fsdecode(b"\xff"), "서울"])
def test_a_stopped_seal_goes_on_to_any_name(
    box: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    box.take("alice", "poll", b"\x01")
    with monkeypatch.context() as patched:
        patched.setattr(module, "ReportWriter", _stop)
        with pytest.raises(_Stopped):
            box.seal(tmp_path / name)
    with pytest.raises(ReportFileError, match="was stopped; name that file"):
        box.seal(tmp_path / "other")
    assert box.seal(tmp_path / name) == 1


def test_a_seal_that_was_stopped_before_it_took_anything_takes_it(
    box: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box.take("alice", "poll", b"\x01")
    with monkeypatch.context() as patched:
        replace = os.replace
        patched.setattr(os, "replace", lambda old, new: _stop() if Path(old).name == "pending" else replace(old, new))
        with pytest.raises(_Stopped):
            box.seal(tmp_path / "out")
    assert (box.seal(tmp_path / "out"), len(box)) == (1, 0)


def test_a_folder_that_was_emptied_is_read_anew(box: Inbox, tmp_path: Path) -> None:
    for user in ("alice", "bob"):
        box.take(user, "poll", b"\x01")
        box.take(user, "poll", b"\x01")
    with open(tmp_path / "party.inbox" / "pending", "r+b") as pending:
        pending.truncate(0)
    assert box.take("alice", "poll", b"\x01").repeated
    assert len(box) == 1


# -- every mechanism -----------------------------------------------------------------------------------------------


def test_every_report_that_a_client_makes_passes(tmp_path: Path) -> None:
    from client_cases import CASES, answers_for

    with Accountant(":memory:") as accountant:
        for place, (name, mechanism) in enumerate(CASES.items()):
            if name == "olh":  # an inbox finds its mechanism among those that are installed
                continue
            collection = Collection(name.replace(" ", "-"), mechanism)
            box = Inbox(accountant, collection, tmp_path / str(place))
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
def test_a_report_that_nobody_sends_is_refused(tmp_path: Path, name: str, sent: bytes) -> None:
    from client_cases import CASES

    with Accountant(":memory:") as accountant:
        box = Inbox(accountant, Collection("x", CASES[name]), tmp_path / "inbox")
        assert len(sent) == box.report_bytes
        with pytest.raises(NotSupported):
            box.check(sent)


# -- stopped at any point ------------------------------------------------------------------------------------------


class _Stopped(BaseException):
    """Like a kill: nothing after it is done."""


def _stop(*_: Any, **__: Any) -> Any:
    raise _Stopped


STEPS = ["replace", "unlink", "fsync", "pwrite", "ftruncate", "rename"]


@pytest.mark.some(6)
@pytest.mark.parametrize("seed", range(12))
def test_a_seal_that_is_stopped_anywhere_loses_and_doubles_nothing(
    accountant: Accountant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    accountant.set_policy("default", ["lifetime=1000"])
    chance, out = random.Random(seed), itertools.count()
    box, sent, kept = Inbox(accountant, PARTY, tmp_path / "inbox"), [], []
    for number in range(40):
        key, each = str(number), bytes([chance.randrange(8)])
        sent.append((key, each))
        with monkeypatch.context() as patched:
            _stop_after(patched, chance.randrange(1, 30))
            try:
                box.take("alice", key, each)
                if chance.random() < 0.3:
                    box.seal(tmp_path / f"out {next(out)}")
            except _Stopped:
                box = Inbox(accountant, PARTY, tmp_path / "inbox")
        if (tmp_path / "inbox" / "sealing.out").exists():
            box.seal(Path((tmp_path / "inbox" / "sealing.out").read_text()))
        for key, each in sent:
            box.take("alice", key, each)
    box.seal(tmp_path / "last")
    for path in (*tmp_path.glob("out *"), tmp_path / "last"):
        if not path.name.endswith(".new"):
            kept += sealed(path)
    assert sorted(kept) == sorted(each for _, each in sent)
    assert len(accountant.history("alice")) == 40


def _stop_after(patched: pytest.MonkeyPatch, calls: int) -> None:
    """Stop at the n-th call that changes a file."""
    left = iter(range(calls))

    def stopping(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if next(left, None) is None:
                raise _Stopped
            return function(*arguments, **options)

        return call

    for name in STEPS:
        patched.setattr(os, name, stopping(getattr(os, name)))


def test_what_is_left_of_a_row_is_dropped(box: Inbox, accountant: Accountant, tmp_path: Path) -> None:
    box.take("alice", "one", b"\x01")
    with open(tmp_path / "party.inbox" / "pending", "ab") as pending:
        pending.write(b"torn")
    again = Inbox(accountant, PARTY, tmp_path / "party.inbox")
    assert len(again) == 1
    again.take("bob", "one", b"\x02")
    again.seal(tmp_path / "out")
    assert sorted(sealed(tmp_path / "out")) == [b"\x01", b"\x02"]


def test_threads_and_a_seal_beside_them_keep_each_report_once(accountant: Accountant, tmp_path: Path) -> None:
    accountant.set_policy("default", ["lifetime=1000"])
    numbers = Collection("numbers", ldp_budget.mechanism("random-substitution")(epsilon="0.1", domain_size=1000))
    taken = 0

    def send(worker: int) -> None:
        box = Inbox(accountant, numbers, tmp_path / "inbox")
        for number in range(worker * 25, worker * 25 + 25):
            for _ in range(2):
                box.take(f"user {number}", "poll", number.to_bytes(2, "little"))

    threads = [threading.Thread(target=send, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    box = Inbox(accountant, numbers, tmp_path / "inbox")
    for turn in range(5):
        taken += box.seal(tmp_path / f"out {turn}")
    for thread in threads:
        thread.join()
    taken += box.seal(tmp_path / "last")
    found = [
        row
        for path in tmp_path.glob("*")
        if path.is_file() and path.name.startswith(("out", "last"))
        for row in sealed(path, numbers)
    ]
    assert (taken, sorted(found)) == (100, sorted(number.to_bytes(2, "little") for number in range(100)))


@pytest.mark.slow
def test_a_killed_process_leaves_what_a_retry_completes(tmp_path: Path) -> None:
    script = f"""
import sys
from ldp_budget import Accountant, Collection
from ldp_budget.reports.inbox import Inbox, TooFewReports
import ldp_budget
accountant = Accountant({str(tmp_path / "budget.db")!r})
accountant.set_policy("default", ["lifetime=100000"])
party = Collection("party", ldp_budget.mechanism("oue")(epsilon=1, domain_size=3), ("a", "b", "c"))
box = Inbox(accountant, party, {str(tmp_path / "inbox")!r})
for number in range(100000):
    box.take("alice", str(number), bytes([number % 8]))
    print(number, flush=True)
"""
    for round_ in range(4):
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        last = -1
        for line in itertools.islice(process.stdout, 30 + 30 * round_):
            last = int(line)
        process.kill()
        last = max([last, *map(int, process.stdout.read().split())])
        process.stdout.close()
        process.wait()
    with Accountant(tmp_path / "budget.db") as accountant:
        box = Inbox(accountant, PARTY, tmp_path / "inbox")
        charged = len(accountant.history("alice"))
        assert last + 1 <= charged <= last + 2
        for number in range(charged):
            box.take("alice", str(number), bytes([number % 8]))
        assert (box.seal(tmp_path / "out"), len(accountant.history("alice"))) == (charged, charged)
        assert sorted(sealed(tmp_path / "out")) == sorted(bytes([number % 8]) for number in range(charged))


# -- the command line ----------------------------------------------------------------------------------------------


def test_the_commands_take_lines_and_seal_them(command: Any, tmp_path: Path) -> None:
    command("policy", "set", "default", "--limit", "lifetime=1")
    command("collection", "add", "party", "oue", "--epsilon", 1, "--categories", "a,b,c")
    lines = [
        '{"user": "alice", "key": "1", "report": "01"}',
        '{"user": "alice", "key": "1", "report": "01"}',
        '{"user": "alice", "key": "2", "report": "02"}',
        '{"user": "bob", "key": "1", "report": "zz"}',
        '{"user": "bob", "key": "1", "report": "ff"}',
        "",
        '{"user": "bob"}',
        "hello",
        '{"user": "bob", "key": "1", "report": "05"}',
    ]
    (tmp_path / "sent.jsonl").write_text("\n".join(lines))
    folder = ("--inbox", tmp_path / "box")
    done = command("inbox", "take", "party", tmp_path / "sent.jsonl", *folder)
    assert done.stdout == "2 taken, 1 repeated, 1 refused, 4 invalid\n"
    assert "line 4: expected the report in hex; found 'zz'" in done.stderr
    assert "line 5: expected packed reports of 3 bits; found padding bits that are set" in done.stderr
    assert 'line 7: expected {"user": …, "key": …, "report": hex}, each a text' in done.stderr
    assert "line 8: it is no JSON" in done.stderr
    sealing = command("inbox", "seal", "party", tmp_path / "out", *folder, "--group", 2)
    assert sealing.stdout == f"{tmp_path / 'out'}: 2 reports\n"
    assert command.json("estimate", "party", tmp_path / "out")["reports"] == 2


def test_rows_are_read_as_they_lie(box: Inbox) -> None:
    assert module.NAME_BYTES + box.report_bytes == 17


def test_a_folder_that_takes_nothing_is_no_fault_of_the_lines(command: Any, tmp_path: Path) -> None:
    """What was charged and not kept is said as an error, and kept when the lines are taken again."""
    command("policy", "set", "default", "--limit", "lifetime=1")
    command("collection", "add", "party", "oue", "--epsilon", 1, "--categories", "a,b,c")
    (tmp_path / "sent.jsonl").write_text('{"user": "alice", "key": "1", "report": "01"}\n')
    take = ("inbox", "take", "party", tmp_path / "sent.jsonl", "--inbox", tmp_path / "box")
    (tmp_path / "box" / "pending").mkdir(parents=True)
    assert "it cannot be written" in command.error(*take)
    (tmp_path / "box" / "pending").rmdir()
    assert command(*take).stdout == "0 taken, 1 repeated, 0 refused, 0 invalid\n"
    sealing = command("inbox", "seal", "party", tmp_path / "out", *take[4:], "--group", 1)
    assert sealing.stdout == f"{tmp_path / 'out'}: 1 report\n"


def test_inbox_seal_takes_whole_groups_as_the_service_does(command: Any, tmp_path: Path) -> None:
    """It sealed everything: a reader of two files in a row saw one report alone."""
    command("policy", "set", "default", "--limit", "lifetime=1")
    command("collection", "add", "party", "oue", "--epsilon", 1, "--categories", "a,b,c")
    folder, out = ("--inbox", tmp_path / "box"), tmp_path / "out"

    def take(users: int) -> None:
        lines = [json.dumps({"user": f"user {number}", "key": "1", "report": "01"}) for number in range(users)]
        (tmp_path / "sent.jsonl").write_text("\n".join(lines))
        command("inbox", "take", "party", tmp_path / "sent.jsonl", *folder)

    for users in (0, 19):
        take(users)
        refused = command.error("inbox", "seal", "party", out, *folder)
        assert refused == (
            f"Error: too few reports to seal: {users}. Wait for 20; nothing was sealed. "
            "Or name a smaller --group, and each report hides among fewer others\n"
        )
        assert not out.exists()
    take(43)
    done = command("inbox", "seal", "party", out, *folder, "--json")
    assert json.loads(done.stdout) == {"reports": 40, "out": str(out), "waiting": 3}
    assert done.stderr == "3 reports wait for a whole group of 20\n"
    rest = command("inbox", "seal", "party", tmp_path / "rest", *folder, "--group", 1)
    assert (rest.stdout, rest.stderr) == (f"{tmp_path / 'rest'}: 3 reports\n", "")
    assert "--group" in command.error("inbox", "seal", "party", tmp_path / "none", *folder, "--group", 0, code=2)


@pytest.mark.parametrize("line", [b'{"user": "\xff", "key": "1", "report": "01"}', b"[" * 100_000])
def test_a_line_of_any_bytes_stops_no_other(command: Any, tmp_path: Path, line: bytes) -> None:
    command("policy", "set", "default", "--limit", "lifetime=1")
    command("collection", "add", "party", "oue", "--epsilon", 1, "--categories", "a,b,c")
    (tmp_path / "sent.jsonl").write_bytes(line + b'\n{"user": "alice", "key": "1", "report": "01"}\n')
    done = command("inbox", "take", "party", tmp_path / "sent.jsonl", "--inbox", tmp_path / "box")
    assert done.stdout == "1 taken, 0 repeated, 0 refused, 1 invalid\n"
    assert "line 1: " in done.stderr
