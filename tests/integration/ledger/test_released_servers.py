"""Ledgers on PostgreSQL that releases wrote are opened, verified and charged by the code of today."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.released_ledgers import ReleasedLedgerContract
from ldp_budget_postgres.schema import PARTITIONED, SCHEMA_VERSION
from released_files import RELEASES, Released


@pytest.mark.usefixtures("own_keys")
class TestOnServer(ReleasedLedgerContract):
    @pytest.fixture(params=RELEASES, ids=lambda path: path.name)
    def released(self, request: pytest.FixtureRequest, own_keys: None, tmp_path: Path) -> Released:
        return Released(request.param, "server", tmp_path)

    def test_recorded_ledger_has_all_tables_of_its_version(self, released: Released) -> None:
        if released.about["tables"] == SCHEMA_VERSION:
            assert set(released.about["rows"]) == {"meta", *PARTITIONED}
