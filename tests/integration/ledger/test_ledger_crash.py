"""Processes killed at random moments: what was acknowledged is there, and every key counts once."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import ledger_killer
from contract.acts import check
from ldp_budget import Accountant
from ldp_budget.accounting import bulk_run

KILLS = [pytest.param(8, id="8-kills"), pytest.param(70, id="70-kills", marks=pytest.mark.exhaustive)]


def kill(path: Path, mode: str, kills: int) -> tuple[dict[str, dict[int, Any]], list[str]]:
    """Return (acknowledged: {prefix of the key: {number: answer}}, the heads seen) of one run of the killer."""
    seed = str(random.randrange(10**9))
    print("seed", seed)
    command = [sys.executable, ledger_killer.__file__, str(path), mode, str(kills), seed]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    told: dict[str, dict[int, Any]] = {}
    heads = []
    for line in done.stdout.splitlines():
        record = json.loads(line)
        threads = ledger_killer.THREADS if mode == "grouped" else 1
        told |= {f"{record['child']}/{thread}": {} for thread in range(threads)}
        for prefix, number, answer in record["told"]:
            if prefix == "head":
                heads.append(answer)
            elif prefix != "batch":
                told[prefix][number] = answer
    assert len({prefix.split("/")[0] for prefix in told}) == kills
    return told, heads


def asked(told: dict[int, Any]) -> range:
    """The numbers that a child may have asked: all acknowledged ones, which are the first, and one more."""
    assert sorted(told) == list(range(len(told)))
    return range(len(told) + 1)


def spent_units(accountant: Accountant, user: str) -> int:
    return accountant.balance(user).limits[0].spent_units.epsilon or 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=1000", "day=1000"])
    return path


@pytest.mark.some(4)
@pytest.mark.parametrize("kills", KILLS)
@pytest.mark.parametrize("mode", ["single", "grouped"])
def test_killed_process_loses_no_receipt_and_charges_no_key_twice(path: Path, mode: str, kills: int) -> None:
    told, heads = kill(path, mode, kills)
    assert sum(map(len, told.values())) > kills, "children got something done"
    with Accountant(path, create=False) as accountant:
        for head in {*heads}:
            check(accountant, head)
        expected: Counter[str] = Counter()
        for prefix, answers in told.items():
            for number in asked(answers):
                user = f"user-{number % 5}"
                receipt = accountant.spend(user, ledger_killer.COIN, key=f"{prefix}/{number}")
                if number in answers:
                    assert (receipt.repeated, receipt.receipt) == (True, answers[number])
                expected[user] += 10**6
        assert {user: spent_units(accountant, user) for user in expected} == expected
        check(accountant, heads[-1])


@pytest.mark.exhaustive
def test_killed_batch_is_completed_by_running_it_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_run, "BATCH", ledger_killer.BULK_USERS // 4)
    told, heads = kill(path, "bulk", 40)
    with Accountant(path, create=False) as accountant:
        for head in {*heads}:
            check(accountant, head)
        expected: Counter[str] = Counter()
        interrupted = 0
        for prefix, answers in told.items():
            for number in asked(answers):
                users = ledger_killer.users_of(number)
                result = accountant.spend_many(users, ledger_killer.COIN, key=f"{prefix}/{number}")
                assert (result.refused, result.spent + result.repeated) == (0, len(users))
                if number in answers:
                    assert result.spent == 0
                interrupted += 0 < result.repeated < len(users)
                expected.update(dict.fromkeys(users, 10**6))
        assert interrupted > 0, "some run was killed between two of its batches"
        assert {user: spent_units(accountant, user) for user in expected} == expected
        check(accountant, heads[-1])
