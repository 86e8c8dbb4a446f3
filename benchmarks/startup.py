"""Time of whole `ldp-budget` processes, compared with a floor of the same run.

    python benchmarks/startup.py [ROUNDS]

The floor is `python -c "import click"`, which no command written with click can beat. In each round every command
runs once, one after the other, so that a busy moment of the machine meets all of them; the medians over the rounds
are printed as a table, with the ratio to the floor. Processor time is printed next to clock time, because other work on
the machine moves it less. Targets: `--help` at most twice the floor, a spend at most 0.4 s. Needs a Unix.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

ROUNDS = 15
SCRIPT = str(Path(sys.executable).with_name("ldp-budget"))
OUE = ("oue", "--epsilon", "0.001", "--domain-size", "7")

COMMANDS = {
    "python -c pass": (sys.executable, "-c", "pass"),
    "python -c 'import click'": (sys.executable, "-c", "import click"),
    "python -c 'import ldp_budget'": (sys.executable, "-c", "import ldp_budget"),
    "ldp-budget --help": (SCRIPT, "--help"),
    "ldp-budget mechanisms": (SCRIPT, "mechanisms"),
    "ldp-budget calibrate oue": (SCRIPT, "calibrate", *OUE),
    "ldp-budget quote": (SCRIPT, "quote", "alice", *OUE),
    "ldp-budget spend": (SCRIPT, "spend", "alice", *OUE),
}
FLOOR = "python -c 'import click'"
LIMITS_IN_RATIO = {"ldp-budget --help": 2.0}
LIMITS_IN_SECONDS = {"ldp-budget spend": 0.4}


def seconds(command: tuple[str, ...], environment: dict[str, str]) -> tuple[float, float]:
    """(clock, processor) time of one run."""
    start, used = perf_counter(), _processor()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return perf_counter() - start, _processor() - used


def _processor() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def measure(rounds: int, environment: dict[str, str]) -> dict[str, list[tuple[float, float]]]:
    """The times of every command in every round, after one round that only warms the caches."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for turn in range(rounds + 1):
        for name, command in COMMANDS.items():
            taken = seconds(command, environment)
            if turn:
                times[name].append(taken)
    return times


def verdict(name: str, middle: float, ratio: float) -> str:
    if name in LIMITS_IN_RATIO:
        limit = LIMITS_IN_RATIO[name]
        return f"{'met' if ratio <= limit else 'MISSED'}: at most {limit:g}x"
    if name in LIMITS_IN_SECONDS:
        limit = LIMITS_IN_SECONDS[name]
        return f"{'met' if middle <= limit else 'MISSED'}: at most {limit:g} s"
    return ""


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LDP_BUDGET_LEDGER": os.path.join(folder, "ledger.db")}
        # Compiled modules are kept, as in any installation, and here rather than next to the sources.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPYCACHEPREFIX"] = os.path.join(folder, "compiled")
        policy = (SCRIPT, "policy", "set", "default", "--limit", "lifetime=10", "--limit", "day=5")
        seconds(policy, environment)
        times = measure(rounds, environment)
    floor = median(clock for clock, _ in times[FLOOR])
    print(f"| whole process, {rounds} rounds | median | quartiles | processor | ratio | target |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    for name, taken in times.items():
        low, middle, high = quantiles((clock for clock, _ in taken), n=4, method="inclusive")
        processor = median(used for _, used in taken)
        ratio = middle / floor
        figures = (f"{middle:.3f} s", f"{low:.3f}–{high:.3f}", f"{processor:.3f} s", f"{ratio:.2f}")
        print("| " + " | ".join((f"`{name}`", *figures, verdict(name, middle, ratio))) + " |")


if __name__ == "__main__":
    main()
