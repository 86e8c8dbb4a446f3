"""Ledgers on PostgreSQL that releases wrote are opened, verified and charged; see `server_fixture`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import ldp_budget
import server_fixture
from ldp_budget import Accountant

RECORDED = sorted((Path(__file__).resolve().parents[2] / "data" / "formats").glob("*/server.json"))


@pytest.mark.parametrize("recorded", [None, *RECORDED], ids=lambda path: path.parent.name if path else "just written")
def test_ledger_of_a_release_on_a_server_opens_verifies_and_charges(
    tmp_path: Path, own_keys: None, recorded: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if recorded is None:
        server_fixture.write(tmp_path)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "elsewhere"))
    folder = tmp_path if recorded is None else recorded.parent
    about = json.loads((folder / "server.json").read_text(encoding="utf-8"))
    at = datetime.fromtimestamp(float(about["at"]) + 3600, UTC)
    with Accountant(server_fixture.load(folder), create=False, clock=lambda: at) as accountant:
        found = accountant.verify(about["head"])
        assert found.ok, found.problems
        assert found.entries == about["entries"]
        assert accountant.is_erased("dave")
        policies = {policy.name for policy in accountant.policies()}
        assert {*about["policies"]} <= policies
        coin = ldp_budget.mechanism("rr")(epsilon="0.01")
        assert accountant.spend("someone new", coin, key="a", policy="plain").status == "spent"
        assert accountant.verify(about["head"]).ok
