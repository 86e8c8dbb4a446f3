"""The ledger's contract, kept by a store of dictionaries that does every piece of work twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger_contract import LedgerContract
from ledger_places import InToys


class TestToyStore(LedgerContract):
    @pytest.fixture(params=[1, 3], ids=lambda lanes: f"{lanes} lanes")
    def place(self, request: pytest.FixtureRequest) -> InToys:
        return InToys(request.param)


def test_a_store_is_a_small_thing_to_write() -> None:
    source = Path(__file__).parents[1] / "toy_store.py"
    assert len(source.read_text(encoding="utf-8").splitlines()) < 300
