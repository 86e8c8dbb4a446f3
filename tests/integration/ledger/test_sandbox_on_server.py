"""A sandbox and a real ledger on servers never share a key."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldp_budget import Accountant, LedgerError, SandboxError
from postgres_places import new_ledger

pytestmark = pytest.mark.usefixtures("own_keys")


# -- never the one from the other -----------------------------------------------------------------------------


def test_sandbox_and_real_ledger_on_servers_never_share_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LDP_BUDGET_KEY", str(tmp_path / "shared.key"))
    first, second, third = new_ledger(2), new_ledger(2), new_ledger(2)
    Accountant(first, sandbox=True).close()
    with pytest.raises(SandboxError, match="this is a sandbox, and a real ledger was asked for"):
        Accountant(second)
    Accountant(third, sandbox=True).close()
    (tmp_path / "shared.key").unlink()
    Accountant(second).close()
    with pytest.raises(LedgerError, match=r"belongs to another ledger|a sandbox was asked for"):
        Accountant(first, sandbox=True)
