"""The SQLite ledger, step by step against the model in `ledger_model`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from ledger_model import LedgerMachine
from ledger_places import InFile, InMemory


class MemoryMachine(LedgerMachine):
    def make_place(self) -> InMemory:
        return InMemory()


class FileMachine(LedgerMachine):
    def make_place(self) -> InFile:
        self._folder = tempfile.TemporaryDirectory()
        return InFile(Path(self._folder.name) / "budget.db")

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self._folder.cleanup()


class TestInMemory(MemoryMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=20, stateful_step_count=50)


class TestInFile(FileMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=6, stateful_step_count=30)


@pytest.mark.slow
class TestLongInMemory(MemoryMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=1000, stateful_step_count=100)


@pytest.mark.slow
class TestLongInFile(FileMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=50, stateful_step_count=50)
