"""Ledgers in a file, in memory and of dictionaries in partitions, step by step against the model in `contract.model`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from contract.model import LedgerMachine
from contract.places import InFile, InMemory, InToys

pytestmark = pytest.mark.slow


class MemoryMachine(LedgerMachine):
    def make_place(self) -> InMemory:
        return InMemory()


class FileMachine(LedgerMachine):
    def make_place(self) -> InFile:
        self._folder = tempfile.TemporaryDirectory()
        return InFile(Path(self._folder.name) / "budget.db")

    def remove_place(self) -> None:
        self._folder.cleanup()


class ToyMachine(LedgerMachine):
    def make_place(self) -> InToys:
        return InToys(3)


class TestInMemory(MemoryMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=12, stateful_step_count=50)


class TestInFile(FileMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=3, stateful_step_count=30)


class TestInToys(ToyMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=3, stateful_step_count=30)


@pytest.mark.exhaustive
class TestLongInMemory(MemoryMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=200, stateful_step_count=100)


@pytest.mark.exhaustive
class TestLongInFile(FileMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=50, stateful_step_count=50)


@pytest.mark.exhaustive
class TestLongInToys(ToyMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=30, stateful_step_count=50)
