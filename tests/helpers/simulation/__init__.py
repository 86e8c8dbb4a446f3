"""A deterministic simulator of the ledger: it runs a world from one seed, and checks every promise on the way.

Read `clients` first: its constants are what a ledger promises, and its methods what clients may do. `model` is the
reference in 200 lines of plain Python. `store` has the disk and its faults, `world` the processes and their clocks.

A step is one request, one other operation, or one event such as a power failure. Run a seed with
`python tests/helpers/simulation --seed 7 --trace`.
"""

from __future__ import annotations

from collections.abc import Callable

from .clients import Clients
from .world import BrokenPromiseError

__all__ = ["BrokenPromiseError", "simulate"]

WEIGHTS = {
    Clients.charge_together: 22,
    Clients.charge_one: 22,
    Clients.charge_each: 6,
    Clients.end_reservation: 12,
    Clients.charge_batch: 4,
    Clients.set_policy: 2,
    Clients.erase: 0.5,
    Clients.seal: 2,
    Clients.wait: 12,
    Clients.jump: 1,
    Clients.repair_clocks: 1.5,
    Clients.restart: 2,
    Clients.lose_power: 1,
    Clients.read_balances: 4,
    Clients.verify: 0.7,
}


def simulate(seed: int, steps: int = 1_000, tell: Callable[[str], None] | None = None) -> int:
    """Run a world of at least so many steps; return their number. Raises `BrokenPromiseError`."""
    world = Clients(seed, tell)
    operations, weights = list(WEIGHTS), list(WEIGHTS.values())
    with world.running(), world.errors_are_broken_promises():
        world.prepare()
        while world.steps < steps:
            before = world.steps
            (operation,) = world.random.choices(operations, weights)
            world.run(operation)
            world.steps = max(world.steps, before + 1)
        for operation in (Clients.repair_clocks, Clients.verify, Clients.read_balances):
            world.run(operation)
    return world.steps
