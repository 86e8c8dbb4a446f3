"""Checkpoints on PostgreSQL, taken by several processes while others spend: every one of them verifies."""

from __future__ import annotations

import subprocess

import pytest

from contract.acts import check, coin, in_threads
from ldp_budget import Accountant
from ledger_scripts import start, wait_until_ready
from postgres_places import new_ledger

pytestmark = pytest.mark.usefixtures("own_keys")

TAKE = """
    with Accountant(address, create=False) as accountant:
        ready()
        for _ in range(int(words[0])):
            print(accountant.checkpoint(), flush=True)
            time.sleep(0.02)
    """


def taker(address: str, count: int) -> subprocess.Popen[str]:
    """A process that takes a checkpoint on command."""
    process = start(TAKE, address, count)
    wait_until_ready(process)
    return process


@pytest.mark.exhaustive
@pytest.mark.parametrize("partitions", [2, 4])
def test_checkpoints_taken_during_spends_verify(partitions: int) -> None:
    address, count = new_ledger(partitions), 60
    going = [True] * 2

    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=900000"])
        takers = [taker(address, count) for _ in going]

        def spend(number: int) -> int:
            done = 0
            while any(going):
                done += 1
                user = f"user {number}/{done % 40}"
                assert accountant.spend(user, coin(1), key=f"{number}/{done}" if done % 3 else None)
                if done % 5 == 0:  # a refusal moves no link
                    assert not accountant.spend(user, coin(10**6), key=f"refused {number}/{done}")
                if done == 10:
                    assert accountant.spend(f"gone {number}", coin(1), key="gone")
                    assert accountant.erase(f"gone {number}")
            return done

        def take(number: int) -> list[str]:
            try:
                out, errors = takers[number].communicate("go\n", timeout=300)
                assert (takers[number].returncode, errors) == (0, "")
                return out.split()
            finally:
                takers[number].kill()
                going[number] = False

        *taken, one, other, third = in_threads(5, lambda number: take(number) if number < 2 else spend(number))
        for spenders in (one, other, third):
            assert isinstance(spenders, int), spenders
        heads = sorted({head for each in taken for head in each}, key=lambda head: int(head.partition("-")[0]))
        assert all(len(each) == count for each in taken)
        for each in taken:  # to each of the two they only go up
            numbers = [int(head.partition("-")[0]) for head in each]
            assert numbers == sorted(numbers)
        numbers = [int(head.partition("-")[0]) for head in heads]
        assert len(set(numbers)) == len(numbers) > 2, "of each number there is one"
        check(accountant)
    with Accountant(address, create=False) as accountant:
        for head in heads[:: max(1, len(heads) // 20)]:
            check(accountant, head)
        check(accountant, heads[-1])
