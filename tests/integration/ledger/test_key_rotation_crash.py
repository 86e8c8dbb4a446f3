"""A rotation of the key is killed at each of its steps."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from contract.acts import check
from contract.rotation import COIN, Exchanged, ExchangedContract
from ldp_budget import Accountant
from ledger_scripts import let_go, start, wait_until_ready
from postgres_places import Emptied, new_ledger

pytestmark = [pytest.mark.exhaustive, pytest.mark.usefixtures("own_keys")]


class TestFourPartitions(ExchangedContract):
    @pytest.fixture
    def place(self) -> Exchanged:
        return Exchanged(Emptied(4))


@pytest.fixture(params=["file", "server"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    address = str(tmp_path / "budget.db") if request.param == "file" else new_ledger(4)
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=100000", "day=100000"])
    return address


EXCHANGERS = """
    # A child for each step, who is killed there: what is imported by now is imported once.
    import itertools, signal
    import psycopg, psycopg_pool
    from ldp_budget.ledger import key_rotation, keyed_hashing, transaction

    def exchange(left):
        def step():
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        def around(owner, name):
            inner = getattr(owner, name)

            def outer(*arguments, **more):
                step()
                result = inner(*arguments, **more)
                step()
                return result

            setattr(owner, name, outer)

        accountant = Accountant(address, create=False)
        for owner, name in (
            (key_rotation, "_take"),
            (transaction.Transaction, "rotate"),
            (transaction.Transaction, "finish"),
            (type(accountant._ledger), "run_in_partitions"),
            (type(accountant._ledger), "change_key"),
            (os, "fsync"),
            (os, "replace"),
        ):
            around(owner, name)
        accountant.ledger.rotate_key()
        accountant.close()

    for step in itertools.count(1):
        ready()
        child = os.fork()
        if child == 0:
            exchange(step)
            os._exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(ended, flush=True)
        if ended == 0:
            break
"""


def test_rotation_killed_at_any_step_leaves_a_whole_ledger(address: str) -> None:
    """The ledger opens under the old secret or the new one, and the same call brings the rotation to its end."""
    users = [f"user-{n}" for n in range(20)]
    with start(EXCHANGERS, address) as exchangers:
        with Accountant(address, create=False) as accountant:
            accountant.spend_many(users, COIN)
        killed = step = 0
        while True:
            step += 1
            wait_until_ready(exchangers)
            let_go(exchangers)
            assert exchangers.stdout is not None
            ended = exchangers.stdout.readline()
            if ended == "0\n":
                assert exchangers.communicate(timeout=60) == ("", "")
                break
            assert ended == f"{-signal.SIGKILL}\n", exchangers.communicate(timeout=60)
            killed += 1
            with Accountant(address, create=False) as later:
                assert not later.spend("user-1", COIN, key=f"{step}").repeated
                assert later.spend("user-1", COIN, key=f"{step}").repeated
                assert later.stats()["users"] == 20
                check(later)
        assert killed > 15
        with Accountant(address, create=False) as later:
            key = later._ledger.key
            assert key.in_use.number == key.newest == key.active > 1
            check(later)
            assert later.balance("user-1").limits[0].to_json()["spent"]["epsilon"] == 0.5 * (1 + killed)
