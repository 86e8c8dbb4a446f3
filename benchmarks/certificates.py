"""Certificates of totals: how much they add to the exact ε, how large they are, and how long making and checking take.

    python benchmarks/certificates.py

Times are seconds of one processor core. The table of the law check shows the seconds for each mechanism.
"""

from __future__ import annotations

import json
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

from ldp_budget import compose, mechanism
from ldp_budget.guarantees import SymmetricPair
from ldp_budget_verify.shipped_checkers import checker
from ldp_budget_verify.total_certificate import certificate, written

DELTA = "1e-6"


def made(name: str, epsilon: str, **options: Any) -> Any:
    return mechanism(name).calibrate(epsilon=epsilon, **options)


def lists() -> dict[str, list[tuple[Any, int]]]:
    """The lists of the table, by name."""
    oue, grr = made("oue", "0.5", domain_size=7), made("grr", "1", domain_size=10)
    laplace = made("laplace", "0.5", lower=0, upper=1)
    gaussian = made("gaussian", "0.5", delta="1e-6", lower=0, upper=1)
    mixed = [
        (oue, 52),
        (made("grr", "0.77", domain_size=10), 52),
        (made("sue", "0.313", domain_size=5), 100),
        (made("randomized-response", "1.1"), 12),
    ]
    small = (("0.05", "0.5", 5000), ("0.0777", "0.3", 2500), ("0.031", "0.9", 2500))
    return {
        "50 x oue(0.5)": [(oue, 50)],
        "365 x oue(0.5)": [(oue, 365)],
        "100 x grr(1)": [(grr, 100)],
        "216 reports of four losses": mixed,
        "the same and 40 Gaussian": [*mixed, (gaussian, 40)],
        "the same and 30 Laplace": [*mixed, (gaussian, 40), (laplace, 30)],
        "50 Laplace and 52 oue": [(laplace, 50), (oue, 52)],
        "100 Gaussian": [(gaussian, 100)],
        "10,000 of three losses": [(SymmetricPair(Decimal(e), Decimal(tau)), count) for e, tau, count in small],
    }


def main() -> None:
    print(f"| list (delta {DELTA}) | exact | certificate | above | bytes | make (s) | check (s) |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, charges in lists().items():
        exact = compose(charges, delta=DELTA, rule="exact").epsilon
        start = time.process_time()
        claim = certificate(charges, delta=DELTA)
        middle = time.process_time()
        checker("check_total").check(written(claim))
        end = time.process_time()
        above = f"{100 * (float(claim['epsilon']) / exact - 1):.4f} %"
        times = f"{middle - start:.2f} | {end - middle:.2f}"
        print(f"| {name} | {exact:.4f} | {claim['epsilon']} | {above} | {len(written(claim))} | {times} |")
    print("\n| mechanism | law check (s) |\n| --- | --- |")
    vectors = Path(__file__).parents[1] / "clients" / "vectors" / "laws.json"
    for row in json.loads(vectors.read_text()):
        if row["verdict"] == "proved":
            start = time.process_time()
            checker("check_law").check(json.dumps(row["definition"]).encode())
            print(f"| {row['name']} | {time.process_time() - start:.2f} |")


if __name__ == "__main__":
    main()
