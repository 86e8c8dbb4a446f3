"""ε of composed reports compared with other libraries: value, looseness, time and memory, on the same cases in one run.

    pip install -r benchmarks/peers/requirements/dp-accounting.txt -r benchmarks/peers/requirements/prv-accountant.txt
    python benchmarks/composition.py

A peer that cannot be imported is left out. Every figure comes from a process of its own, which may take `LIMIT`
seconds and `MOST_MEMORY`. Time is the best of a few runs without imports; memory is the peak of the whole process.
Looseness is relative to our certified lower bound of the true ε, so it is never understated; a value below that bound
promises less than is lost. All neighbours are local: one input replaced by any other. Peers run with their default
grids, dp-accounting through the loss distributions themselves, as its accountant loses the count of randomised
response. Needs a Unix.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import reduce
from typing import Any

LIMIT = 15.0  # seconds of one cell
MOST_MEMORY = 12 * 2**30
ENOUGH = 1.0  # seconds after which a figure is not repeated

# A case is a δ and what is reported: (kind, ε or 1/σ or 1/b, reports). The kind grr10 has ten answers.
Case = tuple[float, list[tuple[str, float, int]]]
CASES: dict[str, Case] = {
    "50 × GRR(0.5), d = 10": (1e-6, [("grr10", 0.5, 50)]),
    "1,000 × RR(1)": (1e-6, [("rr", 1.0, 1000)]),
    "10,000 × RR(0.1)": (1e-10, [("rr", 0.1, 10_000)]),
    "1,000 × Laplace(b=10)": (1e-6, [("laplace", 0.1, 1000)]),
    "1,000 × Gaussian(σ=10)": (1e-6, [("gaussian", 0.1, 1000)]),
    "RR(0.1), Gaussian(σ=10), Laplace(b=10), 1,000 of each": (
        1e-6,
        [("rr", 0.1, 1000), ("gaussian", 0.1, 1000), ("laplace", 0.1, 1000)],
    ),
    "1,000,000 × Laplace(b=2)": (1e-6, [("laplace", 0.5, 10**6)]),
    "10,000,000,000 × RR(0.5)": (1e-6, [("rr", 0.5, 10**10)]),
    # Losses on no lattice.
    "100 kinds, RR and Laplace, 10,000 of each": (
        1e-6,
        [("laplace" if i % 2 else "rr", round(0.01 + 0.99 * (i * 0.6180339887 % 1), 9), 10_000) for i in range(100)],
    ),
    "100 kinds, RR and Laplace, one of each": (
        1e-6,
        [("laplace" if i % 2 else "rr", round(0.01 + 0.99 * (i * 0.6180339887 % 1), 9), 1) for i in range(100)],
    ),
}


def answers(kind: str) -> int:
    return 10 if kind == "grr10" else 2


def noise_share(kind: str, epsilon: float) -> float:
    """The probability of a uniform answer with which randomised response has loss ε."""
    size = answers(kind)
    return size / (math.exp(epsilon) + size - 1)


# -- the tools: a case in, (lower, upper) out; None for a bound that the tool does not give --------------------


def ours(case: Case) -> tuple[float | None, float]:
    from ldp_budget.composition import compose
    from ldp_budget.guarantees import Gaussian, Laplace, SymmetricPair

    delta, reports = case
    charges: list[tuple[Any, int]] = []
    for kind, size, count in reports:
        if kind in ("laplace", "gaussian"):
            charges.append(((Laplace if kind == "laplace" else Gaussian)(size), count))
        else:
            tau = (math.exp(size) + 1) / (math.exp(size) + 1 + (answers(kind) - 2))
            charges.append((SymmetricPair(size, tau), count))
    total = compose(charges, delta=delta, rule="exact")
    return total.lower, total.epsilon


def dp_accounting_pld(case: Case) -> tuple[float | None, float]:
    from dp_accounting.pld import privacy_loss_distribution as pld

    def composed(kind: str, size: float, count: int) -> Any:
        if kind == "laplace":
            one = pld.from_laplace_mechanism(1 / size)
        elif kind == "gaussian":
            one = pld.from_gaussian_mechanism(1 / size)
        else:
            one = pld.from_randomized_response(noise_share(kind, size), answers(kind))
        return one.self_compose(count)

    delta, reports = case
    total = reduce(lambda a, b: a.compose(b), (composed(*report) for report in reports))
    return None, total.get_epsilon_for_delta(delta)


def dp_accounting_rdp(case: Case) -> tuple[float | None, float]:
    from dp_accounting import dp_event
    from dp_accounting.privacy_accountant import NeighboringRelation
    from dp_accounting.rdp import RdpAccountant

    delta, reports = case
    accountant = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    for kind, size, count in reports:
        if kind == "laplace":
            event = dp_event.LaplaceDpEvent(1 / size)
        elif kind == "gaussian":
            event = dp_event.GaussianDpEvent(1 / size)
        else:
            event = dp_event.RandomizedResponseDpEvent(noise_share(kind, size), answers(kind))
        accountant.compose(event, count)
    return None, accountant.get_epsilon(delta)


def prv_accountant(case: Case) -> tuple[float | None, float]:
    import prv_accountant as prv
    from prv_accountant.privacy_random_variables import LaplaceMechanism, PureDPMechanism

    delta, reports = case
    if any(kind == "grr10" for kind, _, _ in reports):
        raise NotImplementedError("not offered")
    variables = {
        "rr": PureDPMechanism,
        "laplace": LaplaceMechanism,
        "gaussian": lambda mu: prv.GaussianMechanism(1 / mu),
    }
    counts = [count for _, _, count in reports]
    accountant = prv.PRVAccountant(
        prvs=[variables[kind](size) for kind, size, _ in reports],
        max_self_compositions=counts,
        eps_error=0.1,
        delta_error=delta / 1000,
    )
    lower, _, upper = accountant.compute_epsilon(delta=delta, num_self_compositions=counts)
    return lower, upper


OURS = "ldp-budget exact"
TOOLS: dict[str, tuple[str, Callable[[Case], tuple[float | None, float]]]] = {
    OURS: ("ldp_budget", ours),
    "dp-accounting PLD": ("dp_accounting", dp_accounting_pld),
    "dp-accounting RDP": ("dp_accounting", dp_accounting_rdp),
    "prv-accountant": ("prv_accountant", prv_accountant),
}


# -- one cell, in a process of its own ------------------------------------------------------------------------


def run_cell(tool: str, case: str) -> None:
    """Print one cell as JSON."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    _, compute = TOOLS[tool]
    compute((1e-3, [("gaussian", 1.0, 1), ("rr", 1.0, 1)]))  # imports, and nothing that is measured
    best, spent = math.inf, 0.0
    while spent < ENOUGH:
        start = time.perf_counter()
        lower, upper = compute(CASES[case])
        taken = time.perf_counter() - start
        best, spent = min(best, taken), spent + taken
    unit = 2**20 if sys.platform == "darwin" else 2**10
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(json.dumps({"lower": lower, "upper": upper, "seconds": best, "megabytes": memory}))


