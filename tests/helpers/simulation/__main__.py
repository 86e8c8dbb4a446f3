"""Runs seeds of the simulator: `python tests/helpers/simulation --seed 7 --steps 1000 --trace`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

HELPERS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HELPERS), str(HELPERS.parent)]

from simulation import BrokenPromiseError, simulate  # noqa: E402


def main() -> int:
    """Run the seeds that the command line names; return 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="simulation", description="Run a seed of the ledger simulator.")
    parser.add_argument("--seed", type=int, default=1, help="the first seed [default: 1]")
    parser.add_argument(
        "--seeds", type=int, default=1, help="number of seeds to run, one after the other [default: 1]"
    )
    parser.add_argument("--steps", type=int, default=1_000, help="number of steps of each seed [default: 1000]")
    parser.add_argument("--trace", action="store_true", help="print every step")
    given = parser.parse_args()
    begun, done = time.process_time(), 0
    for seed in range(given.seed, given.seed + given.seeds):
        try:
            done += simulate(seed, given.steps, print if given.trace else None)
        except BrokenPromiseError as error:
            print(f"seed {seed}: {error}")
            return 1
    spent = time.process_time() - begun
    print(
        f"{done} steps of {given.seeds} seeds, every promise kept: {spent:.1f} s, {done / spent:.0f} steps a second"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
