"""A ledger whose file cannot grow refuses charges until it can."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ldp_budget import Accountant
from ledger_contract import check, spent

# -- no room, and no right to write ----------------------------------------------------------------------------


FILLING = """
import resource, sys
from ldp_budget import Accountant, LedgerError, mechanism
accountant = Accountant(sys.argv[1])
accountant.set_policy("default", ["lifetime=1000"])
coin = mechanism("rr")(epsilon=1)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
told, failed = [], 0
for number in range(40):
    try:
        accountant.spend("alice", coin, key=str(number))
        told.append(number)
    except LedgerError as error:
        assert "Nothing was charged" in str(error), error
        failed += 1
assert told and failed, (told, failed)
assert accountant.balance("alice").limits[0].spent_units.epsilon == len(told) * 10**9
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
for number in range(40):
    assert accountant.spend("alice", coin, key=str(number)).repeated == (number in told)
assert accountant.balance("alice").limits[0].spent_units.epsilon == 40 * 10**9
assert accountant.verify().ok, accountant.verify()
"""


def test_file_that_cannot_grow_refuses_until_it_can(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    subprocess.run([sys.executable, "-c", FILLING, path], check=True, timeout=60)
    with Accountant(path, create=False) as accountant:
        assert spent(accountant, "alice") == {"lifetime": 40}
        check(accountant)


# -- changed behind its back ---------------------------------------------------------------------------------
"""Those that only a ledger has that was moved, whose key was rotated, or that erased a refused user."""
