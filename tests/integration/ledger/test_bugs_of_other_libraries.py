"""A process killed between the charge and the answer never gives an answer for free, as in another library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ldp_budget import Accountant
from ledger_contract import check, coin, spent

# -- a crash between charge and answer ---------------------------------------------------------------------------

DYING = """
import os, sys
import ldp_budget
from ldp_budget import Accountant

path, moment = sys.argv[1:]
accountant = Accountant(path, create=False)
store = accountant._ledger._store
connection = store._current()

class Dying:
    def __getattr__(self, name):
        return getattr(connection, name)
    def execute(self, sql, *values):
        if sql == "COMMIT" and moment == "before":
            os._exit(1)
        answer = connection.execute(sql, *values)
        if sql == "COMMIT" and moment == "after":
            os._exit(1)
        return answer

store._writer = Dying()
print(accountant.spend("alice", ldp_budget.mechanism("rr")(epsilon=1), key="k").status, flush=True)
os._exit(1)
"""


@pytest.mark.parametrize(
    ("moment", "told", "charged"), [("before", "", 0), ("after", "", 1), ("never", "spent\n", 1)]
)
@pytest.mark.some(3)
def test_interrupted_spend_returns_no_result_before_its_charge(
    tmp_path: Path, moment: str, told: str, charged: int
) -> None:
    """No result is returned before its charge; a caller whose response was lost gets it by a retry."""
    path = tmp_path / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=1"])
    done = subprocess.run([sys.executable, "-c", DYING, path, moment], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, told)
    with Accountant(path, create=False) as accountant:
        assert spent(accountant, "alice") == {"lifetime": charged}
        again = accountant.spend("alice", coin(1), key="k")
        assert (again.status, again.repeated) == ("spent", bool(charged))
        assert spent(accountant, "alice") == {"lifetime": 1}
        check(accountant)
