"""The inbox of several processes and stores: a report is charged once and kept once."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

import ldp_budget
from contract.acts import check, in_threads
from ldp_budget import Accountant, Collection
from ldp_budget.ledger.models import WAITING, StoredReport
from ldp_budget.reports.inbox import Inbox
from ledger_scripts import let_go, start, wait_until_ready
from postgres_places import new_ledger

pytestmark = pytest.mark.policy("lifetime=2")

PARTY = Collection("party", ldp_budget.mechanism("oue")(epsilon=1, domain_size=3), ("a", "b", "c"), minimum_group=1)
NUMBERS = Collection(
    "numbers", ldp_budget.mechanism("random-substitution")(epsilon=1, domain_size=1000), minimum_group=1
)


@pytest.fixture
def box(accountant: Accountant) -> Inbox:
    return Inbox(accountant, PARTY)


def in_round(box: Inbox, name: str) -> list[bytes]:
    return [row.tobytes() for block in box.round(name) for row in block]


# -- several processes ---------------------------------------------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new ledger, in a file or in four partitions on a server."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LDP_BUDGET_KEY", raising=False)
    if request.param == "sqlite":
        return str(tmp_path / "budget.db")
    pytest.importorskip("psycopg")
    return new_ledger(4)


def test_two_instances_serve_one_collection(address: str, tmp_path: Path) -> None:
    """Each instance had a folder of its own, and a report that was sent to both was a conflict at one of them."""
    with Accountant(address) as one, Accountant(address) as other:
        one.set_policy("default", ["lifetime=2"])
        boxes = [Inbox(one, NUMBERS), Inbox(other, NUMBERS)]

        def send(worker: int) -> int:
            receipts = [
                boxes[(worker + again) % 2].take(f"user {number}", "poll", number.to_bytes(2, "little"))
                for number in range(worker * 10, worker * 10 + 10)
                for again in range(3)
            ]
            return sum(receipt.repeated for receipt in receipts)

        assert in_threads(4, send) == [20] * 4
        assert boxes[1].seal("one", 20) == 40
        assert boxes[0].rounds() == ["one"]
        assert sorted(in_round(boxes[0], "one")) == sorted(number.to_bytes(2, "little") for number in range(40))
        assert boxes[0].take("user 3", "poll", b"\0\0").repeated
        assert (len(boxes[0]), len(list(one.journal()))) == (0, 41)
        assert boxes[1].write("one", tmp_path / "out") == 40
        check(other)


KILLED = r"""
    from ldp_budget import Collection
    from ldp_budget.reports.inbox import Inbox
    accountant = Accountant(address)
    party = Collection("party", ldp_budget.mechanism("oue")(epsilon=1, domain_size=3), ("a", "b", "c"), minimum_group=1)
    box, first = Inbox(accountant, party), int(words[0])

    def send(worker):
        for number in range(first + worker, first + 400, 2):
            box.take(f"user {number}", "poll", bytes([number % 8]))
            os.write(1, f"{number}\n".encode())
            if number % 50 == 49:
                box.seal(f"round {number}", 1)

    ready()
    threads = [threading.Thread(target=send, args=(worker,)) for worker in range(2)]
    for thread in threads: thread.start()
    """


def test_killed_process_leaves_each_charge_with_its_report(address: str) -> None:
    """After a kill -9, every report that was acknowledged is there, and as many are there as were charged."""
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=2"])
        box, answered = Inbox(accountant, PARTY), set()
        for first in (0, 400):
            process = start(KILLED, address, first)
            wait_until_ready(process)
            let_go(process)
            assert process.stdout is not None
            answered |= {int(line) for line in itertools.islice(process.stdout, 120)}
            process.kill()
            answered |= {int(line) for line in process.communicate()[0].split()}
            check(accountant)
            found = sum(len(in_round(box, name)) for name in box.rounds())
            charged = [row for row in accountant.journal() if row["kind"] == "spent"]
            assert len(answered) <= len(charged) == found + len(box)
        for number in answered:
            assert box.take(f"user {number}", "poll", b"\0").repeated
        if len(box):
            box.seal("last")
        kept = [each for name in box.rounds() for each in in_round(box, name)]
        sent = sorted(bytes([number % 8]) for number in answered)
        assert len(kept) == len(charged)
        assert all(kept.count(each) >= sent.count(each) for each in set(sent))
        check(accountant)


def test_report_that_was_put_back_after_its_seal_is_found(address: str) -> None:
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=2"])
        box = Inbox(accountant, PARTY)
        box.take("alice", "poll", b"\1")
        ledger = accountant._ledger
        partition = next(each for each in ledger.partitions if _waiting(accountant, each))
        [row] = _waiting(accountant, partition)
        box.seal("one")
        ledger.run_in_partitions(lambda those: those[0].rows.replace(StoredReport, [row]), [partition])
        assert _waiting(accountant, partition) == [row._replace(state=WAITING)]
        found = accountant.verify()
        assert not found.ok
        assert found.problems == ("rounds: 0 reports of party were sealed, and its rounds have 1",)


def _waiting(accountant: Accountant, partition: int) -> list[Any]:
    with accountant._ledger.reading(partition) as reading:
        return list(reading.rows.waiting_reports())
