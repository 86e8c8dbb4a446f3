"""A deterministic simulator of the ledger: it runs a world from one seed, and checks every promise on the way.

Read `clients` first: its constants are what a ledger promises, its methods what clients do. `model` is the reference
in 200 lines of plain Python. `store` has the disk and its faults, `world` the processes and their clocks. A step is
one request, one other operation, or one event such as a power failure. To run a seed and see every step:

    python tests/helpers/simulation --seed 7 --steps 1000 --trace
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
    Clients.charge_batch: 4,
    Clients.end_reservation: 12,
    Clients.set_policy: 2,
    Clients.erase: 0.5,
    Clients.seal: 2,
    Clients.wait: 12,
    Clients.jump: 2,
    Clients.repair_clock: 1.5,
    Clients.restart: 2,
    Clients.lose_power: 1,
    Clients.read_balances: 3,
    Clients.verify: 0.4,
}
"""The operations, and how often each is drawn."""
LAST = (Clients.repair_clock, Clients.lose_power, Clients.verify, Clients.read_balances)


def simulate(seed: int, steps: int = 1_000, write: Callable[[str], None] | None = None) -> int:
    """Run a world of at least so many steps; return their number. Raises `BrokenPromiseError`."""
    world = Clients(seed, write)
    world.asked = steps
    with world.running():
        world.prepare()
        while world.steps < steps:
            (operation,) = world.random.choices([*WEIGHTS], [*WEIGHTS.values()])
            before = world.steps
            operation(world, world.random.choice(world.processes))
            world.steps = max(world.steps, before + 1)
            world.restart_dead()
        for operation in LAST:
            operation(world, world.processes[0])
            world.restart_dead()
    return world.steps
