"""Checkpoints: the chain heads of all partitions at one time, under one digest that a reader stores."""

from __future__ import annotations

import threading
import time
from hashlib import sha256

import pytest

from contract.acts import check, coin
from contract.toy_store import ToyRows, ToyStore
from ldp_budget import Accountant
from ldp_budget.ledger import checkpoints
from ldp_budget.ledger.checkpoints import head_of, root, take
from ldp_budget.ledger.models import Checkpoint


def leaf(text: bytes) -> bytes:
    return sha256(b"\0" + text).digest()


def node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()


def test_checkpoint_root_equals_rfc_9162() -> None:
    """Section 2.1.1: of n leaves the left part has the largest power of two that is smaller than n."""
    a, b, c, d, e = (leaf(text) for text in (b"a", b"b", b"c", b"d", b"e"))
    assert root([b"a"]) == a
    assert root([b"a", b"b"]) == node(a, b)
    assert root([b"a", b"b", b"c"]) == node(node(a, b), c)
    assert root([b"a", b"b", b"c", b"d", b"e"]) == node(node(node(a, b), node(c, d)), e)


@pytest.mark.parametrize("partitions", [1, 3])
def test_checkpoint_without_new_entries_is_not_taken(partitions: int) -> None:
    with Accountant(ToyStore(partitions)) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        first = accountant.checkpoint()
        assert accountant.checkpoint() == first
        accountant.spend("alice", coin(1))
        second = accountant.checkpoint()
        with accountant._ledger.reading() as reading:
            assert reading.end.checkpoints == 2
        for head in (first, second):
            check(accountant, head)
        assert not accountant.verify(first.replace(first[-70:-60], "0" * 10)).ok


def test_checkpoint_of_several_partitions_is_taken_automatically(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints.Checkpointer.__init__, "__defaults__", (0.05,))
    others = set(threading.enumerate())  # of ledgers of other tests, which may be about to end
    store = ToyStore(3)

    def taken() -> int:
        with store.snapshot() as rows:
            return len(list(rows.checkpoints()))

    with Accountant(store) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        accountant.spend("alice", coin(1))
        deadline = time.monotonic() + 20
        while not taken() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert taken() >= 1
        began = set(threading.enumerate()) - others
        threads = [thread for thread in began if thread.name == "ldp-budget checkpoints"]
        assert len(threads) == 1
        check(accountant)
    threads[0].join(20)
    assert not threads[0].is_alive(), "it ends with the ledger"


@pytest.mark.slow
def test_verify_holds_few_checkpoints_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one a minute, and each holds 60 bytes a partition."""
    alive, most = 0, 0

    class Counted(Checkpoint):
        def __new__(cls, *fields: object) -> Counted:
            nonlocal alive, most
            alive += 1
            most = max(most, alive)
            return super().__new__(cls, *fields)  # type: ignore[arg-type]

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    with Accountant(ToyStore(2)) as accountant:
        accountant.set_policy("default", ["lifetime=99"])
        heads = []
        for _ in range(30):
            accountant.spend("alice", coin("0.1"))
            heads.append(accountant.checkpoint())
        monkeypatch.setattr(
            ToyRows, "checkpoints", lambda self, first=1: (Counted(*each) for each in self._checkpoints[first - 1 :])
        )
        check(accountant, heads[3])
        assert not accountant.verify(heads[3].replace("4-", "5-", 1)).ok
    assert 1 <= most <= 5


@pytest.mark.parametrize("partitions", [1, 2])
def test_head_has_one_form_everywhere(partitions: int) -> None:
    """A person compares the noted head with those of `verify`, the statistics and the dashboard by eye."""
    with Accountant(ToyStore(partitions)) as accountant:
        accountant.set_policy("default", ["lifetime=99"])
        for number in range(3):
            accountant.spend(f"user {number}", coin("0.1"))
            noted = accountant.checkpoint()
            assert noted == accountant.checkpoint() == accountant.verify().head == accountant.stats()["head"]
            assert noted == accountant.ledger.overview().head()["head"] == accountant.ledger.confirm(noted)
        accountant.spend("user 9", coin("0.1"))
        assert accountant.verify(noted).ok
        assert not accountant.verify(noted.replace(noted[-70:-60], "0" * 10)).ok


def test_head_of_a_checkpoint_noted_before_heads_had_one_form_is_still_found() -> None:
    with Accountant(ToyStore(1)) as accountant:
        accountant.set_policy("default", ["lifetime=99"])
        accountant.spend("alice", coin("0.1"))
        earlier = head_of(take(accountant._ledger))
        accountant.spend("alice", coin("0.1"))
        assert accountant.verify(earlier).ok
        assert not accountant.verify(earlier.replace("1-", "2-", 1)).ok
