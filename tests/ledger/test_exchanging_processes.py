"""A key is exchanged while other processes spend, and whoever does that is killed at each step."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest

from ldp_budget import Accountant
from ledger_contract import check
from ledger_exchanges import COIN, Exchanged, ExchangedContract, exchange
from ledger_scripts import let_go, start, wait_until_ready
from postgres_places import Emptied, new_ledger

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_keys")]


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


WRITER = """
    accountant = Accountant(address, create=False)
    name = words[0]
    ready()
    number, ended = 0, []
    threading.Thread(target=lambda: ended.append(sys.stdin.readline()), daemon=True).start()
    while not ended:
        receipt = accountant.spend(f"user-{number % 7}", coin, key=f"{name}/{number}")
        assert receipt and not receipt.repeated
        # What was asked before the newest exchange is answered again, by whichever process.
        assert accountant.spend(f"user-{number % 7}", coin, key=f"{name}/{number}").receipt == receipt.receipt
        if number % 5 == 0:
            held = accountant.reserve("reserved", coin)
            assert accountant.void(held.receipt).status == "voided"
        if number % 9 == 0:
            result = accountant.spend_many([f"user-{n}" for n in range(3)] + [f"new-{name}-{number}"], coin)
            assert result.spent == 4
        number += 1
    print(number)
"""


def test_nothing_is_lost_while_writers_go_on_and_the_key_is_exchanged(address: str) -> None:
    writers = [start(WRITER, address, name) for name in "abcd"]
    try:
        for writer in writers:
            wait_until_ready(writer)
        for writer in writers:
            let_go(writer)
        with Accountant(address, create=False) as accountant:
            for number in (2, 3, 4):
                before = sum(accountant._ledger.entries())
                while sum(accountant._ledger.entries()) < before + 40:
                    pass
                assert exchange(accountant) == number
            before = sum(accountant._ledger.entries())
            while sum(accountant._ledger.entries()) < before + 40:
                pass
            spends = []
            for writer in writers:
                out, errors = writer.communicate("stop\n", timeout=60)
                assert (writer.returncode, errors) == (0, ""), errors
                spends.append(int(out))
            check(accountant)
            expected: Counter[str] = Counter()
            for done in spends:
                expected.update(f"user-{number % 7}" for number in range(done))
                expected.update(f"user-{user}" for number in range(0, done, 9) for user in range(3))
            found = {user: accountant.balance(user).limits[0].to_json()["spent"]["epsilon"] for user in expected}
            assert found == dict(expected)
            assert accountant.stats()["users"] == 7 + 1 + sum(len(range(0, done, 9)) for done in spends)
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()


EXCHANGERS = """
    # A child for each step, who is killed there: what is imported by now is imported once.
    import itertools, signal
    import psycopg, psycopg_pool
    from ldp_budget.ledger import key_rotation, keyfile, transaction

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
            (transaction.Transaction, "renew"),
            (transaction.Transaction, "finish"),
            (type(accountant._ledger), "run_in_partitions"),
            (type(accountant._ledger), "change_key"),
            (os, "fsync"),
            (os, "replace"),
        ):
            around(owner, name)
        accountant.ledger.prepare_key()
        accountant.ledger.activate_key()
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


def test_whoever_is_killed_at_any_step_leaves_a_whole_ledger(address: str) -> None:
    """Everybody can go on, and the same calls bring it to its end."""
    with Accountant(address, create=False) as other, start(EXCHANGERS, address) as exchangers:
        other.spend_many([f"user-{n}" for n in range(20)], COIN)
        killed, step, number = 0, 0, 1
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
            assert not other.spend("user-1", COIN, key=f"{step}").repeated
            with Accountant(address, create=False) as later:
                assert later.spend("user-1", COIN, key=f"{step}").repeated
                assert later.stats()["users"] == 20
            number = max(state.secret for state in other.ledger.key_states() if state.partitions)
            check(other)
        assert killed > 15
        assert number > 1
        assert [state.state for state in other.ledger.key_states()].count("active") == 1
        check(other)
        assert other.balance("user-1").limits[0].to_json()["spent"]["epsilon"] == 0.5 * (1 + killed)
