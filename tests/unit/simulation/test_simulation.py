"""The simulator of the ledger: the engine keeps every promise, and a seed always runs the same steps."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from random import Random

import pytest

from ldp_budget import Accountant, LedgerError
from ldp_budget.ledger.keyed_hashing import Key
from simulation import simulate
from simulation.clients import MECHANISMS
from simulation.store import FAULTS, Connection, Crash, Disk, Fault

HELPERS = Path(__file__).parents[2] / "helpers"


@pytest.mark.slow
def test_simulator_of_several_seeds_keeps_every_promise() -> None:
    """5,000 steps. A broken promise names the command that replays its seed."""
    assert sum(simulate(seed, 500) for seed in range(10)) >= 5_000


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(1_000, 1_100, 10))
def test_simulator_of_many_seeds_keeps_every_promise(first: int) -> None:
    """100,000 steps in all."""
    assert sum(simulate(seed) for seed in range(first, first + 10)) >= 10_000


@pytest.mark.slow
def test_simulator_with_same_seed_runs_same_steps() -> None:
    first, second, other = list[str](), list[str](), list[str]()
    simulate(3, 300, first.append)
    simulate(3, 300, second.append)
    simulate(4, 300, other.append)
    assert first == second != other


@pytest.mark.slow
def test_simulator_of_several_seeds_meets_every_fault() -> None:
    lines: list[str] = []
    for seed in range(4):
        simulate(seed, 500, lines.append)
    told = "\n".join(lines)
    assert [fault for fault in FAULTS if f"[{fault}" not in told] == []
    assert "    process" in told, "no process ran between two transactions of another one"
    for sign in ("repeated", "KeyConflict", "ClockError", "starts again", "power fails", "repairs the clock: done"):
        assert sign in told


@pytest.mark.slow
def test_simulation_command_with_seed_prints_every_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["simulation", "--seed", "5", "--steps", "60", "--trace"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(HELPERS / "simulation"), run_name="__main__")
    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert "process 0 sets default" in out
    assert "every promise kept" in out


def test_reference_model_has_200_lines_without_code_of_the_library() -> None:
    source = (HELPERS / "simulation" / "model.py").read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 200
    assert "ldp_budget" not in source


# -- the simulated disk --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "is_charged"), [("torn", False), ("lost", False), ("unheard", True), ("late", True)]
)
def test_disk_after_fault_at_commit_has_all_or_nothing(kind: str, is_charged: bool) -> None:
    disk = Disk(Key(bytes(range(32))), 3)
    connection = Connection(disk, Random(0), lambda: None)
    with Accountant(connection) as accountant:
        accountant._ledger.after_commit = lambda: None
        accountant.set_policy("default", ["lifetime=9"])
        before = sum(connection.entries())
        connection.fault = Fault(kind, 0, 0)
        with pytest.raises((LedgerError, Crash)):
            accountant.spend("alice", MECHANISMS["tenth"])
    disk.lose_power()
    assert sum(connection.entries()) - before == is_charged


def test_disk_after_power_loss_has_every_commit() -> None:
    disk = Disk(Key(bytes(range(32))), 1)
    with Accountant(Connection(disk, Random(0), lambda: None)) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        receipts = [accountant.spend("alice", MECHANISMS["tenth"], key=f"{number}") for number in range(3)]
    disk.lose_power()
    with Accountant(Connection(disk, Random(0), lambda: None)) as accountant:
        again = [accountant.spend("alice", MECHANISMS["tenth"], key=f"{number}") for number in range(3)]
        assert [each.receipt for each in again] == [each.receipt for each in receipts]
        assert accountant.verify().ok
