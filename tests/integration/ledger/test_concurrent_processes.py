"""Concurrency of processes: they never exceed a limit, and never wait forever."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from contract.acts import check, spent
from ldp_budget import Accountant
from ledger_processes import together

# -- processes and threads -----------------------------------------------------------------------------------


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "work",
    [
        "return sum(bool(accountant.spend('alice', coin)) for _ in range(8))",
        "return sum(bool(accountant.spend('alice', coin, key=f'{number}/{n}')) for n in range(8))",
        "return sum(accountant.spend_many(['alice', 'alice'], coin).spent for _ in range(4))",
        "return sum(bool(accountant.reserve('alice', coin)) for _ in range(8))",
        """
granted = []
one = lambda: granted.append(sum(bool(accountant.spend('alice', coin)) for _ in range(2)))
threads = [threading.Thread(target=one) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
return sum(granted)
""",
    ],
    ids=["single", "keys", "bulk", "reserve", "threads"],
)
def test_spend_by_eight_processes_on_one_user_grants_exactly_the_limit(tmp_path: Path, work: str) -> None:
    path = tmp_path / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=3.75", "month=9"])
        granted = together(path, 8, work)
        assert sum(map(int, granted)) == 37
        assert spent(accountant, "alice") == {"lifetime": Decimal("3.7"), "month": Decimal("3.7")}
        assert len(accountant.history("alice")) == 37
        check(accountant)


def test_spend_by_processes_with_equal_keys_returns_equal_receipts(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=0.35"])
        work = (
            "return [(r.status, r.receipt) for r in (accountant.spend('alice', coin, key=str(n)) for n in range(5))]"
        )
        answers = together(path, 6, work)
        assert len(answers) == 6
        assert len(set(answers)) == 1, "all callers get the same answer"
        assert answers[0].count("'spent'") == 3
        check(accountant)


def test_spend_is_served_between_the_parts_of_a_batch(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
        work = """
from ldp_budget.accounting import batch as batches
from ldp_budget.accounting import bulk_run
bulk_run.BATCH = 200
if number == 0:
    return accountant.spend_many((f"user-{n}" for n in range(5000)), coin).spent
return sum(bool(accountant.spend("alice", coin)) for _ in range(20))
"""
        assert sorted(together(path, 3, work)) == ["20", "20", "5000"]
        singles = [row["entry"] for row in accountant.history("alice")]
        bulk_run = [row["entry"] for row in accountant.history("user-4999")]
        assert singles[0] < bulk_run[-1], "it did not have to wait for the end of the run"
        check(accountant)