def cell(tool: str, case: str) -> dict[str, Any]:
    """Figures of a process of its own, or the reason for none."""
    command = [sys.executable, __file__, tool, case]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {LIMIT:g} s"}
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or [f"ended with code {done.returncode}"]
        return {"failed": reason[0].removeprefix("NotImplementedError: ")[:60]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def importable(package: str) -> bool:
    command = [sys.executable, "-c", f"import {package}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def row(tool: str, found: dict[str, Any], truth: float) -> str:
    if "failed" in found:
        return f"| {tool} | {found['failed']} | | | |"
    loose = found["upper"] / truth - 1
    verdict = f"{loose:.2e}" if loose >= 0 else f"below the truth by {-loose:.1%}"
    cost = f"{found['seconds'] * 1e3:,.1f} ms | {found['megabytes']:,.0f} MB"
    return f"| {tool} | {found['upper']:.6f} | {verdict} | {cost} |"


def main() -> None:
    tools = [tool for tool, (package, _) in TOOLS.items() if importable(package)]
    for case, (delta, _) in CASES.items():
        found = {tool: cell(tool, case) for tool in tools}
        if "failed" in found[OURS]:
            sys.exit(f"{OURS}: {found[OURS]['failed']}")
        truth = found[OURS]["lower"]
        print(f"\n## {case}, δ = {delta:g}\n")
        print("| | ε | looseness | time | peak memory |\n| --- | ---: | ---: | ---: | ---: |")
        for tool in tools:
            print(row(tool, found[tool], truth), flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        run_cell(*sys.argv[1:])
    else:
        main()
